"""What a capture of headers costs, beside tcpdump: CPU-seconds per packet and packets dropped, for the same transfer.

    sudo -E .venv/bin/python -m bench.capture [--rounds 5] [--bytes 400000000]

Two network namespaces on a veth whose aggregates are cut to one segment, so that packets are many. Each round
sends the same bytes once under `framegauge-agent host`, once under `tcpdump -s 192 -w FILE`, in turns. The CPU of a
capturing process is its own; what the kernel does for each packet is in the time of senders and receivers, of both.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.common import save, say, spread, warn_if_busy

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent

NAMES = ("fgbench-a", "fgbench-b")
ADDRESSES = ("10.9.7.1", "10.9.7.2")
PORT = 5001
SNAP_BYTES = 192
SERVER = f"""
import socket
with socket.create_server(("{ADDRESSES[1]}", {PORT})) as server:
    print("ready", flush=True)
    one, _ = server.accept()
    while one.recv(1 << 20):
        pass
"""
CLIENT = f"""
import socket, sys
one = socket.create_connection(("{ADDRESSES[1]}", {PORT}))
one.sendall(b"x" * int(sys.argv[1]))
one.close()
"""


@dataclass(frozen=True)
class Cost:
    """Of one capture: CPU-seconds, packets that it has, and packets that it dropped."""

    cpu_seconds: float
    packets: int
    dropped: int

    @property
    def nanoseconds(self) -> float:
        """A packet."""
        return self.cpu_seconds / self.packets * 1e9


def run(*words: str) -> None:
    """A command that must succeed."""
    subprocess.run(words, check=True, capture_output=True)


@contextlib.contextmanager
def pair() -> Iterator[None]:
    """The two namespaces."""
    for name in NAMES:
        run("ip", "netns", "add", name)
    try:
        run("ip", "-n", NAMES[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", NAMES[1])
        for name, address in zip(NAMES, ADDRESSES, strict=True):
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "gso_max_segs", "1", "up")
        yield
    finally:
        for name in NAMES:
            run("ip", "netns", "del", name)


def transfer(size: int) -> None:
    """Sends so many bytes from the first to the second."""
    enter = ["ip", "netns", "exec"]
    server = subprocess.Popen([*enter, NAMES[1], sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    server.stdout.readline()
    run(*enter, NAMES[0], sys.executable, "-c", CLIENT, str(size))
    server.wait()


def ours(size: int) -> Cost:
    """Under the agent; its other threads are counted as well."""
    with Agent.open([find_agent(), "host", "--netns", NAMES[0]]) as agent:
        asked = {
            "host": "bench", "interfaces": ["eth0"], "ports": [], "left_out": [], "snap_bytes": SNAP_BYTES,
            "most_bytes": 1000 << 20, "signs": {}, "sudo": False,
        }  # fmt: skip
        agent.request("capture.begin", asked)
        before = process_seconds(agent.process_id)
        transfer(size)
        used = process_seconds(agent.process_id) - before
        found = agent.request("capture.end", {"last_seconds": None}, timeout_seconds=120)
    return Cost(used, found["kept_packets"], found["dropped_packets"])


def process_seconds(pid: int) -> float:
    """CPU time of all threads of a process."""
    nanoseconds = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        nanoseconds += int((thread / "schedstat").read_text().split()[0])
    return nanoseconds * 1e-9


def theirs(size: int, folder: Path) -> Cost:
    """Under tcpdump."""
    words = ["ip", "netns", "exec", NAMES[0], "tcpdump", "-i", "eth0", "-s", str(SNAP_BYTES), "-w"]
    dump = subprocess.Popen([*words, str(folder / "theirs.pcap"), "tcp or icmp"], stderr=subprocess.PIPE, text=True)
    assert dump.stderr is not None
    while "listening on" not in dump.stderr.readline():
        pass
    before = process_seconds(dump.pid)
    transfer(size)
    used = process_seconds(dump.pid) - before
    dump.send_signal(signal.SIGINT)
    text = dump.communicate()[1]
    counted = {name: int(count) for count, name in re.findall(r"(\d+) packets (captured|dropped by kernel)", text)}
    return Cost(used, counted["captured"], counted["dropped by kernel"])


def main() -> None:
    """Measures in turns, prints, and keeps the figures."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--bytes", type=int, default=400_000_000)
    options = arguments.parse_args()
    warn_if_busy()
    costs: dict[str, list[Cost]] = {"framegauge": [], "tcpdump": []}
    with pair(), tempfile.TemporaryDirectory() as folder:
        transfer(options.bytes // 10)
        for number in range(options.rounds):
            turns = [
                ("framegauge", lambda: ours(options.bytes)),
                ("tcpdump", lambda: theirs(options.bytes, Path(folder))),
            ]
            for name, measure in turns if number % 2 == 0 else reversed(turns):
                costs[name].append(measure())
                say(f"{name}: {costs[name][-1]}")
    for name, all_of_it in costs.items():
        each = spread([cost.nanoseconds for cost in all_of_it], ".0f")
        shares = spread([cost.dropped / (cost.packets + cost.dropped) for cost in all_of_it], ".2%")
        print(f"{name:10s} ns of CPU a packet {each}, dropped {shares}, packets {all_of_it[0].packets:,}")
    ratios = [a.nanoseconds / b.nanoseconds for a, b in zip(costs["framegauge"], costs["tcpdump"], strict=True)]
    print(f"ratio (framegauge / tcpdump) {spread(ratios, '.2f')}")
    print(
        save("capture", {name: [vars(cost) for cost in all_of_it] for name, all_of_it in costs.items()}, ratios=ratios)
    )


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C")
    main()
