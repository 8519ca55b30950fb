"""Captures at the hosts of a rack while its ports keep a log of what they drop, and captures with another clock."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from helpers.captures import Captured
from helpers.real import output, spawn
from helpers.support import PATIENCE_SECONDS

from framegauge.testbeds.base import Json

# (source, destination, sequence number): packets of one name are told apart by their times.
Name = tuple[str, str, int]
SETTLING_SECONDS = 0.5  # after a run, so that nobody can say that a capture had ended before
# Otherwise the kernel keeps packets for up to a second, and what tcpdump has not got when it is ended is lost.
AT_ONCE = "--immediate-mode"


class Tapped(Captured):
    """A rack that also captures with tcpdump in every host: `hosts_files` has a file for each host and run."""

    def __init__(self, agent: Any, folder: Path) -> None:
        super().__init__(agent, folder)
        self.hosts_files: list[dict[str, Path]] = []
        self._running: dict[str, int] = {}

    def begin(self, watch: Sequence[str] = ()) -> float:
        files = {host.name: self.folder / f"{len(self.hosts_files) + 1}-{host.name}.pcap" for host in self.hosts()}
        self.hosts_files.append(files)
        for host in self.hosts():
            self._running[host.name] = spawn(
                host.agent, "tcpdump", "-i", "any", "-s", "128", "-B", "32768", "-Z", "root", "-n", AT_ONCE,
                "--time-stamp-precision=nano", "-w", str(files[host.name]), "tcp",
            )  # fmt: skip
        for host in self.hosts():
            while "listening on" not in output(host.agent, self._running[host.name], "stderr"):
                time.sleep(0.01)
        return super().begin(watch)

    def end(self) -> Json:
        found = super().end()
        time.sleep(SETTLING_SECONDS)
        for host in self.hosts():
            process = self._running.pop(host.name)
            host.agent.request("process.signal", {"process": process, "signal": signal.SIGINT.value})
            host.agent.request("process.wait", {"process": process, "timeout_seconds": PATIENCE_SECONDS})
            said = output(host.agent, process, "stderr")
            assert "0 packets dropped by kernel" in said, said
        return found


def dropped(ports: Path) -> dict[Name, list[tuple[float, int, int]]]:
    """What the ports say that they dropped, as tshark reads it: when, payload and IPv4 identification, by name."""
    fields = (
        "frame.time_epoch", "ip.src", "ipv6.src", "ip.dst", "ipv6.dst", "tcp.srcport", "tcp.dstport", "tcp.seq_raw",
        "tcp.len", "ip.id",
    )  # fmt: skip
    wanted = [word for field in fields for word in ("-e", field)]
    command = ["tshark", "-r", str(ports), "-n", "-Y", 'tcp && frame.interface_name contains "dropped"', "-T", "fields"]
    lines = subprocess.run([*command, *wanted], capture_output=True, text=True, check=True).stdout.splitlines()
    found: dict[Name, list[tuple[float, int, int]]] = defaultdict(list)
    for line in lines:
        at, source4, source6, destination4, destination6, here, there, seq, payload, identification = line.split("\t")
        source, destination = (
            f"[{six}]:{port}" if six else f"{four}:{port}"
            for four, six, port in ((source4, source6, here), (destination4, destination6, there))
        )
        found[source, destination, int(seq)].append((float(at), int(payload), int(identification or "0", 16)))
    return found


def inferred(document: Json, payload: int) -> dict[Name, list[tuple[float, int]]]:
    """What was inferred, one by one: when it passed its sender, and its identification if it was a packet by itself."""
    found: dict[Name, list[tuple[float, int]]] = defaultdict(list)
    for connection in document["joined"]["connections"]:
        ends = connection["client"], connection["server"]
        for number, direction in enumerate(connection["directions"]):
            for hop in direction["hops"]:
                for each in hop["drops"]:
                    alone = each["identification"] if each["packets"] == 1 else 0
                    for part in range(each["packets"]):
                        seq = (each["begin"] + part * payload) % 2**32
                        found[ends[number], ends[1 - number], seq].append((each["at_seconds"], alone))
    return found


def agreement(
    truth: dict[Name, list[tuple[float, int, int]]], said: dict[Name, list[tuple[float, int]]], within: float
) -> tuple[Counter[str], list[str]]:
    """How many packets are in both, and in one only, and which ones these are. The same packet passed its sender at most
    `within` seconds before it was dropped, and has the same identification where both have one."""
    counts: Counter[str] = Counter()
    alone = []
    for name in {*truth, *said}:
        left = sorted(said.get(name, ()))
        for at, payload, identification in sorted(truth.get(name, ())):
            for each in left:
                same = each[1] in (0, identification) or identification == 0
                if same and -0.001 <= at - each[0] <= within:
                    left.remove(each)
                    counts["both"] += 1
                    break
            else:
                counts["true only"] += 1
                alone.append(f"true {name} at {at:.6f}, {payload} bytes, id {identification}; left {left}")
        counts["said only"] += len(left)
        alone += [f"said {name} at {at:.6f}, id {identification}" for at, identification in left]
    return counts, alone


def restamped(source: Path, target: Path, ahead: Callable[[float], float]) -> Path:
    """A copy of a pcap file (nanoseconds, of this machine's byte order) by a clock that is ahead by `ahead` seconds, a
    second after the first packet being 1."""
    content = source.read_bytes()
    (magic,) = struct.unpack_from("=I", content)
    assert magic == 0xA1B23C4D, hex(magic)
    out = bytearray(content[:24])
    place, first = 24, None
    while place < len(content):
        seconds, part, kept, length = struct.unpack_from("=IIII", content, place)
        at = seconds * 10**9 + part
        first = at if first is None else first
        at += round(ahead((at - first) / 1e9) * 1e9)
        out += struct.pack("=IIII", at // 10**9, at % 10**9, kept, length) + content[place + 16 : place + 16 + kept]
        place += 16 + kept
    target.write_bytes(out)
    os.utime(target)
    return target
