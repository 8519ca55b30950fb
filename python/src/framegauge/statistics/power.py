"""The effects that a study of so many blocks can find, computed beforehand from the spread of the log ratios.

Paired t with non-central t (Cohen 1988; Phillips 1990, J. Pharmacokinetics and Biopharmaceutics 18:137 for
equivalence). A study that may stop early is taken at its planned end, at the level of its last look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from framegauge.statistics.ratio import ALPHA, quantile
from framegauge.statistics.sequential import StoppingRule

__all__ = ["POWER", "REFERENCE_OF_TWO", "Reach", "Spread", "reach", "upper_limit"]

POWER = 0.8
# The spread of a ratio to the mean of two runs, in that of a ratio to one.
REFERENCE_OF_TWO = math.sqrt(1.5 / 2)
SPREADS = 9.0
NODES = 201


@dataclass(frozen=True)
class Spread:
    """The sample standard deviation of the log ratios of some blocks."""

    deviation: float
    blocks: int


def upper_limit(found: Sequence[Spread], confidence: float = POWER) -> float:
    """The upper confidence limit of the standard deviation that samples share, from their pooled variance.

    A study that is planned for the sample's own deviation has the promised power in about half of all cases only
    (Browne 1995, Statistics in Medicine 14:1933). ValueError without a sample of two blocks.
    """
    degrees = sum(spread.blocks - 1 for spread in found)
    if degrees < 1:
        raise ValueError("no sample of two blocks: expected at least one")
    squares = math.fsum((spread.blocks - 1) * spread.deviation**2 for spread in found)
    return math.sqrt(squares / float(special.chdtri(degrees, confidence)))


@dataclass(frozen=True)
class Reach:
    """The effects that `blocks` blocks find with power 0.8."""

    blocks: int
    alpha: float  # level of one comparison: its share of the study's 0.05 (Bonferroni, at worst), at the last look
    half_width: float  # half the width of its interval, as a ratio above 1
    better: float  # the smallest ratio that comes out "better"
    equal_power: float  # chance of "no practical difference" if the true ratio is 1
    looks_cost: float  # of POWER, at most: of an effect that one look at as many blocks finds with it


def reach(
    deviation: float, blocks: int, margin: float, comparisons: int = 1, rule: StoppingRule | None = None
) -> Reach:
    """The effects that blocks whose log ratios have this standard deviation can find; ValueError below two blocks."""
    if blocks < 2 or deviation < 0:
        raise ValueError(f"{blocks} blocks, deviation {deviation}: expected at least two blocks and a deviation from 0")
    share = ALPHA / max(1, comparisons)
    alpha = (rule or StoppingRule()).nominal(share, blocks)
    edge, error = math.log1p(margin), deviation / math.sqrt(blocks)
    critical = quantile(blocks - 1, alpha)
    if error == 0:
        return Reach(blocks, alpha, 1.0, 1 + margin, 1.0, 0.0)
    degrees = blocks - 1
    effect = edge + error * _found_with(POWER, degrees, critical)
    cost = POWER - _power(_found_with(POWER, degrees, quantile(degrees, share)), degrees, critical)
    equal = _equal(critical, edge / error, degrees)
    return Reach(blocks, alpha, math.exp(critical * error), math.exp(effect), equal, max(0.0, cost))


def _power(effect: float, degrees: int, critical: float) -> float:
    """The chance that t is beyond `critical`, of an effect in standard errors."""
    return 1 - float(special.nctdtr(degrees, effect, critical)) if effect < math.inf else 1.0


def _found_with(chance: float, degrees: int, critical: float) -> float:
    """The effect in standard errors that is found with this chance; infinite if none is."""
    from scipy.optimize import brentq  # takes a quarter of a second, and wrong options need not wait for it

    # An upper end for the search: the sum of the normal quantiles is too small for few degrees of freedom, ten times
    # as much is always enough.
    far = 10 * (critical + 5)

    def more(effect: float) -> float:
        return _power(effect, degrees, critical) - chance

    return float(brentq(more, 0.0, far)) if more(far) > 0 else math.inf


@lru_cache(maxsize=1)
def _legendre() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the integral, which take longer to compute than all the rest."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return nodes, weights


def _equal(critical: float, edge: float, degrees: int) -> float:
    """The chance that mean ± critical s/√n lies within ± edge (in standard errors) when the truth is 0.

    It is an integral over s: for a given s the mean is normal. `chi`, the sample standard deviation over the true one,
    is looked at within SPREADS of its own standard deviations around 1.
    """
    around = SPREADS / math.sqrt(2 * degrees)
    low, high = max(0.0, 1 - around), min(edge / critical, 1 + around)
    if high <= low:
        return 0.0
    nodes, weights = _legendre()
    chi = low + (high - low) * (nodes + 1) / 2
    inside = 2 * special.ndtr(edge - critical * chi) - 1
    half = degrees / 2
    density = np.exp(
        math.log(2) + half * math.log(half) - special.gammaln(half) + (degrees - 1) * np.log(chi) - half * chi * chi
    )
    return float((high - low) / 2 * (weights * inside * density).sum())
