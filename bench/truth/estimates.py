"""Estimates beside what then comes: hosts of the rack are read for an estimate while a workload runs at MTU 1500, and
the switch counts what the same workload has at 9000.

    sudo .venv/bin/python -m bench.truth.estimates [--blocks 3] [NAME ...]

Prints a line of a table for each workload: packets at 1500 for each one at 9000 (by payload), as foreseen, with the
bounds, and as they came; the bound of the gain of goodput, and the gain of payload in the same time. Of several blocks,
the median, the lowest and the highest.

A bound is one of the effect, and no run is that: two runs with the same packets differ, too. So it is compared with the
interval of the gain (95 % for all loads together), as a study would have it: a bound below its lower end is wrong, and
the exit code is 1."""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from bench.common import say, spread, warn_if_busy

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.estimate.document import estimate
from framegauge.evidence.blocks import payload_bytes
from framegauge.experiment.runner import Runner
from framegauge.results.journal import Journal
from framegauge.statistics import ratio
from framegauge.study import file as study_file
from framegauge.testbeds.base import Json
from framegauge.testbeds.rack import RackTestbed

RATE, TARGETS = 200_000_000, (9000,)


@dataclass(frozen=True)
class Load:
    """A workload, the hosts of its rack, and a metric that it has."""

    workload: Mapping[str, Any]
    metric: str
    hosts: int = 2
    more: Mapping[str, Any] = field(default_factory=dict)


LOADS = {
    "stream": Load({"stream": {"duration": "2 s"}}, "goodput"),
    "rr, responses of 600 B": Load({"rr": {"response": "600 B", "duration": "2 s"}}, "transactions"),
    "rr, responses of 30 kB": Load({"rr": {"response": "30 kB", "duration": "2 s"}}, "transactions"),
    "iscsi, blocks of 8 KiB": Load(
        {"iscsi": {"duration": "2 s", "size": "16 MiB", "block": "8 KiB", "rate": 60}}, "operations", 3
    ),
    "iscsi, blocks of 64 KiB": Load(
        {"iscsi": {"duration": "2 s", "size": "16 MiB", "block": "64 KiB", "rate": 60}}, "operations", 3
    ),
    "iscsi, blocks of 4 KiB": Load(
        {"iscsi": {"duration": "2 s", "size": "16 MiB", "block": "4 KiB", "rate": 60}}, "operations", 3
    ),
    "ceph, mixed": Load(
        {
            "ceph": {
                "operation": "mixed",
                "access": "random",
                "block": "64 KiB",
                "depth": 4,
                "rate": 60,
                "replication": 3,
                "image": "64 MiB",
                "duration": "6 s",
            }
        },
        "iops",
        5,
    ),
    "nfs": Load({"nfs": {"duration": "2 s"}}, "operations"),
    "web": Load({"web": {"users": 4, "think": "0.1 s", "ramp_up": "0.3 s", "steady": "3 s"}}, "operations", 7),
}


class Read(RackTestbed):
    """A rack whose hosts are read for an estimate while a run is measured."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        self.readings: list[dict[str, Json]] = []

    def begin(self, watch: Sequence[str] = ()) -> float:
        """Also begins to read."""
        for host in self.hosts():
            host.agent.request("estimate.begin", {"interfaces": [], "target_mtus": list(TARGETS), "sudo": False})
        return super().begin(watch)

    def end(self) -> Json:
        """Also ends it."""
        found = super().end()
        self.readings.append({host.name: host.agent.request("estimate.end") for host in self.hosts()})
        return found


def block(agent: Agent, load: Load, folder: Path) -> tuple[Json, float, float, list[str]]:
    """One run at each MTU: the estimate for 9000, the packets at 1500 for each one there, the gain of payload, and why
    the runs are not faithful, if they are not."""
    bed: dict[str, Any] = {"kind": "rack", "link": {"rate": "200 Mb/s"}}
    if load.hosts > 2:
        bed |= {"topology": "rack", "hosts": load.hosts}
    asked = {
        "question": "Does what is foreseen come?", "testbed": bed, "workloads": [dict(load.workload)], "control": False,
        "factors": {"mtu": {"levels": [1500, 9000], "baseline": 1500}, "rtt": "0.2 ms"}, "blocks": 2, "retries": 0,
        "budget": "10 min", "margins": {load.metric: "5 %"}, **load.more,
    }  # fmt: skip
    study = study_file.parse(yaml.safe_dump(asked, sort_keys=False), "study.yaml").model_copy(update={"blocks": 1})
    read = Read(agent)
    with Journal.create(folder, study_file.dump(study), {"question": study.question}) as journal:
        Runner(study, read, journal).run()
        runs = list(journal.runs)
    came, readings, why = {}, {}, []
    for run, found in zip(runs, read.readings, strict=True):
        record = json.loads((folder / "runs" / str(run.number) / "record.json").read_text())
        ports = record["measure"]["fabric"]["ports"]
        to_hosts = [port for port in ports if port["port"].rpartition(">")[2] in found]
        frames = sum(port["sent_frames"] for port in to_hosts)
        came[run.level] = frames, payload_bytes(record, list(found))
        readings[run.level] = found
        why += run.excluded
    (frames, payload), (frames_then, payload_then) = came[1500], came[9000]
    total: Json = estimate(readings[1500], TARGETS, RATE)["total"][0]
    return total, frames / payload * payload_then / frames_then, payload_then / payload - 1, why


def interval(gains: Sequence[float], alpha: float) -> tuple[float, float, float]:
    """Of gains in per cent, one of each block: their geometric mean, and the ends of its interval; of one block the
    ends are infinite."""
    found = ratio.estimate([1.0] * len(gains), [1 + gain / 100 for gain in gains], alpha)
    low, high = found.low or 0.0, found.high or math.inf
    return 100 * found.ratio - 100, 100 * low - 100, 100 * high - 100


def row(agent: Agent, name: str, blocks: int, alpha: float) -> tuple[str, bool]:
    """A line of the table, and whether the bound of goodput is below all that the gain may be."""
    foreseen, least, most, came, off, bounds, gains = [], [], [], [], [], [], []
    for number in range(1, blocks + 1):
        with tempfile.TemporaryDirectory() as folder:
            total, fewer, gain, why = block(agent, LOADS[name], Path(folder) / "out")
        if why:
            say(f"{name}, block {number}: {why[0]}")
        known, at_most = total["packets"]["ratio"], total["goodput"]["at_most"]
        foreseen.append(known["estimate"])
        least.append(known["least"])
        most.append(known["most"])
        came.append(fewer)
        off.append(100 * known["estimate"] / fewer - 100)
        bounds.append(math.inf if at_most is None else 100 * at_most)
        gains.append(100 * gain)
    centre, low, high = interval(gains, alpha)
    is_wrong = low > statistics.median(bounds)
    line = (
        f"| {name} | {spread(foreseen, '.2f')} | {min(least):.2f} to {max(most):.2f} | {spread(came, '.2f')} | "
        f"{spread(off, '.1f')} % | {spread(bounds, '.1f')} % | {centre:.1f} % ({low:.1f} to {high:.1f}) | "
        f"{'wrong' if is_wrong else 'holds'} |"
    )
    return line, is_wrong


def main() -> int:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *LOADS], help=", ".join(LOADS))
    parser.add_argument("--blocks", type=int, default=3)
    options = parser.parse_args()
    warn_if_busy()
    names = options.names or list(LOADS)
    print("| load | foreseen | bounds | came | off, of each block | goodput at most | payload, interval | bound |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    wrong = 0
    with Agent.open([find_agent(), "rack"]) as agent:
        for name in names:
            line, is_wrong = row(agent, name, options.blocks, ratio.ALPHA / len(names))
            print(line, flush=True)
            wrong += is_wrong
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
