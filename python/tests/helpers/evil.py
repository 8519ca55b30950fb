"""An agent in other hands: it passes requests on to a real one, and spoils the answers to one method.

`evil.py METHOD MODE COMMAND …` is such an agent. As a program called `ssh` (`stand_in`) it runs on this machine what it
is to run on a host: an honest one, or the one that the environment's EVIL names, as HOST:METHOD:MODE. The standard
library is enough.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

Message = dict[str, Any]
ESCAPES = "\x1b]0;pwned\x07\x1b[2J\x9b31m\u202eevil\nframegauge: forged"


def _told(answer: Message, **more: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": answer["id"], **more}).encode() + b"\n"


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """All that is no container, changed."""
    if isinstance(value, dict):
        return {key: _each(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [_each(inner, change) for inner in value]
    return change(value)


def _is_words(value: Any) -> bool:
    return isinstance(value, str) and not set(value) <= set("0123456789abcdef.:")  # no address


def _error(answer: Message, error: Any) -> bytes:
    return _told(answer, error=error)


def _huge_stderr(answer: Message) -> bytes:
    piece = b"x" * (1 << 20)
    for _ in range(300):
        os.write(2, piece)
    return _told(answer, result=None)


def _big_line(answer: Message) -> bytes:
    try:
        while True:
            os.write(1, b"x" * (1 << 20))
    except OSError:
        sys.exit(1)


def _with(answer: Message, change: Callable[[Any], Any]) -> bytes:
    return _told(answer, result=_each(answer.get("result"), change))


MODES: dict[str, Callable[[Message], bytes]] = {
    "empty": lambda answer: _told(answer, result={}),
    "null": lambda answer: _told(answer, result=None),
    "list": lambda answer: _told(answer, result=[]),
    "text": lambda answer: _told(answer, result="x"),
    "more": lambda answer: _told(answer, result={**answer["result"], "more\x1b[2J": 1}),
    "types": lambda answer: _with(answer, lambda value: [value]),
    "texts": lambda answer: _with(answer, str),
    "nan": lambda answer: _with(answer, lambda value: float("nan") if isinstance(value, int | float) else value),
    "infinite": lambda answer: _told(answer, result={"x": 0}).replace(b"0", b"1e999"),
    "deep": lambda answer: _told(answer, result=0).replace(b"0}", b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "many": lambda answer: _told(answer, result=0).replace(b"0}", b"[" + b"[]," * 4_000_000 + b"[]]}"),
    "surrogate": lambda answer: _with(answer, lambda value: "\ud800" if isinstance(value, str) else value),
    "bytes": lambda answer: b'{"jsonrpc":"2.0","id":%d,"result":{"x":"\xff\xed\xa0\x80"}}\n' % answer["id"],
    "no json": lambda _: b"hello there\x1b[2J\n",
    "no object": lambda _: b"[]\n",
    "no result": lambda answer: _told(answer),
    "error null": lambda answer: _error(answer, None),
    "error empty": lambda answer: _error(answer, {}),
    "error without message": lambda answer: _error(answer, {"code": -32006, "data": {"what": "x"}}),
    "error with bad data": lambda answer: _error(answer, {"code": -32002, "message": "x", "data": [1]}),
    "error with bad requirements": lambda answer: _error(
        answer, {"code": -32002, "message": "x", "data": {"missing": [1]}}
    ),
    "error with escapes": lambda answer: _error(
        answer, {"code": -32004, "message": ESCAPES, "data": {"operation": "x", "errno": 1, "error": ESCAPES}}
    ),
    "error with escapes in one line": lambda answer: _error(
        answer, {"code": -32006, "message": ESCAPES.replace("\n", "\r"), "data": {"what": ESCAPES}}
    ),
    "bad progress": lambda _: b'{"jsonrpc":"2.0","method":"progress","params":{"id":[],"fraction":{},"text":1}}\n',
    "wrong id": lambda answer: _told({"id": answer["id"] + 1000}, result=answer["result"]),
    "big line": _big_line,
    "huge stderr": _huge_stderr,
    "ends": lambda _: sys.exit(os.write(2, ESCAPES.encode())),
    # These have the right shape.
    "escapes": lambda answer: _with(answer, lambda value: ESCAPES if _is_words(value) else value),
    "twice": lambda answer: 2 * _told(answer, result=answer["result"]),
    "honest": lambda answer: json.dumps(answer).encode() + b"\n",
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# Of these many have the right shape, and make no sense beside what else is said.
LIES: dict[str, Callable[[Message], bytes]] = {
    "huge": lambda answer: _with(answer, lambda value: type(value)(2**62) if _is_number(value) else value),
    "zero": lambda answer: _with(answer, lambda value: type(value)(0) if _is_number(value) else value),
    "negative": lambda answer: _with(answer, lambda value: -value - 1 if _is_number(value) else value),
    "words": lambda answer: _with(answer, lambda value: "x" if isinstance(value, str) else value),
    "nothing": lambda answer: _told(
        answer, result={key: [] if isinstance(each, list) else each for key, each in answer["result"].items()}
    ),
    "otherwise": lambda answer: _with(answer, lambda value: not value if isinstance(value, bool) else value),
}
UNREACHABLE = "unreachable"  # a host whose ssh ends at once
SHAPELY = ("escapes", "twice", "honest")


def _message(line: bytes) -> Message:
    """What a line says; nothing if it is of what comes before the agent."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def main(method: str, mode: str, command: list[str]) -> None:
    """Passes on requests and answers until either side ends."""
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert agent.stdin is not None
    assert agent.stdout is not None
    methods: dict[int, str] = {}

    def ask() -> None:
        rest = b""
        while piece := os.read(0, 1 << 16):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:  # the agent itself may precede the first
                asked = _message(line[max(0, line.rfind(b'{"jsonrpc"')) :])
                methods[asked.get("id", 0)] = asked.get("method", "")
            agent.stdin.write(piece)
            agent.stdin.flush()
        agent.stdin.close()

    threading.Thread(target=ask, daemon=True).start()
    for line in agent.stdout:
        answer = _message(line)
        spoilt = "id" in answer and methods.get(answer["id"]) == method
        os.write(1, (MODES | LIES)[mode](answer) if spoilt else line)


def stand_in(folder: Path) -> Path:
    """A folder for PATH, in which `ssh` is this."""
    program = folder / "ssh"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {__file__} ssh "$@"\n')
    program.chmod(0o755)
    return folder


if __name__ == "__main__":
    if sys.argv[1] != "ssh":
        main(sys.argv[1], sys.argv[2], sys.argv[3:])
        sys.exit()
    host = sys.argv[sys.argv.index("--") + 1]
    evil, _, rest = os.environ.get("EVIL", "").partition(":")
    spoilt, _, how = rest.partition(":") if evil == host else ("", "", "honest")
    if how == UNREACHABLE:
        print(f"ssh: connect to host {host} port 22: No route to host", file=sys.stderr)
        sys.exit(255)
    main(spoilt, how, ["/bin/sh", "-c", sys.argv[-1]])
