"""The agent's binary as a reader of captures: one process, in a group of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from framegauge.agents.binary import find_agent
from framegauge.errors import AgentFailure, InputError, ending
from framegauge.printable import complaint

__all__ = ["asked", "judged"]


def asked(
    words: Sequence[str],
    files: Sequence[Path],
    told: bytes | None = None,
    output: IO[bytes] | int = subprocess.PIPE,
) -> bytes:
    """What `framegauge-agent diagnose WORDS FILE...` prints, or nothing if it prints to `output`.

    Without `told`, its standard input is that of this program, for the file "-". InputError, in the agent's words, for
    input that it refuses.
    """
    command = [find_agent(), "diagnose", *words, *map(str, files)]
    stdin = None if told is None else subprocess.PIPE
    # Its own group, so that Ctrl-C in the terminal reaches only this program.
    with subprocess.Popen(command, stdin=stdin, stdout=output, stderr=subprocess.PIPE, process_group=0) as process:
        try:
            answer, stderr_text = process.communicate(told)
        except BaseException:
            process.kill()
            raise
    judged(process.returncode, stderr_text.decode(errors="replace"), files)
    return answer or b""


def judged(code: int, said: str, files: Sequence[Path]) -> None:
    """InputError, in the agent's words, or AgentFailure, by the exit code and what was said on standard error."""
    why = complaint(said, "framegauge-agent diagnose: ", 300)
    if code == 2:
        raise InputError(why)
    if code != 0:
        about = f"{files[0]}: " if files else ""
        raise AgentFailure(f"{about}the diagnosis ended with {ending(code)}{why and f': {why}'}")
