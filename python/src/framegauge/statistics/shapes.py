"""Whether the noise of one arm alone shapes the log ratios of a comparison, and what its intervals need then.

Where the noise of both arms is the same, log ratios are symmetric, and Student's t is safe whatever its shape is. Where
one arm varies alone, or more, they are as skewed as that arm, and few blocks often miss its longer tail: their spread
is too small, and their mean too far from that tail. Two things are known beforehand or seen:

- The cells of a study that compare the same two arms by one metric have noise of one kind. The mean of their
  skewnesses is known better than that of any, so Hall's transformation (`skewness`) uses it: with the weight
  1 - 1 / cells, for with few cells it is uncertain itself.
- If an arm varies alone, the variances of the two differ. By how much follows from how each covaries with the log
  ratio, which an effect of the block does not bias; whether it is more than chance, from the correlation of the log
  ratio with the sum (Pitman 1939, Biometrika 31:9; Morgan 1939, Biometrika 31:13). Then the skewness counts in full,
  and Student's t has fewer degrees of freedom, by a part that falls with the number of cells.

The limits below are from docs/measured/calibration.md: noise of one shape loses little by them, and what one skewed arm
makes of a study stays near its 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from framegauge.statistics.skewness import skewness

__all__ = ["ALIKE", "Compared", "Shape", "shape_of"]

LEAST_BLOCKS = 4  # with fewer, neither skewness nor variances say anything
UNLIKE = (0.6, 1.2)  # log ratios of the arms' variances that begin to count, and count in full
BY_CHANCE = (0.5, 1.5)  # the same of Pitman's statistic
FEWER_DEGREES = 0.5  # of one cell in which an arm varies alone
TINY = 1e-12  # of the log ratio's variance: less is rounding


@dataclass(frozen=True)
class Shape:
    """What an interval allows for: this skewness of the log ratios, with so large a part of the degrees of freedom."""

    skewness: float = 0.0
    degrees: float = 1.0


ALIKE = Shape()


@dataclass(frozen=True)
class Compared:
    """The values of two arms in one cell, one of each per block; each is a mean of so many runs."""

    baseline: Sequence[float]
    treatment: Sequence[float]
    runs: int = 1  # of the baseline
    treated_runs: int = 1


@dataclass(frozen=True)
class _Moments:
    """Of one cell: the skewness of its log ratios, the variances of a run of either arm in that of the log ratio, and
    the correlation by which they differ."""

    skewness: float
    treated: float
    baseline: float
    correlation: float
    blocks: int


def shape_of(cells: Iterable[Compared]) -> Shape:
    """The shape that the cells of one comparison share."""
    cell_moments = [moments for cell in cells if (moments := _moments(cell)) is not None]
    if not cell_moments:
        return ALIKE
    alone = _varies_alone(cell_moments)
    weight = max(alone, 1 - 1 / len(cell_moments))
    mean = math.fsum(entry.skewness for entry in cell_moments) / len(cell_moments)
    return Shape(weight * mean, 1 - FEWER_DEGREES * alone / len(cell_moments))


def _moments(cell: Compared) -> _Moments | None:
    before, after = np.log(np.asarray(cell.baseline, dtype=float)), np.log(np.asarray(cell.treatment, dtype=float))
    if len(before) < LEAST_BLOCKS:
        return None
    before, after = before - before.mean(), after - after.mean()
    # Uncorrelated if runs of both arms vary alike.
    ratios, weighted_sum = after - before, cell.treated_runs * after + cell.runs * before
    square = float(ratios @ ratios)
    if square <= TINY * float(weighted_sum @ weighted_sum) or square == 0:
        return None
    # The sum does not vary where few levels of values mirror each other: then both arms vary alike.
    lengths = math.sqrt(square) * math.sqrt(float(weighted_sum @ weighted_sum))
    return _Moments(
        skewness(ratios),
        cell.treated_runs * float(after @ ratios) / square,
        -cell.runs * float(before @ ratios) / square,
        float(weighted_sum @ ratios) / lengths if lengths else 0.0,
        len(ratios),
    )


def _varies_alone(cells: Sequence[_Moments]) -> float:
    """From 0 to 1: how clearly one of the arms has most of the variance."""
    count = len(cells)
    treated, baseline = (
        max(TINY, math.fsum(getattr(cell, name) for cell in cells) / count) for name in ("treated", "baseline")
    )
    correlation = math.fsum(cell.correlation for cell in cells) / count
    degrees = math.fsum(cell.blocks - 2 for cell in cells)
    statistic = abs(correlation) * math.sqrt(degrees / max(TINY, 1 - correlation**2))
    return min(_part(abs(math.log(treated / baseline)), UNLIKE), _part(statistic, BY_CHANCE))


def _part(value: float, ends: tuple[float, float]) -> float:
    return min(1.0, max(0.0, (value - ends[0]) / (ends[1] - ends[0])))
