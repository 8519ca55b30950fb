"""The course of a metric: switched hosts beside the others, and when the difference between them changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from framegauge.statistics.change_points import change_points
from framegauge.watch.sampling import Sampled, Times

__all__ = ["Course", "Moved", "course", "moved"]

BINS = 60  # over the whole time
NEAR_BINS = 3  # a change so near to the switch is taken as its own


@dataclass(frozen=True)
class Course:
    """Of one side at each time: the mean of its hosts, the lowest and the highest; None where there is none."""

    middle: Sequence[float | None]
    low: Sequence[float | None]
    high: Sequence[float | None]


@dataclass(frozen=True)
class Moved:
    """The difference between the sides changed at this time, so long after the switch (negative: before it)."""

    at: float
    seconds_after: float
    chance: float
    with_the_switch: bool


def _binned(values: np.ndarray, edges: Sequence[int]) -> np.ndarray:
    parts = [values[begin:end] for begin, end in pairwise(edges)]
    return np.array([float(np.nanmean(part)) if np.isfinite(part).any() else np.nan for part in parts])


def _edges(times: Times) -> list[int]:
    steps = len(times.grid) - 1
    return sorted({round(edge) for edge in np.linspace(0, steps, min(BINS, steps) + 1)})


def course(found: Sampled, times: Times) -> tuple[list[float], Course, Course]:
    """The middles of the bins in seconds from the switch, the switched hosts, and the others."""
    edges = _edges(times)
    switch = times.grid[times.before]
    ends = [times.grid[edge] - switch for edge in edges]
    middles = [(begin + end) / 2 for begin, end in pairwise(ends)]
    return middles, _side(found, True, edges), _side(found, False, edges)


def _side(sampled: Sampled, switched: bool, edges: Sequence[int]) -> Course:
    rows = np.array([_binned(sampled.whole[host], edges) for host in _of(sampled, switched)])
    known = np.isfinite(rows).any(axis=0)
    middle, low, high = (
        [float(how(rows[:, place])) if known[place] else None for place in range(rows.shape[1])]
        for how in (np.nanmean, np.nanmin, np.nanmax)
    )
    return Course(middle, low, high)


def _of(sampled: Sampled, switched: bool) -> list[str]:
    return [host.name for host in sampled.observed.hosts if host.switched is switched]


def moved(found: Sampled, times: Times) -> list[Moved]:
    """When the difference changed; none where values are missing."""
    edges = _edges(times)
    contrast = _contrast(found, edges, times.before)
    if not np.isfinite(contrast).all():
        return []
    switch = times.grid[times.before]
    wide = NEAR_BINS * (times.grid[-1] - times.grid[0]) / (len(edges) - 1)
    settled = times.grid[min(times.before + times.settle, len(times.grid) - 1)] - switch
    return [
        Moved(at, at - switch, change.chance, -wide <= at - switch <= settled + wide)
        for change in change_points(contrast)
        for at in [times.grid[edges[change.index]]]
    ]


def _contrast(sampled: Sampled, edges: Sequence[int], before: int) -> np.ndarray:
    """Switched hosts less the others, each in units of its mean before; as they are where a mean is 0 or unknown."""
    means = {host: float(_binned(values, [0, before])[0]) for host, values in sampled.whole.items()}
    scales = means if all(mean > 0 for mean in means.values()) else dict.fromkeys(means, 1.0)
    sides = [
        np.mean([_binned(sampled.whole[host], edges) / scales[host] for host in _of(sampled, side)], axis=0)
        for side in (True, False)
    ]
    difference: np.ndarray = sides[0] - sides[1]
    return difference
