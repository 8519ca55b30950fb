"""One frame ahead in the queue: what bulk of another host adds to a request's latency, beside theory.

    .venv/bin/python bench/latency.py [--repetitions N]

Requests from h1 and paced bulk from h2 meet at the port to h3, 1 Gb/s. Where bulk fills a share s of the link with
frames that take T, a request finds one under way with probability s and waits for the rest of it, evenly spread over T:
a share q of all requests waits longer than T (1 - q / s) (M. Harchol-Balter, "Performance Modeling", residual time).
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
from io import BytesIO
from typing import Any

import pyarrow.ipc
from common import save, say, spread, warn_if_busy
from traffic import TOKEN, conditions

from framegauge.agent import Agent, find_agent, privileged, read_spool
from framegauge.testbeds.rack import RackTestbed
from framegauge.workloads.mixed import Mixed
from framegauge.workloads.rr import latencies

RATE = 10**9
BULK_BITS_PER_SECOND = 300_000_000
SHARES = (0.15, 0.05)  # of requests that wait longer
QUIET_SHARE = 0.35  # of requests that surely find the port idle: their latency is the base


def quantile(values: list[float], longer: float) -> float:
    """The latency that a share of all requests exceeds."""
    return values[int((1 - longer) * len(values))]


def measure(bed: RackTestbed, mtu: int) -> dict[float, float]:
    """The wait above the base that each of SHARES exceeds; seconds."""
    workload = Mixed(
        connections=8,
        rate_per_second=1000.0,
        arrivals="poisson",
        duration_seconds=4.0,
        bulk_bits_per_second=BULK_BITS_PER_SECOND,
    )
    bed.up(conditions("fabric", mtu, offloads=False, hosts=3))
    try:
        done = workload.run(bed.hosts(), TOKEN, None)
        data = read_spool(bed.hosts()[0].agent, done.spools[0].number)
        table = pyarrow.ipc.open_file(BytesIO(data)).read_all()
        found = sorted(latencies(table, *done.record["window_seconds"]))
        base = found[int(QUIET_SHARE * len(found))]
        return {share: quantile(found, share) - base for share in SHARES}
    finally:
        bed.down()


def theory(mtu: int, longer: float) -> float:
    """The wait that a share of all requests exceeds; seconds."""
    frame = 8 * (mtu + 38) / RATE
    busy = BULK_BITS_PER_SECOND / RATE * (mtu + 38) / (mtu - 52)
    return frame * (1 - longer / busy)


def main() -> None:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5, help="racks for every MTU (default 5)")
    repetitions = max(1, parser.parse_args().repetitions)
    warn_if_busy()
    found: dict[int, list[dict[float, float]]] = {1500: [], 9000: []}
    with Agent.open(privileged([find_agent(), "rack"], say)) as agent:
        bed = RackTestbed(agent)
        for _ in range(repetitions):
            for mtu, waits in found.items():
                waits.append(measure(bed, mtu))
    print(f"bulk of {BULK_BITS_PER_SECOND // 10**6} Mb/s at 1 Gb/s: waits above the base in us (lowest to highest)")
    rows: list[dict[str, Any]] = []
    for share in SHARES:
        for mtu, waits in found.items():
            values = [each[share] * 1e6 for each in waits]
            expected = theory(mtu, share) * 1e6
            print(f"MTU {mtu}: {share:.0%} wait longer than {spread(values, '.1f')}; theory {expected:.1f}")
            rows.append({"mtu": mtu, "share": share, "microseconds": values, "theory": expected})
        more = [(nine[share] - one[share]) * 1e6 for one, nine in zip(found[1500], found[9000], strict=True)]
        expected = (theory(9000, share) - theory(1500, share)) * 1e6
        print(f"9000 over 1500 at {share:.0%}: {spread(more, '.1f')}; theory {expected:.1f}")
    say(f"figures: {save('bench-latency', rows)}")


if __name__ == "__main__":
    main()
