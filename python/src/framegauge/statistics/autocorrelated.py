"""The mean of a series whose values depend on their neighbours, with its standard error.

Values that are scraped every few seconds repeat each other, so that their number says nothing of how much is known. The
error is that of the long-run variance, estimated by projections on low cosines (the equal-weighted cosine estimator of
Lazarus, Lewis, Stock & Watson 2018, Journal of Business & Economic Statistics 36:541), for which the quotient of mean
and error is Student's t with as many degrees of freedom as cosines. Assumption: the series is stationary, and its
dependence ends within about a twelfth of its length. Few cosines keep that short: six on each side of a change make 12
degrees of freedom, whose quantile is 2.18 instead of 1.96.

`both` has the means of a series before and after a change. What it remembers is fitted to both of its stretches
(`memory`), and divides the error by what low cosines lack of it. That of the shorter stretch is at least what the
longer one says: few values that remember each other are alike, whatever they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from framegauge.statistics import memory
from framegauge.statistics.memory import COSINES, NONE, Fitted, Memory

__all__ = ["LEAST_MEMORIES", "LEAST_VALUES", "Mean", "both", "mean"]

LEAST_MEMORIES = 12  # of a stretch, for its error to be known
LEAST_VALUES = 16  # with fewer, even the lowest cosines have waves of few values


@dataclass(frozen=True)
class Mean:
    """A mean, its standard error, and the degrees of freedom of this error."""

    mean: float
    error: float
    degrees: int


def mean(values: np.ndarray, remembers: Memory = NONE) -> Mean:
    """The mean of values in the order of time, at equal distances; ValueError for fewer than LEAST_VALUES."""
    count = len(values)
    if count < LEAST_VALUES:
        raise ValueError(f"found {count} values, expected at least {LEAST_VALUES}")
    centre = float(values.mean())
    place = (np.arange(count) + 0.5) / count
    waves = np.cos(np.outer(memory.low_angles(count), place * count))
    parts = math.sqrt(2 / count) * (waves @ (values - centre))
    variance = float(np.square(parts).mean()) / count / remembers.shortfall(count)
    return Mean(centre, math.sqrt(variance), COSINES)


def both(before: np.ndarray, after: np.ndarray) -> tuple[Mean, Mean, Fitted]:
    """The means of a series before and after a change, and what it remembers; ValueError as `mean`."""
    fitted = memory.fit((before, after))
    longest, counts = fitted.longest, (len(before), len(after))
    first, second = mean(before, longest), mean(after, longest)
    return _at_least(first, second, *counts, longest), _at_least(second, first, *counts[::-1], longest), fitted


def _at_least(first: Mean, other: Mean, count: int, others: int, remembers: Memory) -> Mean:
    """A mean of fewer values than the other, with what the other says of its error; the more, the fewer it has."""
    if count >= others:
        return first
    scale = remembers.variance_of_mean(count) / remembers.variance_of_mean(others)
    share = count / others
    variance = share * first.error**2 + (1 - share) * scale * other.error**2
    return replace(first, error=max(first.error, math.sqrt(variance)))
