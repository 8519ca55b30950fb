"""Whether something acts on runs at regular times: a job every minute, a fan that steps, a scrape of counters.

Model: the logarithm of a run's value is the sum of what its block, its arm (both within its cell) and its position
contribute, a wave over the places of the runs, and independent normal noise. Each period is tested by an F test of its
sine and cosine, as in a periodogram of values with gaps (Lomb 1976, Astrophysics and Space Science 39:447; Scargle
1982, Astrophysical Journal 263:835), and the chance is that of any of them (Bonferroni). Drift, and effects of the
block, are taken out with the blocks; so waves of more than a few blocks are not looked for, which do no harm either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from framegauge.statistics.pairs import Row

__all__ = ["Cycle", "estimate"]

LEAST_BLOCKS = 8  # fewer leave too little noise to tell a wave from
MOST_CELLS = 4  # more cells come in an order that no period is in step with
MOST_RUNS = 300
LONGEST_BLOCKS = 4.0
FINER = 2  # periods between those of which the runs hold whole numbers of waves
TOO_SMALL = 1e-6  # what rounding leaves of a column that the factors explain


@dataclass(frozen=True)
class Cycle:
    """The clearest wave: its period in runs, and the chance of one as clear from noise."""

    period: float
    chance: float


def estimate(rows: Sequence[Row], metric: str) -> Cycle | None:
    """The clearest wave in a metric; None if there are too few runs, or too many cells, to look for one."""
    places = {id(row): place for place, row in enumerate(sorted(rows, key=lambda row: row.number))}
    runs = sorted(
        (row for row in rows if not row.excluded and row.metrics.get(metric, 0.0) > 0), key=lambda row: places[id(row)]
    )[:MOST_RUNS]
    cells, blocks = {row.cell for row in rows}, {row.block for row in runs}
    if len(blocks) < LEAST_BLOCKS or len(cells) > MOST_CELLS:
        return None
    times = np.array([places[id(row)] for row in runs], dtype=float)
    factors = _factors(runs, times)
    values = _without(factors, np.log([row.metrics[metric] for row in runs]))
    waves = _frequencies(len(runs), len(rows) / len({row.block for row in rows}))
    turns = 2 * math.pi * np.outer(times, waves)
    sines, cosines = _without(factors, np.sin(turns)), _without(factors, np.cos(turns))
    degrees = len(runs) - factors.shape[1] - 2
    if degrees < 1 or not np.any(values):
        return None
    explained = _gained(values, sines, cosines)
    best = int(explained.argmax())
    residual = max(float(values @ values) - float(explained[best]), 0.0)
    ratio = math.inf if residual == 0 else float(explained[best]) / 2 / (residual / degrees)
    chance = min(1.0, len(waves) * float(special.fdtrc(2, degrees, ratio)))
    return Cycle(float(1 / waves[best]), chance)


def _frequencies(runs: int, per_block: float) -> np.ndarray:
    """In waves per run, from LONGEST_BLOCKS down to two runs."""
    step = 1 / (FINER * runs)
    least = max(1, math.ceil(1 / (LONGEST_BLOCKS * per_block) / step))
    return step * np.arange(least, FINER * runs // 2 + 1)


def _factors(used: Sequence[Row], when: np.ndarray) -> np.ndarray:
    """An orthonormal basis of what blocks, arms and positions explain."""
    inside: dict[tuple[int, int], list[float]] = {}
    for row, place in zip(used, when, strict=True):
        inside.setdefault((row.cell, row.block), []).append(place)
    positions = [sorted(inside[row.cell, row.block]).index(place) for row, place in zip(used, when, strict=True)]
    columns = [
        *_dummies([(row.cell, row.block) for row in used]), *_dummies([(row.cell, row.arm) for row in used]),
        *_dummies(positions),
    ]  # fmt: skip
    basis, sizes, _ = np.linalg.svd(np.stack(columns, axis=1), full_matrices=False)
    return np.asarray(basis[:, sizes > TOO_SMALL * sizes[0]])


def _dummies(keys: Sequence[object]) -> list[np.ndarray]:
    return [np.array([value == key for value in keys], dtype=float) for key in dict.fromkeys(keys)]


def _without(basis: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return np.asarray(columns - basis @ (basis.T @ columns))


def _gained(values: np.ndarray, sines: np.ndarray, cosines: np.ndarray) -> np.ndarray:
    """The sum of squares that each pair of a sine and a cosine explains."""
    ss, cc, sc = ((one * other).sum(axis=0) for one, other in ((sines, sines), (cosines, cosines), (sines, cosines)))
    ys, yc = values @ sines, values @ cosines
    determinant, larger = ss * cc - sc * sc, np.maximum(ss, cc)
    is_there = larger > TOO_SMALL * max(1.0, float(larger.max()))
    is_sound = is_there & (determinant > TOO_SMALL * larger**2)
    pair_sum = (ys * ys * cc - 2 * ys * yc * sc + yc * yc * ss) / np.where(is_sound, determinant, 1.0)
    # Where the two are one column, as at two runs, the larger is the wave.
    one = np.where(is_there, np.where(ss >= cc, ys, yc) ** 2 / np.where(is_there, larger, 1.0), 0.0)
    return np.where(is_sound, pair_sum, one)
