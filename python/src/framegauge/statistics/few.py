"""The share of the few at each level of the treatment, against 1: do they get less than the many, more, or as much?

The values of a level are those of its runs, one per block; the baseline and its A/A control have the same level, and
count as the geometric mean of the two. Assumptions and intervals are those of a ratio to a baseline that is always 1
(`ratio.estimate`), and so is the rule for verdicts: the margin is a factor to either side of 1, and that all get as
much is shown, not concluded from a lack of evidence. All levels in all cells of a study are one family (Holm), beside
that of the comparisons, and all of its looks spend one error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from framegauge.metrics import METRICS, SHARE_OF_FEW
from framegauge.statistics import family
from framegauge.statistics.pairs import MOST_LOST, Row, by_cell
from framegauge.statistics.ratio import ALPHA, Ratio, estimate
from framegauge.statistics.sequential import StoppingRule
from framegauge.statistics.verdict import EQUAL, LEAST_FOR_EQUALITY, SETTLED, Verdict, decide

__all__ = ["Share", "Standing", "shares"]


class Standing(StrEnum):
    """What the few get beside the many. The last two stand for the lack of a verdict."""

    LESS = "less"
    MORE = "more"
    FAIR = "fair"  # as much as the many, within the margin
    UNDECIDED = "undecided"
    SUSPECT = "suspect"  # an A/A control differs from the baseline
    NOT_JUDGED = "not judged"  # too many blocks were lost


_STANDINGS: Mapping[Verdict, Standing] = {
    Verdict.BETTER: Standing.MORE, Verdict.WORSE: Standing.LESS, Verdict.NO_PRACTICAL_DIFFERENCE: Standing.FAIR,
}  # fmt: skip


@dataclass(frozen=True)
class Share:
    """The share at one level in one cell, with its own interval, and the interval that decides (`judged`)."""

    cell: int
    workload: str
    conditions: Mapping[str, Any]
    level: Any
    margin: float
    share: Ratio
    judged: Ratio
    standing: Standing
    runs: int
    lost_blocks: int = 0

    @property
    def is_settled(self) -> bool:
        """Whether more blocks could not change the verdict, or would be of no use."""
        return self.standing is not Standing.UNDECIDED


@dataclass(frozen=True)
class _Values:
    """The values of a level in a cell, one per block that has any; `asked` blocks have a run of it, counted or not."""

    example: Row
    values: Sequence[float]
    runs: int
    asked: int


def shares(
    rows: Sequence[Row], margin: float, rule: StoppingRule | None = None, is_doubted: bool = False
) -> list[Share]:
    """The shares of a study, cell by cell, the baseline's level first; those without any value are left out.

    `is_doubted`: an A/A control of the study differs, so nothing is claimed.
    """
    rule = rule or StoppingRule()
    samples = [sample for inside in by_cell(rows).values() for sample in _of_cell(inside)]
    levels = family.levels([partial(_claims, sample.values, margin, rule) for sample in samples], ALPHA)
    return [_judged(sample, margin, level, rule, is_doubted) for sample, level in zip(samples, levels, strict=True)]


def _of_cell(inside: Sequence[Row]) -> list[_Values]:
    by_level: dict[str, list[Row]] = {}
    for row in sorted(inside, key=lambda row: (row.role == "treatment", json.dumps(row.level))):
        by_level.setdefault(json.dumps(row.level, sort_keys=True), []).append(row)
    return [values for runs in by_level.values() if (values := _values(runs)) is not None]


def _values(runs: Sequence[Row]) -> _Values | None:
    valid_runs = [row for row in runs if not row.excluded and row.metrics.get(SHARE_OF_FEW, 0.0) > 0]
    by_block: dict[int, list[float]] = {}
    for row in valid_runs:
        by_block.setdefault(row.block, []).append(math.log(row.metrics[SHARE_OF_FEW]))
    means = [math.exp(math.fsum(logs) / len(logs)) for _, logs in sorted(by_block.items())]
    return _Values(valid_runs[0], means, len(valid_runs), len({row.block for row in runs})) if valid_runs else None


def _at(values: Sequence[float], alpha: float, rule: StoppingRule) -> Ratio:
    return estimate([1.0] * len(values), values, rule.nominal(alpha, len(values)), METRICS[SHARE_OF_FEW].hull)


def _verdict(values: Sequence[float], margin: float, rule: StoppingRule, alpha: float) -> Verdict:
    verdict = decide(_at(values, alpha, rule), margin, METRICS[SHARE_OF_FEW].higher_is_better)
    return Verdict.UNDECIDED if verdict in EQUAL and len(values) < LEAST_FOR_EQUALITY else verdict


def _claims(values: Sequence[float], margin: float, rule: StoppingRule, alpha: float) -> bool:
    return _verdict(values, margin, rule, alpha) in SETTLED


def _judged(sample: _Values, margin: float, alpha: float, rule: StoppingRule, is_doubted: bool) -> Share:
    standing = _STANDINGS.get(_verdict(sample.values, margin, rule, alpha), Standing.UNDECIDED)
    if len(sample.values) < (1 - MOST_LOST) * sample.asked:
        standing = Standing.NOT_JUDGED
    elif is_doubted:
        standing = Standing.SUSPECT
    run = sample.example
    return Share(
        run.cell, run.workload, run.conditions, run.level, margin, _at(sample.values, ALPHA, rule),
        _at(sample.values, alpha, rule), standing, sample.runs, sample.asked - len(sample.values),
    )  # fmt: skip
