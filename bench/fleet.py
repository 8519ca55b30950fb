"""The planner and the blame on an invented fleet: how often a fault is found, named, and named alone.

    .venv/bin/python -m bench.fleet [--hosts 1000] [--rack 40] [--spines 8] [--seeds 200] [--flows 32]
        [--rate "100 Mb/s"]

No packet is sent. Faults are drawn at random, and the plan's pairs are measured as the fleet would answer. "Stated" is
the chance that the plan's flows meet the fault, "alone" that the culprit was named and nothing else was found,
"others" that a host or router was accused that no fault touches.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from bench import fleet_model as fleet
from bench.common import save, say

from framegauge.check.judgement import blame, planner
from framegauge.quantities import parse_bits_per_second, print_bits_per_second, print_bytes, print_seconds


@dataclass
class Tally:
    """What became of one kind of fault."""

    met: float = 0.0
    found: int = 0
    named: int = 0
    alone: int = 0
    accused: int = 0
    seconds: list[float] = field(default_factory=list)


def stated(hosts: fleet.Fleet, plan: planner.Plan, fault: fleet.Fault, flows: int) -> float:
    """The chance that the plan's flows cross the fault: certain for a host, by the hash for a link of one leaf."""
    if not fault.kind.startswith("uplink"):
        return 1.0
    number = int(fault.culprits[0].rpartition(".")[2]) + 256 * int(fault.culprits[0].split(".")[2])
    rack = planner.Member("", (f"10.{number >> 8}.{number & 255}.1/24",)).place()
    between = plan.group_flows(flows).items()
    up = sum(count for (source, destination), count in between if source == rack != destination)
    down = sum(count for (source, destination), count in between if destination == rack != source)
    crossing = {"uplink": up + down, "uplink_up": up, "uplink_down": down}[fault.kind]
    return planner.member_coverage(crossing, [hosts.spines])[str(hosts.spines)]


def one(hosts: fleet.Fleet, plan: planner.Plan, kind: str, seed: int, flows: int, noise: float, tally: Tally) -> None:
    """One fault, one check."""
    fault = fleet.draw_fault(hosts, kind, random.Random(f"{kind} {seed}"))
    document = fleet.measure(hosts, plan, [fault], flows, seed, silent=noise, limited=noise)
    began = time.perf_counter()
    found = blame.blame(document)
    tally.seconds.append(time.perf_counter() - began)
    tally.met += stated(hosts, plan, fault, flows)
    tally.found += document["verdict"] == "fault"
    tally.named += fleet.is_named(fault, found)
    tally.alone += fleet.is_named(fault, found) and len(found) == 1
    tally.accused += bool(fleet.is_accused([fault], found))


def healthy(hosts: fleet.Fleet, plan: planner.Plan, seeds: int, flows: int, noise: float) -> int:
    """Findings of fleets without a fault: there must be none."""
    checks = (fleet.measure(hosts, plan, (), flows, seed, silent=noise, limited=noise) for seed in range(seeds))
    return sum(len(blame.blame(document)) for document in checks)


def several(hosts: fleet.Fleet, plan: planner.Plan, seeds: int, flows: int) -> dict[str, Any]:
    """Five faults of any kind at once: how many of them are named, and in how many checks anyone else is accused."""
    named, accused, drawn, missed = 0, 0, 0, Counter[str]()
    for seed in range(seeds):
        chooser = random.Random(f"several {seed}")
        faults = [fleet.draw_fault(hosts, chooser.choice(fleet.FAULTS), chooser) for _ in range(5)]
        found = blame.blame(fleet.measure(hosts, plan, faults, flows, seed))
        for fault in faults:
            drawn += 1
            named += fleet.is_named(fault, found)
            missed[fault.kind] += not fleet.is_named(fault, found)
        accused += bool(fleet.is_accused(faults, found))
    return {"checks": seeds, "faults": drawn, "named": named, "missed": dict(missed), "checks_accusing_others": accused}


def coverage(hosts: fleet.Fleet, plan: planner.Plan, seeds: int) -> dict[str, dict[str, float]]:
    """Of the pairs that one bad uplink of a leaf can hit, the share that it hits: beside what is stated for a pair."""
    found = {}
    for flows in (1, 4, 17, 35, 72):
        met = crossed = 0
        for seed in range(seeds):
            fault = fleet.draw_fault(hosts, "uplink_up", random.Random(seed))
            document = fleet.measure(hosts, plan, [fault], flows, seed)
            leaf = fault.culprits[0].split(".")
            rack = f"r{256 * int(leaf[2]) + int(leaf[3])}h"
            for pair in document["pairs"]:
                if pair["source"].startswith(rack) and not pair["destination"].startswith(rack):
                    crossed += 1
                    met += pair["verdict"] == "black_hole"
        share = planner.member_coverage(flows, [hosts.spines])[str(hosts.spines)]
        found[str(flows)] = {"pairs": crossed, "stated": share, "met": met / crossed}
    return found


def main() -> None:
    """Prints what a plan costs, then a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("hosts", 1000), ("rack", 40), ("spines", 8), ("seeds", 200), ("flows", 32)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--rate", default="100 Mb/s", help="pacing of each host (1 %% of 10 Gb/s)")
    options = parser.parse_args()
    hosts = fleet.Fleet(options.hosts, options.rack, options.spines)
    began = time.perf_counter()
    plan = planner.plan(hosts.members())
    planned = time.perf_counter() - began
    rate = parse_bits_per_second(options.rate)
    cost = planner.expected_cost(plan.pairs, options.flows, 9000, rate)
    assert cost.seconds is not None
    say(
        f"{options.hosts} hosts, {len(plan.pairs)} of {plan.of} pairs, {options.flows} flows each: "
        f"{print_bytes(cost.bytes_total)}, at most {print_bytes(cost.bytes_busiest_host)} a host, "
        f"{print_seconds(cost.seconds, 3)} at {print_bits_per_second(rate)} a host; "
        f"planned in {print_seconds(planned, 2)}"
    )
    figures: dict[str, Any] = {"plan": plan.as_document(), "bytes": cost.bytes_total, "seconds": cost.seconds}
    for noise in (0.0, 0.05):
        say(f"routers that never answer (and cannot be named): {noise:.0%}, large packets not answered: {noise:.0%}")
        say(f"  {'fault':14}{'stated':>9}{'found':>9}{'named':>9}{'alone':>9}{'others':>9}{'blame':>10}")
        for kind in fleet.FAULTS:
            tally = Tally()
            for seed in range(options.seeds):
                one(hosts, plan, kind, seed, options.flows, noise, tally)
            shares = [
                each / options.seeds for each in (tally.met, tally.found, tally.named, tally.alone, tally.accused)
            ]
            say(f"  {kind:14}" + "".join(f"{each:9.1%}" for each in shares) + f"{max(tally.seconds):8.2f} s")
            names = ("stated", "found", "named", "alone", "accusing_others")
            figures[f"{kind} {noise}"] = dict(zip(names, shares, strict=True)) | {"worst_seconds": max(tally.seconds)}
        few = max(options.seeds // 10, 1)
        found = healthy(hosts, plan, few, options.flows, noise)
        say(f"  findings of {few} fleets without a fault: {found}")
        figures[f"healthy {noise}"] = found
    figures["several"] = several(hosts, plan, max(options.seeds // 4, 1), options.flows)
    say(f"five faults at once: {figures['several']}")
    figures["coverage"] = coverage(hosts, plan, max(options.seeds // 10, 1))
    for flows, each in figures["coverage"].items():
        say(f"{flows:>3} flows meet one bad of {hosts.spines}: stated {each['stated']:.2%}, met {each['met']:.2%}")
    say(f"figures: {save('fleet', figures)}")


if __name__ == "__main__":
    main()
