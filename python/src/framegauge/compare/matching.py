"""Which runs of two sides were made alike, and what only one of them has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.compare.formats.samples import Sample, Side, as_number, set_key
from framegauge.metrics import METRICS
from framegauge.summary.words import level

__all__ = ["Alone", "Matched", "RunSet", "across", "alike", "direction", "sets_of"]

ACROSS_TOOLS = "goodput"  # the one metric that means the same in all of them


@dataclass(frozen=True)
class RunSet:
    """Runs of one side that were made alike."""

    workload: str
    conditions: Mapping[str, Any]
    level: Mapping[str, Any]
    samples: Sequence[Sample]

    def with_metric(self, metric: str) -> list[Sample]:
        """The runs that are evidence of it."""
        return [each for each in self.samples if not each.excluded and metric in each.metrics]

    def metrics(self) -> set[str]:
        """Those that any run is evidence of."""
        return {name for each in self.samples if not each.excluded for name in each.metrics}

    def lost(self) -> tuple[int, int]:
        """Excluded and attempted."""
        return sum(bool(each.excluded) for each in self.samples), len(self.samples)

    def values(self, metric: str) -> list[float]:
        """One a unit, in order: a block's runs at the same level share its noise, and are no two observations."""
        units: dict[str, list[float]] = {}
        for each in self.with_metric(metric):
            units.setdefault(each.unit or each.run, []).append(each.metrics[metric])
        return [_mean(values) for values in units.values()]


def _mean(values: Sequence[float]) -> float:
    if min(values) <= 0:
        return math.fsum(values) / len(values)
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def sets_of(side: Side) -> dict[str, RunSet]:
    """By what makes runs alike; runs that say nothing of it (files that cannot be read) are in none."""
    found: dict[str, list[Sample]] = {}
    for each in side.samples:
        if each.conditions or not each.excluded:
            found.setdefault(set_key(each.workload, each.conditions, each.level), []).append(each)
    return {
        key: RunSet(runs[0].workload, runs[0].conditions, runs[0].level, runs) for key, runs in _ordered(found).items()
    }


def _ordered(found: Mapping[str, list[Sample]]) -> dict[str, list[Sample]]:
    """Sets of one workload and conditions together, their levels in order; otherwise as first met."""
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
    """What has the same workload, conditions, level and metric on both sides."""
    matched: Matched = []
    alone: Alone = []
    for key in dict.fromkeys((*base, *new)):
        one, other = base.get(key), new.get(key)
        if one is None or other is None:
            alone += _only(one, other, base, new)
            continue
        has, have = one.metrics(), other.metrics()
        # A side that lost all its runs would have had them: that is a comparison without a verdict.
        shared = has & have if has and have else has | have
        matched += [(one, other, metric) for metric in METRICS if metric in shared]
        if not shared:
            alone.append(_entry(one, "both", "no run of either side is evidence of anything that both measured"))
        for here, name, extra in ((one, "base", has - shared), (other, "new", have - shared)):
            if extra:
                alone.append(_entry(here, name, "the other side has not measured it", sorted(extra)))
    return matched, alone


def _only(one: RunSet | None, other: RunSet | None, base: Mapping[str, RunSet], new: Mapping[str, RunSet]) -> Alone:
    """A set that one side has alone, with the nearest of the other side: mostly one condition differs."""
    here, name, others = (one, "base", new) if one is not None else (other, "new", base)
    assert here is not None
    near = [(_unlike(here, each), each) for each in others.values() if each.workload == here.workload]
    where = "NEW" if name == "base" else "BASE"
    if not near:
        return [_entry(here, name, f"{where} has no runs of {here.workload}")]
    keys, nearest = min(near, key=lambda item: len(item[0]))
    mine, its = {**here.conditions, **here.level}, {**nearest.conditions, **nearest.level}
    words = ", ".join(f"{key} {_shown(its, key)} instead of {_shown(mine, key)}" for key in keys)
    return [_entry(here, name, f"{where} has no such runs; the nearest have {words}")]


def _shown(found: Mapping[str, Any], key: str) -> Any:
    value = found.get(key, "not stated")
    return level(value) if isinstance(value, Mapping) else value


def _unlike(one: RunSet, other: RunSet) -> list[str]:
    first, second = {**one.conditions, **one.level}, {**other.conditions, **other.level}
    return [key for key in {**first, **second} if first.get(key) != second.get(key)]


def across(base: Mapping[str, RunSet], new: Mapping[str, RunSet]) -> tuple[Matched, Alone]:
    """Of different tools: goodput against goodput, by direction."""
    matched: Matched = []
    alone: Alone = []
    ways = [_by_direction(each.values()) for each in (base, new)]
    for way in dict.fromkeys((*ways[0], *ways[1])):
        sides = [each.get(way, []) for each in ways]
        if all(len(side) == 1 for side in sides):
            matched.append((sides[0][0], sides[1][0], ACROSS_TOOLS))
            continue
        for side, name in zip(sides, ("base", "new"), strict=True):
            why = f"the sets of runs that have goodput ({way}) are {len(sides[0])} in BASE and {len(sides[1])} in NEW"
            alone += [_entry(each, name, f"{why}: across tools it takes one in each", [ACROSS_TOOLS]) for each in side]
    for sets, name in ((base, "base"), (new, "new")):
        for each in sets.values():
            if rest := sorted(each.metrics() - {ACROSS_TOOLS}):
                alone.append(_entry(each, name, "means something else in another tool", rest))
    return matched, alone


def _by_direction(sets: Iterable[RunSet]) -> dict[str, list[RunSet]]:
    found: dict[str, list[RunSet]] = {}
    for each in sets:
        if ACROSS_TOOLS in each.metrics():
            found.setdefault(direction(each.conditions), []).append(each)
    return found


def direction(conditions: Mapping[str, Any]) -> str:
    """Where data went, seen from the client; a study says it in iperf3's words."""
    if "direction" in conditions:
        return str(conditions["direction"])
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
