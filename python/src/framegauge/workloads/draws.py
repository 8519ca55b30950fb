"""Draws of simulated traffic: from the seed of a run alone, the same in all arms of a block, on any machine.

All are made from even draws (PCG64, whose stream NumPy keeps) by inverse transform. What a draw is for has a stream of
its own, so that another load, or other sizes, leave all other draws as they are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["Draws"]


class Draws:
    """The draws of a run."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def even(self, purpose: int, count: int) -> np.ndarray:
        """`count` even draws from [0, 1) for a purpose, the same whenever they are asked for."""
        return self._of(purpose)(count)

    def below(self, purpose: int, count: int, most: int) -> np.ndarray:
        """`count` whole numbers from 0 to `most` - 1, all alike."""
        return np.minimum((self.even(purpose, count) * most).astype(np.int64), most - 1)

    def sums(self, purpose: int, mean: float, until: float) -> np.ndarray:
        """The sums of exponential draws of this mean, a Poisson process: up to the first that is not below `until`."""
        draw, parts, last = self._of(purpose), [np.empty(0)], 0.0
        count = int(until / mean * 1.1) + 16
        while last < until:
            parts.append(last - mean * np.cumsum(np.log1p(-draw(count))))
            last = float(parts[-1][-1])
        sums = np.concatenate(parts)
        return sums[: int(np.searchsorted(sums, until)) + 1]

    def _of(self, purpose: int) -> Callable[[int], np.ndarray]:
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence([self._seed, purpose]))).random
