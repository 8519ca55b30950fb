"""Early stopping: a study may end as soon as everything is settled, without a larger chance of being wrong.

A study that looks at its runs after every block and stops at the first result it likes is wrong more often than its
intervals promise. So each look may spend only a part of the error: after n of N planned blocks, all looks together
have spent alpha (n/N)^2 (Lan & DeMets 1983, Biometrika 70:659; the power family with exponent 2 of Kim & DeMets 1987,
Biometrika 74:149). The boundaries are those of Brownian motion, computed by recursive numerical integration (Armitage,
McPherson & Rowe 1969, JRSS A 132:235). The nominal level of a look is used with Student's t (the significance level
approach of Pocock 1977, Biometrika 64:191), which makes its interval a repeated confidence interval (Jennison &
Turnbull 1989, JRSS B 51:305): over all looks together it misses the truth with probability alpha at most.

Looks with Student's t and few degrees of freedom are less correlated than those of Brownian motion, and together spend
up to 1.23 times as much (in 100,000 simulated studies of 8, 20 and 40 blocks, at 0.05 and 0.005). Therefore only
1 / EXCESS of alpha is spent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from scipy import special

__all__ = ["FIRST_LOOK", "StoppingRule", "looks"]

FIRST_LOOK = 5  # with fewer blocks an interval relies too much on the assumption of normal log ratios
MOST_LOOKS = 50
EXPONENT = 2.0
EXCESS = 1.25
NODES = 201


def looks(planned: int) -> list[int]:
    """The numbers of blocks after which a study of `planned` blocks looks at its runs; the last is `planned`."""
    stride = max(1, math.ceil((planned - FIRST_LOOK) / (MOST_LOOKS - 1)))
    return [*range(FIRST_LOOK, planned, stride), planned]


def _spent(alpha: float, blocks: int, planned: int) -> float:
    return float(alpha / EXCESS * min(1.0, blocks / planned) ** EXPONENT)


def _beyond(sums: np.ndarray, density: np.ndarray, spread: float, chance: float, edge: float) -> float:
    """The probability that the next look crosses ±`edge`, less `chance`."""
    tails = special.ndtr((sums - edge) / spread) + special.ndtr((-edge - sums) / spread)
    return float(density @ tails) - chance


@lru_cache(maxsize=4096)
def _levels(alpha: float, planned: int) -> tuple[tuple[int, float], ...]:
    """The nominal two-sided level of each look."""
    from scipy.optimize import brentq  # takes a quarter of a second, and only such studies need it

    grid, weights = np.polynomial.legendre.leggauss(NODES)
    found: list[tuple[int, float]] = []
    sums, density = np.zeros(1), np.ones(1)  # weighted density of the sum of the blocks so far, on `sums`
    before = spent = 0.0
    for blocks in looks(planned):
        spread = math.sqrt(blocks - before)
        to_spend = _spent(alpha, blocks, planned) - spent

        excess = partial(_beyond, sums, density, spread, to_spend)
        edge = float(brentq(excess, 0.0, 40.0 * math.sqrt(blocks), xtol=1e-10))
        found.append((blocks, 2 * float(special.ndtr(-edge / math.sqrt(blocks)))))
        places = grid * edge
        kernel = np.exp(-0.5 * ((places[:, None] - sums[None, :]) / spread) ** 2) / (spread * math.sqrt(2 * math.pi))
        sums, density = places, weights * edge * (kernel @ density)
        before, spent = blocks, spent + to_spend
    return tuple(found)


@dataclass(frozen=True)
class StoppingRule:
    """The rule for a study of `planned` blocks that may stop after any look; None: one look, after a fixed number."""

    planned: int | None = None

    def nominal(self, alpha: float, blocks: int) -> float:
        """The two-sided level of an interval after `blocks`, for an error of `alpha` over all looks.

        Between two looks, and after the planned end, it is the level of the last look: stopping there for a reason
        that does not depend on the data (the budget, Ctrl-C) spends no more of the error.
        """
        if self.planned is None:
            return alpha
        made: list[float] = [level for when, level in _levels(alpha, self.planned) if when <= blocks]
        return made[-1] if made else _spent(alpha, blocks, self.planned)

    def looks_after(self, blocks: int) -> bool:
        """Whether the study looks at its runs, and may stop, after this many blocks."""
        return self.planned is not None and blocks in looks(self.planned)
