"""What a figure is no evidence for, and what else a reader of a study has to know."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from framegauge.metrics import METRICS
from framegauge.results.journal import Run

__all__ = ["caveats"]

NAMED = 3  # connections in a sentence
MANY = ("connections", "keep their segments until they are")


def caveats(metrics: Collection[str], scope: str, runs: Sequence[Run]) -> list[str]:
    """All of them, one line each."""
    return [*_of_costs(metrics, scope), *old_connections(run.readings for run in runs), *_refused(runs)]


def _of_costs(metrics: Collection[str], scope: str) -> list[str]:
    """What a figure is no evidence for, and which of them repeat (docs/why/cpu-cost.md)."""
    lines = []
    if scope == "measured":
        if any(metric.endswith("_cpu_cost") for metric in metrics):
            lines.append(
                "CPU figures are of whole hosts: what else ran there is in them, less what ran before each run"
            )
        return lines
    if any(METRICS[metric].unit.endswith("_per_gigabyte") for metric in metrics):
        lines.append("CPU figures are of this machine's kernel and a virtual NIC: no evidence about hardware")
    if any(metric.endswith(("_cpu_cost", "_cycles")) for metric in metrics):
        lines.append("CPU time and cycles move with neighbours and caches; instructions repeat: judge by those")
    return lines


def _refused(runs: Sequence[Run]) -> list[str]:
    """That others than the study's own ends connected to its data ports."""
    count = sum(run.readings.get("refused_connections", 0) for run in runs)
    return [f"{count} connections without their run's token were refused, and got nothing"] if count else []


def old_connections(runs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What to know of them, a line a host: of the readings of runs, the most that stood at once."""
    most: dict[str, Mapping[str, Any]] = {}
    for readings in runs:
        for host, found in (readings.get("old_connections") or {}).items():
            if found["count"] > most.get(host, {"count": 0})["count"]:
                most[host] = found
    for host, found in sorted(most.items()):
        named = [f"{each['local']} to {each['remote']} ({each['mss_bytes']} B)" for each in found["connections"]]
        rest = found["count"] - len(named[:NAMED])
        stood, keep = ("connection", "keeps its segments until it is") if found["count"] == 1 else MANY
        yield (
            f"{host}: {found['count']} {stood} stood when the MTU was raised, and {keep} made anew: "
            f"{', '.join(named[:NAMED])}" + (f" and {rest} more" if rest else "")
        )
