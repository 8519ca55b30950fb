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
    family = results * _comparisons(base, new)
    return [
        {
            "what": run_set.what,
            "why": run_set.why,
            "workload": run_set.workload,
            "conditions": dict(run_set.conditions),
            "level": dict(run_set.level),
            "base": run_set.base.document(),
            "new": run_set.new.document(),
            "verdict": str(run_set.verdict(family)),
            "assumption": failed.ASSUMPTION[run_set.what == STALLED],
        }
        for run_set in sets
    ]


def _comparisons(base: Side, new: Side) -> int:
    """The sets that both sides have: of so many it is asked whether NEW has more runs that moved nothing, and of as
    many whether it has more that stalled. Sets without such a run count, too: which ones have one is chance, and
    Bonferroni's correction for these alone would take the least likely of many sets for one of a few."""
    new_sets = sets_of(new)
    return max(1, sum(key in new_sets for key in sets_of(base)))


def may_be_worse(entry: Mapping[str, Any]) -> bool:
    """Whether files that are cut off, on either side, decide if NEW is worse."""
    cut_off = entry["base"]["cut_off"] + entry["new"]["cut_off"]
    return cut_off > 0 and bool(entry["verdict"] == Verdict.NOT_JUDGED)


def _sets(base: Side, new: Side) -> Iterator[_Set]:
    """The sets that both sides have with a run that moved nothing; all runs of both sides where such a run does not
    tell its conditions. Nor does a file that is cut off, which counts in each of these sets, or among all runs if there
    is none."""
    vague = [[item for item in side.samples if not item.conditions] for side in (base, new)]
    whole = _Set(base.kind, {}, {}, _counts(base.samples), _counts(new.samples))
    if any(item.moved_nothing for side in vague for item in side):
        yield whole
        return
    cut_off = [[item for item in side if item.cut_off] for side in vague]
    base_sets, new_sets = sets_of(base), sets_of(new)
    sets = []
    for key in (key for key in base_sets if key in new_sets):
        counts = [
            _counts([*side[key].samples, *rest]) for side, rest in zip((base_sets, new_sets), cut_off, strict=True)
        ]
        sets.append(
            _Set(base_sets[key].workload, base_sets[key].conditions, base_sets[key].level, counts[0], counts[1])
        )
    failing = [item for item in sets if item.base.failed or item.new.failed]
    yield from failing or ([whole] if any(cut_off) else [])


def _counts(samples: Sequence[Sample]) -> _Counted:
    return _counted(
        [sample for sample in samples if _moved_nothing(sample) or sample.cut_off or not sample.excluded],
        _moved_nothing,
    )


def _moved_nothing(sample: Sample) -> bool:
    return sample.moved_nothing


def _stalled(base: Side, new: Side) -> Iterator[_Set]:
    """The sets that both sides have with a run that stalled."""
    new_sets = sets_of(new)
    for key, base_set in sets_of(base).items():
        if (new_set := new_sets.get(key)) is None:
            continue
        least_goodput = _little(base_set)
        base_reasons, new_reasons = _reasons(base_set, least_goodput), _reasons(new_set, least_goodput)
        if base_reasons or new_reasons:
            sides = _stalled_of(base_set, base_reasons), _stalled_of(new_set, new_reasons)
            why = next(iter((new_reasons or base_reasons).values()))
            yield _Set(base_set.workload, base_set.conditions, base_set.level, *sides, STALLED, why)


def _stalled_of(runs: RunSet, reasons: Mapping[str, str]) -> _Counted:
    return _counted(_tried(runs), lambda sample: sample.run in reasons)


def _little(base: RunSet) -> float:
    values = base.values("goodput")
    return LITTLE * statistics.median(values) if values else 0.0


def _tried(runs: RunSet) -> list[Sample]:
    """Those that moved something, or stalled."""
    return [sample for sample in runs.samples if not sample.excluded or sample.stalled]


def _reasons(runs: RunSet, least: float) -> dict[str, str]:
    """How runs stalled, by their names."""
    reasons = {}
    for sample in _tried(runs):
        if sample.stalled:
            reasons[sample.run] = sample.stalled
        elif sample.metrics.get("goodput", least) < least:
            reasons[sample.run] = f"less than {LITTLE:.0%} of the goodput of BASE"
    return reasons


def _counted(samples: Sequence[Sample], has_failed: Callable[[Sample], bool]) -> _Counted:
    runs: dict[str, list[Sample]] = {}
    for sample in samples:
        runs.setdefault(sample.run, []).append(sample)
    lost = sum(any(map(has_failed, run_samples)) for run_samples in runs.values())
    cut_off = sum(any(sample.cut_off for sample in run_samples) for run_samples in runs.values())
    return _Counted(lost, cut_off, len(runs))
