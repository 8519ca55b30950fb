"""The comparisons of a study and their verdicts: rows in, comparisons out; no files, no testbeds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from framegauge.metrics import METRICS
from framegauge.statistics import doubts, family
from framegauge.statistics.exclusions import Counts, Unequal, unequal
from framegauge.statistics.ratio import ALPHA, Ratio, estimate
from framegauge.statistics.sequential import StoppingRule
from framegauge.statistics.verdict import SETTLED, Verdict, decide

__all__ = ["Comparison", "Row", "is_settled", "judge", "log_ratios_by_cell", "not_measured"]

MOST_LOST = 0.5  # a comparison that lost a larger share of its blocks is not judged: the rest is not what was planned


@dataclass(frozen=True)
class Row:
    """One run. `excluded`: it does not count, and its metrics are ignored. `not_measured`: the reason, by metric."""

    block: int
    cell: int
    arm: str
    role: str
    level: Any
    workload: str
    conditions: Mapping[str, Any]
    metrics: Mapping[str, float]
    excluded: bool
    not_measured: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """One metric of one arm against the baseline, within one cell.

    `ratio` has the 95 % interval of this comparison alone; `judged` has the interval that decides the verdict, wide
    enough that any verdict of the study is wrong with a probability of 5 % at most.
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
    control_differs: bool = False  # its A/A control differs: whatever caused that may affect every comparison
    wants_runs: bool = False  # suspect until more runs show whether the excluded ones were lost at random


_Where = tuple[int | None, str]  # a cell (None: the whole study) and an arm


@dataclass(frozen=True)
class _Pairs:
    """The paired values of a comparison, before the level at which it is judged is known."""

    empty: Comparison
    baseline: Sequence[float]
    treatment: Sequence[float]
    doubt: str | None  # why there is no verdict, whatever the values are
    verdict: Verdict = Verdict.SUSPECT  # the verdict if there is a doubt
    wants_runs: bool = False

    def at(self, alpha: float, rule: StoppingRule) -> Ratio:
        """The ratio with an interval that misses the truth with probability `alpha` over all looks."""
        nominal = rule.nominal(alpha, len(self.baseline))
        return estimate(self.baseline, self.treatment, nominal, METRICS[self.empty.metric].skewed)

    def decide(self, alpha: float, rule: StoppingRule) -> Verdict:
        """The verdict at that level."""
        return decide(self.at(alpha, rule), self.empty.margin, METRICS[self.empty.metric].higher_is_better)


def judge(
    rows: Sequence[Row], margins: Mapping[str, float], rule: StoppingRule | None = None, explain: bool = True
) -> list[Comparison]:
    """All comparisons, cell by cell in the study's order, the A/A control before the treatments.

    The treatments are one family, the A/A controls another; each makes a false claim with a probability of 5 % at
    most. Without `explain`, verdicts lack the warnings that weaken them, and take less time.
    """
    rule = rule or StoppingRule()
    pairs = list(_all_pairs(rows, margins))
    found: dict[int, Comparison] = {}
    for controls in (True, False):
        mine = {index: each for index, each in enumerate(pairs) if (each.empty.role == "control") is controls}
        claims = [partial(_claims, each, rule) for each in mine.values() if each.baseline]
        levels = iter(family.levels(claims, ALPHA))
        for index, each in mine.items():
            found[index] = _judged(each, next(levels), rule, len(claims), explain) if each.baseline else _nothing(each)
    ordered = [found[index] for index in range(len(pairs))]
    return [each for cell in _cells(ordered) for each in _heed_control(cell)]


def is_settled(found: Sequence[Comparison]) -> bool:
    """Whether the study is done: every comparison of a treatment has its verdict, and no comparison still needs runs to
    show whether the excluded ones were lost at random."""
    treatments = [each for each in found if each.role != "control"] or list(found)
    done = bool(treatments) and all(each.verdict in SETTLED for each in treatments)
    return done and not any(each.wants_runs for each in found)


def not_measured(rows: Sequence[Row], margins: Mapping[str, float]) -> dict[str, str]:
    """The metrics that have a margin but no value in any run, each with the reason that the runs give, if any."""
    if all(row.excluded for row in rows):
        return {}  # then every metric is listed as not judged
    found = {}
    for metric in margins:
        if not any(metric in row.metrics for row in rows if not row.excluded):
            given = [row.not_measured[metric] for row in rows if metric in row.not_measured]
            found[metric] = given[0] if given else "no workload of this study measures it"
    return found


def log_ratios_by_cell(rows: Sequence[Row], metric: str, arm: str) -> dict[int, dict[int, float]]:
    """The log ratios of one arm against the baseline, by cell and block, from which interactions are computed."""
    found: dict[int, dict[int, float]] = {}
    for cell in sorted({row.cell for row in rows}):
        inside = [row for row in rows if row.cell == cell]
        before, after = (_above_zero(_values(inside, name, metric)) for name in ("baseline", arm))
        blocks = sorted(before.keys() & after.keys())
        if blocks:
            found[cell] = {block: math.log(after[block] / before[block]) for block in blocks}
    return found


def _all_pairs(rows: Sequence[Row], margins: Mapping[str, float]) -> Iterable[_Pairs]:
    lost = _exclusions(rows)
    for cell in sorted({row.cell for row in rows}):
        inside = [row for row in rows if row.cell == cell]
        others = {row.arm: row for row in inside if row.role != "baseline"}
        ordered = sorted(others.values(), key=lambda row: (row.role != "control", json.dumps(row.level)))
        for metric, margin in margins.items():
            if not any(metric in row.metrics for row in inside if not row.excluded) and any(
                not row.excluded for row in inside
            ):
                continue  # this workload does not have the metric
            for example in ordered:
                yield _pairs(inside, lost, example, metric, margin)


def _geometric_mean(values: Sequence[float]) -> float | None:
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else None


def _values(rows: Iterable[Row], arm: str, metric: str) -> dict[int, float]:
    return {
        row.block: row.metrics[metric] for row in rows if row.arm == arm and not row.excluded and metric in row.metrics
    }


def _above_zero(values: Mapping[int, float]) -> dict[int, float]:
    """The values that have a logarithm."""
    return {block: value for block, value in values.items() if value > 0}


def _pairs(inside: Sequence[Row], lost: Mapping[_Where, Unequal], example: Row, metric: str, margin: float) -> _Pairs:
    """One arm against the baseline; `inside` are the rows of the cell, `lost` the arms that lost runs unequally."""
    before, after = _values(inside, "baseline", metric), _values(inside, example.arm, metric)
    zeros = sum(value == 0 for values in (before, after) for value in values.values())
    counted = len(before) + len(after)
    before, after = _above_zero(before), _above_zero(after)
    blocks = sorted(before.keys() & after.keys())
    level = next((row.level for row in inside if row.role == "baseline"), None)
    empty = Comparison(
        example.cell, example.workload, example.conditions, metric, example.role, level, example.level,
        None, None, None, margin, Verdict.NOT_JUDGED, 0,
    )  # fmt: skip
    values = [before[block] for block in blocks], [after[block] for block in blocks]
    if doubts := [lost[where] for where in ((example.cell, example.arm), (None, example.arm)) if where in lost]:
        return _Pairs(empty, *values, doubts[0].why, wants_runs=not any(each.is_shown for each in doubts))
    if zeros:  # the remaining values are not a random selection
        line = f"{zeros} of {counted} values are 0, so there is no ratio"
        return _Pairs(empty, *values, line, Verdict.NOT_JUDGED)
    asked = {row.block for row in inside if row.arm in ("baseline", example.arm)}
    if len(blocks) < (1 - MOST_LOST) * len(asked):
        return _Pairs(empty, *values, _lost(inside, example.arm, blocks, len(asked)), Verdict.NOT_JUDGED)
    return _Pairs(empty, *values, None)


def _lost(inside: Sequence[Row], arm: str, blocks: Sequence[int], asked: int) -> str:
    """Why so few blocks are left: their runs are excluded, or lack a value of the metric."""
    here, there = ({row.block for row in inside if row.arm == each and not row.excluded} for each in ("baseline", arm))
    unread, lost = len(here & there) - len(blocks), asked - len(blocks)
    if unread == lost:
        return f"{unread} of {asked} blocks lack this figure on a side: it was too small to measure, or not read"
    return f"{lost} of {asked} blocks were lost: too many to judge the rest"


def _exclusions(rows: Sequence[Row]) -> dict[_Where, Unequal]:
    """The arms whose lost runs differ from the baseline's, in a cell or in the whole study."""
    counts: dict[_Where, list[int]] = {}
    is_one_cell = len({row.cell for row in rows}) == 1
    for row in rows:
        for where in ((row.cell, row.arm), *(() if is_one_cell else ((None, row.arm),))):
            mine = counts.setdefault(where, [0, 0])
            mine[0] += row.excluded
            mine[1] += 1

    def of(where: _Where) -> Counts:
        excluded, attempted = counts.get(where, (0, 0))
        return excluded, attempted

    others = [where for where in counts if where[1] != "baseline"]
    return unequal({(cell, arm): (of((cell, "baseline")), of((cell, arm))) for cell, arm in others})


def _claims(pairs: _Pairs, rule: StoppingRule, alpha: float) -> bool:
    return pairs.decide(alpha, rule) in SETTLED


def _nothing(pairs: _Pairs) -> Comparison:
    lines = ("no pair of runs is left to compare", *([pairs.doubt] if pairs.doubt else []))
    return replace(pairs.empty, warnings=lines, wants_runs=pairs.wants_runs)


def _judged(pairs: _Pairs, alpha: float, rule: StoppingRule, count: int, explain: bool) -> Comparison:
    """The comparison with its verdict at level `alpha`, which corrects for a family of `count` comparisons."""
    doubt = [pairs.doubt] if pairs.doubt else []
    metric, margin = METRICS[pairs.empty.metric], pairs.empty.margin
    alone, judged = pairs.at(ALPHA, rule), pairs.at(alpha, rule)
    verdict = decide(judged, margin, metric.higher_is_better)
    asked = (pairs.baseline, pairs.treatment, judged, margin, metric.higher_is_better, metric.skewed)
    lines = doubts.warnings(*asked) if explain else []
    if verdict is Verdict.UNDECIDED and (single := decide(alone, margin, metric.higher_is_better)) in SETTLED:
        lines.insert(0, doubts.on_its_own(single, count))
    return replace(
        pairs.empty,
        baseline=_geometric_mean(pairs.baseline),
        treatment=_geometric_mean(pairs.treatment),
        ratio=alone,
        judged=judged,
        verdict=pairs.verdict if doubt else verdict,
        runs=2 * len(pairs.baseline),
        warnings=(*doubt, *lines),
        wants_runs=pairs.wants_runs,
    )


def _cells(found: Sequence[Comparison]) -> list[list[Comparison]]:
    """The comparisons grouped by cell and metric, in order."""
    grouped: dict[tuple[int, str], list[Comparison]] = {}
    for each in found:
        grouped.setdefault((each.cell, each.metric), []).append(each)
    return list(grouped.values())


def _heed_control(compared: Sequence[Comparison]) -> list[Comparison]:
    """If the A/A control differs from the baseline beyond the margin, every comparison of the cell is suspect."""
    control = next((each for each in compared if each.role == "control"), None)
    if control is None or control.verdict not in (Verdict.BETTER, Verdict.WORSE):
        return list(compared)
    line = f"the A/A control was {control.verdict} than the identical baseline: something besides the treatment acts"
    return [
        replace(each, verdict=Verdict.SUSPECT, warnings=(line, *each.warnings), control_differs=True)
        if each.verdict is not Verdict.NOT_JUDGED
        else each
        for each in compared
    ]
