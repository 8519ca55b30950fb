"""One end of a connection: what a scenario's steps say, with real sockets. Runs by itself inside a host.

python3 ends.py '{"role": "server", "address": "10.0.0.2", "steps": [...], "nodelay": false}'
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import sys
import time
from typing import Any

PORT = 5000
INFO_BYTES = 256
ROOM = bytearray(1 << 24)  # one call takes everything that is there, as the model's readers do
SETTLED_SECONDS = 0.05
LONGEST_SECONDS = 60.0
COUNTERS = (
    "TCPTimeouts", "TCPLossProbes", "TCPSackRecovery", "TCPRenoRecovery", "TCPLostRetransmit", "TCPFullUndo",
    "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo", "TCPSpuriousRTOs", "TCPFastRetrans", "TCPSlowStartRetrans",
    "TCPLossProbeRecovery", "TCPHystartTrainDetect", "TCPHystartDelayDetect", "TCPSlowStartIdle",
    "PAWSEstab",
)  # fmt: skip


def write(connection: socket.socket, step: dict[str, Any]) -> None:
    """One message, in as many calls as it says."""
    left, part = step["bytes"], step.get("first_write_bytes", 0)
    while left:
        part = min(part or step.get("write_bytes", 0) or left, left)
        connection.sendall(bytes(part))
        left -= part
        part = 0
        if left:
            time.sleep(step.get("write_gap_seconds", 0.0))


def read(connection: socket.socket, count: int) -> None:
    while count:
        got = connection.recv_into(ROOM, min(count, len(ROOM)))
        if not got:
            raise EOFError
        count -= got


def play(connection: socket.socket, role: str, steps: list[dict[str, Any]]) -> None:
    """All messages in their order; those of this end are written, the others read."""
    for step in steps:
        if step["from"] == role:
            time.sleep(step.get("think_seconds", 0.0))
            write(connection, step)
        else:
            time.sleep(step.get("reader_waits_seconds", 0.0))
            read(connection, step["bytes"])


def info(connection: socket.socket) -> dict[str, int]:
    """Of struct tcp_info, what the model has too."""
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES).ljust(INFO_BYTES, b"\0")
    word = lambda place: struct.unpack_from("<I", raw, place)[0]  # noqa: E731
    return {"cwnd": word(80), "ssthresh": word(76), "resends": word(100), "rto_microseconds": word(8)}


def counters() -> dict[str, int]:
    """Of /proc/net/netstat, in this network namespace."""
    with open("/proc/net/netstat") as file:
        lines = file.read().splitlines()
    found: dict[str, int] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        found.update(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
    return {name: found.get(name, 0) for name in COUNTERS}


def waited_seconds() -> float:
    """How long this program was ready to run and had no CPU: the second figure of schedstat."""
    with open("/proc/self/schedstat") as file:
        return int(file.read().split()[1]) / 1e9


def opened(asked: dict[str, Any]) -> socket.socket:
    """A connection: made, or awaited."""
    if asked["role"] == "client":
        connection = socket.socket()
        connection.connect((asked["address"], PORT))
        return connection
    with socket.socket() as listener:
        listener.bind((asked["address"], PORT))
        listener.listen(1)
        print("ready", flush=True)
        listener.settimeout(LONGEST_SECONDS)
        return listener.accept()[0]


def main() -> None:
    asked = json.loads(sys.argv[1])
    # Whoever else runs on this machine, the reader must not come late.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
    with opened(asked) as connection:
        connection.settimeout(LONGEST_SECONDS)
        if asked["nodelay"]:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        play(connection, asked["role"], asked["steps"])
        if asked["role"] == "client":
            connection.shutdown(socket.SHUT_WR)
        found: dict[str, Any] = info(connection)
        while connection.recv_into(ROOM):
            pass
        if asked["role"] == "server":
            connection.shutdown(socket.SHUT_WR)
        time.sleep(asked["linger_seconds"])
    print(json.dumps({**found, "counters": counters(), "waited_seconds": waited_seconds()}), flush=True)


if __name__ == "__main__":
    main()
