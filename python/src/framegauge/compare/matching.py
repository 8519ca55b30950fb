"""The matching of runs on two sides by workload, conditions and level, and the runs that only one side has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.compare.formats.samples import Sample, Side, as_number, set_key
from framegauge.metrics import METRICS
from framegauge.summary.words import level

__all__ = ["Alone", "Matched", "RunSet", "across", "alike", "direction", "sets_of"]

ACROSS_TOOLS = "goodput"  # the only metric that has the same meaning in all tools


@dataclass(frozen=True)
class RunSet:
    """Runs of one side with the same workload, conditions and level."""

    workload: str
    conditions: Mapping[str, Any]
    level: Mapping[str, Any]
    samples: Sequence[Sample]

    def with_metric(self, metric: str) -> list[Sample]:
        """The runs that count and have the metric."""
        return [each for each in self.samples if not each.excluded and metric in each.metrics]

    def metrics(self) -> set[str]:
        """The metrics of all runs that count."""
        return {name for each in self.samples if not each.excluded for name in each.metrics}

    def lost(self) -> tuple[int, int]:
        """The numbers of excluded and of attempted runs."""
        return sum(bool(each.excluded) for each in self.samples), len(self.samples)

    def values(self, metric: str) -> list[float]:
        """One value per unit, in order: runs of one block at the same level share its noise, and count once."""
        units: dict[str, list[float]] = {}
        for each in self.with_metric(metric):
            units.setdefault(each.unit or each.run, []).append(each.metrics[metric])
        return [_mean(values) for values in units.values()]


def _mean(values: Sequence[float]) -> float:
    if min(values) <= 0:
        return math.fsum(values) / len(values)
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def sets_of(side: Side) -> dict[str, RunSet]:
    """The sets of runs of a side, by key; unreadable files have no conditions and belong to no set."""
    found: dict[str, list[Sample]] = {}
    for each in side.samples:
        if each.conditions or not each.excluded:
            found.setdefault(set_key(each.workload, each.conditions, each.level), []).append(each)
    return {
        key: RunSet(runs[0].workload, runs[0].conditions, runs[0].level, runs) for key, runs in _ordered(found).items()
    }


def _ordered(found: Mapping[str, list[Sample]]) -> dict[str, list[Sample]]:
    """The sets grouped by workload and conditions in order of first occurrence, with their levels in order."""
    places: dict[str, int] = {}
    for runs in found.values():
        places.setdefault(set_key(runs[0].workload, runs[0].conditions), len(places))

    def place(item: tuple[str, list[Sample]]) -> tuple[int, float, str]:
        first = item[1][0]
        level = next(iter(first.level.values()), None)
        number = as_number(level)
        return places[set_key(first.workload, first.conditions)], math.inf if number is None else number, str(level)

    return dict(sorted(found.items(), key=place))


Matched = list[tuple[RunSet, RunSet, str]]
Alone = list[dict[str, Any]]


def alike(base: Mapping[str, RunSet], new: Mapping[str, RunSet]) -> tuple[Matched, Alone]:
    """Pairs of sets with the same workload, conditions and level, one for each metric of both; and the rest."""
    matched: Matched = []
    alone: Alone = []
    for key in dict.fromkeys((*base, *new)):
        one, other = base.get(key), new.get(key)
        if one is None or other is None:
            alone += _only(one, other, base, new)
            continue
        has, have = one.metrics(), other.metrics()
        # A side that lost all its runs has no metrics; then the other side's are listed, as not judged.
        shared = has & have if has and have else has | have
        matched += [(one, other, metric) for metric in METRICS if metric in shared]
        if not shared:
            alone.append(_entry(one, "both", "the runs that count have no metric in common"))
        for here, name, extra in ((one, "base", has - shared), (other, "new", have - shared)):
            if extra:
                alone.append(_entry(here, name, "not measured on the other side", sorted(extra)))
    return matched, alone


def _only(one: RunSet | None, other: RunSet | None, base: Mapping[str, RunSet], new: Mapping[str, RunSet]) -> Alone:
    """The entry of a set that only one side has, with the most similar set of the other side."""
    here, name, others = (one, "base", new) if one is not None else (other, "new", base)
    assert here is not None
    near = [(_unlike(here, each), each) for each in others.values() if each.workload == here.workload]
    where = "NEW" if name == "base" else "BASE"
    if not near:
        return [_entry(here, name, f"{where} has no runs of {here.workload}")]
    keys, nearest = min(near, key=lambda item: len(item[0]))
    mine, its = {**here.conditions, **here.level}, {**nearest.conditions, **nearest.level}
    words = ", ".join(f"{key} {_shown(its, key)} instead of {_shown(mine, key)}" for key in keys)
    return [_entry(here, name, f"{where} has no such runs; the most similar ones have {words}")]


def _shown(found: Mapping[str, Any], key: str) -> Any:
    value = found.get(key, "not stated")
    return level(value) if isinstance(value, Mapping) else value


def _unlike(one: RunSet, other: RunSet) -> list[str]:
    first, second = {**one.conditions, **one.level}, {**other.conditions, **other.level}
    return [key for key in {**first, **second} if first.get(key) != second.get(key)]


def across(base: Mapping[str, RunSet], new: Mapping[str, RunSet]) -> tuple[Matched, Alone]:
    """The pairs of sets from different tools: goodput against goodput, by direction; and the rest."""
    matched: Matched = []
    alone: Alone = []
    ways = [_by_direction(each.values()) for each in (base, new)]
    for way in dict.fromkeys((*ways[0], *ways[1])):
        sides = [each.get(way, []) for each in ways]
        if all(len(side) == 1 for side in sides):
            matched.append((sides[0][0], sides[1][0], ACROSS_TOOLS))
            continue
        for side, name in zip(sides, ("base", "new"), strict=True):
            why = f"BASE has {len(sides[0])} sets of runs with goodput ({way}), and NEW {len(sides[1])}"
            alone += [_entry(each, name, f"{why}: across tools each must have one", [ACROSS_TOOLS]) for each in side]
    for sets, name in ((base, "base"), (new, "new")):
        for each in sets.values():
            if rest := sorted(each.metrics() - {ACROSS_TOOLS}):
                alone.append(_entry(each, name, "has a different meaning in the other tool", rest))
    return matched, alone


def _by_direction(sets: Iterable[RunSet]) -> dict[str, list[RunSet]]:
    found: dict[str, list[RunSet]] = {}
    for each in sets:
        if ACROSS_TOOLS in each.metrics():
            found.setdefault(direction(each.conditions), []).append(each)
    return found


def direction(conditions: Mapping[str, Any]) -> str:
    """The direction of data as seen from the client; a study states it by iperf3's options. UDP has its own."""
    if "direction" in conditions:
        by = f" by {conditions['protocol']}" if "protocol" in conditions else ""
        return f"{conditions['direction']}{by}"
    return "both ways" if conditions.get("bidir") else "download" if conditions.get("reverse") else "upload"


def _entry(found: RunSet, side: str, why: str, metrics: Sequence[str] | None = None) -> dict[str, Any]:
    return {
        "workload": found.workload,
        "conditions": dict(found.conditions),
        "level": dict(found.level),
        "metrics": sorted(found.metrics()) if metrics is None else list(metrics),
        "only_in": side,
        "runs": len(found.samples),
        "why": why,
    }
