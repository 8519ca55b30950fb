"""How much memory `framegauge diagnose` takes for captures of very many connections.

    .venv/bin/python -m bench.diagnose_memory [--connections 1000000] [--folder DIR]

Two captures are written by hand and kept in the folder (results): "short" has connections of ten packets each (a
handshake, two requests, two answers), all of which live from the capture's begin to its end, since none is closed;
"scan" has twice as many SYNs, each of ends of its own. Peak memory is that of GNU time: of the agent alone with one
thread and with two, and of the Python program with `--json`, whose figure is that of the larger of both processes.
Needs apt-get install time.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.common import save, say
from bench.diagnose import measured

from framegauge.agents.binary import find_agent

RAW_IP = 101
MOST_MEBIBYTES = 1024.0
FIN, SYN, PSH, ACK = 1, 2, 8, 16
MSS = b"\x02\x04\x05\xb4"
# Of a short connection: the end that sends, its sequence and acknowledgement numbers, flags and payload.
SHORT = [
    (0, 1000, 0, SYN, 0), (1, 5000, 1001, SYN | ACK, 0), (0, 1001, 5001, ACK, 0),
    (0, 1001, 5001, PSH | ACK, 100), (1, 5001, 1101, ACK, 0), (1, 5001, 1101, PSH | ACK, 300),
    (0, 1101, 5301, ACK, 0), (0, 1101, 5301, PSH | ACK, 50), (1, 5301, 1151, PSH | ACK, 50), (0, 1151, 5351, ACK, 0),
]  # fmt: skip


def ends(number: int) -> tuple[bytes, bytes, int, int]:
    """Addresses and ports of a connection: no two share all four."""
    return number.to_bytes(4, "big"), bytes((192, 168, 0, number % 7)), 1024 + number * 7 % 60_000, 443


def packet(number: int, step: int, what: tuple[int, int, int, int, int]) -> bytes:
    """A packet of a connection, without checksums; of its payload nothing is kept."""
    side, seq, ack, flags, payload = what
    client, server, port, service = ends(number)
    source, destination, here, there = (client, server, port, service) if side == 0 else (server, client, service, port)
    options = MSS if flags & SYN else b""
    header = struct.pack("!HHIIBBHHH", here, there, seq, ack, (20 + len(options)) << 2, flags, 64_240, 0, 0)
    length = 20 + len(header) + len(options) + payload
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length, step + 1, 0x4000, 64, 6, 0, source, destination)
    return ip + header + options


def packets(kind: str, connections: int) -> Iterator[tuple[bytes, int]]:
    """Packets with their payload's bytes, in order."""
    if kind == "scan":
        for number in range(2 * connections):
            yield packet(number, 0, SHORT[0]), 0
        return
    for step, what in enumerate(SHORT):
        for number in range(connections):
            yield packet(number, step, what), what[-1]


def write(kind: str, connections: int, path: Path) -> None:
    """A capture, whole or not at all."""
    fresh = path.with_suffix(".part")
    with fresh.open("wb") as file:
        file.write(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, RAW_IP))
        now = 1_700_000_000 * 10**9
        for content, payload in packets(kind, connections):
            now += 3_000
            kept, sent = len(content), len(content) + payload
            file.write(struct.pack("<IIII", now // 10**9, now % 10**9, kept, sent) + content)
    fresh.replace(path)


def main() -> int:
    """Write, measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=1_000_000, help="of the capture with short ones")
    parser.add_argument("--folder", type=Path, default=Path("results"), help="where captures are kept")
    options = parser.parse_args()
    if shutil.which("time") is None:
        say("bench/diagnose_memory.py: time missing; apt-get install time")
        return 2
    options.folder.mkdir(exist_ok=True)
    found = []
    with tempfile.TemporaryDirectory() as name:
        for kind in ("short", "scan"):
            capture = options.folder / f"diagnose-{kind}-{options.connections}.pcap"
            if not capture.exists():
                say(f"writing {capture}")
                write(kind, options.connections, capture)
            agent = [find_agent(), "diagnose"]
            for what, argv in {
                "agent, 1 thread": [*agent, str(capture)],
                "agent, 2 threads": [*agent, "--threads", "2", str(capture)],
                "framegauge --json": [sys.executable, "-m", "framegauge", "diagnose", "--json", str(capture)],
            }.items():
                figures = measured(argv, Path(name) / "output", (0, 1))
                print(
                    f"{capture.name}: {what}: {figures.mebibytes:.0f} MiB at most, wanted {MOST_MEBIBYTES:g} or less, "
                    f"{figures.cpu_seconds:.1f} CPU seconds"
                )
                found.append({"capture": capture.name, "program": what, **vars(figures)})
    say(f"figures: {save('bench-diagnose-memory', found)}")
    return 0 if all(each["mebibytes"] <= MOST_MEBIBYTES for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
