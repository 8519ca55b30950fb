"""An estimate that does not depend on any single block, shown next to the mean that is judged.

It is the Hodges-Lehmann estimate (1963, Annals of Mathematical Statistics 34:598): the median of the means of all
pairs of log ratios, pairs of a value with itself included; its interval inverts Wilcoxon's signed rank test.
Assumption: the log ratios are independent and symmetrical, which holds for equal arms whatever their noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

__all__ = ["NORMAL_MAD", "Middle", "left_out", "middle", "outliers"]

EXACT = 50  # blocks; with more, the signed rank statistic is taken as normal
MOST = 2000  # blocks that are used: the number of pairs is half their square
FAR = 5.0  # robust standard deviations: none of 1,000 normal blocks is expected beyond
NORMAL_MAD = 1.4826  # standard deviation of normal values over their median absolute deviation


class Middle(NamedTuple):
    """The centre of log ratios and its interval, None where there are too few blocks for one."""

    centre: float
    low: float | None
    high: float | None


@lru_cache(maxsize=4096)
def left_out(count: int, alpha: float) -> int:
    """The position, from either side, of the ordered mean of pairs at which the interval ends; 0: no interval."""
    if count > EXACT:
        deviation = math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
        return max(0, math.floor(count * (count + 1) / 4 + float(special.ndtri(alpha / 2)) * deviation))
    ways = np.zeros(count * (count + 1) // 2 + 1)  # the number of sign patterns by their sum of ranks
    ways[0] = 1.0
    for rank in range(1, count + 1):
        ways[rank:] += ways[:-rank].copy()
    return int(np.searchsorted(np.cumsum(ways) / 2.0**count, alpha / 2, side="right"))


def middle(logs: Sequence[float] | np.ndarray, alpha: float = 0.05) -> Middle:
    """The Hodges-Lehmann centre of log ratios with its interval at level `alpha`."""
    values = np.asarray(logs, dtype=float)[:MOST]
    first, second = np.triu_indices(len(values))
    means = np.sort((values[first] + values[second]) / 2)
    last = left_out(len(values), alpha)
    if last == 0:
        return Middle(float(np.median(means)), None, None)
    return Middle(float(np.median(means)), float(means[last - 1]), float(means[-last]))


def outliers(logs: Sequence[float] | np.ndarray) -> list[int]:
    """The blocks more than FAR robust standard deviations from the median; none if more than half are equal."""
    values = np.asarray(logs, dtype=float)
    distance = np.abs(values - np.median(values))
    scale = NORMAL_MAD * float(np.median(distance))
    return [] if scale == 0 else [int(index) for index in np.nonzero(distance > FAR * scale)[0]]
