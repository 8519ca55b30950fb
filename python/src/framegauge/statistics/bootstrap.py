"""The studentised bootstrap: an interval for means of skewed values (Efron & Tibshirani 1993, chapter 12.5; Hall 1988,
Annals of Statistics 16:927).

It is not used where it would be worse than Student's t: with fewer than LEAST blocks its quantiles rest on a handful of
values, and RESAMPLES are too few for a very strict level. Seeded: the same blocks give the same interval.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["LEAST", "can", "studentised"]

LEAST = 12
RESAMPLES = 20_000
TAIL = 50  # the least number of resamples beyond each end of the interval
SEED = 20_261_121


def can(count: int, alpha: float) -> bool:
    """Whether this many blocks give an interval at level `alpha`."""
    return count >= LEAST and alpha / 2 * RESAMPLES >= TAIL


def studentised(values: np.ndarray, alpha: float) -> tuple[float, float]:
    """The interval of the mean of `values` at level `alpha`; they must not be all the same."""
    count = len(values)
    centre, error = values.mean(), values.std(ddof=1) / math.sqrt(count)
    chosen = values[np.random.default_rng(SEED).integers(0, count, (RESAMPLES, count))]
    errors = chosen.std(axis=1, ddof=1) / math.sqrt(count)
    with np.errstate(divide="ignore", invalid="ignore"):
        pivots = (chosen.mean(axis=1) - centre) / errors
    pivots = pivots[np.isfinite(pivots)]
    low, high = np.quantile(pivots, [alpha / 2, 1 - alpha / 2])
    return float(centre - high * error), float(centre - low * error)
