"""Which single blocks a verdict could depend on, without trying all: each would cost as much as the whole study.

Only where an interval lies between the edges of the margin decides. So of all blocks without which it lies at the same
place, one is enough, the first. Where it lies without each follows for means from sums over all blocks, but for
rounding; whatever rounding could decide is tried as well. For medians of differences it follows from order: without a
larger value, both ends are lower or the same, so that places change only where the blocks in order of their values are
parted, which bisection finds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np

from framegauge.statistics import robust
from framegauge.statistics.ratio import quantile
from framegauge.statistics.shapes import ALIKE, Shape

__all__ = ["Trials", "of_means", "of_medians"]

# Of the half width of an interval, and in log ratios. Hall's transformation loses half of a float's digits where the
# skewness is nearly none, which is the most that rounding takes here.
ROUNDING = (1e-6, 1e-9)
ALONE = 0.9  # a block with so much of the variance leaves differences of large numbers without it

# Log ratios, a level and the edges of the margin, as ratios: the blocks to leave out, in order.
Trials = Callable[[np.ndarray, float, Sequence[float]], list[int]]


def of_means(
    logs: np.ndarray,
    alpha: float,
    edges: Sequence[float],
    hull: float | None = None,
    shape: Shape = ALIKE,
    limits: Sequence[np.ndarray] = (),
) -> list[int]:
    """The blocks to try of intervals of means (`ratio.estimate`), with its `hull`, `shape` and `limits`; at least four
    blocks."""
    places, unsure = np.zeros(len(logs), dtype=int), np.zeros(len(logs), dtype=bool)
    for values in (logs, *limits):  # an interval lies where its own ends and those of its limits do
        places_here, unsure_here = _places(values, alpha, edges, hull, shape)
        places, unsure = places * (1 << 2 * len(edges)) + places_here, unsure | unsure_here
    # Blocks that are equal may differ in rounding alone, so one of them is enough.
    alike = np.stack([logs, *limits], axis=1)
    return sorted({*_firsts(places), *(int(place) for place in _firsts(alike) if unsure[place])})


def _places(
    logs: np.ndarray, alpha: float, edges: Sequence[float], hull: float | None, shape: Shape
) -> tuple[np.ndarray, np.ndarray]:
    """Where the interval of the mean lies between the edges without each block, as a number; and whether rounding could
    decide that."""
    rest = len(logs) - 1
    away = logs - logs.mean()
    squares, cubes = np.square(away), away**3
    total, third, shift = float(squares.sum()), float(cubes.sum()), -away / rest
    variances = np.maximum(0.0, total - squares * (1 + 1 / rest)) / rest
    if hull:
        thirds = (third - cubes - 3 * shift * (total - squares) + 2 * rest * shift**3) / rest
        factor = math.sqrt(rest * (rest - 1)) / (rest - 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            skewness = np.nan_to_num(factor * thirds / variances**1.5, nan=0.0, posinf=0.0, neginf=0.0)
        critical = hull * quantile(rest - 1, alpha)
    else:
        skewness = np.full(len(logs), shape.skewness)
        critical = quantile((rest - 1) * shape.degrees, alpha)
    centres, errors = logs.mean() + shift, np.sqrt(variances / (rest - 1))
    low = centres - errors * np.maximum(critical, _inverse(critical, skewness, rest))
    high = centres - errors * np.minimum(-critical, _inverse(-critical, skewness, rest))
    near = ROUNDING[0] * (high - low) + ROUNDING[1]
    unsure = squares > ALONE * total
    places = np.zeros(len(logs), dtype=int)
    for edge in map(math.log, edges):
        for ends in (low, high):
            unsure |= ~(np.abs(ends - edge) > near)
            places = 2 * places + (ends > edge)
    return places, unsure


def of_medians(logs: np.ndarray, alpha: float, edges: Sequence[float]) -> list[int]:
    """The blocks to try of intervals of medians of differences (`medians.estimate`)."""
    used = logs[: robust.MOST + 1]  # without any later block, the interval is of the same as without the last of these
    order = np.argsort(used, kind="stable")
    places: dict[int, tuple[int, ...]] = {}

    def place(rank: int) -> tuple[int, ...]:
        if rank not in places:
            without = robust.middle(np.delete(used, order[rank]), alpha)
            ends = [math.exp(float(end)) for end in (without.low, without.high) if end is not None]
            places[rank] = tuple((end > edge) + (end >= edge) for end in ends for edge in map(float, edges))
        return places[rank]

    firsts: dict[tuple[int, ...], int] = {}
    parts = [(0, len(order) - 1)]
    while parts:
        first, last = parts.pop()
        if place(first) == place(last):
            block = int(order[first : last + 1].min())
            firsts[place(first)] = min(block, firsts.get(place(first), block))
        else:
            middle = (first + last) // 2
            parts += [(first, middle), (middle + 1, last)]
    return sorted(firsts.values())


def _firsts(values: np.ndarray) -> Collection[int]:
    """The first place of each value."""
    return [int(place) for place in np.unique(values, return_index=True, axis=0)[1]]


def _inverse(x: float, skewness: np.ndarray, count: int) -> np.ndarray:
    """As `skewness._inverse`, for many skewnesses."""
    slopes = skewness / (3 * math.sqrt(count))
    some = np.where(np.abs(slopes) < 1e-9, 1.0, slopes)
    roots: np.ndarray = np.where(some == slopes, (np.cbrt(1 + 3 * some * (x - some / 2)) - 1) / some, x)
    return roots
