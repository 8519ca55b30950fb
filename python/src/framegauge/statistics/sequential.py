"""Early stopping: a study may end as soon as everything is settled, without a larger chance of being wrong.

A study that looks at its runs after every block and stops at the first result it likes is wrong more often than its
intervals promise. So each look may spend only a part of the error: after n of N planned blocks, all looks together
have spent alpha (n/N)^3 (Lan & DeMets 1983, Biometrika 70:659; the power family with exponent 3 of Kim & DeMets 1987,
Biometrika 74:149, which is near to the boundary of O'Brien & Fleming 1979, Biometrics 35:549). The nominal level of a
look is used with Student's t (the significance level approach of Pocock 1977, Biometrika 64:191), which makes its
interval a repeated confidence interval (Jennison & Turnbull 1989, JRSS B 51:305): over all looks together it misses the
truth with probability alpha at most.

The boundaries are those of Student's t itself, by recursive numerical integration (Armitage, McPherson & Rowe 1969,
JRSS A 132:235). Those of Brownian motion would spend up to 1.2 times as much, since t after few blocks is less
correlated with t after more. The recursion has one dimension: with x_i normal around 0, let W_n be their sum over the
root of their sum of squares, of which t is a monotone function. The direction of n of them does not depend on their
length, so

    W_(n+1) = W_n cos f + sin f,    tan f = x_(n+1) / root of the sum of the n squares before,

where sqrt(n) tan f has Student's t distribution with n degrees of freedom, whatever W_n is. W_n is kept by its normal
score: as z where t after n blocks has the level of a normal z. After many blocks scores are as those of a Brownian
motion, and steps of several blocks are taken at once.

A study that is extended beyond its planned end has spent all of its error there. What follows is judged at the level of
the last planned look, so that no verdict is lost by the extension alone; what that costs is the chance of crossing any
of the boundaries, old and new, by the same recursion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

__all__ = ["EXPONENT", "FIRST_LOOK", "StoppingRule", "looks"]

FIRST_LOOK = 5  # with fewer blocks an interval relies too much on the assumption of normal log ratios
MOST_LOOKS = 50
EXPONENT = 3.0
# The scores, by magnitude: what lies beyond the last has a probability of 1e-17.
EDGES = np.linspace(0.0, 8.5, 256)
MIDDLES = (EDGES[1:] + EDGES[:-1]) / 2
ANGLES = np.linspace(-math.pi / 2, math.pi / 2, 8193)
MANY = 60  # blocks after which scores are as those of a Brownian motion
LEAST = 1e-300  # a probability whose logarithm is taken


def looks(planned: int) -> list[int]:
    """The numbers of blocks after which a study of `planned` blocks looks at its runs; the last is `planned`."""
    stride = max(1, math.ceil((planned - FIRST_LOOK) / (MOST_LOOKS - 1)))
    return [*range(FIRST_LOOK, planned, stride), planned]


def _spent(alpha: float, blocks: int, planned: int, exponent: float) -> float:
    return float(alpha * min(1.0, blocks / planned) ** exponent)


def _place(score: np.ndarray, blocks: int) -> np.ndarray:
    """W after so many blocks, whose Student's t has the level of this score."""
    t = -special.stdtrit(blocks - 1, special.ndtr(-score))
    return np.asarray(t * np.sqrt(blocks / (blocks - 1 + t * t)))


@lru_cache(maxsize=MANY)
def _step(blocks: int) -> np.ndarray:
    """The chance of each score after one more block, by the score before: MIDDLES x MIDDLES."""
    below = special.stdtr(blocks, math.sqrt(blocks) * np.tan(ANGLES))
    before, after = _place(MIDDLES, blocks)[:, None], _place(EDGES, blocks + 1)[None, :]
    beyond = np.zeros((len(MIDDLES), len(EDGES)))
    share = after / np.sqrt(1 + before * before)
    angle = np.arcsin(np.minimum(1.0, share))
    for turned in (np.arctan(before), -np.arctan(before)):
        far, near = (np.interp(edge - turned, ANGLES, below) for edge in (math.pi - angle, angle))
        beyond += np.where(share < 1, far - near, 0.0)
    return np.asarray(-np.diff(beyond, axis=1))


def _jump(blocks: int, to: int) -> np.ndarray:
    """The same after several more blocks, as of a Brownian motion."""
    mean, spread = MIDDLES[:, None] * math.sqrt(blocks / to), math.sqrt((to - blocks) / to)
    within = special.ndtr((EDGES - mean) / spread) - special.ndtr((-EDGES - mean) / spread)
    return np.asarray(np.diff(within, axis=1))


class _Walk:
    """Student's t of more and more blocks, which has crossed none of its boundaries so far."""

    def __init__(self) -> None:
        self._mass = 2 * np.diff(special.ndtr(EDGES))  # of scores, which are normal before any boundary
        self._blocks = 0

    def go_to(self, blocks: int) -> None:
        """To the next look."""
        while 0 < self._blocks < blocks:
            to = self._blocks + 1 if self._blocks < MANY else blocks
            self._mass = self._mass @ (_step(self._blocks) if self._blocks < MANY else _jump(self._blocks, to))
            self._blocks = to
        self._blocks = blocks

    def level_for(self, chance: float) -> float:
        """The two-sided level that is crossed first at this look with this probability."""
        beyond = np.log(np.maximum(LEAST, self._beyond()))
        score = np.interp(-math.log(max(LEAST, chance)), -beyond, EDGES)
        return 2 * float(special.ndtr(-score))

    def pass_by(self, level: float) -> float:
        """Takes away what is beyond the boundary; its probability."""
        score = min(EDGES[-1], -float(special.ndtri(level / 2)))
        beyond = self._beyond()
        crossed = float(np.exp(np.interp(score, EDGES, np.log(np.maximum(LEAST, beyond)))))
        self._mass = -np.diff(np.maximum(0.0, beyond - crossed))
        return crossed

    def _beyond(self) -> np.ndarray:
        """The probability of a score beyond each edge."""
        return np.asarray(np.concatenate([np.cumsum(self._mass[::-1])[::-1], [0.0]]))


@lru_cache(maxsize=4096)
def _levels(alpha: float, planned: int, exponent: float = EXPONENT) -> tuple[tuple[int, float], ...]:
    """The nominal two-sided level of each look."""
    levels: list[tuple[int, float]] = []
    walk, spent = _Walk(), 0.0
    for blocks in looks(planned):
        to_spend = _spent(alpha, blocks, planned, exponent) - spent
        walk.go_to(blocks)
        level = walk.level_for(to_spend)
        walk.pass_by(level)
        levels.append((blocks, level))
        spent += to_spend
    return tuple(levels)


@lru_cache(maxsize=256)
def _chance_of_any(levels: tuple[tuple[int, float], ...]) -> float:
    """The probability that an interval excludes the truth at any of these looks, each with its nominal level."""
    walk, chance = _Walk(), 0.0
    for blocks, level in levels:
        walk.go_to(blocks)
        chance += walk.pass_by(level)
    return chance


@dataclass(frozen=True)
class StoppingRule:
    """The rule for a study of `planned` blocks that may stop after any look; None: one look, after a fixed number.

    `ends`: the numbers of blocks after which the study was to end, the last one now; more than one if it was extended.
    `exponent`: how late the error is spent.
    """

    planned: int | None = None
    ends: tuple[int, ...] = ()
    exponent: float = EXPONENT

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
        levels: list[float] = [level for look, level in _levels(alpha, self.planned, self.exponent) if look <= blocks]
        return levels[-1] if levels else _spent(alpha, blocks, self.planned, self.exponent)

    def looks_after(self, blocks: int) -> bool:
        """Whether the study looks at its runs, and may stop, after this many blocks; after each one of an extension."""
        return self.planned is not None and blocks in {*looks(self.planned), *self._extended()}

    def error(self, alpha: float) -> float:
        """The chance that an interval for an error of `alpha` misses the truth at any look, extensions included."""
        if not self.is_extended:
            return alpha
        levels = tuple((when, self.nominal(alpha, when)) for when in self._looks())
        return min(sum(level for _, level in levels), _chance_of_any(levels))

    def _extended(self) -> range:
        return range(self.ends[0] + 1, self.ends[-1] + 1) if self.is_extended else range(0)

    def _looks(self) -> list[int]:
        return list(self.ends) if self.planned is None else [*looks(self.planned), *self._extended()]
