"""The option --notify of `study`: a command that is run once the study has ended, however that was but by Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from framegauge.cli import output
from framegauge.cli.arguments import Verb
from framegauge.errors import FramegaugeError, Interrupted, NothingJudged, TooBusy
from framegauge.printable import one_line

__all__ = ["add", "at_end"]

MOST_SECONDS = 60.0
MOST_BYTES = 1000  # of what it printed, from its end


def add(whole: Verb) -> None:
    """Adds the option."""
    whole.add_argument(
        "--notify", metavar="COMMAND",
        help="run this by sh when the study ends, with FRAMEGAUGE_RESULTS, FRAMEGAUGE_VERDICT and FRAMEGAUGE_ANSWER",
    )  # fmt: skip


@contextlib.contextmanager
def at_end(folder: Path, command: str | None) -> Iterator[None]:
    """Runs the command at the end of the block, if there is one. Whoever interrupts a study knows that it has ended."""
    if command is None:
        yield
        return
    try:
        yield
    except Interrupted:
        raise
    except FramegaugeError as error:
        judged = isinstance(error, NothingJudged) and not isinstance(error, TooBusy)
        _run(command, folder, *(_said(folder) if judged else ("failed", str(error))))
        raise
    _run(command, folder, *_said(folder))


def _said(folder: Path) -> tuple[str, str]:
    """The kind of the answer, and the whole of it, from the summary that the study has just written."""
    from framegauge import foreign
    from framegauge.summary.sentence import answer

    final_answer = answer(foreign.load_json(foreign.read(folder / "summary.json")))
    return str(final_answer.kind), final_answer.text


def _run(command: str, folder: Path, verdict: str, answer: str) -> None:
    """Runs it, and says in one line if it failed: that is no failure of the study."""
    variables = {
        "FRAMEGAUGE_RESULTS": str(folder.absolute()), "FRAMEGAUGE_VERDICT": verdict,
        "FRAMEGAUGE_ANSWER": one_line(answer),
    }  # fmt: skip
    with tempfile.TemporaryFile() as printed:
        try:
            process = subprocess.Popen(
                ["sh", "-c", command], env={**os.environ, **variables}, stdin=subprocess.DEVNULL, stdout=printed,
                stderr=printed, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            output.say(f"--notify: found no way to run it ({one_line(error)}); the study is not affected")
            return
        try:
            code = process.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            output.say(f"--notify: found it running after {MOST_SECONDS:g} s, and ended it; the study is not affected")
            return
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if code:
            printed.seek(max(0, printed.tell() - MOST_BYTES))
            last = printed.read().decode(errors="replace").strip().splitlines()[-1:]
            suffix = f" ({one_line(last[0])})" if last else ""
            output.say(f"--notify: found exit code {code}{suffix}, expected 0; the study is not affected")
