"""Our generators beside the field's: iperf3 and sockperf between the same two hosts on the same rack.

    .venv/bin/python -m bench.peers.traffic [--repetitions N] [--emulated]

stream and iperf3: one flow for two seconds at 1 Gb/s, on our fabric and on the kernel's own link (veth + tbf),
MTU 1500 and 9000, offloads off and on; goodput, and what both hosts' programs cost per gigabyte: instructions,
or where the machine hides its counters CPU time. rr and sockperf's ping-pong over TCP: 64 bytes each way, median
and 99 % round trip (sockperf states half of it). Both run on every rack, in alternating order; figures are ratios.
With --emulated stream and iperf3 are on a rack in a machine that qemu emulates, whose counter of instructions is exact
wherever this machine hides its own (docs/why/cpu-cost.md): our fabric only, 200 Mb/s.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from typing import Any

import pyarrow.ipc
from bench.common import build_machine, emulated_rack, save, say, spread, warn_if_busy

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.agents.privilege import privileged
from framegauge.agents.spools import read_spool
from framegauge.testbeds.base import Conditions
from framegauge.testbeds.rack import RackTestbed
from framegauge.testbeds.veth import VethTestbed
from framegauge.workloads.base import Workload
from framegauge.workloads.iperf3 import Iperf3
from framegauge.workloads.programs import running
from framegauge.workloads.rr import RequestResponse, latencies
from framegauge.workloads.stream import Stream

SECONDS = 2
MESSAGE_BYTES = 64
TOKEN = "5a" * 16
WORDS = {"fabric": "our fabric", "kernel": "veth + tbf"}
# The emulated machine's CPU does 10^9 instructions per second: a fifth of the rate, five times the moderation.
EMULATED_RATE, EMULATED_MODERATION = 200_000_000, 500e-6
PERCENTILE = re.compile(r"percentile (\d+\.\d+) =\s+(\d+\.\d+)")

Figures = dict[str, float]


def conditions(testbed: str, mtu: int, offloads: bool, hosts: int = 2) -> Conditions:
    """1 Gb/s; the kernel's link cannot delay."""
    return Conditions(
        testbed=testbed,  # type: ignore[arg-type]
        mtu={f"h{number}": mtu for number in range(1, hosts + 1)},
        rtt_seconds=0.0002 if testbed == "fabric" else 0.0,
        tso=offloads,
        lro=offloads,
        gro=offloads,
        checksum=offloads,
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


def emulated_conditions(mtu: int, offloads: bool) -> Conditions:
    """The same at the emulated machine's speed."""
    return replace(
        conditions("fabric", mtu, offloads), bits_per_second=EMULATED_RATE, moderation_seconds=EMULATED_MODERATION
    )


def bulk(bed: RackTestbed, workload: Workload) -> Figures:
    """Goodput, and the programs' cost per gigabyte on both hosts."""
    hosts = bed.hosts()
    for host in hosts:
        host.agent.request("cpu.begin")
    done = workload.run(hosts, TOKEN, None)
    used = [host.agent.request("cpu.end")["programs"] for host in hosts]
    tables = {
        spool.name: pyarrow.ipc.open_file(
            BytesIO(read_spool(next(host.agent for host in hosts if host.name == spool.host), spool.number))
        ).read_all()
        for spool in done.spools
    }
    record = done.record | workload.evidence(done.record, tables)
    gigabytes = record["bytes"] / 1e9
    found = {"goodput": workload.metrics(record, tables)["goodput"]}
    counted = all(one["instructions"] is not None for one in used)
    name, reading = ("instructions/GB", "instructions") if counted else ("CPU seconds/GB", "cpu_seconds")
    found[name] = sum(one[reading] for one in used) / gigabytes
    return found


def our_requests(bed: RackTestbed) -> Figures:
    """Round trips of rr, in a closed loop."""
    workload = RequestResponse(MESSAGE_BYTES, MESSAGE_BYTES, duration_seconds=SECONDS)
    done = workload.run(bed.hosts(), TOKEN, None)
    data = read_spool(bed.hosts()[0].agent, done.spools[0].number)
    found = sorted(latencies(pyarrow.ipc.open_file(BytesIO(data)).read_all()))
    return {"p50": statistics.median(found), "p99": found[int(0.99 * len(found))]}


def sockperf(bed: RackTestbed) -> Figures:
    """Round trips of sockperf's ping-pong over TCP."""
    client, server = bed.hosts()
    where = ["--tcp", "-i", server.address, "-p", "11111"]
    # It says that it listens, but into a buffer.
    with running(server, "sockperf server", ["stdbuf", "-oL", "sockperf", "server", *where]) as listening:
        listening.await_words("to block on socket")
        argv = ["sockperf", "ping-pong", *where, "-m", str(MESSAGE_BYTES), "-t", str(SECONDS)]
        with running(client, "sockperf", argv) as asking:
            asking.wait(SECONDS + 10)
            text = asking.output()
    halves = {share: float(value) for share, value in PERCENTILE.findall(text)}
    if not {"50.000", "99.000"} <= halves.keys():
        raise SystemExit(f"sockperf printed no percentiles: {text[-300:]!r}")
    return {"p50": 2e-6 * halves["50.000"], "p99": 2e-6 * halves["99.000"]}


def both(number: int, ours: Callable[[], Figures], theirs: Callable[[], Figures]) -> tuple[Figures, Figures]:
    """Ours and theirs; odd repetitions begin with theirs."""
    if number % 2:
        second = theirs()
        return ours(), second
    return ours(), theirs()


def once(bed: RackTestbed, number: int, asked: Conditions, requests: bool) -> dict[str, tuple[Figures, Figures]]:
    """Every pair of generators on one rack; those of requests where they are wanted."""
    bed.up(asked)
    try:
        stream, iperf3 = Stream(duration_seconds=SECONDS, sample_seconds=0.0), Iperf3(SECONDS)
        found = {"iperf3": both(number, lambda: bulk(bed, stream), lambda: bulk(bed, iperf3))}
        if requests:
            found["sockperf"] = both(number, lambda: our_requests(bed), lambda: sockperf(bed))
        return found
    finally:
        bed.down()


@contextmanager
def beds(emulated: bool) -> Iterator[dict[str, RackTestbed]]:
    """Racks by the kind of their links."""
    if emulated:
        with emulated_rack(build_machine()) as bed:
            yield {"fabric": bed}
        return
    with Agent.open(privileged([find_agent(), "rack"], say)) as agent:
        yield {"fabric": RackTestbed(agent), "kernel": VethTestbed(agent)}


def main() -> int:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5, help="racks for every row (default 5)")
    parser.add_argument("--emulated", action="store_true", help="in a machine that qemu emulates")
    given = parser.parse_args()
    missing = [name for name in ("iperf3", "sockperf") if shutil.which(name) is None]
    if missing and not given.emulated:
        say(f"bench/peers/traffic.py: {' and '.join(missing)} missing; apt-get install {' '.join(missing)}")
        return 2
    warn_if_busy()
    found: dict[tuple[Any, ...], list[tuple[Figures, Figures]]] = defaultdict(list)
    with beds(given.emulated) as racks:
        keys = [(testbed, mtu, offloads) for testbed in racks for mtu in (1500, 9000) for offloads in (False, True)]
        for number in range(max(1, given.repetitions)):
            for testbed, mtu, offloads in keys:
                asked = emulated_conditions(mtu, offloads) if given.emulated else conditions(testbed, mtu, offloads)
                requests = testbed == "fabric" and not offloads and not given.emulated
                for peer, pair in once(racks[testbed], number, asked, requests).items():
                    found[testbed, mtu, offloads, peer].append(pair)
            say(f"repetition {number + 1} of {max(1, given.repetitions)} done")
    show(found)
    rows = [
        dict(zip(("testbed", "mtu", "offloads", "peer"), key, strict=True)) | {"pairs": each}
        for key, each in found.items()
    ]
    say(f"figures: {save('bench-traffic', rows, emulated=given.emulated)}")
    return 0


def show(found: dict[tuple[Any, ...], list[tuple[Figures, Figures]]]) -> None:
    """A line a figure: the ratio ours / theirs with its spread, and both medians."""
    print("ours / theirs: median (lowest to highest); medians of both")
    for (testbed, mtu, offloads, peer), pairs in sorted(
        found.items(), key=lambda item: (item[0][3], *map(str, item[0]))
    ):
        for name in pairs[0][0]:
            ratio = spread([ours[name] / theirs[name] for ours, theirs in pairs], ".3f")
            middle = [statistics.median(pair[index][name] for pair in pairs) for index in (0, 1)]
            scale, unit = {"goodput": (1e-6, "Mb/s"), "p50": (1e6, "us"), "p99": (1e6, "us")}.get(name, (1.0, ""))
            words = " and ".join(f"{value * scale:.4g}" for value in middle)
            where = f"{peer}  {WORDS[testbed]}  MTU {mtu}  offloads {'on ' if offloads else 'off'}"
            print(f"{where}  {name}: {ratio}; {words} {unit}".rstrip())


if __name__ == "__main__":
    sys.exit(main())
