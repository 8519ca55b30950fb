"""Keeps a rack: a process that holds the pipe of its agent until it is told to let go.

It is started as a file, by an interpreter that imports nothing but the standard library, so that it is up at once
and small while it waits. SIGTERM, or the end of whoever started it before that one has committed, takes the rack
down and removes the state file; if the agent goes away by itself, the state file says why.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["main", "replace"]

SHUTDOWN = b'{"jsonrpc":"2.0","id":0,"method":"shutdown","params":{}}\n'
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def replace(path: str, state: Mapping[str, Any]) -> None:
    """Write a state file, mode 600, at once or not at all."""
    draft = f"{path}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(draft, flags, 0o600), "w", encoding="utf-8") as file:
        json.dump(state, file, indent=2)
        file.write("\n")
    os.rename(draft, path)


def _wait(agent: int, asked: int, starter: int) -> bool:
    """Until the rack is to go (True), or its agent has gone (False)."""
    waiting = select.poll()
    waiting.register(agent, 0)  # hanging up is told without asking, and nothing else is of interest
    waiting.register(asked, select.POLLIN)
    waiting.register(starter, select.POLLIN)
    while True:
        for descriptor, _ in waiting.poll():
            if descriptor == agent:
                return False
            if descriptor == asked or os.read(starter, 1) == b"":
                return True
            waiting.unregister(starter)  # committed: from here on nobody else holds the rack


def _let_go(agent_input: int, agent_output: int) -> None:
    """Tell the agent to put everything back, and wait until it has."""
    with contextlib.suppress(OSError):
        os.write(agent_input, SHUTDOWN)
    os.close(agent_input)
    waiting = select.poll()
    waiting.register(agent_output, 0)
    waiting.poll()


def _last_words(errors: int) -> str:
    """The end of what the agent wrote to its standard error."""
    size = os.fstat(errors).st_size
    text = os.pread(errors, 2000, max(0, size - 2000)).decode("utf-8", "replace")
    return "; ".join(line.strip() for line in text.split("\n")[-4:] if line.strip())


def main(path: str, agent_input: int, agent_output: int, agent_errors: int, starter: int) -> None:
    """Keep the rack whose state is in `path`; the numbers are descriptors."""
    asked, ask = os.pipe()
    os.set_blocking(ask, False)
    signal.set_wakeup_fd(ask)
    for number in SIGNALS:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    os.chdir("/")
    with contextlib.suppress(OSError):  # whoever started it may have gone
        os.write(starter, b"r")
    wanted = _wait(agent_output, asked, starter)
    if wanted:
        _let_go(agent_input, agent_output)
    with open(path, encoding="utf-8") as file:
        state = json.load(file)
    if state["keeper"]["pid"] != os.getpid():
        return  # whoever started it did not get as far as naming it
    if not wanted:
        words = _last_words(agent_errors)
        replace(path, {**state, "state": "ended", "reason": "its agent ended" + (f": {words}" if words else "")})
        return
    os.unlink(path)
    folder = os.path.dirname(path)
    if os.path.basename(folder).startswith("framegauge-rack-"):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


if __name__ == "__main__":
    with contextlib.suppress(FileNotFoundError):  # the state file was removed by hand: there is nothing to note
        main(sys.argv[1], *map(int, sys.argv[2:]))
