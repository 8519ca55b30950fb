"""The ratio of a treatment to its baseline, by block.

Assumption: the logarithms of the ratios of the blocks are independent and roughly normal. The block is the unit:
a run counts once, however many transfers it holds. The estimate is the geometric mean of the ratios; the interval is
Student's t on their logarithms (paired t test; Student 1908) with n - 1 degrees of freedom. Metrics whose logarithms
are skewed get an interval that allows for skewness on one side (`skewness`).

A metric that has a largest value, such as a share, has ratios with limits: a treatment is better by no more than its
baseline leaves, and worse by no more than it is itself below that value. Both limits are means, with intervals by the
same method, and what lies beyond is cut off the interval. Equality never is: both limits lie on their sides of it.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from framegauge.statistics import skewness
from framegauge.statistics.shapes import ALIKE, Shape

__all__ = ["Ratio", "blocks_to_settle", "blocks_to_use", "estimate", "is_usable", "limits", "log_ratios"]

ALPHA = 0.05
MOST_BLOCKS = 10_000
# An interval of ratios whose ends are further apart (a factor of 10 either way) says nothing that anybody can use: it
# comes of few blocks that differ much, and its far end of the assumption that logarithms are normal.
USABLE = 100.0
STUDENT = "log ratios of the blocks are independent and roughly normal (paired t)"
SKEWED = "log ratios of the blocks are independent and may be skewed (Hall's transformation, or paired t where wider)"
UNLIKE = (
    "log ratios of the blocks are independent, and skewed as in all cells (paired t, widened by Hall's transformation)"
)


@dataclass(frozen=True)
class Ratio:
    """A geometric mean of ratios with its interval at level `alpha`; `low` and `high` are None below two blocks."""

    ratio: float
    low: float | None
    high: float | None
    blocks: int
    log_deviation: float | None  # sample standard deviation of the log ratios
    alpha: float = ALPHA
    assumption: str = STUDENT


def is_usable(low: float | None, high: float | None) -> bool:
    """Whether an interval of ratios is there and says something: only then it is shown."""
    return low is not None and high is not None and 0 < low <= high <= USABLE * low


def quantile(degrees: float, alpha: float = ALPHA) -> float:
    """The two-sided quantile of Student's t; infinite at level 0."""
    return -float(special.stdtrit(degrees, alpha / 2)) if alpha > 0 else math.inf


def log_ratios(baseline: Sequence[float], treatment: Sequence[float]) -> np.ndarray:
    """The log ratios of paired values, one pair per block; ValueError unless all are finite and above 0."""
    if len(baseline) != len(treatment) or not baseline:
        counts = f"{len(baseline)} and {len(treatment)} values"
        raise ValueError(f"{counts}: expected one value per block on each side, and at least one block")
    if min(*baseline, *treatment) <= 0 or not all(map(math.isfinite, (*baseline, *treatment))):
        raise ValueError("a ratio needs finite values above 0")
    logs: np.ndarray = np.log(np.asarray(treatment, dtype=float)) - np.log(np.asarray(baseline, dtype=float))
    return logs


def estimate(
    baseline: Sequence[float],
    treatment: Sequence[float],
    alpha: float = ALPHA,
    hull: float | None = None,
    shape: Shape = ALIKE,
    most: float | None = None,
) -> Ratio:
    """The ratio of paired values, one pair per block; ValueError unless all are finite and above 0.

    `hull`, `most`: as `metrics.Metric` has them. `shape`: that of the log ratios, where the metric has no hull.
    """
    logs = log_ratios(baseline, treatment)
    centre, count = float(logs.mean()), len(logs)
    if count < 2:
        return Ratio(math.exp(centre), None, None, count, None, alpha)
    deviation = float(logs.std(ddof=1))
    assumption = SKEWED if hull else STUDENT if shape == ALIKE else UNLIKE
    if not deviation:
        return Ratio(math.exp(centre), math.exp(centre), math.exp(centre), count, deviation, alpha, assumption)
    ends = _ends(logs, alpha, hull, shape)
    if most is not None:
        worst, best = (_ends(values, alpha, hull, shape) for values in limits(baseline, treatment, most))
        ends = max(ends[0], worst[0]), min(ends[1], best[1])
    low, high = (math.exp(min(700.0, max(-700.0, end))) for end in ends)
    return Ratio(math.exp(centre), low, high, count, deviation, alpha, assumption)


def limits(baseline: Sequence[float], treatment: Sequence[float], most: float) -> tuple[np.ndarray, np.ndarray]:
    """The log ratios that are least and greatest, where no value is above `most`: those of the treatment to it, and of
    it to the baseline."""
    all_most = [most] * len(baseline)
    return log_ratios(all_most, treatment), log_ratios(baseline, all_most)


def _ends(logs: np.ndarray, alpha: float, hull: float | None, shape: Shape) -> tuple[float, float]:
    """The interval of the mean of log ratios, of two or more blocks."""
    degrees = len(logs) - 1
    if not logs.std():
        return float(logs[0]), float(logs[0])
    if hull:
        return skewness.hull(logs, hull * quantile(degrees, alpha))
    return skewness.hull(logs, quantile(degrees * shape.degrees, alpha), shape.skewness)


def blocks_to_use(found: Ratio) -> int | None:
    """The total number of blocks that would give a usable interval if the spread stayed as it is; None: it is not
    known, or more than MOST_BLOCKS."""
    deviation = found.log_deviation
    if deviation is None:
        return None
    return _first(found.blocks + 1, lambda blocks: 2 * _half(blocks, deviation, found.alpha) <= math.log(USABLE))


def blocks_to_settle(found: Ratio, margin: float) -> int | None:
    """The total number of blocks that would settle the verdict if estimate and spread stayed as they are.

    None: more than MOST_BLOCKS, or the spread is not known. Settled means that half the width of the interval is below
    the distance from the estimate to the nearest edge of the margin, in logarithms.
    """
    deviation = found.log_deviation
    if deviation is None:
        return None
    distance = abs(abs(math.log(found.ratio)) - math.log1p(margin))

    return _first(found.blocks + 1, lambda blocks: _half(blocks, deviation, found.alpha) < distance)


def _half(blocks: int, deviation: float, alpha: float) -> float:
    """Half the width of the interval of so many blocks, in logarithms."""
    return quantile(blocks - 1, alpha) * deviation / math.sqrt(blocks)


def _first(least: int, is_enough: Callable[[int], bool]) -> int | None:
    """The smallest number of blocks that is enough; the interval narrows with every block."""
    blocks = range(least, MOST_BLOCKS + 1)
    place = bisect.bisect_left(blocks, True, key=is_enough)
    return blocks[place] if place < len(blocks) else None
