"""What a host's CPU takes for wakeups, packets, aggregates and bytes: a model, fitted to what runs took. Pure.

    CPU seconds = w wakeups + r_p packets + r_a aggregates + r_b bytes (received) + s_a aggregates + s_b bytes (sent)

No cost is below zero (C. Lawson and R. Hanson, "Solving Least Squares Problems", chapter 23), and deviations are
relative, since one run moves ten times as many packets as another. Intervals are of the bootstrap over blocks, whose
runs are close in time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["COSTS", "Model", "Unfit", "Work", "fit"]

# Names of the costs, and what each is for.
COSTS = {
    "wakeup": "wakeups", "receive.packet": "packets", "receive.aggregate": "aggregates",
    "receive.byte": "received_bytes", "send.aggregate": "sent_aggregates", "send.byte": "sent_bytes",
}  # fmt: skip
DRAWS = 400
LEAST_BLOCKS = 3
# How much more uncertain a cost may be because others rise and fall with what it is for (D. Belsley, E. Kuh, R. Welsch,
# "Regression Diagnostics", 1980: from 30 on it harms).
MOST_CONDITION = 100.0


class Unfit(Exception):
    """Runs that no model can be had from; the text says what is missing."""


@dataclass(frozen=True)
class Work:
    """What one host did in a run, and what it took: CPU `seconds`, less those of the idle host.

    `arm`: runs that differ by chance alone; `block`: runs close in time.
    """

    arm: str
    block: int
    seconds: float
    wakeups: float
    packets: float
    aggregates: float
    received_bytes: float
    sent_aggregates: float
    sent_bytes: float


@dataclass(frozen=True)
class Model:
    """`seconds` by the names of COSTS, with the ends of their 95 % `intervals`. `deviations`: by arm, the share by
    which the model differs from the median of what its runs took."""

    seconds: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    deviations: Mapping[str, float]


def fit(works: Sequence[Work], seed: int = 1) -> Model:
    """The costs; Unfit if these runs do not tell them apart, or are too few."""
    works = [work for work in works if work.seconds > 0]
    blocks = sorted({work.block for work in works})
    if len(blocks) < LEAST_BLOCKS:
        raise Unfit(f"found {len(blocks)} blocks with figures of CPU time, expected {LEAST_BLOCKS} at least")
    counts = np.array([[getattr(work, name) for name in COSTS.values()] for work in works], dtype=float)
    taken = np.array([work.seconds for work in works])
    _check(counts, taken)
    costs = _costs(counts, taken)
    drawn = _drawn(counts, taken, np.array([work.block for work in works]), blocks, seed)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    return Model(
        dict(zip(COSTS, costs.tolist(), strict=True)),
        {name: (float(low[place]), float(high[place])) for place, name in enumerate(COSTS)},
        dict(_deviations(works, counts @ costs)),
    )


def _check(counts: np.ndarray, taken: np.ndarray) -> None:
    """Unfit unless each of the counts was there, and they differ enough from each other."""
    for place, name in enumerate(COSTS.values()):
        if not counts[:, place].any():
            raise Unfit(f"found no {name.replace('_', ' ')} in these runs, expected some")
    condition = float(np.linalg.cond(_scaled(counts, taken)[0]))
    if condition > MOST_CONDITION:
        raise Unfit(
            f"packets, aggregates and bytes rise and fall together in these runs (condition number {condition:.0f}, "
            f"expected {MOST_CONDITION:.0f} at most): study three MTUs or more, with GRO on and off and TSO on and off"
        )


def _scaled(counts: np.ndarray, taken: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each run by the time that it took, and each column by its length."""
    rows = counts / taken[:, None]
    lengths = np.linalg.norm(rows, axis=0)
    lengths = np.where(lengths > 0, lengths, 1.0)
    return rows / lengths, lengths


def _costs(counts: np.ndarray, taken: np.ndarray) -> np.ndarray:
    from scipy.optimize import nnls

    rows, lengths = _scaled(counts, taken)
    return np.asarray(nnls(rows, np.ones(len(taken)))[0] / lengths)


def _drawn(counts: np.ndarray, taken: np.ndarray, of_run: np.ndarray, blocks: Sequence[int], seed: int) -> np.ndarray:
    """Costs by draw: of as many blocks, with replacement."""
    random = np.random.default_rng(seed)
    rows = {block: np.flatnonzero(of_run == block) for block in blocks}
    draws = []
    for _ in range(DRAWS):
        chosen = np.concatenate([rows[block] for block in random.choice(blocks, len(blocks))])
        draws.append(_costs(counts[chosen], taken[chosen]))
    return np.array(draws)


def _deviations(works: Sequence[Work], modelled: np.ndarray) -> Mapping[str, float]:
    arms: dict[str, list[int]] = {}
    for place, work in enumerate(works):
        arms.setdefault(work.arm, []).append(place)
    return {
        arm: float(np.median(modelled[places]) / np.median([works[place].seconds for place in places]) - 1)
        for arm, places in arms.items()
    }
