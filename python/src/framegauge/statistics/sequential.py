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

A study that is extended beyond its planned end has spent all of its error there. What follows is judged at the level of
the last planned look, so that no verdict is lost by the extension alone; what that costs is the chance of crossing any
of the boundaries, old and new, by the same recursion.
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


class _Walk:
    """A Brownian motion that has crossed none of its boundaries so far."""

    def __init__(self) -> None:
        # The weighted density of the sum so far, on `sums`.
        self._sums, self._density = np.zeros(1), np.ones(1)
        self._blocks = 0

    def edge_for(self, blocks: int, chance: float) -> float:
        """The boundary that is crossed first after `blocks` with this probability."""
        from scipy.optimize import brentq  # takes a quarter of a second, and only such studies need it

        excess = partial(_beyond, self._sums, self._density, math.sqrt(blocks - self._blocks), chance)
        return float(brentq(excess, 0.0, 40.0 * math.sqrt(blocks), xtol=1e-10))

    def pass_by(self, blocks: int, edge: float) -> float:
        """Goes on to `blocks`, where the boundary is ±`edge`; the probability of crossing it there first."""
        spread = math.sqrt(blocks - self._blocks)
        crossed = _beyond(self._sums, self._density, spread, 0.0, edge)
        grid, weights = _nodes()
        places = grid * edge
        kernel = np.exp(-0.5 * ((places[:, None] - self._sums[None, :]) / spread) ** 2) / (
            spread * math.sqrt(2 * math.pi)
        )
        self._sums, self._density, self._blocks = places, weights * edge * (kernel @ self._density), blocks
        return crossed


@lru_cache(maxsize=1)
def _nodes() -> tuple[np.ndarray, np.ndarray]:
    grid, weights = np.polynomial.legendre.leggauss(NODES)
    return grid, weights


@lru_cache(maxsize=4096)
def _levels(alpha: float, planned: int) -> tuple[tuple[int, float], ...]:
    """The nominal two-sided level of each look."""
    found: list[tuple[int, float]] = []
    walk, spent = _Walk(), 0.0
    for blocks in looks(planned):
        to_spend = _spent(alpha, blocks, planned) - spent
        edge = walk.edge_for(blocks, to_spend)
        walk.pass_by(blocks, edge)
        found.append((blocks, 2 * float(special.ndtr(-edge / math.sqrt(blocks)))))
        spent += to_spend
    return tuple(found)


@lru_cache(maxsize=256)
def _chance_of_any(levels: tuple[tuple[int, float], ...]) -> float:
    """The probability that an interval excludes the truth at any of these looks, each with its nominal level."""
    walk = _Walk()
    return sum(walk.pass_by(blocks, -float(special.ndtri(level / 2)) * math.sqrt(blocks)) for blocks, level in levels)


@dataclass(frozen=True)
class StoppingRule:
    """The rule for a study of `planned` blocks that may stop after any look; None: one look, after a fixed number.

    `ends`: the numbers of blocks after which the study was to end, the last one now; more than one if it was extended.
    """

    planned: int | None = None
    ends: tuple[int, ...] = ()

    @property
    def is_extended(self) -> bool:
        """Whether the study went on beyond its first planned end."""
        return len(self.ends) > 1

    def nominal(self, alpha: float, blocks: int) -> float:
        """The two-sided level of an interval after `blocks`, for an error of `alpha` over all looks that were planned.

        Between two looks, and after the planned end, it is the level of the last look: stopping there for a reason
        that does not depend on the data (the budget, Ctrl-C) spends no more of the error.
        """
        if self.planned is None:
            return alpha
        made: list[float] = [level for when, level in _levels(alpha, self.planned) if when <= blocks]
        return made[-1] if made else _spent(alpha, blocks, self.planned)

    def looks_after(self, blocks: int) -> bool:
        """Whether the study looks at its runs, and may stop, after this many blocks; after each one of an extension."""
        return self.planned is not None and blocks in {*looks(self.planned), *self._extended()}

    def error(self, alpha: float) -> float:
        """The chance that an interval for an error of `alpha` misses the truth at any look, extensions included."""
        if not self.is_extended:
            return alpha
        levels = tuple((when, self.nominal(alpha, when)) for when in self._looks())
        return min(sum(level for _, level in levels), EXCESS * _chance_of_any(levels))

    def _extended(self) -> range:
        return range(self.ends[0] + 1, self.ends[-1] + 1) if self.is_extended else range(0)

    def _looks(self) -> list[int]:
        return list(self.ends) if self.planned is None else [*looks(self.planned), *self._extended()]
