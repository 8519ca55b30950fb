"""How much of one effect another one gives: the quotient of two mean log ratios of the same blocks.

A quotient of means is not normal, and has no bounded interval where the divisor may be 0. Fieller's theorem (Fieller
1954, Journal of the Royal Statistical Society B 16:175) gives one that is exact for means that are: the quotients q for
which the mean of y - q x does not differ from 0 by Student's t over the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from framegauge.statistics.ratio import quantile

__all__ = ["Share", "share"]

LEAST_BLOCKS = 3


@dataclass(frozen=True)
class Share:
    """The part of an effect that another one is, with its interval; above 1 it is larger, below 0 it is opposite."""

    share: float
    low: float
    high: float


def share(whole: Sequence[float], part: Sequence[float], alpha: float) -> Share | None:
    """The share of `part` in `whole`, log ratios of the same blocks. None if `whole` does not differ from 0 at this
    level, so that nothing is a share of it, or there are too few blocks."""
    count = len(whole)
    if count != len(part):
        raise ValueError(f"{count} and {len(part)} log ratios: expected one of each per block")
    if count < LEAST_BLOCKS:
        return None
    x, y = np.asarray(whole), np.asarray(part)
    (xx, xy), (_, yy) = np.cov(x, y) * quantile(count - 1, alpha) ** 2 / count
    mean_x, mean_y = float(x.mean()), float(y.mean())
    # q**2 * square - 2 * q * cross + rest <= 0
    square, cross, rest = mean_x**2 - xx, mean_x * mean_y - xy, mean_y**2 - yy
    if square <= 0:
        return None
    # Rounding may leave the root of an exact 0 below it.
    half = math.sqrt(max(0.0, cross**2 - square * rest))
    return Share(mean_y / mean_x, float((cross - half) / square), float((cross + half) / square))
