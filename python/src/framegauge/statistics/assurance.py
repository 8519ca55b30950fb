"""How many more blocks would decide a comparison, with a probability that can be relied on.

The number that would do if effect and spread were exactly as measured is enough in about half of all cases. So both
are drawn from what the blocks leave open (reference prior), further blocks are drawn from these, and the answer is the
smallest number after which four fifths of the draws are decided: the assurance of O'Hagan, Stevens & Campbell (2005,
Pharmaceutical Statistics 4:187), with the predictive distribution of Spiegelhalter, Freedman & Blackburn (1986,
Controlled Clinical Trials 7:8).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import special

from framegauge.statistics.ratio import Ratio, quantile

__all__ = ["ASSURANCE", "more_blocks"]

ASSURANCE = 0.8
MOST_MORE = 1000  # a larger number is no advice
DRAWS = 4096
_SEED = 2005


def more_blocks(
    found: Ratio, margin: float, *, bad_edge: int | None = None, least: int = 0, most: int = MOST_MORE
) -> int | None:
    """The number of further blocks after which the interval, at the same level, decides with probability ASSURANCE;
    None if it is more than `most`, or if there are too few blocks to know their spread.

    Decided means that the interval contains no edge of the margin; with `bad_edge` (1: the upper, -1: the lower one),
    that it does not contain this one. An interval inside the margin decides from `least` blocks on.
    """
    if found.log_deviation is None:
        return None

    def is_enough(more: int) -> bool:
        return _chance(found, math.log1p(margin), bad_edge, least, more) >= ASSURANCE

    if not is_enough(most):
        return None
    low, high = 1, most
    while low < high:  # the chance grows with the number of blocks
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low


@lru_cache(maxsize=1)
def _draws() -> tuple[np.ndarray, ...]:
    """Two standard normal and two uniform values for each draw: the same for all numbers of blocks."""
    generator = np.random.default_rng(_SEED)
    return (*generator.standard_normal((2, DRAWS)), *generator.uniform(size=(2, DRAWS)))


@lru_cache(maxsize=1024)
def _chi_squares(degrees: int, which: int) -> np.ndarray:
    """The draws of one kind as values of chi-square: of the blocks so far (0), or of the further ones (1).

    They are the same for all comparisons, and to compute them takes longer than all the rest: up to 14 ms each.
    """
    # chdtri is the inverse of the upper tail.
    values: np.ndarray = special.chdtri(degrees, _draws()[2 + which])
    values.flags.writeable = False
    return values


def _chance(ratio: Ratio, edge: float, bad_edge: int | None, least: int, more: int) -> float:
    """The probability that the comparison is decided after `more` blocks; `edge` is the margin's, in logarithms."""
    effect_draw, mean_draw, *_ = _draws()
    before, deviation = ratio.blocks, ratio.log_deviation or 0.0
    count, centre = before + more, math.log(ratio.ratio)
    variance = (before - 1) * deviation**2 / _chi_squares(before - 1, 0)
    effect = centre + np.sqrt(variance / before) * effect_draw
    new_mean = effect + np.sqrt(variance / more) * mean_draw
    squares = variance * _chi_squares(more - 1, 1) if more > 1 else 0.0
    squares = squares + (before - 1) * deviation**2 + before * more / count * (new_mean - centre) ** 2
    mean = (before * centre + more * new_mean) / count
    half = quantile(count - 1, ratio.alpha) * np.sqrt(squares / (count - 1) / count)
    place = np.abs(mean) if bad_edge is None else bad_edge * mean
    decided = np.abs(place - edge) > half
    if count < least:
        decided &= place > edge
    return float(decided.mean())
