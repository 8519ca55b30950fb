"""Values of a counter that are missing between two that are known: what happened in between is known exactly, and only
not when, so that these steps share it evenly. That leaves every mean as it was, and how much means vary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from framegauge.watch.model import WINDOW_STEPS

__all__ = ["Walls", "bridged"]

Walls = Sequence[int]  # places: what happened on one side of them is not shared with the other


def bridged(levels: np.ndarray, walls: Walls, goes_on: Callable[[int, int], bool] | None = None) -> np.ndarray:
    """A counter with values where some are missing (NaN) between two that are not far apart, unless it fell or a wall
    lies between. `goes_on`: whether it is the same counter at both places, which did not begin anew; None: it is."""
    values = levels.copy()
    for first, last in pairwise(np.flatnonzero(np.isfinite(levels)).tolist()):
        grown = levels[last] - levels[first]
        parted = any(first < wall < last for wall in walls)
        if not 2 <= last - first <= WINDOW_STEPS or parted or grown < 0 or (goes_on and not goes_on(first, last)):
            continue
        shares = grown * np.arange(1, last - first) / (last - first)
        whole = levels[first].is_integer() and levels[last].is_integer()  # events, of which there are no parts
        values[first + 1 : last] = levels[first] + (np.floor(shares) if whole else shares)
    return values
