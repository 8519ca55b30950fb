"""The mean of a series whose values depend on their neighbours, with its standard error.

Values that are scraped every few seconds repeat each other, so that their number says nothing of how much is known. The
error is that of the long-run variance, estimated by projections on low cosines (the equal-weighted cosine estimator of
Lazarus, Lewis, Stock & Watson 2018, Journal of Business & Economic Statistics 36:541), for which the quotient of mean
and error is Student's t with as many degrees of freedom as cosines. Assumption: the series is stationary, and its
dependence ends within about a twelfth of its length. Few cosines keep that short: six on each side of a change make 12
degrees of freedom, whose quantile is 2.18 instead of 1.96.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["LEAST_VALUES", "Mean", "mean"]

COSINES = 6
LEAST_VALUES = 16  # with fewer, even the lowest cosines have waves of few values


@dataclass(frozen=True)
class Mean:
    """A mean, its standard error, and the degrees of freedom of this error."""

    mean: float
    error: float
    degrees: int


def mean(values: np.ndarray) -> Mean:
    """The mean of values in the order of time, at equal distances; ValueError for fewer than LEAST_VALUES."""
    count = len(values)
    if count < LEAST_VALUES:
        raise ValueError(f"found {count} values, expected at least {LEAST_VALUES}")
    centre = float(values.mean())
    place = (np.arange(count) + 0.5) / count
    waves = np.cos(np.pi * np.outer(np.arange(1, COSINES + 1), place))
    parts = math.sqrt(2 / count) * (waves @ (values - centre))
    return Mean(centre, math.sqrt(float(np.square(parts).mean()) / count), COSINES)
