"""Where captures are diagnosed: on the cores of this machine, or on a Dask cluster that the user has."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from framegauge.agents import cluster, remote
from framegauge.agents.cluster import LOCAL
from framegauge.diagnose.process import asked, judged
from framegauge.errors import InputError

__all__ = ["LOCAL", "Engine", "local", "opened"]

MOST_SENT_BYTES = 1 << 30

# The answers of `framegauge-agent diagnose WORDS FILE` for each file, in their order, in files without a name; told
# when each is done.
Engine = Callable[[Sequence[str], Sequence[Path], Callable[[Path], None]], list[IO[bytes]]]


def local(words: Sequence[str], files: Sequence[Path], done: Callable[[Path], None]) -> list[IO[bytes]]:
    """One process for each file, as many at once as there are CPUs; those of few files share the CPUs."""
    cpus = os.cpu_count() or 1
    threads = ["--threads", str(max(1, cpus // max(1, len(files))))]

    def one(file: Path) -> IO[bytes]:
        answer = tempfile.TemporaryFile()  # noqa: SIM115 (it lasts as long as its rows are wanted)
        asked([*words, *threads], [file], output=answer)
        done(file)
        return answer

    with ThreadPoolExecutor(max(1, min(len(files), cpus))) as pool:
        return list(pool.map(one, files))


@contextmanager
def opened(text: str) -> Iterator[Engine]:
    """The engine of `--engine`: "local", or "dask://HOST:PORT", the scheduler of a cluster.

    InputError as for `cluster.connected`.
    """
    if text == LOCAL:
        yield local
        return
    with cluster.connected(text) as client:
        yield lambda words, files, done: _spread(client, words, files, done)


def _spread(client: Any, words: Sequence[str], files: Sequence[Path], done: Callable[[Path], None]) -> list[IO[bytes]]:
    """As `local`, on the workers. Captures that a worker does not find at the same path are sent to it."""
    work = cluster.Work(client)

    def one(file: Path) -> IO[bytes]:
        signature = remote.signature(str(file))
        if signature is None:  # a pipe, or no file: what is wrong with it, the agent here says
            answer = asked(words, [file])
        else:
            code, answer, stderr_text = _answered(work, words, file, signature)
            judged(code, stderr_text, [file])
        done(file)
        answer_file = tempfile.TemporaryFile()  # noqa: SIM115 (as above)
        answer_file.write(answer)
        answer_file.flush()
        return answer_file

    with ThreadPoolExecutor(max(1, min(len(files), 2 * work.threads()))) as pool:
        try:
            return list(pool.map(one, files))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            work.stop()
            raise


def _answered(
    work: cluster.Work, words: Sequence[str], file: Path, signature: tuple[int, str]
) -> tuple[int, bytes, str]:
    arguments = (list(words), str(file.resolve()), signature)
    reply = work.answer(str(file), remote.answer, *arguments)
    if reply is None:
        reply = work.answer(str(file), remote.answer, *arguments, sent=_whole(file, signature[0]))
    code, answer, stderr_text = reply
    return code, answer, stderr_text


def _whole(file: Path, size: int) -> bytes:
    if size > MOST_SENT_BYTES:
        raise InputError(
            f"{file}: found {size:,} bytes that no worker has at this path, expected at most {MOST_SENT_BYTES:,} to "
            "send to one: put it where workers find it, too"
        )
    return file.read_bytes()
