"""The ratio of two sets of runs that were measured apart: two folders, two time windows, other tools' files.

Assumption: runs are independent, and the logarithms of their values roughly normal in each set; the spreads may differ
(Welch 1947, Biometrika 34:28, on logarithms). Anything that drifted between the sets is part of the estimate. Blocks
that pair what is compared are better, where they are possible.

Whether the runs of a set resemble the ones before, SERIES of them or more may show, and there is no verdict then
(`doubts.order`). Fewer than SHOWN often do not, which is said with a verdict. Fewer than SERIES show nothing of it, and
would agree with each other about a wrong mean: so the error of their mean is taken as that of runs with a memory
(autoregression, MEMORY), which is about three times as large, and their spread as known as badly as that of such runs
is (Satterthwaite 1946, Biometrics Bulletin 2:110). A difference of ten spreads is still found with four runs on each
side. One that shows only if runs are independent, with the error that their spread says, is no claim, and is stated
with its condition (`sides`).

Of a metric with a largest value, what lies beyond the limits of a ratio is cut off (`ratio`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from framegauge.statistics.ratio import ALPHA, Ratio, quantile

__all__ = ["ASSUMPTION", "SERIES", "SHOWN", "degrees_of", "estimate", "remembering"]

SERIES = 8
SHOWN = 20  # runs of a side, from which on a MEMORY is missed so seldom that 5 % of comparisons at most make a claim
MEMORY = 0.8
ASSUMPTION = "runs are independent, their logarithms roughly normal in each set, nothing else changed (Welch's t)"


def estimate(
    baseline: Sequence[float],
    treatment: Sequence[float],
    alpha: float = ALPHA,
    independent: bool = False,
    shown: int = SERIES,
    most: float | None = None,
) -> Ratio:
    """The ratio of geometric means; `blocks` is the size of the smaller set; ValueError if a value has no logarithm.

    `independent`: that runs have no memory is known, or a condition of what is said. `shown`: the number of runs of a
    side from which on their order is taken to show whether they have one. `most`: as `metrics.Metric` has it.
    """
    for values in (baseline, treatment):
        if not values or min(values) <= 0 or not all(map(math.isfinite, values)):
            raise ValueError("a ratio needs finite values above 0, and at least one on each side")
    first, second = np.log(np.asarray(baseline, dtype=float)), np.log(np.asarray(treatment, dtype=float))
    centre, count = float(second.mean() - first.mean()), min(len(first), len(second))
    if count < 2:
        return Ratio(_exp(centre), None, None, count, None, alpha, ASSUMPTION)
    errors = [float(values.var(ddof=1)) / len(values) for values in (first, second)]
    # The spread that as many independent, paired blocks would need for an interval of the same width.
    deviation = math.sqrt(sum(errors) * count)
    shown = 0 if independent else shown
    errors = [error * remembering(len(values), shown) for error, values in zip(errors, (first, second), strict=True)]
    total = sum(errors)
    if total == 0:
        return Ratio(_exp(centre), _exp(centre), _exp(centre), count, 0.0, alpha, ASSUMPTION)
    degrees = total**2 / sum(
        error**2 / degrees_of(len(values), shown) for error, values in zip(errors, (first, second), strict=True)
    )
    half = quantile(degrees, alpha) * math.sqrt(total)
    low, high = centre - half, centre + half
    if most is not None:
        below, above = (
            quantile(degrees_of(len(values), shown), alpha) * math.sqrt(error) if error else 0.0
            for error, values in zip(errors[::-1], (second, first), strict=True)
        )
        limit = math.log(most)
        low = max(low, float(second.mean()) - limit - below)
        high = min(high, limit - float(first.mean()) + above)
    return Ratio(_exp(centre), _exp(low), _exp(high), count, deviation, alpha, ASSUMPTION)


def remembering(count: int, shown: int = SERIES) -> float:
    """How many times as large the variance of the mean of so many runs is as their own spread says, if they have the
    MEMORY that they are too few to show; 1 if they are not."""
    if count >= shown:
        return 1.0
    factor = 1 + 2 * math.fsum((1 - lag / count) * MEMORY**lag for lag in range(1, count))
    return factor / (1 - (factor - 1) / (count - 1))


@lru_cache(maxsize=SERIES + SHOWN)
def degrees_of(count: int, shown: int = SERIES) -> float:
    """The degrees of freedom of the spread of so many runs: fewer than of independent ones, if they have a MEMORY that
    they are too few to show."""
    if count >= shown:
        return count - 1.0
    places = np.arange(count)
    centred = np.eye(count) - 1 / count
    spread = centred @ MEMORY ** np.abs(places[:, None] - places[None, :]) @ centred
    return float(np.trace(spread) ** 2 / np.trace(spread @ spread))


def _exp(logarithm: float) -> float:
    """The exponential, kept within the range of a float: with two runs and a strict level an interval can be huge."""
    return math.exp(min(700.0, max(-700.0, logarithm)))
