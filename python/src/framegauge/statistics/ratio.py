"""The ratio of a treatment to its baseline, by block.

Assumption, named: the logarithms of the ratios of the blocks are independent and roughly normal. The
block is the unit: however many transfers a run holds, it counts once. The estimate is the geometric mean
of the ratios; the interval is Student's t on their logarithms (paired t test; Student 1908), n - 1
degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

__all__ = ["Ratio", "blocks_to_settle", "estimate"]

LEVEL = 0.95
MOST_BLOCKS = 10_000


@dataclass(frozen=True)
class Ratio:
    """Geometric-mean ratio with its 95 % interval; `low` and `high` are None below two blocks."""

    ratio: float
    low: float | None
    high: float | None
    blocks: int
    log_deviation: float | None  # sample standard deviation of the log ratios


def _quantile(degrees: int) -> float:
    return float(stats.t.ppf((1 + LEVEL) / 2, degrees))


def estimate(baseline: Sequence[float], treatment: Sequence[float]) -> Ratio:
    """The ratio of paired positive values, one pair a block; ValueError if they are not that."""
    if len(baseline) != len(treatment) or not baseline:
        raise ValueError("one value a block on both sides, at least one block")
    if min(*baseline, *treatment) <= 0 or not all(map(math.isfinite, (*baseline, *treatment))):
        raise ValueError("a ratio needs finite values above 0")
    logs = np.log(np.asarray(treatment, dtype=float)) - np.log(np.asarray(baseline, dtype=float))
    centre, count = float(logs.mean()), len(logs)
    if count < 2:
        return Ratio(math.exp(centre), None, None, count, None)
    deviation = float(logs.std(ddof=1))
    half = _quantile(count - 1) * deviation / math.sqrt(count)
    return Ratio(math.exp(centre), math.exp(centre - half), math.exp(centre + half), count, deviation)


def blocks_to_settle(found: Ratio, margin: float) -> int | None:
    """How many blocks in all would settle the verdict if estimate and spread stayed as they are.

    None: more than MOST_BLOCKS, or not known. Settled means that the half-width is below the distance
    from the estimate to the nearest edge of the margin, in logarithms.
    """
    if found.log_deviation is None:
        return None
    distance = abs(abs(math.log(found.ratio)) - math.log1p(margin))
    for count in range(found.blocks + 1, MOST_BLOCKS + 1):
        if _quantile(count - 1) * found.log_deviation / math.sqrt(count) < distance:
            return count
    return None
