"""An interval for the mean of values that are skewed, such as log ratios of which only one side stalls.

Student's t misses the truth too often then, on the side of the longer tail. Hall's transformation (Hall 1992, JRSS B
54:221) removes the skewness from the t statistic; it is monotone, so intervals of different levels lie inside each
other, as Holm's procedure needs. The skewness of few values is itself uncertain, so the interval that is used is the
hull of Hall's and Student's: it is never narrower than Student's.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["hull", "skewness"]

LEAST = 3  # fewer values have no skewness


def skewness(values: np.ndarray) -> float:
    """The adjusted Fisher-Pearson coefficient (Joanes & Gill 1998, JRSS D 47:183)."""
    count = len(values)
    if count < LEAST:
        return 0.0
    centred = values - values.mean()
    second = float(np.square(centred).mean())
    if second == 0:
        return 0.0
    third = float((centred**3).mean())
    return third / math.pow(second, 1.5) * math.sqrt(count * (count - 1)) / (count - 2)


def _inverse(x: float, gamma: float, count: int) -> float:
    """The t statistic whose transformed value is `x`; `gamma` is the skewness."""
    slope = gamma / (3 * math.sqrt(count))
    if abs(slope) < 1e-9:
        return x
    return (float(np.cbrt(1 + 3 * slope * (x - slope / 2))) - 1) / slope


def hull(values: np.ndarray, critical: float, gamma: float | None = None) -> tuple[float, float]:
    """The interval of the mean of `values`; `critical` is the two-sided quantile of Student's t at its level, `gamma`
    their skewness (None: as they have it)."""
    count = len(values)
    centre, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(count)
    gamma = skewness(values) if gamma is None else gamma
    low, high = _inverse(critical, gamma, count), _inverse(-critical, gamma, count)
    return centre - error * max(critical, low), centre - error * min(-critical, high)
