"""One frame ahead in the queue: what bulk of another host adds to a request's latency, beside theory.

    .venv/bin/python -m bench.truth.latency [--repetitions N]

Requests from h1 and paced bulk from h2 meet at the port to h3, at 100 Mb/s and at 1 Gb/s. Where bulk fills a share s of
the link with frames that take T, a request finds one under way with probability s and waits for the rest of it, evenly
spread over T: a share q of all requests waits longer than T (1 - q / s) (M. Harchol-Balter, "Performance Modeling and
Design of Computer Systems", 2013: excess of a job in service).

It is shown twice: in the switch, where the fabric tells how long the requests' frames waited; and end to end,
above the latency of a request that finds the port idle, where what the hosts' own CPU adds is in the figures, too.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import itertools
from dataclasses import replace
from io import BytesIO
from typing import Any

import pyarrow.ipc
from bench.common import save, say, spread, warn_if_busy
from bench.peers.traffic import TOKEN, conditions

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.agents.privilege import privileged
from framegauge.agents.spools import read_spool
from framegauge.evidence import waits as queueing
from framegauge.testbeds.rack import RackTestbed
from framegauge.workloads.mixed import Mixed
from framegauge.workloads.rr import latencies

RATES = (10**8, 10**9)
MTUS = (1500, 9000)
BULK_SHARE = 0.15  # of the line rate, as payload
END_TO_END = (0.05, 0.02)  # of requests that wait longer
IN_SWITCH = {"p99": 0.01, "p999": 0.001}  # the same
QUIET_SHARE = 0.35  # of requests that surely find the port idle: their latency is the base

Waits = dict[tuple[str, float], float]  # by where and share, in seconds


def measure(bed: RackTestbed, rate: int, mtu: int) -> Waits:
    """The waits that each share of the requests exceeds."""
    workload = Mixed(
        connections=8,
        rate_per_second=500.0,
        arrivals="poisson",
        duration_seconds=5.0,
        bulk_bits_per_second=int(BULK_SHARE * rate),
    )
    # Moderation would hide it: a request may wait for the next interrupt that bulk has put off.
    asked = replace(conditions("fabric", mtu, offloads=False, hosts=3), bits_per_second=rate, moderation_seconds=0.0)
    bed.up(asked)
    try:
        bed.begin()
        done = workload.run(bed.hosts(), TOKEN, None)
        record = {"measure": bed.end(), "workload": done.record}
        data = read_spool(bed.hosts()[0].agent, done.spools[0].number)
        table = pyarrow.ipc.open_file(BytesIO(data)).read_all()
        found = sorted(latencies(table, *done.record["window_seconds"]))
        base = found[int(QUIET_SHARE * len(found))]
        waits = queueing.readings(record)
        in_switch = {("switch", share): waits[f"queue_wait_{name}_seconds"] for name, share in IN_SWITCH.items()}
        return in_switch | {("end to end", share): found[int((1 - share) * len(found))] - base for share in END_TO_END}
    finally:
        bed.down()


def theory(rate: int, mtu: int, longer: float) -> float:
    """The wait that a share of all requests exceeds; seconds."""
    busy = BULK_SHARE * (mtu + 38) / (mtu - 52)
    return 8 * (mtu + 38) / rate * (1 - longer / busy)


def main() -> None:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5, help="racks for every row (default 5)")
    repetitions = max(1, parser.parse_args().repetitions)
    warn_if_busy()
    found: dict[tuple[int, int], list[Waits]] = {key: [] for key in itertools.product(RATES, MTUS)}
    with Agent.open(privileged([find_agent(), "rack"], say)) as agent:
        bed = RackTestbed(agent)
        for _ in range(repetitions):
            for key, waits in found.items():
                waits.append(measure(bed, *key))
    print(f"bulk of {BULK_SHARE:.0%} of the link: waits in us, median (lowest to highest)")
    rows: list[dict[str, Any]] = []
    places = [("switch", share) for share in IN_SWITCH.values()] + [("end to end", share) for share in END_TO_END]
    for rate, place in itertools.product(RATES, places):
        where, share = place
        print(f"{rate // 10**6} Mb/s, {where}: {share:.1%} of requests wait longer than")
        for mtu in MTUS:
            values, expected = [each[place] * 1e6 for each in found[rate, mtu]], theory(rate, mtu, share) * 1e6
            print(f"  MTU {mtu}: {spread(values, '.1f')}; theory {expected:.1f}")
            row = {"rate": rate, "mtu": mtu, "where": where, "share": share}
            rows.append({**row, "microseconds": values, "theory": expected})
        pairs = zip(found[rate, 1500], found[rate, 9000], strict=True)
        more = [(large[place] - small[place]) * 1e6 for small, large in pairs]
        expected = (theory(rate, 9000, share) - theory(rate, 1500, share)) * 1e6
        print(f"  9000 over 1500: {spread(more, '.1f')}; theory {expected:.1f}")
    say(f"figures: {save('bench-latency', rows)}")


if __name__ == "__main__":
    main()
