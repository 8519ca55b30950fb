"""The smallest sufficient level of an ordered treatment, such as the smallest MTU that already gives what the largest
does.

A level is enough if it is not worse than the largest level by more than the margin (non-inferiority: its interval
excludes the margin's edge on the worse side). Levels are tested in a fixed sequence, from the largest down, and the
first that is not shown to be enough ends it. So no level needs a correction for the others: an insufficient level is
called enough with a probability of half the interval's level at most (fixed-sequence test: Maurer, Hothorn & Lehmacher
1995; Westfall & Krishen 2001, J. Statistical Planning and Inference 99:25).

Over several cells, a level is enough for a metric where it is enough in every cell, which needs no correction for the
cells (intersection-union test: Berger 1982, Technometrics 24:295). Metrics share the error equally, and so do the cells
where the answer is given for each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from framegauge.metrics import METRICS
from framegauge.statistics import intervals, medians
from framegauge.statistics.pairs import Pairs, Row, all_pairs
from framegauge.statistics.ratio import ALPHA, Ratio
from framegauge.statistics.sequential import StoppingRule
from framegauge.statistics.shapes import Compared, Shape, shape_of
from framegauge.statistics.verdict import LEAST_FOR_EQUALITY
from framegauge.statistics.worst_case import Arm

__all__ = ["Enough", "Smallest", "Step", "smallest"]

LEAST_LEVELS = 3


class Enough(StrEnum):
    """Whether a level is enough."""

    YES = "enough"
    NO = "not enough"  # worse than the largest by more than the margin
    OPEN = "undecided"


@dataclass(frozen=True)
class Step:
    """A level against the largest one; `ratio` is that of the cell in which it is worst, or may be."""

    level: Any
    enough: Enough
    ratio: Ratio | None


@dataclass(frozen=True)
class Smallest:
    """The answer for one metric, in one cell, or in all (`cell` is None).

    `steps` go from the level next to the largest down, and end with the first that is not enough.
    """

    metric: str
    margin: float
    cell: int | None
    largest: Any
    steps: Sequence[Step]
    workload: str | None = None
    conditions: Mapping[str, Any] = field(default_factory=dict)

    @property
    def level(self) -> Any:
        """The smallest level that is shown to be enough; the largest if no other is."""
        enough = [step.level for step in self.steps if step.enough is Enough.YES]
        return enough[-1] if enough else self.largest

    @property
    def is_settled(self) -> bool:
        """Whether the next smaller level is shown not to be enough, or there is none."""
        return not any(step.enough is Enough.OPEN for step in self.steps)


def smallest(
    rows: Sequence[Row],
    margins: Mapping[str, float],
    rule: StoppingRule | None = None,
    doubted: Collection[tuple[int, str]] = (),
    estimators: Mapping[str, str] = MappingProxyType({}),
) -> list[Smallest]:
    """The smallest sufficient level by metric, over all cells and then in each; empty unless the treatment has at least
    three levels, which are numbers.

    `doubted`: the cells and metrics that have no verdict, since their A/A control differs. `estimators`: of metrics
    that have another than the mean.
    """
    rule, levels = rule or StoppingRule(), _levels(rows)
    chains: dict[str, list[_Chain]] = {}
    for chain in _chains(rows, margins, levels[0], doubted, estimators) if levels else ():
        chains.setdefault(chain.metric, []).append(chain)
    answers = []
    for members in chains.values():
        alpha = ALPHA / len(chains)
        answers.append(_over_all(members, levels, alpha, rule))
        answers += [_in_one(chain, levels, alpha / len(members), rule) for chain in members if len(members) > 1]
    return answers


@dataclass(frozen=True)
class _Chain:
    """One metric of a cell: by level, its runs (as those of a treatment) against those of the largest level."""

    metric: str
    margin: float
    example: Row
    pairs: Mapping[Any, Pairs]


@dataclass(frozen=True)
class _Level:
    """What a cell has of one level by block, each value a mean of so many `runs`."""

    values: Mapping[int, float]
    runs: int
    arm: Arm | None
    held: float


def _levels(rows: Sequence[Row]) -> list[Any]:
    """The levels from the largest down; empty if they have no order."""
    if not all(_is_number(row.level) for row in rows):
        return []
    levels = sorted({row.level for row in rows}, reverse=True)
    return levels if len(levels) >= LEAST_LEVELS else []


def _chains(
    rows: Sequence[Row],
    margins: Mapping[str, float],
    largest: Any,
    doubted: Collection[tuple[int, str]],
    estimators: Mapping[str, str],
) -> Iterator[_Chain]:
    compared: dict[tuple[int, str], list[Pairs]] = {}
    for pairs in all_pairs(rows, margins):
        if not pairs.is_control:
            compared.setdefault((pairs.example.cell, pairs.metric), []).append(pairs)
    by_level: dict[tuple[int, str], dict[Any, _Level]] = {
        key: {} if key in doubted else _by_level(members)
        for key, members in compared.items()
        if not all(pairs.is_unread for pairs in members)  # what no run tells is not asked
    }
    shapes = _shapes(by_level, largest)
    for key, levels in by_level.items():
        first, last = compared[key][0], levels.get(largest)
        like = replace(
            first,
            is_median=estimators.get(first.metric) == medians.MEDIAN,
            is_shared=any(pairs.is_shared for pairs in compared[key]),
        )
        beside = {} if last is None else {
            level: replace(_beside(like, last, here), shape=shapes[first.metric, level])
            for level, here in levels.items()
        }  # fmt: skip
        yield _Chain(first.metric, first.margin, first.example, beside)


def _by_level(compared: Sequence[Pairs]) -> dict[Any, _Level]:
    """The levels of a cell; without those whose runs are in doubt."""
    by_level: dict[Any, _Level] = {}
    for pairs in (pairs for pairs in compared if pairs.doubt is None):
        base_arm, arm = pairs.arms or (None, None)
        values = dict(zip(pairs.blocks, pairs.treatment, strict=True))
        by_level[pairs.example.level] = _Level(values, 1, arm, pairs.held[1])
        base_values = dict(zip(pairs.blocks, pairs.baseline, strict=True))
        if (earlier := by_level.get(pairs.baseline_level)) is not None:
            base_values = {**earlier.values, **base_values}
        by_level[pairs.baseline_level] = _Level(base_values, max(1, len(pairs.references)), base_arm, pairs.held[0])
    return by_level


def _common(last: _Level, here: _Level) -> tuple[list[int], list[float], list[float]]:
    """The blocks that both levels have, and the values of both."""
    blocks = sorted(last.values.keys() & here.values.keys())
    return blocks, [last.values[block] for block in blocks], [here.values[block] for block in blocks]


def _beside(like: Pairs, last: _Level, here: _Level) -> Pairs:
    """A level as the treatment, and the largest as what it is compared with."""
    blocks, baseline, treatment = _common(last, here)
    arms = None if last.arm is None or here.arm is None else (last.arm, here.arm)
    return replace(like, blocks=blocks, baseline=baseline, treatment=treatment, arms=arms, held=(last.held, here.held))


def _shapes(by_level: Mapping[tuple[int, str], Mapping[Any, _Level]], largest: Any) -> dict[tuple[str, Any], Shape]:
    """The shape of the noise of each metric and level beside the largest, in all cells."""
    cells: dict[tuple[str, Any], list[Compared]] = {}
    for (_, metric), levels in by_level.items():
        if (last := levels.get(largest)) is not None:
            for level, here in levels.items():
                _, baseline, treatment = _common(last, here)
                compared = Compared(baseline, treatment, last.runs, here.runs)
                cells.setdefault((metric, level), []).append(compared)
    return {key: shape_of(members) for key, members in cells.items()}


def _is_number(level: object) -> bool:
    return isinstance(level, int | float) and not isinstance(level, bool)


def _judge(chain: _Chain, level: Any, alpha: float, rule: StoppingRule) -> tuple[Enough, Ratio | None]:
    """Whether a level of a cell is enough, and its ratio to the largest."""
    pairs = chain.pairs.get(level)
    if pairs is None or not pairs.blocks:
        return Enough.OPEN, None
    ratio = intervals.at(pairs, alpha, rule)
    if ratio.low is None or ratio.high is None:
        return Enough.OPEN, ratio
    edge = 1 + chain.margin
    holds, fails = (
        (ratio.low >= 1 / edge, ratio.high < 1 / edge)
        if METRICS[chain.metric].higher_is_better
        else (ratio.high <= edge, ratio.low > edge)
    )
    if holds and ratio.blocks >= LEAST_FOR_EQUALITY:
        return Enough.YES, ratio
    return (Enough.NO if fails else Enough.OPEN), ratio


def _in_one(chain: _Chain, levels: Sequence[Any], alpha: float, rule: StoppingRule) -> Smallest:
    steps: list[Step] = []
    for level in levels[1:]:
        steps.append(Step(level, *_judge(chain, level, alpha, rule)))
        if steps[-1].enough is not Enough.YES:
            break
    run = chain.example
    return Smallest(chain.metric, chain.margin, run.cell, levels[0], steps, run.workload, run.conditions)


def _over_all(chains: Sequence[_Chain], levels: Sequence[Any], alpha: float, rule: StoppingRule) -> Smallest:
    """The answer that holds in every cell. That a level is not enough is a claim on any of them, so it is corrected for
    their number."""
    steps: list[Step] = []
    for level in levels[1:]:
        judged = [_judge(chain, level, alpha, rule) for chain in chains]
        strict = [_judge(chain, level, alpha / len(chains), rule)[0] for chain in chains]
        enough = (
            Enough.NO if Enough.NO in strict
            else Enough.YES if all(answer is Enough.YES for answer, _ in judged)
            else Enough.OPEN
        )  # fmt: skip
        steps.append(Step(level, enough, _worst([ratio for _, ratio in judged], chains[0].metric, enough)))
        if enough is not Enough.YES:
            break
    first = chains[0]
    only = (first.example.workload, first.example.conditions) if len(chains) == 1 else (None, {})
    return Smallest(first.metric, first.margin, None, levels[0], steps, *only)


def _worst(ratios: Sequence[Ratio | None], metric: str, enough: Enough) -> Ratio | None:
    """The ratio of the cell to tell: where the level is open, that whose interval reaches furthest to the worse side,
    as it is why, and not a lower one that is sure."""
    estimates = [ratio for ratio in ratios if ratio is not None]
    if not estimates:
        return None
    is_higher_better = METRICS[metric].higher_is_better

    def told(ratio: Ratio) -> float:
        end = ratio.low if is_higher_better else ratio.high
        return ratio.ratio if enough is not Enough.OPEN or end is None else end

    return (min if is_higher_better else max)(estimates, key=told)
