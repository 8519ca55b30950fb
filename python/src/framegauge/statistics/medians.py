"""The ratio of a treatment to its baseline by the median of differences: for metrics in which outliers rule.

One run in a hundred that is fifty times as long widens the interval of a mean so far that nothing is found. The median
of the means of all pairs of log ratios hardly moves (`robust`: Hodges & Lehmann 1963), and its interval inverts
Wilcoxon's signed rank test, which is exact where log ratios are symmetric, as they are where the noise of both arms is
the same, outliers included. It is another estimate than the mean: what a few runs suffer does not count in it. So a
study declares it beforehand, by metric.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from framegauge.statistics import robust
from framegauge.statistics.ratio import ALPHA, Ratio, log_ratios, quantile

__all__ = ["ASSUMPTION", "MEDIAN", "estimate"]

MEDIAN = "median of differences"  # as a study says it; another word is the mean
ASSUMPTION = "log ratios of the blocks are independent and symmetric (median of differences, Wilcoxon's signed rank)"


def estimate(baseline: Sequence[float], treatment: Sequence[float], alpha: float = ALPHA) -> Ratio:
    """The ratio of paired values, one pair per block; without an interval where the blocks are too few for the level.

    `log_deviation` is that of normal log ratios whose mean would have as wide an interval.
    """
    logs = log_ratios(baseline, treatment)
    middle, count = robust.middle(logs, alpha), len(logs)
    if count < 2:
        return Ratio(math.exp(middle.centre), None, None, count, None, alpha, ASSUMPTION)
    if middle.low is None or middle.high is None:
        spread = robust.NORMAL_MAD * float(np.median(np.abs(logs - middle.centre)))
        return Ratio(math.exp(middle.centre), None, None, count, spread, alpha, ASSUMPTION)
    deviation = (middle.high - middle.low) / 2 * math.sqrt(count) / quantile(count - 1, alpha)
    return Ratio(
        math.exp(middle.centre), math.exp(middle.low), math.exp(middle.high), count, deviation, alpha, ASSUMPTION
    )
