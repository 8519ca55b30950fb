"""The comparisons of a study and their verdicts: rows in, comparisons out; no files, no testbeds."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from framegauge.metrics import METRICS
from framegauge.statistics import (
    cycles,
    differences,
    doubts,
    family,
    held,
    intervals,
    leave_one_out,
    losses,
    medians,
    shared,
)
from framegauge.statistics.differences import Difference
from framegauge.statistics.pairs import Pairs, Row, all_pairs
from framegauge.statistics.ratio import ALPHA, Ratio, limits
from framegauge.statistics.sequential import StoppingRule
from framegauge.statistics.shapes import Compared, shape_of
from framegauge.statistics.verdict import (
    BASELINE_FAILS,
    DIFFERENT,
    EQUAL,
    FINAL,
    LEAST_FOR_EQUALITY,
    SETTLED,
    WITHOUT_FIGURES,
    Verdict,
    decide,
)
from framegauge.statistics.worst_case import Bound, bound

__all__ = ["Comparison", "is_settled", "judge", "unseen_share"]


@dataclass(frozen=True)
class Comparison:
    """One metric of one arm against the baseline, within one cell.

    `ratio` has the 95 % interval of this comparison alone; `judged` has the interval that decides the verdict, wide
    enough that any verdict of the study is wrong with a probability of 5 % at most. `baseline` and `treatment` are
    geometric means over the blocks, that of the baseline over its A/A control, too, where a treatment is compared.
    """

    cell: int
    workload: str
    conditions: Mapping[str, Any]
    metric: str
    role: str
    baseline_level: Any
    treatment_level: Any
    baseline: float | None
    treatment: float | None
    ratio: Ratio | None
    margin: float
    verdict: Verdict
    runs: int
    warnings: Sequence[str] = field(default=())
    judged: Ratio | None = None
    difference: Difference | None = None  # on the metric's own scale
    together: Ratio | None = None  # with an interval that holds for all comparisons of its family at once (Bonferroni)
    control_differs: bool = False  # its A/A control differs: whatever caused that may affect every comparison
    worst_case: Bound | None = None  # where runs were excluded: how far they could move the ratio
    unseen_stalls: float | None = None  # the share of runs that may stall although none did in this comparison
    wants_runs: bool = False  # suspect until more runs show whether the excluded ones were lost at random
    is_unread: bool = False  # its runs count, and lack the metric: it is left out, and costs no other comparison


def judge(
    rows: Sequence[Row],
    margins: Mapping[str, float],
    rule: StoppingRule | None = None,
    explain: bool = True,
    primary: Collection[str] = (),
    not_worse: bool = False,
    estimators: Mapping[str, str] = MappingProxyType({}),
) -> list[Comparison]:
    """All comparisons, cell by cell in the study's order, the A/A control before the treatments.

    The treatments are one family, the A/A controls another; each makes a false claim with a probability of 5 % at
    most. `primary`: the metrics that come first; the others have a verdict only once all of these have theirs, which
    needs no further correction (serial gatekeeping: Westfall & Krishen 2001; Dmitrienko & Tamhane 2007). `not_worse`:
    it is only asked whether treatments are not worse. `estimators`: of metrics that have another than the mean. Without
    `explain`, verdicts lack the warnings that weaken them,
    and take less time.
    """
    rule = rule or StoppingRule()
    pairs = [
        replace(
            entry,
            not_worse=not_worse and not entry.is_control,
            is_median=estimators.get(entry.metric) == medians.MEDIAN,
        )
        for entry in all_pairs(rows, margins)
    ]
    pairs = _shaped(pairs)
    comparisons: dict[int, Comparison] = {}
    for number, members in enumerate(_families(pairs, primary)):
        judgeable = {index: entry for index, entry in members.items() if entry.baseline and not entry.is_unread}
        levels = family.levels([partial(_claims, entry, rule) for entry in judgeable.values()], ALPHA)
        judged = {
            index: _judged(entry, level, rule, len(judgeable), explain)
            for (index, entry), level in zip(judgeable.items(), levels, strict=True)
        }
        if number == 0:
            judged |= _differing(judgeable, judged, rule)
        if number == 2 and any(
            entry.role != "control" and entry.verdict not in FINAL for entry in comparisons.values()
        ):
            judged = {index: _held(entry) for index, entry in judged.items()}
        comparisons |= judged | {index: _nothing(entry) for index, entry in members.items() if index not in judgeable}
    ordered = [comparisons[index] for index in range(len(pairs))]
    if explain:
        ordered = _with_cycles(ordered, rows, margins)
    return [entry for cell in _cells(ordered) for entry in _heed_control(cell)]


def _shaped(pairs: Sequence[Pairs]) -> list[Pairs]:
    """The pairs with the shape of their noise; that of a control is symmetric, as both arms are the same."""
    cells: dict[tuple[str, str], list[Compared]] = {}
    for entry in pairs:
        cells.setdefault((entry.metric, entry.example.arm), []).append(
            Compared(entry.baseline, entry.treatment, max(1, len(entry.references)))
        )
    shapes = {key: shape_of(members) for key, members in cells.items()}
    return [
        entry if entry.is_control else replace(entry, shape=shapes[entry.metric, entry.example.arm]) for entry in pairs
    ]


def _families(pairs: Sequence[Pairs], primary: Collection[str]) -> list[dict[int, Pairs]]:
    """The comparisons by their place, in three families: A/A controls, primary metrics, the others."""
    families: list[dict[int, Pairs]] = [{}, {}, {}]
    for index, entry in enumerate(pairs):
        families[0 if entry.is_control else 1 if not primary or entry.metric in primary else 2][index] = entry
    return families


def _held(comparison: Comparison) -> Comparison:
    """A secondary comparison while a primary one has no verdict."""
    if comparison.verdict not in SETTLED:
        return comparison
    line = f"secondary: {comparison.verdict}, if the primary metrics had their verdicts"
    return replace(comparison, verdict=Verdict.UNDECIDED, warnings=(line, *comparison.warnings), unseen_stalls=None)


def is_settled(found: Sequence[Comparison]) -> bool:
    """Whether the study is done: every comparison of a treatment has its verdict, and no comparison still needs runs to
    show whether the excluded ones were lost at random."""
    treatments = [comparison for comparison in found if comparison.role != "control"] or list(found)
    is_done = bool(treatments) and all(comparison.verdict in FINAL for comparison in treatments)
    return is_done and not any(comparison.wants_runs for comparison in found)


def unseen_share(blocks: int) -> float:
    """The largest share of runs that may stall, with 95 % confidence, where none of so many did (Clopper & Pearson
    1934; about 3 over their number)."""
    return 1 - math.pow(ALPHA, 1 / blocks)


def _trials(pairs: Pairs) -> leave_one_out.Trials:
    """The blocks to leave out of such a ratio."""
    if pairs.is_median:
        return leave_one_out.of_medians
    metric = METRICS[pairs.metric]
    ends = () if metric.most is None else limits(pairs.baseline, pairs.treatment, metric.most)
    return partial(leave_one_out.of_means, hull=metric.hull, shape=pairs.shape, limits=ends)


def _decide(pairs: Pairs, ratio: Ratio) -> Verdict:
    verdict = decide(ratio, pairs.margin, METRICS[pairs.metric].higher_is_better, pairs.not_worse)
    few = ratio.blocks < LEAST_FOR_EQUALITY and not pairs.is_control
    return Verdict.UNDECIDED if few and verdict in EQUAL else verdict


def _claims(pairs: Pairs, rule: StoppingRule, alpha: float) -> bool:
    return _decide(pairs, intervals.at(pairs, alpha, rule)) in SETTLED


def _excludes_equality(ratio: Ratio) -> bool:
    return ratio.low is not None and ratio.high is not None and not ratio.low <= 1 <= ratio.high


def _empty(pairs: Pairs) -> Comparison:
    run = pairs.example
    return Comparison(
        run.cell, run.workload, run.conditions, pairs.metric, run.role, pairs.baseline_level, run.level,
        None, None, None, pairs.margin, Verdict.NOT_JUDGED, 0,
    )  # fmt: skip


def _nothing(pairs: Pairs) -> Comparison:
    if pairs.failure:
        either = (f"{BASELINE_FAILS} either: {pairs.reference_failure}",) if pairs.reference_failure else ()
        return replace(_empty(pairs), verdict=Verdict.DOES_NOT_WORK, warnings=(pairs.failure, *either))
    if pairs.reference_failure:
        return replace(_empty(pairs), warnings=(f"{BASELINE_FAILS}: {pairs.reference_failure}",))
    if pairs.is_unread:
        return replace(_empty(pairs), warnings=(str(pairs.doubt),), is_unread=True)
    lines = ("no pair of runs is left to compare", *([pairs.doubt] if pairs.doubt else []))
    return replace(_empty(pairs), warnings=lines, wants_runs=pairs.wants_runs)


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _judged(pairs: Pairs, alpha: float, rule: StoppingRule, count: int, explain: bool) -> Comparison:
    """The comparison with its verdict at level `alpha`, which corrects for a family of `count` comparisons."""
    alone, judged = intervals.at(pairs, ALPHA, rule), intervals.at(pairs, alpha, rule)
    verdict = _decide(pairs, judged)
    lines = [pairs.doubt] if pairs.doubt else []
    if verdict is Verdict.UNDECIDED and (single := _decide(pairs, alone)) in SETTLED:
        lines.append(doubts.on_its_own(single, count))
    if explain:
        lines += [*shared.note(pairs), *held.note(pairs), *losses.note(pairs)]
        metric = METRICS[pairs.metric]
        least = 0 if pairs.is_control else LEAST_FOR_EQUALITY
        lines += doubts.warnings(
            pairs.baseline, pairs.treatment, judged, pairs.margin, metric, least, pairs.not_worse,
            partial(intervals.of_values, pairs), _trials(pairs),
        )  # fmt: skip
    worst = None if pairs.arms is None else bound(judged.ratio, *pairs.arms)
    if worst is not None and explain:
        lines += doubts.worst_case(
            worst,
            intervals.of_counted(pairs, alpha, rule),
            verdict,
            pairs.margin,
            METRICS[pairs.metric],
            pairs.not_worse,
        )
    if pairs.doubt:
        verdict = Verdict.NOT_JUDGED if pairs.is_lost else Verdict.SUSPECT
    is_equal = verdict in EQUAL
    return replace(
        _empty(pairs),
        baseline=_geometric_mean(pairs.baseline),
        treatment=_geometric_mean(pairs.treatment),
        ratio=alone,
        judged=judged,
        difference=differences.estimate(
            pairs.baseline,
            pairs.treatment,
            rule.nominal(ALPHA, len(pairs.baseline)),
            METRICS[pairs.metric].hull,
            pairs.is_median,
            METRICS[pairs.metric].most,
        ),
        worst_case=worst,
        together=intervals.at(pairs, ALPHA / count, rule),
        verdict=verdict,
        runs=pairs.runs,
        warnings=tuple(lines),
        wants_runs=pairs.wants_runs,
        unseen_stalls=unseen_share(judged.blocks) if is_equal else None,
    )


def _differing(
    judgeable: Mapping[int, Pairs], comparisons: Mapping[int, Comparison], rule: StoppingRule
) -> dict[int, Comparison]:
    """The controls, marked where they differ: beyond the margin, or by an interval that excludes equality, corrected
    for the number of controls (Holm), and is not within the margin either, where a difference does not matter."""

    def excludes(pairs: Pairs, alpha: float) -> bool:
        return _excludes_equality(intervals.at(pairs, alpha, rule))

    levels = family.levels([partial(excludes, entry) for entry in judgeable.values()], ALPHA)
    marked = {}
    for (index, entry), level in zip(judgeable.items(), levels, strict=True):
        verdict = comparisons[index].verdict
        differs = verdict in DIFFERENT or (verdict is Verdict.UNDECIDED and excludes(entry, level))
        marked[index] = replace(comparisons[index], control_differs=differs)
    return marked


def _with_cycles(comparisons: Sequence[Comparison], rows: Sequence[Row], metrics: Collection[str]) -> list[Comparison]:
    """The comparisons, with a warning where their metric varies with a period."""
    lines = {
        metric: doubts.periodic(cycles.estimate(rows, metric), len(metrics))
        for metric in {comparison.metric for comparison in comparisons if comparison.ratio is not None}
    }
    return [
        replace(comparison, warnings=(*comparison.warnings, *lines.get(comparison.metric, ())))
        for comparison in comparisons
    ]


def _cells(comparisons: Sequence[Comparison]) -> list[list[Comparison]]:
    """The comparisons grouped by cell and metric, in order."""
    grouped: dict[tuple[int, str], list[Comparison]] = {}
    for comparison in comparisons:
        grouped.setdefault((comparison.cell, comparison.metric), []).append(comparison)
    return list(grouped.values())


def _heed_control(compared: Sequence[Comparison]) -> list[Comparison]:
    """If the A/A control differs from the baseline, every comparison of the cell is suspect."""
    control = next((comparison for comparison in compared if comparison.role == "control"), None)
    if control is None or control.ratio is None or not control.control_differs:
        return list(compared)
    interval = f"{control.ratio.low:.4f} to {control.ratio.high:.4f}"
    line = (
        f"the A/A control differs from the identical baseline (ratio {control.ratio.ratio:.4f}, {interval}): something "
        f"besides the treatment acts"
    )
    return [
        replace(comparison, verdict=Verdict.SUSPECT, warnings=(line, *comparison.warnings), control_differs=True)
        if comparison.verdict not in WITHOUT_FIGURES
        else comparison
        for comparison in compared
    ]
