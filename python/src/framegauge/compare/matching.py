"""The matching of runs on two sides by workload, conditions and level, and the runs that only one side has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.compare.formats.samples import Sample, Side, as_number, set_key
from framegauge.metrics import METRICS
from framegauge.statistics.exclusions import Counts, count
from framegauge.summary.words import level

__all__ = ["Alone", "Matched", "RunSet", "across", "alike", "direction", "lost", "sets_of"]

ACROSS_TOOLS = "goodput"  # the only metric that has the same meaning in all tools


def lost(samples: Iterable[Sample]) -> Counts:
    """How many slots lost a run, and of how many; of files, which have no retries, each is its own slot."""
    return count((sample.slot or sample.run, bool(sample.excluded)) for sample in samples)


@dataclass(frozen=True)
class RunSet:
    """Runs of one side with the same workload, conditions and level."""

    workload: str
    conditions: Mapping[str, Any]
    level: Mapping[str, Any]
    samples: Sequence[Sample]

    def with_metric(self, metric: str) -> list[Sample]:
        """The runs that count and have the metric."""
        return [sample for sample in self.samples if not sample.excluded and metric in sample.metrics]

    def metrics(self) -> set[str]:
        """The metrics of all runs that count."""
        return {name for sample in self.samples if not sample.excluded for name in sample.metrics}

    def lost(self) -> Counts:
        """How many slots lost a run, and of how many."""
        return lost(self.samples)

    def values(self, metric: str) -> list[float]:
        """One value per unit, in order: runs of one block at the same level share its noise, and count once."""
        units: dict[str, list[float]] = {}
        for sample in self.with_metric(metric):
            units.setdefault(sample.unit or sample.run, []).append(sample.metrics[metric])
        return [_mean(values) for values in units.values()]


def _mean(values: Sequence[float]) -> float:
    if min(values) <= 0:
        return math.fsum(values) / len(values)
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def sets_of(side: Side) -> dict[str, RunSet]:
    """The sets of runs of a side, by key; unreadable files have no conditions and belong to no set."""
    samples_by_key: dict[str, list[Sample]] = {}
    for sample in side.samples:
        if sample.conditions or not sample.excluded:
            samples_by_key.setdefault(set_key(sample.workload, sample.conditions, sample.level), []).append(sample)
    return {
        key: RunSet(runs[0].workload, runs[0].conditions, runs[0].level, runs)
        for key, runs in _ordered(samples_by_key).items()
    }


def _ordered(runs_by_key: Mapping[str, list[Sample]]) -> dict[str, list[Sample]]:
    """The sets grouped by workload and conditions in order of first occurrence, with their levels in order."""
    places: dict[str, int] = {}
    for runs in runs_by_key.values():
        places.setdefault(set_key(runs[0].workload, runs[0].conditions), len(places))

    def place(item: tuple[str, list[Sample]]) -> tuple[int, float, str]:
        first = item[1][0]
        level = next(iter(first.level.values()), None)
        number = as_number(level)
        return places[set_key(first.workload, first.conditions)], math.inf if number is None else number, str(level)

    return dict(sorted(runs_by_key.items(), key=place))


Matched = list[tuple[RunSet, RunSet, str]]
Alone = list[dict[str, Any]]


def alike(base: Mapping[str, RunSet], new: Mapping[str, RunSet]) -> tuple[Matched, Alone]:
    """Pairs of sets with the same workload, conditions and level, one for each metric of both; and the rest."""
    matched: Matched = []
    alone: Alone = []
    for key in dict.fromkeys((*base, *new)):
        base_set, new_set = base.get(key), new.get(key)
        if base_set is None or new_set is None:
            alone += _only(base_set, new_set, base, new)
            continue
        base_metrics, new_metrics = base_set.metrics(), new_set.metrics()
        # A side that lost all its runs has no metrics; then the other side's are listed, as not judged.
        shared = base_metrics & new_metrics if base_metrics and new_metrics else base_metrics | new_metrics
        matched += [(base_set, new_set, metric) for metric in METRICS if metric in shared]
        if not shared:
            alone.append(_entry(base_set, "both", "the runs that count have no metric in common"))
        for run_set, name, extra in ((base_set, "base", base_metrics - shared), (new_set, "new", new_metrics - shared)):
            if extra:
                alone.append(_entry(run_set, name, "not measured on the other side", sorted(extra)))
    return matched, alone


def _only(
    base_set: RunSet | None, new_set: RunSet | None, base: Mapping[str, RunSet], new: Mapping[str, RunSet]
) -> Alone:
    """The entry of a set that only one side has, with the most similar set of the other side."""
    run_set, name, others = (base_set, "base", new) if base_set is not None else (new_set, "new", base)
    assert run_set is not None
    similar = [
        (_unlike(run_set, candidate), candidate)
        for candidate in others.values()
        if candidate.workload == run_set.workload
    ]
    where = "NEW" if name == "base" else "BASE"
    if not similar:
        return [_entry(run_set, name, f"{where} has no runs of {run_set.workload}")]
    keys, nearest = min(similar, key=lambda item: len(item[0]))
    own_factors, near_factors = {**run_set.conditions, **run_set.level}, {**nearest.conditions, **nearest.level}
    words = ", ".join(f"{key} {_shown(near_factors, key)} instead of {_shown(own_factors, key)}" for key in keys)
    return [_entry(run_set, name, f"{where} has no such runs; the most similar ones have {words}")]


def _shown(factors: Mapping[str, Any], key: str) -> Any:
    value = factors.get(key, "not stated")
    return level(value) if isinstance(value, Mapping) else value


def _unlike(run_set: RunSet, other_set: RunSet) -> list[str]:
    first, second = {**run_set.conditions, **run_set.level}, {**other_set.conditions, **other_set.level}
    return [key for key in {**first, **second} if first.get(key) != second.get(key)]


def across(base: Mapping[str, RunSet], new: Mapping[str, RunSet]) -> tuple[Matched, Alone]:
    """The pairs of sets from different tools: goodput against goodput, by direction; and the rest."""
    matched: Matched = []
    alone: Alone = []
    ways = [_by_direction(item.values()) for item in (base, new)]
    for way in dict.fromkeys((*ways[0], *ways[1])):
        sides = [item.get(way, []) for item in ways]
        if all(len(side) == 1 for side in sides):
            matched.append((sides[0][0], sides[1][0], ACROSS_TOOLS))
            continue
        for side, name in zip(sides, ("base", "new"), strict=True):
            why = f"BASE has {len(sides[0])} sets of runs with goodput ({way}), and NEW {len(sides[1])}"
            alone += [_entry(item, name, f"{why}: across tools each must have one", [ACROSS_TOOLS]) for item in side]
    for sets, name in ((base, "base"), (new, "new")):
        for item in sets.values():
            if rest := sorted(item.metrics() - {ACROSS_TOOLS}):
                alone.append(_entry(item, name, "has a different meaning in the other tool", rest))
    return matched, alone


def _by_direction(sets: Iterable[RunSet]) -> dict[str, list[RunSet]]:
    sets_by_way: dict[str, list[RunSet]] = {}
    for run_set in sets:
        if ACROSS_TOOLS in run_set.metrics():
            sets_by_way.setdefault(direction(run_set.conditions), []).append(run_set)
    return sets_by_way


def direction(conditions: Mapping[str, Any]) -> str:
    """The direction of data as seen from the client; a study states it by iperf3's options. UDP has its own."""
    if "direction" in conditions:
        by = f" by {conditions['protocol']}" if "protocol" in conditions else ""
        return f"{conditions['direction']}{by}"
    return "both ways" if conditions.get("bidir") else "download" if conditions.get("reverse") else "upload"


def _entry(run_set: RunSet, side: str, why: str, metrics: Sequence[str] | None = None) -> dict[str, Any]:
    return {
        "workload": run_set.workload,
        "conditions": dict(run_set.conditions),
        "level": dict(run_set.level),
        "metrics": sorted(run_set.metrics()) if metrics is None else list(metrics),
        "only_in": side,
        "runs": len(run_set.samples),
        "why": why,
    }
