"""The mean of runs with its interval, for amounts that are described and not compared.

Assumption: the runs are independent, and their values roughly normal (Student 1908, Biometrika 6:1).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from framegauge.statistics.ratio import quantile

__all__ = ["LEAST_RUNS", "Mean", "jain", "mean"]

LEAST_RUNS = 3  # two runs have an interval thirteen times as wide as the distance between them


@dataclass(frozen=True)
class Mean:
    """The mean of `runs` values; `interval` is its 95 % t-interval, None below LEAST_RUNS."""

    mean: float
    interval: tuple[float, float] | None
    runs: int


def mean(values: Sequence[float], least: float = -math.inf, most: float = math.inf) -> Mean:
    """The mean of one value per run; its interval is cut to `least` … `most`. ValueError without a value."""
    centre, count = statistics.fmean(values), len(values)
    if count < LEAST_RUNS:
        return Mean(centre, None, count)
    half = quantile(count - 1) * statistics.stdev(values) / math.sqrt(count)
    return Mean(centre, (max(least, centre - half), min(most, centre + half)), count)


def jain(values: Sequence[float]) -> float | None:
    """Jain's index, (Σx)² / (n Σx²): from 1/n to 1; None if all values are 0 (Jain, Chiu, Hawe, DEC-TR-301)."""
    squares = math.fsum(value * value for value in values)
    return math.fsum(values) ** 2 / (len(values) * squares) if squares > 0 else None
