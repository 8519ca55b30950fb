"""What the position of a run among the arms of its cell does: the first may find colder caches than those that follow.

Model: the logarithm of a run's value is the sum of what its block, its arm (both within its cell) and its position
contribute, and independent noise. Arms are balanced over positions (`study.blocks`), so the position cancels in a
comparison, but for blocks that are lost or not run yet; how much is left is the position's `tilt`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from framegauge.statistics.pairs import Pairs, Row

__all__ = ["Position", "estimate", "places", "tilt"]

ROUNDS, ENOUGH = 200, 1e-12
TOO_SMALL = 1e-6  # what rounding leaves of a column that the factors explain

Places = Mapping[tuple[int, int], Mapping[str, int]]  # by cell and block: the position of each arm, from 0


@dataclass(frozen=True)
class Position:
    """The effect of each position on a metric, as a log ratio to their mean; `chance`: of one as large from noise."""

    effects: Sequence[float]
    chance: float

    @property
    def size(self) -> float:
        """The largest ratio between two positions, less 1."""
        return math.exp(max(self.effects) - min(self.effects)) - 1


def places(rows: Sequence[Row]) -> Places:
    """The position of each arm in each block of each cell, excluded runs included: the order of their first runs."""
    first: dict[tuple[int, int], dict[str, int]] = {}
    for row in rows:
        arms = first.setdefault((row.cell, row.block), {})
        arms[row.arm] = min(row.number, arms.get(row.arm, row.number))
    return {
        key: {arm: place for place, arm in enumerate(sorted(arms, key=arms.__getitem__))} for key, arms in first.items()
    }


def estimate(rows: Sequence[Row], metric: str, found: Places) -> Position | None:
    """The effect of the position on a metric over all cells; None if there are too few runs to tell."""
    runs = [row for row in rows if not row.excluded and row.metrics.get(metric, 0.0) > 0]
    if not runs:
        return None
    values = np.log([row.metrics[metric] for row in runs])
    place = np.array([found[row.cell, row.block][row.arm] for row in runs])
    count = int(place.max()) + 1
    blocks, arms = _codes([(row.cell, row.block) for row in runs]), _codes([(row.cell, row.arm) for row in runs])
    cells = len({row.cell for row in runs})
    degrees = len(runs) - (blocks.max() + 1) - (arms.max() + 1) + cells - (count - 1)
    if count < 2 or degrees < 1:
        return None
    columns = np.stack([values, *(place == number for number in range(1, count))], axis=1).astype(float)
    within = _centred(columns, (blocks, arms))
    if np.linalg.matrix_rank(within[:, 1:], tol=TOO_SMALL * math.sqrt(len(runs))) < count - 1:
        return None  # arms and positions are one: each arm always had the same
    effects = np.linalg.lstsq(within[:, 1:], within[:, 0], rcond=None)[0]
    residual = float(np.square(within[:, 0] - within[:, 1:] @ effects).sum())
    explained = float(np.square(within[:, 1:] @ effects).sum())
    ratio = math.inf if residual <= 0 else explained / (count - 1) / (residual / degrees)
    shifts = np.append(0.0, effects)
    return Position(
        [float(number) for number in shifts - shifts.mean()], float(special.fdtrc(count - 1, degrees, ratio))
    )


def tilt(pairs: Pairs, position: Position, found: Places) -> float:
    """The part of a comparison's mean log ratio that is due to positions that the blocks do not balance."""
    cell, arm = pairs.example.cell, pairs.example.arm
    parts = []
    for block in pairs.blocks:
        here = found[cell, block]
        others = [position.effects[here[name]] for name in pairs.references if name in here]
        if arm in here and others:
            parts.append(position.effects[here[arm]] - math.fsum(others) / len(others))
    return math.fsum(parts) / len(parts) if parts else 0.0


def _codes(keys: Sequence[object]) -> np.ndarray:
    """Numbers from 0, the same for equal keys."""
    codes: dict[object, int] = {}
    return np.array([codes.setdefault(key, len(codes)) for key in keys])


def _centred(columns: np.ndarray, factors: Sequence[np.ndarray]) -> np.ndarray:
    """The columns less what the factors explain, by alternating projections (von Neumann 1949; Halperin 1962)."""
    left = columns.copy()
    for _ in range(ROUNDS):
        before = left.copy()
        for factor in factors:
            sums = np.zeros((factor.max() + 1, left.shape[1]))
            np.add.at(sums, factor, left)
            left -= (sums / np.bincount(factor)[:, None])[factor]
        if np.abs(left - before).max() < ENOUGH:
            break
    return left
