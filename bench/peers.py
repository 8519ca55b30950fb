"""Our generator and iperf3, side by side: the same bytes between the same two hosts on the same rack.

    .venv/bin/python bench/peers.py [--repetitions N]

On our fabric and on the kernel's own link (veth + tbf), at MTU 1500 and 9000. Both programs run on every
rack that is built, in alternating order; the figure is the ratio of their goodputs.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import base64
import json
import shutil
import sys
import time
from typing import Any

from common import save, say, spread, warn_if_busy

from framegauge.agent import Agent, Requests, find_agent, privileged
from framegauge.testbeds.base import Conditions
from framegauge.testbeds.rack import RackTestbed
from framegauge.testbeds.veth import VethTestbed
from framegauge.workloads.stream import Stream

SIZE_BYTES = 200_000_000
PATIENCE_SECONDS = 30.0
WORDS = {"fabric": "our fabric", "kernel": "veth + tbf"}


def conditions(testbed: str, mtu: int) -> Conditions:
    """1 Gb/s; the kernel's link cannot delay."""
    return Conditions(
        testbed=testbed,  # type: ignore[arg-type]
        mtu={"h1": mtu, "h2": mtu},
        rtt_seconds=0.0002 if testbed == "fabric" else 0.0,
        tso=False,
        lro=False,
        gro=False,
        checksum=False,
        congestion_control="cubic",
        bits_per_second=10**9,
        buffer_bytes=512 * 1024,
        port_mtu=9216,
        moderation_seconds=50e-6 if testbed == "fabric" else 0.0,
        aggregate_bytes=36 * 1024,
        shaper_factor=0.999,
        shaper_burst_bytes=70_000,
        family=4,
    )


def output(agent: Requests, process: int, stream: str) -> str:
    """What a program in a host has printed so far."""
    asked = {"process": process, "stream": stream, "offset_bytes": 0, "length_bytes": 65536}
    return base64.b64decode(agent.request("process.output", asked)["data"]).decode()


def spawn(agent: Requests, *words: str) -> int:
    """Start a program in a host."""
    return int(agent.request("process.spawn", {"argv": list(words), "directory": None})["process"])


def ours(bed: RackTestbed) -> float:
    """Goodput by `stream`."""
    done = Stream(size_bytes=SIZE_BYTES, repeat_seconds=0).run(bed.hosts(), "5a" * 16, None)
    result = done.record["runs"][0]["result"]
    return 8.0 * float(result["bytes"]) / float(result["active_seconds"])


def theirs(bed: RackTestbed) -> float:
    """Goodput by iperf3, as its receiver states it."""
    client, server = bed.hosts()
    listening = spawn(server.agent, "iperf3", "-s", "-1", "--forceflush")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "listening" not in output(server.agent, listening, "stdout"):
        if time.monotonic() > deadline:
            raise SystemExit(f"iperf3 does not listen: {output(server.agent, listening, 'stderr')}")
    process = spawn(client.agent, "iperf3", "-c", server.address, "-n", str(SIZE_BYTES), "-J")
    asked = {"process": process, "timeout_seconds": PATIENCE_SECONDS}
    client.agent.request("process.wait", asked, timeout_seconds=PATIENCE_SECONDS + 5)
    answer = json.loads(output(client.agent, process, "stdout"))
    if "error" in answer:
        raise SystemExit(f"iperf3: {answer['error']}")
    return float(answer["end"]["sum_received"]["bits_per_second"])


def measure(bed: RackTestbed, mtu: int, number: int) -> tuple[float, float]:
    """Both on one rack; odd repetitions begin with iperf3."""
    bed.up(conditions(bed.kind, mtu))
    try:
        if number % 2:
            second = theirs(bed)
            return ours(bed), second
        return ours(bed), theirs(bed)
    finally:
        bed.down()


def main() -> int:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5, help="racks for every row (default 5)")
    repetitions = max(1, parser.parse_args().repetitions)
    if shutil.which("iperf3") is None:
        say("bench/peers.py: iperf3 is missing; apt-get install iperf3")
        return 2
    warn_if_busy()
    keys = [(testbed, mtu) for testbed in ("fabric", "kernel") for mtu in (1500, 9000)]
    pairs: dict[tuple[str, int], list[tuple[float, float]]] = {key: [] for key in keys}
    with Agent.open(privileged([find_agent(), "rack"], say)) as agent:
        beds = {"fabric": RackTestbed(agent), "kernel": VethTestbed(agent)}
        for number in range(repetitions):
            for testbed, mtu in keys:
                pairs[testbed, mtu].append(measure(beds[testbed], mtu, number))
    print(f"{SIZE_BYTES // 10**6} MB at 1 Gb/s, one flow: goodput of our generator / iperf3 (lowest to highest)")
    found: list[dict[str, Any]] = []
    for (testbed, mtu), each in pairs.items():
        ratio = spread([mine / other for mine, other in each])
        mine, other = (spread([value[index] / 1e6 for value in each], ".1f") for index in (0, 1))
        print(f"{WORDS[testbed]}  MTU {mtu}  {ratio}  ours {mine} Mb/s, iperf3 {other} Mb/s")
        found.append({"testbed": testbed, "mtu": mtu, "goodput_bits_per_second": each})
    say(f"figures: {save('bench-peers', found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
