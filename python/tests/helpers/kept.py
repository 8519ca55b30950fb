"""A keeper without a rack: real processes and sockets, and an agent that a shell plays."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from helpers.support import PATIENCE_SECONDS, is_alive

from framegauge.rack import keeper, state as kept
from framegauge.rack.state import Process

MINE = Process.of(os.getpid())


AGENT = """
import json, sys

def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

held, seen = [], []
for line in sys.stdin:
    asked = json.loads(line)
    number, params = asked["id"], asked["params"]
    if asked["method"] == "shutdown":
        break
    seen.append([asked["method"], number, params])
    if asked["method"] == "cancel":
        say(id=number, result={"cancelled": True})
        say(id=params["id"], error={"code": -32005, "message": "cancelled", "data": {}})
    elif "hold" in params:
        say(method="progress", params={"id": number, "fraction": 0.25, "text": "held"})
        held.append(asked)
        if len(held) == params["hold"]:
            for each in reversed(held):
                say(id=each["id"], result={"asked": each})
    elif "bytes" in params:
        say(id=number, result={"text": "x" * params["bytes"]})
    elif "refuse" in params:
        say(id=number, error={"code": -32003, "message": "no", "data": {"what": "a", "asked": 2, "limit": 1}})
    elif "say" in params:
        print(params["say"], flush=True)
    elif "end" in params:
        sys.exit(3)
    else:
        say(id=number, result={"asked": asked, "seen": seen if "seen" in params else None})
"""


def state(keeper_process: Process = MINE, **change: Any) -> dict[str, Any]:
    """A rack that is up, kept by us."""
    return {
        "schema": 1,
        "boot_id": kept.boot_id(),
        "state": "up",
        "reason": None,
        "keeper": keeper_process.as_json(),
        "agent": MINE.as_json(),
        "testbed": "rack",
        "study": "study.yaml",
        "build_seconds": 0.1,
        "conditions": {"bits_per_second": 10**9, "rtt_seconds": 0.0002},
        "hosts": [{"name": "h1", "interface": "fg1", "address": "10.77.0.1", "mtu": 9000, **MINE.as_json()}],
        **change,
    }


def ended() -> Process:
    """A process that was."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        return Process.of(process.pid)


SHELL = ("sh", "-c", "echo oops >&2; while read -r line; do :; done")


class Kept:
    """A keeper of a shell, or another command, which like an agent ends with its input."""

    def __init__(self, path: Path, words: Sequence[str] = SHELL) -> None:
        self.path = path
        with open(path.with_suffix(".errors"), "w+b") as errors:
            self.agent = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
            assert self.agent.stdin is not None
            assert self.agent.stdout is not None
            self.ours, theirs = socket.socketpair()
            passed = (self.agent.stdin.fileno(), self.agent.stdout.fileno(), errors.fileno(), theirs.fileno())
            with kept.listen(path) as listening:
                passed = (*passed, listening.fileno())
                command = [sys.executable, "-I", "-S", keeper.__file__, str(path), *map(str, passed)]
                self.keeper = subprocess.Popen(command, pass_fds=passed)
        theirs.close()
        self.agent.stdin.close()
        assert self.ours.recv(1) == b"r"
        keeper.replace(str(path), state(Process.of(self.keeper.pid)))

    def commit(self) -> None:
        """As the starter does, which may then end."""
        self.ours.sendall(b"k")
        self.ours.shutdown(socket.SHUT_WR)

    def ends(self) -> None:
        """Both, and nothing of them stays, the socket neither."""
        assert self.keeper.wait(PATIENCE_SECONDS) == 0
        self.agent.kill()
        self.agent.wait(PATIENCE_SECONDS)
        assert self.agent.stdout is not None
        self.agent.stdout.close()
        self.ours.close()
        assert not is_alive(self.keeper.pid)
        assert not Path(keeper.socket_path(str(self.path))).exists()
