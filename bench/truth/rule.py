"""The rules of a study's verdicts for many studies at once, for bench/truth.

They are those of `statistics.judge` for studies of one metric and one treatment that lose no runs, on arrays: a
thousand times as many studies in the same time. A test holds them to the judge, study by study.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from framegauge.metrics import METRICS
from framegauge.statistics import robust, shapes
from framegauge.statistics.ratio import ALPHA
from framegauge.statistics.sequential import StoppingRule, looks
from framegauge.statistics.verdict import LEAST_FOR_EQUALITY

__all__ = ["HIGHER", "LOWER", "NONE", "SUSPECT", "UNDECIDED", "Ended", "Plan", "end"]

UNDECIDED, HIGHER, LOWER, NONE, SUSPECT = range(5)
Ends = tuple[np.ndarray, np.ndarray]  # the lower and the upper, as logarithms
At = Callable[[np.ndarray], Ends]  # from the level of each study


@dataclass(frozen=True)
class Plan:
    """What is judged: the margin as a log ratio, the planned blocks, whether studies stop by themselves, and whether
    the second arm is a control. `earlier`: by the rules before version 2, which compared the treatment with the
    baseline's run alone, and gave *no practical difference* from any number of blocks; controls play no part."""

    metric: str
    edge: float
    planned: int
    stops: bool = True
    control: bool = True
    earlier: bool = False
    median: bool = False  # of differences, instead of the mean


@dataclass
class Ended:
    """Studies at their end: numbers of blocks, and of each cell the verdict and the two intervals."""

    blocks: np.ndarray
    verdicts: np.ndarray
    low: np.ndarray
    high: np.ndarray
    judged_low: np.ndarray
    judged_high: np.ndarray


def end(logs: np.ndarray, plan: Plan) -> Ended:
    """Every study at its end, from the log values of its runs: studies x blocks x cells x arms, treated last."""
    runs = np.moveaxis(logs, 1, 3)  # studies x cells x arms x blocks
    size = runs.shape[:2]
    found = Ended(np.zeros(size[0], int), np.zeros(size, int), *(np.zeros(size) for _ in range(4)))
    going = np.arange(size[0])
    for blocks in looks(plan.planned) if plan.stops else [plan.planned]:
        verdicts, alone, judged = _look(runs[going][..., :blocks], plan, blocks)
        is_last = blocks == plan.planned
        ends = np.full(len(going), is_last) | np.isin(verdicts, (HIGHER, LOWER, NONE)).all(axis=1)
        here = going[ends]
        found.blocks[here], found.verdicts[here] = blocks, verdicts[ends]
        found.low[here], found.high[here] = (each[ends] for each in alone)
        found.judged_low[here], found.judged_high[here] = (each[ends] for each in judged)
        going = going[~ends]
        if not len(going):
            break
    return found


def _look(runs: np.ndarray, plan: Plan, blocks: int) -> tuple[np.ndarray, Ends, Ends]:
    """The verdicts after so many blocks, and the intervals of each cell alone and at the level that decides."""
    levels = _nominal(plan, runs.shape[1], blocks)
    treated, references = runs[:, :, -1], runs[:, :, : 1 if plan.earlier else -1]
    before, least = references.mean(axis=2), 0 if plan.earlier else LEAST_FOR_EQUALITY
    at = _of_arms(treated, before, plan, None if plan.earlier else _shape(treated, before, references.shape[2]))

    def claims(ends: Ends) -> np.ndarray:
        found = _decide(ends, plan.edge)
        return np.where((found == NONE) & (blocks < least), UNDECIDED, found)

    verdicts, judged = _holm(at, levels, runs.shape[:2], claims)
    if plan.control and not plan.earlier:
        differs = _differs(_of_arms(runs[:, :, 1], runs[:, :, 0], plan, None), levels, runs.shape[:2], plan.edge)
        verdicts = np.where(differs, SUSPECT, verdicts)
    return verdicts, at(np.full(len(runs), levels[1])), judged


def _nominal(plan: Plan, cells: int, blocks: int) -> np.ndarray:
    """The level at this look, by the number of comparisons that are left."""
    rule = StoppingRule(plan.planned if plan.stops else None)
    return np.array([1.0, *(rule.nominal(ALPHA / left, blocks) for left in range(1, cells + 1))])


def _holm(
    at: At, levels: np.ndarray, size: tuple[int, ...], claims: Callable[[Ends], np.ndarray]
) -> tuple[np.ndarray, Ends]:
    """What each cell claims by Holm's procedure, and the interval from which it does."""
    found, open_ = np.zeros(size, int), np.ones(size, bool)
    low, high = np.zeros(size), np.zeros(size)
    while True:
        ends = at(levels[open_.sum(axis=1)])
        low, high = np.where(open_, ends[0], low), np.where(open_, ends[1], high)
        now = np.where(open_, claims(ends), UNDECIDED)
        if not now.any():
            return found, (low, high)
        found, open_ = np.where(now > 0, now, found), open_ & (now == 0)


def _differs(at: At, levels: np.ndarray, size: tuple[int, ...], edge: float) -> np.ndarray:
    """Where the control differs from the baseline (`judge._differing`)."""
    verdicts, _ = _holm(at, levels, size, lambda ends: _decide(ends, edge))
    excludes, _ = _holm(at, levels, size, lambda ends: ((ends[0] > 0) | (ends[1] < 0)).astype(int))
    return np.isin(verdicts, (HIGHER, LOWER)) | ((verdicts == UNDECIDED) & (excludes > 0))


def _decide(ends: Ends, edge: float) -> np.ndarray:
    low, high = ends
    inside = (low >= -edge) & (high <= edge)
    return np.select([low > edge, high < -edge, inside], [HIGHER, LOWER, NONE], UNDECIDED)


def _of_arms(treated: np.ndarray, before: np.ndarray, plan: Plan, shape: tuple[np.ndarray, np.ndarray] | None) -> At:
    """Of the log values of two arms, within the limits that the metric sets (`ratio.limits`)."""
    at, most = _interval(treated - before, plan, shape), METRICS[plan.metric].most
    if most is None or plan.median:
        return at
    worst = _interval(treated - math.log(most), plan, shape)
    best = _interval(math.log(most) - before, plan, shape)

    def within(level: np.ndarray) -> Ends:
        low, high = at(level)
        return np.maximum(low, worst(level)[0]), np.minimum(high, best(level)[1])

    return within


def _interval(ratios: np.ndarray, plan: Plan, shape: tuple[np.ndarray, np.ndarray] | None) -> At:
    """Of log ratios, studies x cells x blocks; `shape`: skewness and degrees of freedom of each study."""
    if plan.median:
        return _of_median(ratios)
    blocks, factor = ratios.shape[2], METRICS[plan.metric].hull
    centre, error = ratios.mean(axis=2), ratios.std(axis=2, ddof=1) / math.sqrt(blocks)
    gamma: Any = 0.0
    degrees: Any = blocks - 1.0
    if factor is not None:
        gamma = _skewness(ratios)
    elif shape is not None:
        gamma, degrees = shape[0][:, None], (blocks - 1) * shape[1]

    def at(level: np.ndarray) -> Ends:
        critical = (factor or 1.0) * -special.stdtrit(degrees, level / 2)[:, None]
        low, high = _inverse(critical, gamma, blocks), _inverse(-critical, gamma, blocks)
        return centre - error * np.maximum(critical, low), centre - error * np.minimum(-critical, high)

    return at


def _of_median(ratios: np.ndarray) -> At:
    """`medians.estimate`: the ends are ordered means of pairs."""
    blocks = ratios.shape[2]
    first, second = np.triu_indices(blocks)
    means = np.sort((ratios[..., first] + ratios[..., second]) / 2, axis=2)

    def at(level: np.ndarray) -> Ends:
        left_out = {float(each): robust.left_out(blocks, float(each)) for each in np.unique(level)}
        place = np.array([left_out[float(each)] for each in level])[:, None, None]
        low, high = (
            np.take_along_axis(means, np.broadcast_to(each, (*ratios.shape[:2], 1)), axis=2)[..., 0]
            for each in (np.maximum(place - 1, 0), np.minimum(means.shape[2] - place, means.shape[2] - 1))
        )
        nothing = np.broadcast_to(place[..., 0] == 0, low.shape)
        return np.where(nothing, -np.inf, low), np.where(nothing, np.inf, high)

    return at


def _skewness(values: np.ndarray) -> np.ndarray:
    """`skewness.skewness` along the last axis."""
    count = values.shape[-1]
    centred = values - values.mean(axis=-1, keepdims=True)
    second, third = np.square(centred).mean(axis=-1), (centred**3).mean(axis=-1)
    safe = np.where(second > 0, second, 1.0)
    return np.asarray(third / safe**1.5 * math.sqrt(count * (count - 1)) / (count - 2))


def _inverse(x: np.ndarray, gamma: Any, count: int) -> np.ndarray:
    """`skewness._inverse`."""
    slope = np.asarray(gamma / (3 * math.sqrt(count)))
    is_flat = np.abs(slope) < 1e-9
    safe = np.where(is_flat, 1.0, slope)
    return np.where(is_flat, x, (np.cbrt(1 + 3 * safe * (x - safe / 2)) - 1) / safe)


def _shape(treated: np.ndarray, before: np.ndarray, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """`shapes.shape_of` for each study."""
    cells, blocks = treated.shape[1:]
    after, before = (each - each.mean(axis=2, keepdims=True) for each in (treated, before))
    ratios, both = after - before, after + runs * before
    square, other = (np.maximum(np.finfo(float).tiny, np.square(each).sum(axis=2)) for each in (ratios, both))
    of_treated, of_baseline = (
        np.maximum(shapes.TINY, each.mean(axis=1))
        for each in ((after * ratios).sum(axis=2) / square, -runs * (before * ratios).sum(axis=2) / square)
    )
    correlation = ((both * ratios).sum(axis=2) / (np.sqrt(square) * np.sqrt(other))).mean(axis=1)
    statistic = np.abs(correlation) * np.sqrt(cells * (blocks - 2) / np.maximum(shapes.TINY, 1 - correlation**2))
    alone = np.minimum(
        _part(np.abs(np.log(of_treated / of_baseline)), shapes.UNLIKE), _part(statistic, shapes.BY_CHANCE)
    )
    weight = np.maximum(alone, 1 - 1 / cells)
    return weight * _skewness(ratios).mean(axis=1), 1 - shapes.FEWER_DEGREES * alone / cells


def _part(values: np.ndarray, ends: tuple[float, float]) -> np.ndarray:
    return np.clip((values - ends[0]) / (ends[1] - ends[0]), 0.0, 1.0)
