"""What the meters themselves cost: the same transfer with all of them on, and with one or all switched off.

    .venv/bin/python -m bench.cost.meters [--repetitions N]

One flow for two seconds at 1 Gb/s, MTU 1500, offloads off, on fresh racks in rotating order. CPU time of the hosts a
gigabyte comes from the threads' own clocks, which are there whether counters and captures run or not.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict

from bench.common import save, say, spread, warn_if_busy
from bench.peers.traffic import TOKEN, conditions

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.agents.privilege import privileged
from framegauge.testbeds.rack import RackTestbed
from framegauge.workloads.stream import Stream

SECONDS = 2
METERS = ("wire", "samples", "fabric and CPU states")


def measure(bed: RackTestbed, off: frozenset[str]) -> tuple[float, float]:
    """Goodput in b/s and CPU seconds of both hosts per gigabyte, with some meters switched off."""
    bed.up(conditions("fabric", 1500, offloads=False))
    try:
        hosts = bed.hosts()
        if "wire" not in off:
            for host in hosts:
                host.agent.request("wire.begin")
        if "fabric and CPU states" not in off:
            bed.begin()
        for host in hosts:
            host.agent.request("cpu.begin")
        workload = Stream(duration_seconds=SECONDS, sample_seconds=0.0 if "samples" in off else 0.01)
        done = workload.run(hosts, TOKEN, None)
        readings = [host.agent.request("cpu.end") for host in hosts]
        used = sum(one[part]["cpu_seconds"] for one in readings for part in ("programs", "receive_path"))
        amount = done.record["bytes"]
        return 8 * amount / SECONDS, used / (amount / 1e9)
    finally:
        bed.down()


def main() -> None:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=8, help="racks for every row (default 8)")
    repetitions = max(1, parser.parse_args().repetitions)
    warn_if_busy()
    ways = {f"without {name}": frozenset({name}) for name in METERS} | {"without any": frozenset(METERS)}
    ways["again with all"] = frozenset()
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with Agent.open(privileged([find_agent(), "rack"], say)) as agent:
        bed = RackTestbed(agent)
        order = ["with all", *ways]
        for number in range(repetitions):
            for way in order[number % len(order) :] + order[: number % len(order)]:
                found[way].append(measure(bed, ways.get(way, frozenset())))
    print("with all meters / with fewer, in the same repetition: median (lowest to highest)")
    for way in ways:
        pairs = list(zip(found["with all"], found[way], strict=True))
        goodput, cost = (spread([whole[index] / part[index] for whole, part in pairs]) for index in (0, 1))
        middle = statistics.median(part[1] for _, part in pairs)
        print(f"{way}: goodput {goodput}, CPU of the hosts {cost} (of {middle:.2f} s/GB)")
    say(f"figures: {save('bench-meters', found)}")


if __name__ == "__main__":
    main()
