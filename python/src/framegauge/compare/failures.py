"""Runs that were made and moved nothing, counted on both sides: the first thing to know of two sets of runs.

They have none of the metrics by which others are compared, so without this a black hole would be a folder from which
some runs are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.compare.formats.samples import Sample, Side
from framegauge.compare.matching import sets_of
from framegauge.statistics import failed
from framegauge.statistics.exclusions import Counts

__all__ = ["TITLE", "failures"]

TITLE = "runs that moved nothing"


@dataclass(frozen=True)
class _Set:
    """Runs that were made alike, by their numbers on both sides."""

    workload: str
    conditions: Mapping[str, Any]
    level: Mapping[str, Any]
    base: Counts
    new: Counts


def failures(base: Side, new: Side, results: int = 1) -> list[dict[str, Any]]:
    """An entry for each set of runs in which a side has a run that moved nothing; NEW is one of so many `results`."""
    sets = list(_sets(base, new))
    return [
        {
            "workload": each.workload,
            "conditions": dict(each.conditions),
            "level": dict(each.level),
            "base": {"failed": each.base[0], "runs": each.base[1]},
            "new": {"failed": each.new[0], "runs": each.new[1]},
            "verdict": str(failed.judge(each.base, each.new, results * len(sets))),
            "assumption": failed.ASSUMPTION,
        }
        for each in sets
    ]


def _sets(base: Side, new: Side) -> Iterator[_Set]:
    """The sets that both sides have; and, where a run does not tell its conditions, all runs of both sides."""
    ours, theirs = sets_of(base), sets_of(new)
    shared = [key for key in ours if key in theirs]
    vague = [each for side in (base, new) for each in side.samples if each.moved_nothing and not each.conditions]
    if vague:
        yield _Set(base.kind, {}, {}, _counts(base.samples), _counts(new.samples))
        return
    for key in shared:
        first, second = _counts(ours[key].samples), _counts(theirs[key].samples)
        if first[0] or second[0]:
            yield _Set(ours[key].workload, ours[key].conditions, ours[key].level, first, second)


def _counts(samples: Sequence[Sample]) -> Counts:
    """The runs that moved nothing, and all that did or did not; what failed otherwise is neither."""
    runs: dict[str, list[Sample]] = {}
    for each in samples:
        if each.moved_nothing or not each.excluded:
            runs.setdefault(each.run, []).append(each)
    return sum(any(each.moved_nothing for each in mine) for mine in runs.values()), len(runs)
