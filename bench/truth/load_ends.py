"""One end of a load for estimates, with real sockets. Runs by itself inside a host.

python3 load_ends.py '{"role": "server", "address": "10.77.0.2", ...}'

A request says how many bytes follow it and how many are asked for; the server reads and answers. A client goes on for
some seconds on each of its connections and prints the bytes that it has moved.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

PORT = 5000
HEAD = struct.Struct(">III")  # bytes that follow, bytes that are asked for, the first write of these (0: one write)
ROOM = 1 << 20
GRACE_SECONDS = 20.0


def read(connection: socket.socket, count: int, at_once: int = ROOM) -> None:
    """So many bytes, in reads of up to `at_once`."""
    while count:
        got = len(connection.recv(min(count, at_once)))
        if not got:
            raise EOFError
        count -= got


def read_head(connection: socket.socket) -> tuple[int, int, int]:
    """The next request; EOFError after the last one."""
    data = b""
    while len(data) < HEAD.size:
        more = connection.recv(HEAD.size - len(data))
        if not more:
            raise EOFError
        data += more
    found: tuple[int, int, int] = HEAD.unpack(data)
    return found


def serve_one(connection: socket.socket, asked: dict[str, Any]) -> None:
    """All requests of a connection."""
    with contextlib.suppress(EOFError, ConnectionError, ssl.SSLError), connection:
        while True:
            follow, size, first = read_head(connection)
            read(connection, follow)
            time.sleep(asked.get("server_seconds", 0.0))
            for part in (first, size - first):
                if part:
                    connection.sendall(bytes(part))


def settled(connection: socket.socket, asked: dict[str, Any]) -> None:
    """Its options, before anything is sent."""
    if asked.get("nodelay", True):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def secured() -> ssl.SSLContext:
    """A server's, with a certificate of its own."""
    with tempfile.TemporaryDirectory() as folder:
        names = ["-keyout", f"{folder}/key", "-out", f"{folder}/cert", "-subj", "/CN=load", "-days", "2"]
        kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        subprocess.run(["openssl", "req", "-x509", *kind, *names], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{folder}/cert", f"{folder}/key")
    return context


def serve(asked: dict[str, Any]) -> None:
    """Until it is ended."""
    context = secured() if asked.get("tls") else None
    with socket.create_server((asked["address"], PORT + asked["number"]), backlog=512) as listening:
        if asked.get("receive_buffer"):
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, asked["receive_buffer"])
        print("ready", flush=True)
        while True:
            connection, _ = listening.accept()
            settled(connection, asked)
            threading.Thread(target=opened, args=(connection, asked, context), daemon=True).start()


def opened(connection: socket.socket, asked: dict[str, Any], context: ssl.SSLContext | None) -> None:
    """A connection of the server."""
    with contextlib.suppress(OSError):
        serve_one(connection if context is None else context.wrap_socket(connection, server_side=True), asked)


def connected(asked: dict[str, Any]) -> socket.socket:
    """A new connection to the server."""
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if asked.get("receive_buffer"):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, asked["receive_buffer"])
    connection.connect((asked["address"], PORT + asked["number"]))
    settled(connection, asked)
    if not asked.get("tls"):
        return connection
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(connection)


def ask(connection: socket.socket, asked: dict[str, Any], turn: int) -> int:
    """One turn of `depth` requests under way at once, and their answers; the bytes that were moved."""
    depth, sizes = asked.get("depth", 1), asked["response"]
    requests, follow = [], asked.get("request", 100)
    for number in range(depth):
        size = sizes[(turn * depth + number) % len(sizes)]
        first = min(size, asked.get("first_write", 0))
        requests.append(HEAD.pack(follow, size, first) + bytes(follow))
    if asked.get("pipelined", True):
        connection.sendall(b"".join(requests))
    else:
        for request in requests:
            connection.sendall(request)
    total = sum(sizes[(turn * depth + number) % len(sizes)] for number in range(depth))
    read(connection, total, asked.get("read_at_once", ROOM))
    return total + sum(map(len, requests))


def client(asked: dict[str, Any], until: float, moved: list[int]) -> None:
    """One connection after another, each with so many turns (0: one connection for all); `most_turns` in all."""
    turns, turn, most = asked.get("turns", 1), 0, asked.get("most_turns", 1 << 40)
    while time.monotonic() < until and turn < most:
        with connected(asked) as connection:
            begun = turn
            while (not turns or turn - begun < turns) and time.monotonic() < until and turn < most:
                moved.append(ask(connection, asked, turn))
                turn += 1
                time.sleep(asked.get("think_seconds", 0.0))


def main() -> None:
    """Plays a role."""
    asked = json.loads(sys.argv[1])
    if asked["role"] == "server":
        serve(asked)
    until, moved = time.monotonic() + asked["seconds"], []
    threads = [
        threading.Thread(target=client, args=(asked, until, moved), daemon=True)
        for _ in range(asked.get("connections", 1))
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(asked["seconds"] + GRACE_SECONDS)
    print(json.dumps({"bytes": sum(moved), "turns": len(moved)}))


if __name__ == "__main__":
    main()
