"""Runs that were made and moved nothing, or stalled, counted on both sides: the first thing to know of two sets.

Those that moved nothing have none of the metrics by which others are compared, so without this a black hole would be a
folder from which some runs are missing. A run whose file is cut off may be one of them, or not: then there is a verdict
only if it is the same either way. A run stalls that moves something and then nothing, or of which a stream moves
nothing: its mean may be that of any other.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.compare.formats.samples import Sample, Side
from framegauge.compare.matching import RunSet, sets_of
from framegauge.statistics import failed
from framegauge.statistics.exclusions import Counts
from framegauge.statistics.verdict import Verdict

__all__ = ["NOTHING", "STALLED", "failures", "may_be_worse"]

NOTHING, STALLED = "moved nothing", "stalled"
# A run with less than this share of what runs of BASE move in the median: it carried its first segments.
LITTLE = 0.01


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
    what: str = NOTHING
    why: str = ""

    def verdict(self, comparisons: int) -> Verdict:
        """That of all files that are cut off, on both sides, as runs that moved nothing, if it is that of none of them
        as well."""
        most = failed.judge(self.base.most(), self.new.most(), comparisons)
        least = failed.judge(self.base.least(), self.new.least(), comparisons)
        if most is least:
            return most
        return Verdict.NOT_JUDGED if Verdict.WORSE in (most, least) else Verdict.UNDECIDED


def failures(base: Side, new: Side, results: int = 1) -> list[dict[str, Any]]:
    """An entry for each set of runs in which a side has a run that moved nothing, or may have, and for each with a run
    that stalled; NEW is one of so many `results`."""
    sets = [*_sets(base, new), *_stalled(base, new)]
    return [
        {
            "what": each.what,
            "why": each.why,
            "workload": each.workload,
            "conditions": dict(each.conditions),
            "level": dict(each.level),
            "base": each.base.document(),
            "new": each.new.document(),
            "verdict": str(each.verdict(results * len(sets))),
            "assumption": failed.ASSUMPTION[each.what == STALLED],
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
    sets = []
    for key in (key for key in ours if key in theirs):
        counts = [_counts([*side[key].samples, *rest]) for side, rest in zip((ours, theirs), cut_off, strict=True)]
        sets.append(_Set(ours[key].workload, ours[key].conditions, ours[key].level, counts[0], counts[1]))
    failing = [each for each in sets if each.base.failed or each.new.failed]
    yield from failing or ([every] if any(cut_off) else [])


def _counts(samples: Sequence[Sample]) -> _Counted:
    return _counted(
        [each for each in samples if _moved_nothing(each) or each.cut_off or not each.excluded], _moved_nothing
    )


def _moved_nothing(sample: Sample) -> bool:
    return sample.moved_nothing


def _stalled(base: Side, new: Side) -> Iterator[_Set]:
    """The sets that both sides have with a run that stalled."""
    theirs = sets_of(new)
    for key, ours in sets_of(base).items():
        if (other := theirs.get(key)) is None:
            continue
        least = _little(ours)
        before, after = _reasons(ours, least), _reasons(other, least)
        if before or after:
            sides = _stalled_of(ours, before), _stalled_of(other, after)
            why = next(iter((after or before).values()))
            yield _Set(ours.workload, ours.conditions, ours.level, *sides, STALLED, why)


def _stalled_of(runs: RunSet, reasons: Mapping[str, str]) -> _Counted:
    return _counted(_tried(runs), lambda sample: sample.run in reasons)


def _little(base: RunSet) -> float:
    values = base.values("goodput")
    return LITTLE * statistics.median(values) if values else 0.0


def _tried(runs: RunSet) -> list[Sample]:
    """Those that moved something, or stalled."""
    return [each for each in runs.samples if not each.excluded or each.stalled]


def _reasons(runs: RunSet, least: float) -> dict[str, str]:
    """How runs stalled, by their names."""
    reasons = {}
    for each in _tried(runs):
        if each.stalled:
            reasons[each.run] = each.stalled
        elif each.metrics.get("goodput", least) < least:
            reasons[each.run] = f"less than {LITTLE:.0%} of the goodput of BASE"
    return reasons


def _counted(samples: Sequence[Sample], has_failed: Callable[[Sample], bool]) -> _Counted:
    runs: dict[str, list[Sample]] = {}
    for each in samples:
        runs.setdefault(each.run, []).append(each)
    lost = sum(any(map(has_failed, mine)) for mine in runs.values())
    cut_off = sum(any(each.cut_off for each in mine) for mine in runs.values())
    return _Counted(lost, cut_off, len(runs))
