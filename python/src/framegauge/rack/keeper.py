"""The keeper of a rack: a process that holds the pipe of its agent, and passes requests on to that agent.

It is started as a file, by an interpreter that imports only the standard library, so that it starts quickly and needs
little memory. SIGTERM, or the end of its starter before that has committed, takes the rack down and removes the state
file; if the agent ends by itself, the state file records the reason.

A client connects to the socket next to the state file and sends requests as in pipe/README.md, one at a time: the next
is read once the last is answered. Progress is passed back, too. Closing the connection cancels the request.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["ASKED", "LINE_BYTES", "READINGS", "main", "replace", "socket_path"]

SHUTDOWN = b'{"jsonrpc":"2.0","id":0,"method":"shutdown","params":{}}\n'
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

ASKED = ("rack.ports", "rack.set", "relay", "measure.begin", "measure.end", "spool.read", "spool.drop")
SEAL = "seal"  # of a state file
# The agents may run as root while the client does not, so clients can only read from hosts, and run nothing there.
READINGS = ("host.read", "host.counters", "check.facts", "check.routes")
LINE_BYTES = 1 << 16  # the longest request
DEEPEST = 32  # levels of a request; the agent refuses 128 in an answer without an id
MOST_DIGITS = 20
MOST_CLIENTS = 200  # more have to wait, because a process has at most 1,024 descriptors
PIECE_BYTES = 1 << 16


def socket_path(path: str) -> str:
    """The path of the socket for a state file."""
    return os.path.splitext(path)[0] + ".sock"


def seal(state: Mapping[str, Any]) -> str:
    """By which damage of a state file is noticed."""
    content = {key: value for key, value in state.items() if key != SEAL}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def replace(path: str, state: Mapping[str, Any]) -> None:
    """Writes a state file with mode 600, atomically, and sealed."""
    draft = f"{path}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(draft, flags, 0o600), "w", encoding="utf-8") as file:
        json.dump({**state, SEAL: seal(state)}, file, indent=2)
        file.write("\n")
    os.rename(draft, path)


class _Bad(Exception):
    """A line that is not passed on: the code and message of its error answer, and the id to answer."""

    def __init__(self, code: int, message: str, number: int | None = None, **data: Any) -> None:
        self.answer = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message, "data": data}}
        super().__init__(message)


def _line(message: Mapping[str, Any]) -> bytes:
    """A message as a line for the pipe; ValueError if JSON cannot represent it (NaN, half a surrogate pair)."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _too_deep(value: Any, levels: int = DEEPEST) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_too_deep(item, levels - 1) for item in inner)


def _whole(digits: str) -> int:
    """A whole number of a JSON text, with a limit on its digits, because the agent's error would lack an id."""
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"found a number of {len(digits)} digits, expected at most {MOST_DIGITS} digits")
    return int(digits)


def _request(line: bytes) -> dict[str, Any]:
    """The request in a client's line, if it is valid and allowed; otherwise _Bad."""
    try:
        request: dict[str, Any] = json.loads(line, parse_int=_whole)  # its type is checked below
        _line({"found": request})
    except RecursionError:
        raise _Bad(-32600, f"found a request with too many levels, expected at most {DEEPEST}") from None
    except ValueError as error:
        raise _Bad(-32700, f"not JSON: {error}", column=getattr(error, "colno", 0)) from None
    number = request.get("id") if isinstance(request, dict) else None
    if type(number) is not int or number < 0:
        raise _Bad(-32600, "found no request, expected an object with an id from 0 up")
    if request.keys() != {"jsonrpc", "id", "method", "params"} or request["jsonrpc"] != "2.0":
        raise _Bad(-32600, "found no request, expected the keys jsonrpc (2.0), id, method and params", number)
    if (
        not isinstance(request["method"], str)
        or not isinstance(request["params"], dict)
        or _too_deep(request["params"])
    ):
        message = f"found no request, expected a method by name, and an object of at most {DEEPEST} levels as params"
        raise _Bad(-32600, message, number)
    _allow(request["method"], ASKED, number)
    if request["method"] == "relay":
        _allow(request["params"].get("method"), READINGS, number)
    return request


def _allow(method: object, allowed: tuple[str, ...], number: int) -> None:
    if method not in allowed:
        message = (
            f"found the method {method!r:.60}, expected one of {', '.join(allowed)}: the rack's keeper allows no other"
        )
        raise _Bad(-32601, message, number, method=method)


class _Client:
    """A connected client. Its memory use is bounded: one line from it, and the answer to one request."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.said = bytearray()
        self.unsent = bytearray()
        self.asked: int | None = None  # our id of the request under way
        self.number = 0  # the client's id of it
        self.leaving = False  # nothing more is read, and the connection is closed once everything is sent

    def idle(self) -> bool:
        """Whether a request can be read."""
        return self.asked is None and not self.unsent

    def interest(self) -> int:
        """The events to wait for; a closed connection is reported in any case."""
        hear = self.idle() and not self.leaving and b"\n" not in self.said
        return (select.POLLIN if hear else 0) | (select.POLLOUT if self.unsent else 0)

    def next_line(self) -> bytes | None:
        """The next complete line that is not blank, if there is one."""
        while self.idle() and b"\n" in self.said:
            line, _, rest = self.said.partition(b"\n")
            self.said = rest
            if line.strip():
                return bytes(line)
        if self.idle() and len(self.said) >= LINE_BYTES:
            self.said.clear()
            self.leaving = True
            raise _Bad(-32600, f"found a line without an end, expected at most {LINE_BYTES} bytes")
        return None


class _Relay:
    """Passes requests of clients to the agent, with its own ids, and passes answers back."""

    def __init__(self, agent_input: int, agent_output: int, listener: socket.socket) -> None:
        self._input, self._output, self._listener = agent_input, agent_output, listener
        self._clients: dict[int, _Client] = {}  # by descriptor
        self._asking: dict[int, _Client] = {}  # by our id of the request under way
        self._numbers = itertools.count(1)
        self._heard = bytearray()
        self._unsent = bytearray()
        os.set_blocking(agent_input, False)
        listener.setblocking(False)

    def serve(self, asked: int) -> bool:
        """Serves until the rack is to be taken down (True), or its agent has ended (False)."""
        while True:
            poller = select.poll()
            poller.register(asked, select.POLLIN)
            poller.register(self._output, select.POLLIN)
            if self._unsent:
                poller.register(self._input, select.POLLOUT)
            if len(self._clients) < MOST_CLIENTS:
                poller.register(self._listener, select.POLLIN)
            for descriptor, client in self._clients.items():
                poller.register(descriptor, client.interest())
            ready = dict(poller.poll())
            if asked in ready:
                return True
            if self._output in ready and not self._hear():
                return False
            for descriptor, client in list(self._clients.items()):
                self._attend(client, ready.get(descriptor, 0))
            # New clients come last, because a new descriptor may reuse the number of one in `ready`.
            if self._listener.fileno() in ready:
                self._accept()
            self._send()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the client may have closed the connection already
            connection, _ = self._listener.accept()
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            _, user, _ = struct.unpack("3i", credentials)
            if user not in (0, os.geteuid()):
                connection.close()
                return
            connection.setblocking(False)
            self._clients[connection.fileno()] = _Client(connection)

    def _attend(self, client: _Client, events: int) -> None:
        """Reads from and writes to one client, without blocking."""
        try:
            if events & (select.POLLHUP | select.POLLERR):
                raise ConnectionResetError
            if events & select.POLLIN:
                chunk = client.connection.recv(LINE_BYTES - len(client.said))
                client.said += chunk
                client.leaving = not chunk
            if events & select.POLLOUT:
                del client.unsent[: client.connection.send(client.unsent)]
        except BlockingIOError:
            return
        except OSError:
            self._drop(client)
            return
        try:
            # No further request is read while the agent does not accept data.
            line = client.next_line() if len(self._unsent) < LINE_BYTES else None
            if line is not None:
                self._pass_on(client, _request(line))
            elif client.leaving and client.idle() and b"\n" not in client.said:
                self._drop(client)
        except _Bad as bad:
            client.unsent += _line(bad.answer)

    def _pass_on(self, client: _Client, request: Mapping[str, Any]) -> None:
        client.asked, client.number = next(self._numbers), request["id"]
        self._asking[client.asked] = client
        self._unsent += _line({**request, "id": client.asked})

    def _drop(self, client: _Client) -> None:
        del self._clients[client.connection.fileno()]
        client.connection.close()
        if client.asked is not None:
            del self._asking[client.asked]
            cancel = {"jsonrpc": "2.0", "id": next(self._numbers), "method": "cancel", "params": {"id": client.asked}}
            self._unsent += _line(cancel)

    def _send(self) -> None:
        """Sends pending data to the agent, as much as it accepts."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self._input, self._unsent)]
        except BlockingIOError:
            return
        except OSError:  # the agent has ended, which the end of its output reports to all clients
            self._unsent.clear()

    def _hear(self) -> bool:
        """Passes on the agent's messages; False if it has ended."""
        chunk = os.read(self._output, PIECE_BYTES)
        self._heard += chunk
        if b"\n" in chunk:
            *lines, rest = self._heard.split(b"\n")
            self._heard = bytearray(rest)
            for line in lines:
                with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):  # drops invalid messages
                    self._answer(json.loads(line))
        return chunk != b""

    def _answer(self, message: dict[str, Any]) -> None:
        if message.get("method") == "progress":
            client = self._asking[message["params"]["id"]]
            if not client.unsent:  # a client that does not read misses progress
                params = {**message["params"], "id": client.number}
                client.unsent += _line({**message, "params": params})
            return
        client = self._asking.pop(message["id"])
        client.asked = None
        client.unsent += _line({**message, "id": client.number})


def _wait(agent: int, wake_reader: int, starter: int) -> bool | None:
    """Waits until the starter has committed (None), the rack is to be taken down (True), or its agent has ended
    (False)."""
    poller = select.poll()
    poller.register(agent, 0)  # only its end is reported; its output still belongs to the starter
    poller.register(wake_reader, select.POLLIN)
    poller.register(starter, select.POLLIN)
    ready = dict(poller.poll())
    if agent in ready:
        return False
    if wake_reader in ready or os.read(starter, 1) == b"":
        return True
    return None  # from here on, this process alone holds the rack


def _let_go(agent_input: int, agent_output: int) -> None:
    """Tells the agent to put everything back, and waits until it has."""
    with contextlib.suppress(OSError):
        os.write(agent_input, SHUTDOWN)
    os.close(agent_input)
    while os.read(agent_output, PIECE_BYTES):  # answers are discarded, but must be read so that the agent can end
        pass


def _file(path: str) -> tuple[int, int] | None:
    """The identity of the file with this name: after a removal by hand it may be the file of another rack."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _last_words(errors: int) -> str:
    """The end of the agent's standard error."""
    size = os.fstat(errors).st_size
    text = os.pread(errors, 2000, max(0, size - 2000)).decode("utf-8", "replace")
    return "; ".join(line.strip() for line in text.split("\n")[-4:] if line.strip())


def main(path: str, agent_input: int, agent_output: int, agent_errors: int, starter: int, listener: int) -> None:
    """Keeps the rack whose state is in `path`; the numbers are descriptors, the last one that of its socket."""
    wake_reader, wake_writer = os.pipe()
    os.set_blocking(wake_writer, False)
    signal.set_wakeup_fd(wake_writer)
    for number in SIGNALS:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    os.chdir("/")
    socket_name = socket_path(path)
    identity = _file(socket_name)
    with contextlib.suppress(OSError):  # the starter may have ended
        os.write(starter, b"r")
    with socket.socket(fileno=listener) as listening:
        is_ordered_down = _wait(agent_output, wake_reader, starter)
        if is_ordered_down is None:
            is_ordered_down = _Relay(agent_input, agent_output, listening).serve(wake_reader)
    if identity is not None and _file(socket_name) == identity:
        os.unlink(socket_name)
    if is_ordered_down:
        _let_go(agent_input, agent_output)
    with open(path, encoding="utf-8") as file:
        state = json.load(file)
    if state["keeper"]["pid"] != os.getpid():
        return  # the starter ended before it named this process as the keeper
    if not is_ordered_down:
        words = _last_words(agent_errors)
        replace(path, {**state, "state": "ended", "reason": "its agent ended" + (f": {words}" if words else "")})
        return
    os.unlink(path)
    folder = os.path.dirname(path)
    if os.path.basename(folder).startswith("framegauge-rack-"):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


if __name__ == "__main__":
    with contextlib.suppress(FileNotFoundError):  # the state file was removed by hand: nothing to record
        main(sys.argv[1], *map(int, sys.argv[2:]))
