"""`framegauge diagnose` beside tcptrace and tshark on one capture: packets per CPU second, and memory.

    sudo .venv/bin/python -m bench.diagnose [--rounds 5] [--packets 2000000] [--capture FILE]

The capture is made once and kept in results/diagnose-capture.pcap: two hosts with 120 connections each send to a third
through the kernel's bridge, whose port of 1 Gb/s drops what does not fit; tcpdump keeps the first 96 bytes of every
packet at one of the senders. The kernel's TCP, MTU 1500, offloads off.

Each round runs every program once, each time in another order: our diagnosis with every detector on, the same with
two threads, `tcptrace -n`, `tcptrace -n -l -r` (RTTs, too) and `tshark -q -z expert`. Time is CPU time, user and
system, and of the two threads that of the clock; peak memory is that of GNU time. Figures are ratios within a round.
Needs apt-get install tcpdump tcptrace tshark time.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.common import save, say, spread, warn_if_busy

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.agents.privilege import privileged
from framegauge.testbeds.base import Host
from framegauge.testbeds.rack import Relay
from framegauge.workloads.programs import Running, running
from framegauge.workloads.stream import Stream

KEPT = Path("results/diagnose-capture.pcap")
HOSTS, FLOWS, SNAP_BYTES = 3, 120, 96
LEAST_CONNECTIONS = 100
FIRST_SECONDS = 10.0
OURS, THE_FASTEST, THE_OTHER = "framegauge", "tcptrace -n", "tshark -q -z expert"
OF_TWO = "framegauge, two threads"
# How many times as fast by the clock two threads are as one.
TARGET_OF_TWO = 1.7
# What the project asks of itself: ratios of packets per CPU second, and MiB.
TARGETS = {THE_FASTEST: 1.0, "tcptrace -n -l -r": 1.0, THE_OTHER: 25.0}
MOST_MEBIBYTES = 64.0


@dataclass(frozen=True)
class Figures:
    """What one run took."""

    cpu_seconds: float
    seconds: float
    mebibytes: float


def programs(capture: Path) -> dict[str, list[str]]:
    """Commands by their names."""
    file = str(capture)
    return {
        OURS: [find_agent(), "diagnose", file],
        OF_TWO: [find_agent(), "diagnose", "--threads", "2", file],
        "tcptrace -n": ["tcptrace", "-n", file],
        "tcptrace -n -l -r": ["tcptrace", "-n", "-l", "-r", file],
        THE_OTHER: ["tshark", "-n", "-q", "-z", "expert", "-r", file],
    }


def measured(argv: Sequence[str], output: Path, codes: Collection[int] = (0,)) -> Figures:
    """Runs a program with its output in a file; it must end with one of these exit codes."""
    with tempfile.NamedTemporaryFile("r") as peak, output.open("wb") as kept:
        # Not ru_maxrss of this process' children: that begins with the memory of the process that started them.
        timed = ["/usr/bin/time", "-q", "-f", "%M", "-o", peak.name, *argv]
        begun = time.monotonic()
        process = subprocess.Popen(timed, stdout=kept, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in codes:
            raise SystemExit(f"{argv[0]} ended with {process.returncode}")
        return Figures(used.ru_utime + used.ru_stime, seconds, int(peak.read()) / 1024)


def network() -> dict[str, Any]:
    """The params of `rack.up`: three hosts at a switch of the kernel's."""
    return {
        "testbed": "kernel",
        "hosts": [{"name": f"h{number}", "mtu": 1500} for number in range(1, HOSTS + 1)],
        "link": {"bits_per_second": 10**9, "rtt_seconds": 0.0, "buffer_bytes": 262_144, "port_mtu": 9216},
        "nic": {
            **dict.fromkeys(("tso", "lro", "gro", "checksum"), False),
            "moderation_seconds": 0.0, "aggregate_bytes": 36864,
        },
        "shaper": {"factor": 0.999, "burst_bytes": 70000},
        "congestion_control": "cubic", "family": 4, "sysctls": {},
    }  # fmt: skip


def await_packets(capture: Path) -> None:
    """Waits until tcpdump has opened its file: it writes the header once it listens."""
    for _ in range(500):
        if capture.exists() and capture.stat().st_size:
            return
        time.sleep(0.02)
    raise SystemExit("tcpdump was not ready within 10 s")


def stopped(dump: Running) -> None:
    """Ends tcpdump, which writes what it still has."""
    dump.signal(signal.SIGINT)
    if dump.wait(30.0) is None:
        raise SystemExit("tcpdump did not end within 30 s")
    say(dump.last_words())


def capture_at_sender(agent: Agent, seconds: float, capture: Path) -> None:
    """One file of what the first host sends and hears while two of them send for this time."""
    built = agent.request("rack.up", network(), timeout_seconds=60)
    try:
        hosts = [Host(each["name"], each["address"], Relay(agent, each["name"])) for each in built["hosts"]]
        argv = ["tcpdump", "-Z", "root", "-U", "-i", "any", "-s", str(SNAP_BYTES), "-B", "65536", "-w", str(capture)]
        argv[argv.index("any")] = interface(hosts[0])
        with running(hosts[0], "tcpdump", [*argv, "tcp"]) as dump:
            await_packets(capture)
            work = Stream(duration_seconds=seconds, pattern="many-to-one", flows=FLOWS, sample_seconds=0.0)
            work.run(hosts, secrets.token_hex(16), None)
            stopped(dump)
    finally:
        agent.request("rack.down", timeout_seconds=60)


def interface(host: Host) -> str:
    """The NIC of a host: what is not its loopback."""
    with running(host, "ip", ["ip", "-json", "link"]) as asked:
        asked.wait(10.0)
        links = json.loads(asked.output())
    return next(each["ifname"] for each in links if "LOOPBACK" not in each["flags"])


def summary(capture: Path, folder: Path) -> dict[str, Any]:
    """What our diagnosis says of a capture."""
    answer = folder / "answer.json"
    measured(programs(capture)[OURS], answer)
    found = json.loads(answer.read_bytes())
    (tap,) = found["taps"]
    return {
        "packets": found["packets"],
        "segments": tap["segments"],
        "seconds": tap["seconds"],
        "connections": len(tap["connections"]),
        "resent_segments": sum(sum(each["resent_segments"]) for each in tap["connections"]),
        "findings": len(tap["findings"]),
    }


def made(packets: int, capture: Path, folder: Path) -> None:
    """Makes the capture; again and longer, if the machine was slower than expected."""
    seconds = FIRST_SECONDS
    with Agent.open(privileged([find_agent(), "rack"], say)) as agent:
        while True:
            fresh = folder / "fresh.pcap"
            fresh.unlink(missing_ok=True)
            say(f"capturing for {seconds:.0f} s")
            capture_at_sender(agent, seconds, fresh)
            got = summary(fresh, folder)["packets"]
            if got >= packets:
                break
            seconds *= 1.2 * packets / max(got, packets // 20)
    capture.parent.mkdir(exist_ok=True)
    shutil.move(fresh, capture)


def show(found: Mapping[str, list[Figures]], of: Mapping[str, Any]) -> None:
    """A line per program, and a line per ratio."""
    print(
        f"{of['packets']} packets, {of['connections']} connections, {of['resent_segments']} segments sent again, "
        f"{of['seconds']:.0f} s; {of['findings']} findings"
    )
    for name, runs in found.items():
        rate = spread([of["packets"] / each.cpu_seconds / 1e6 for each in runs], ".3f")
        wall = spread([each.seconds for each in runs], ".2f")
        memory = spread([each.mebibytes for each in runs], ".1f")
        print(f"{name}: {rate} million packets per CPU second, {wall} s, {memory} MiB at most")
    ours = found[OURS]
    print("framegauge / other, of packets per CPU second and of peak memory: median (lowest to highest)")
    for name, least in TARGETS.items():
        pairs = list(zip(ours, found[name], strict=True))
        rate = spread([other.cpu_seconds / own.cpu_seconds for own, other in pairs], ".2f")
        memory = spread([own.mebibytes / other.mebibytes for own, other in pairs], ".3f")
        print(f"{name}: {rate}, wanted {least:g} or more; memory {memory}")
    two = spread([own.seconds / other.seconds for own, other in zip(ours, found[OF_TWO], strict=True)], ".2f")
    print(f"one thread / two, of seconds by the clock: {two}, wanted {TARGET_OF_TWO:g} or more")
    print(f"peak memory: {spread([each.mebibytes for each in ours], '.1f')} MiB, wanted {MOST_MEBIBYTES:g} or less")


def main() -> int:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="of all programs (default 5)")
    parser.add_argument("--packets", type=int, default=2_000_000, help="that the capture has at least")
    parser.add_argument("--capture", type=Path, help="another capture than the one that is made")
    options = parser.parse_args()
    missing = [name for name in ("tcpdump", "tcptrace", "tshark", "time") if shutil.which(name) is None]
    if missing:
        say(f"bench/diagnose.py: {' and '.join(missing)} missing; apt-get install {' '.join(missing)}")
        return 2
    found: dict[str, list[Figures]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        capture = options.capture or KEPT
        if options.capture is None and not KEPT.exists():
            made(options.packets, capture, folder)
        of = summary(capture, folder)
        if options.capture is None and (of["packets"] < options.packets or of["connections"] < LEAST_CONNECTIONS):
            say(f"{KEPT} has {of['packets']} packets of {of['connections']} connections: remove it, to make another")
            return 2
        warn_if_busy()
        commands = list(programs(capture).items())
        for number in range(max(1, options.rounds)):
            turned = commands[number % len(commands) :] + commands[: number % len(commands)]
            for each, argv in turned:
                found[each].append(measured(argv, folder / "output"))
            say(f"round {number + 1} of {max(1, options.rounds)} done")
    show({name: found[name] for name, _ in commands}, of)
    kept = [{"program": name, "runs": [vars(each) for each in runs]} for name, runs in found.items()]
    say(f"figures: {save('bench-diagnose', kept, capture=of)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
