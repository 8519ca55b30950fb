"""When a series changed its level, whatever anybody says of when it should have.

The sum of deviations from the mean (CUSUM; Page 1954, Biometrika 41:100) is farthest from 0 at the change. How often it
is as far without one is found by permuting blocks of neighbouring values (Kirch 2007, Journal of Statistical Planning
and Inference 137:2453), since single ones depend on each other. A series is then searched on both sides of its change
(binary segmentation; Vostrikova 1981, Soviet Mathematics Doklady 24:55), which finds steps better than a level that
comes back. Assumption: the dependence of values ends within a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

__all__ = ["ChangePoint", "change_points"]

BLOCK = 4  # values that stay together
LEAST = 4  # values on either side
MOST = 3  # changes of one series
PERMUTATIONS = 399
CHANCE = 0.01
_SEED = 1954


@dataclass(frozen=True)
class ChangePoint:
    """The level changed at the value of this index, from one mean to another; `chance`: as far without a change."""

    index: int
    before: float
    after: float
    chance: float


def change_points(values: np.ndarray) -> list[ChangePoint]:
    """The changes of a series of finite values in the order of time, at most MOST, in this order."""
    generator = np.random.default_rng(_SEED)
    points: list[ChangePoint] = []
    waiting = [(0, len(values))]
    while waiting and len(points) < MOST:
        begin, end = waiting.pop(0)
        point = _change(values[begin:end], generator)
        if point is not None:
            points.append(ChangePoint(begin + point.index, point.before, point.after, point.chance))
            waiting += [(begin, begin + point.index), (begin + point.index, end)]
    return sorted(points, key=lambda change: change.index)


def _change(values: np.ndarray, generator: np.random.Generator) -> ChangePoint | None:
    """The change of one stretch, if there is one; None in a stretch of too few blocks for chances below CHANCE."""
    if len(values) < 6 * BLOCK or np.ptp(values) == 0:
        return None
    index, distance = _farthest(values)
    further = sum(_farthest(series)[1] >= distance for series in _permuted(values, generator))
    chance = (1 + further) / (1 + PERMUTATIONS)
    if chance > CHANCE:
        return None
    return ChangePoint(index, float(values[:index].mean()), float(values[index:].mean()), chance)


def _farthest(values: np.ndarray) -> tuple[int, float]:
    """Where the sum of deviations is farthest from 0, weighted for its variance there, and how far."""
    count = len(values)
    places = np.arange(LEAST, count - LEAST + 1)
    sums = np.abs(np.cumsum(values - values.mean()))[places - 1] / np.sqrt(places * (count - places))
    best = int(sums.argmax())
    return int(places[best]), float(sums[best])


def _permuted(values: np.ndarray, generator: np.random.Generator) -> Iterator[np.ndarray]:
    for _ in range(PERMUTATIONS):
        # A turn first, so that the borders of blocks are not always the same.
        turned = np.roll(values, int(generator.integers(len(values))))
        parts = np.array_split(turned, len(values) // BLOCK)
        yield np.concatenate([parts[place] for place in generator.permutation(len(parts))])
