"""Runs that were made and moved nothing, counted on both sides: the first thing to know of two sets of runs.

They have none of the metrics by which others are compared, so without this a black hole would be a folder from which
some runs are missing. A run whose file is cut off may be one of them, or not: then there is a verdict only if it is the
same either way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.compare.formats.samples import Sample, Side
from framegauge.compare.matching import sets_of
from framegauge.statistics import failed
from framegauge.statistics.exclusions import Counts
from framegauge.statistics.verdict import Verdict

__all__ = ["TITLE", "failures", "may_be_worse"]

TITLE = "runs that moved nothing"


@dataclass(frozen=True)
class _Counted:
    """Runs that moved nothing, those that may have, and all that were made; what failed otherwise is none."""

    failed: int
    cut_off: int
    runs: int

    def least(self) -> Counts:
        """With those that may have moved nothing as runs that moved something."""
        return self.failed, self.runs

    def most(self) -> Counts:
        """With those as runs that moved nothing."""
        return self.failed + self.cut_off, self.runs

    def document(self) -> dict[str, int]:
        """As in comparison.schema.json."""
        return {"failed": self.failed, "cut_off": self.cut_off, "runs": self.runs}


@dataclass(frozen=True)
class _Set:
    """Runs that were made alike, by their numbers on both sides."""

    workload: str
    conditions: Mapping[str, Any]
    level: Mapping[str, Any]
    base: _Counted
    new: _Counted

    def verdict(self, comparisons: int) -> Verdict:
        """That of all files that are cut off, on both sides, as runs that moved nothing, if it is that of none of them
        as well."""
        most = failed.judge(self.base.most(), self.new.most(), comparisons)
        least = failed.judge(self.base.least(), self.new.least(), comparisons)
        if most is least:
            return most
        return Verdict.NOT_JUDGED if Verdict.WORSE in (most, least) else Verdict.UNDECIDED


def failures(base: Side, new: Side, results: int = 1) -> list[dict[str, Any]]:
    """An entry for each set of runs in which a side has a run that moved nothing, or may have; NEW is one of so many
    `results`."""
    sets = list(_sets(base, new))
    return [
        {
            "workload": each.workload,
            "conditions": dict(each.conditions),
            "level": dict(each.level),
            "base": each.base.document(),
            "new": each.new.document(),
            "verdict": str(each.verdict(results * len(sets))),
            "assumption": failed.ASSUMPTION,
        }
        for each in sets
    ]


def may_be_worse(entry: Mapping[str, Any]) -> bool:
    """Whether files that are cut off, on either side, decide if NEW is worse."""
    cut_off = entry["base"]["cut_off"] + entry["new"]["cut_off"]
    return cut_off > 0 and bool(entry["verdict"] == Verdict.NOT_JUDGED)


def _sets(base: Side, new: Side) -> Iterator[_Set]:
    """The sets that both sides have with a run that moved nothing; all runs of both sides where such a run does not
    tell its conditions. Nor does a file that is cut off, which counts in each of these sets, or among all runs if there
    is none."""
    vague = [[each for each in side.samples if not each.conditions] for side in (base, new)]
    every = _Set(base.kind, {}, {}, _counts(base.samples), _counts(new.samples))
    if any(each.moved_nothing for side in vague for each in side):
        yield every
        return
    cut_off = [[each for each in side if each.cut_off] for side in vague]
    ours, theirs = sets_of(base), sets_of(new)
    sets = [
        _Set(ours[key].workload, ours[key].conditions, ours[key].level, *(
            _counts([*found.samples, *rest]) for found, rest in zip((ours[key], theirs[key]), cut_off, strict=True)
        ))
        for key in ours if key in theirs
    ]  # fmt: skip
    failing = [each for each in sets if each.base.failed or each.new.failed]
    yield from failing or ([every] if any(cut_off) else [])


def _counts(samples: Sequence[Sample]) -> _Counted:
    runs: dict[str, list[Sample]] = {}
    for each in samples:
        if each.moved_nothing or each.cut_off or not each.excluded:
            runs.setdefault(each.run, []).append(each)
    nothing = sum(any(each.moved_nothing for each in mine) for mine in runs.values())
    cut_off = sum(any(each.cut_off for each in mine) for mine in runs.values())
    return _Counted(nothing, cut_off, len(runs))
