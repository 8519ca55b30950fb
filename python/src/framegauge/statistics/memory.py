"""How long a series remembers, and how much more its mean varies for it than that of independent values.

The model is white noise and a first-order autoregressive process (AR(1)) in any proportion. It is fitted to the
periodograms of one or several stretches of the same series (Whittle 1953, Arkiv for Matematik 2:423), so that each may
have a mean of its own, and counts as memory only if it fits better than white noise by more than chance.

A long-run variance from a few low frequencies is too small where a series remembers for a good part of its length,
since it is already less there than at frequency 0. By how much, the model tells (`Memory.shortfall`). How long a series
remembers is known badly from some hundred values, and an interval must not rely on luck; so what counts there is the
memory with the largest shortfall that the values do not exclude (a profile of the likelihood).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

__all__ = ["COSINES", "NONE", "Fitted", "Memory", "fit", "low_angles"]

COSINES = 6  # of which a long-run variance is estimated

SHARES = np.array([0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0])  # of the variance, of what remembers
SHORTEST_STEPS, STRETCHES = 0.5, 2.0  # the memories that are tried: from so many steps to so many stretches
TRIED = 16
MORE_THAN_CHANCE = 3.0  # of the logarithm of the likelihood: chi squared with two degrees of freedom, 5 %
NOT_EXCLUDED = 2.0  # with one degree of freedom, 5 %
LONGEST = 0.25  # of a stretch: of longer ones, only the likeliest counts


@dataclass(frozen=True)
class Memory:
    """What remembers for `steps` (after which its correlation is 1/e) is this share of the variance."""

    steps: float
    share: float

    @property
    def correlation(self) -> float:
        """Of neighbours, of what remembers."""
        return math.exp(-1 / self.steps) if self.steps else 0.0

    def spectrum(self, angles: np.ndarray) -> np.ndarray:
        """The spectral density at angles per step, of a series with variance 1: 1 for white noise."""
        return _spectrum(angles, self.correlation, self.share)

    def variance_of_mean(self, count: int) -> float:
        """Of so many values with variance 1."""
        r = self.correlation
        factor = (1 + r) / (1 - r) - 2 * r * (1 - r**count) / (count * (1 - r) ** 2)
        return (1 - self.share + self.share * factor) / count

    def shortfall(self, count: int) -> float:
        """The variance of the mean of `count` values from their spectrum at low cosines, over the true one; 1 at
        most."""
        return min(1.0, float(self.spectrum(low_angles(count)).mean()) / (count * self.variance_of_mean(count)))


@dataclass(frozen=True)
class Fitted:
    """The likeliest memory, and the one with the largest shortfall that is not excluded."""

    likely: Memory
    longest: Memory


NONE = Memory(0.0, 0.0)


def low_angles(count: int) -> np.ndarray:
    """The angles per step of the low cosines of `count` values."""
    angles: np.ndarray = np.pi * np.arange(1, COSINES + 1) / count
    return angles


def _spectrum(angles: np.ndarray, correlation: float, share: float) -> np.ndarray:
    r = correlation
    density: np.ndarray = 1 - share + share * (1 - r * r) / (1 - 2 * r * np.cos(angles) + r * r)
    return density


def fit(stretches: Sequence[np.ndarray]) -> Fitted:
    """The memory of a series that was seen in these stretches; NONE if it does not differ from white noise."""
    counts = tuple(len(stretch) for stretch in stretches)
    ordinates = np.concatenate([_periodogram(stretch) for stretch in stretches])
    if not ordinates.any():
        return Fitted(NONE, NONE)
    densities, logarithms, shortfalls, memories = _tried(counts)
    # The likelihood at the best scale of each; the first is white noise.
    likelihoods = -len(ordinates) * np.log((ordinates / densities).mean(axis=1)) - logarithms
    best = int(likelihoods.argmax())
    if likelihoods[best] - likelihoods[0] <= MORE_THAN_CHANCE:
        return Fitted(NONE, NONE)
    longest = max(memories[best].steps, LONGEST * max(counts))
    possible = (likelihoods >= likelihoods[best] - NOT_EXCLUDED) & np.array(
        [memory.steps <= longest for memory in memories]
    )
    return Fitted(memories[best], memories[int(np.where(possible, shortfalls, np.inf).argmin())])


def _angles(count: int) -> np.ndarray:
    return 2 * np.pi * np.arange(1, (count - 1) // 2 + 1) / count


def _periodogram(values: np.ndarray) -> np.ndarray:
    count = len(values)
    ordinates: np.ndarray = np.square(np.abs(np.fft.rfft(values - values.mean())[1 : (count - 1) // 2 + 1])) / count
    return ordinates


@lru_cache(maxsize=32)
def _tried(counts: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[Memory, ...]]:
    """The densities of all memories that are tried at the ordinates of such stretches, the sums of their logarithms,
    and their shortfalls in the longest stretch."""
    angles = np.concatenate([_angles(count) for count in counts])
    memories = (NONE, *(
        Memory(float(steps), float(share))
        for steps in np.geomspace(SHORTEST_STEPS, STRETCHES * max(counts), TRIED)
        for share in SHARES
    ))  # fmt: skip
    densities = np.array([memory.spectrum(angles) for memory in memories])
    shortfalls = np.array([memory.shortfall(max(counts)) for memory in memories])
    return densities, np.log(densities).sum(axis=1), shortfalls, memories
