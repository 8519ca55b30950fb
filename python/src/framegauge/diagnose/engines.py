"""Where captures are diagnosed: on the cores of this machine, or on a Dask cluster that the user has."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from framegauge.agents import cluster, remote
from framegauge.agents.cluster import LOCAL
from framegauge.diagnose.process import asked, judged
from framegauge.errors import InputError

__all__ = ["LOCAL", "Engine", "local", "opened"]

MOST_SENT_BYTES = 1 << 30
MOST_LOST = 10

# The answers of `framegauge-agent diagnose WORDS FILE` for each file, in their order; told when each is done.
Engine = Callable[[Sequence[str], Sequence[Path], Callable[[Path], None]], list[bytes]]


def local(words: Sequence[str], files: Sequence[Path], done: Callable[[Path], None]) -> list[bytes]:
    """One process for each file, as many at once as there are CPUs."""

    def one(file: Path) -> bytes:
        answer = asked(words, [file])
        done(file)
        return answer

    with ThreadPoolExecutor(max(1, min(len(files), os.cpu_count() or 1))) as pool:
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


def _spread(client: Any, words: Sequence[str], files: Sequence[Path], done: Callable[[Path], None]) -> list[bytes]:
    """As `local`, on the workers. Captures that a worker does not find at the same path are sent to it."""
    agent = cluster.agent(client)
    signatures = [remote.signature(str(file)) for file in files]
    answers: list[bytes] = [b""] * len(files)
    begun: dict[Any, int] = {}
    lost = 0
    try:
        for place, (file, known) in enumerate(zip(files, signatures, strict=True)):
            if known is None:  # a pipe, or no file: what is wrong with it, the agent here says
                answers[place] = asked(words, [file])
                done(file)
                continue
            begun[_submitted(client, agent, words, file, known, None)] = place
        from distributed import as_completed

        running = as_completed(list(begun), loop=client.loop)
        for future in running:
            place = begun[future]
            file, known = files[place], signatures[place]
            # A capture that was sent is lost with the worker that had it.
            is_lost = future.cancelled() and lost < MOST_LOST
            lost += is_lost
            found: Any = None if is_lost else cluster.result(future, str(file))
            if found is None and known is not None:
                again = _submitted(client, agent, words, file, known, client.scatter(_whole(file, known[0])))
                begun[again] = place
                running.add(again)
                continue
            code, answers[place], said = found
            judged(code, said, [file])
            done(file)
    finally:
        client.cancel(list(begun))
    return answers


def _submitted(client: Any, agent: Any, words: Sequence[str], file: Path, known: tuple[int, str], data: Any) -> Any:
    path = str(file.resolve())
    return client.submit(
        remote.answer, agent, platform.machine(), list(words), path, known, data, pure=False, retries=1
    )


def _whole(file: Path, size: int) -> bytes:
    if size > MOST_SENT_BYTES:
        raise InputError(
            f"{file}: found {size:,} bytes that no worker has at this path, expected at most {MOST_SENT_BYTES:,} to "
            "send to one: put it where workers find it, too"
        )
    return file.read_bytes()
