"""How many events count as one: the variance of counts over that of Poisson's, of hosts around a switch.

Events come in bursts, so their variance is larger than their mean (the dispersion of quasi-Poisson models; McCullagh &
Nelder 1989, Generalized Linear Models, 9.2). It is the largest of that from times within hosts, from times of each side
as a whole, and from hosts where these differ more than by chance.

    each by itself   /\\/\\/\\  and  /\\/\\/\\   both vary much
    the contrast     ------                  and what is compared does not

What both sides do at the same times, such as a cycle of the load that all hosts share, makes each of them vary and
cancels in what is compared. So the variance of the contrast lacks twice their covariance, and each side's share of it
lacks what the covariance explains. That is only taken off where the sides rise and fall together at all times, by their
ranks (Spearman 1904, Am. J. Psychol. 15:72) and by more than chance: two bursts in the same minute are no cycle. The
contrast has a dispersion of its own, that of a quasi-binomial share of the switched hosts in all events of each time;
it counts where a cycle is larger on one side than on the other.

What remembers for longer than a bin makes totals vary by more than bins do: the excess grows with the time that is
added up as the memory of the contrast says (`memory`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from framegauge.statistics import memory
from framegauge.statistics.memory import Memory
from framegauge.statistics.ratio import quantile
from framegauge.statistics.switched import LEAST_HOSTS, Host

__all__ = ["BINS", "Dispersion", "estimate"]

BINS = 12  # of each side of the switch: long, so that bursts lie inside
CHANCE = 0.01
TIMES = ("before", "after")


@dataclass(frozen=True)
class Dispersion:
    """How many events count as one, 1 at least: in the totals of a side by itself, and where both sides are compared at
    the same times."""

    alone: float
    compared: float


def estimate(hosts: Sequence[Host], alpha: float) -> Dispersion:
    """The dispersion of events per step; above 1 larger by what its own uncertainty asks."""
    series = {
        (side, name): [_binned(getattr(host, name)) for host in hosts if host.switched is side]
        for side in (True, False)
        for name in TIMES
    }
    sums = {key: np.sum(bins, axis=0) for key, bins in series.items()}
    alone = _largest(series, sums, dict.fromkeys(TIMES, 0.0))
    shared = {name: _shared(sums[True, name], sums[False, name]) for name in TIMES}
    compared = alone
    if _rise_and_fall_together(sums):
        compared = min(alone, max(_largest(series, sums, shared), _of_contrast(sums)))
    growth = _growth(hosts)
    factor = (quantile(len(sums) * (BINS - 1), alpha) / -float(special.ndtri(alpha / 2))) ** 2
    values = []
    for bins in (alone, compared):
        totals = 1 + growth * (bins - 1)
        largest = max(totals, _of_hosts(hosts, totals))
        values.append(largest if largest == 1 else largest * factor)
    return Dispersion(*values)


def _growth(hosts: Sequence[Host]) -> float:
    """How many times as large the relative excess of all steps together is as that of one bin."""
    stretches = []
    for name in TIMES:
        first, second = (
            np.sum([np.nan_to_num(getattr(host, name)) for host in hosts if host.switched is side], axis=0)
            for side in (True, False)
        )
        stretches.append(first / (first.mean() or 1.0) - second / (second.mean() or 1.0))
    steps = memory.fit(stretches).longest.steps
    if not steps:
        return 1.0
    slow, count = Memory(steps, 1.0), max(map(len, stretches))
    size = max(1, count // BINS)
    return count * slow.variance_of_mean(count) / (size * slow.variance_of_mean(size))


_Key = tuple[bool, str]  # whether they were switched, and when


def _largest(
    series: dict[_Key, list[np.ndarray]],
    sums: dict[_Key, np.ndarray],
    shared: dict[str, float],
) -> float:
    within = _excess([(bins, shared[name]) for (_, name), several in series.items() for bins in several])
    sides = _excess([(bins, shared[name]) for (_, name), bins in sums.items()])
    return max(1.0, within, sides)


def _binned(values: np.ndarray) -> np.ndarray:
    """Counts in BINS stretches; one that was seen in part as if it had gone on alike, one not seen at all as the usual
    one. With fewer steps, as many bins."""
    begins = np.arange(min(BINS, len(values))) * len(values) // min(BINS, len(values))
    mask = np.isfinite(values)
    counts, steps = (np.add.reduceat(series, begins) for series in (np.where(mask, values, 0.0), mask.astype(float)))
    lengths = np.diff(np.append(begins, len(values)))
    usual = counts.sum() / max(1.0, steps.sum())
    binned: np.ndarray = np.where(steps > 0, counts / np.maximum(steps, 1.0), usual) * lengths
    return binned


def _excess(series: Sequence[tuple[np.ndarray, float]]) -> float:
    """The variance of the bins over their mean, without the relative variance that is shared; what has most events
    weighs most."""
    total = sum(float(bins.sum()) for bins, _ in series)
    squares = (
        len(bins) * max(0.0, float(bins.var(ddof=1)) - shared * float(bins.mean()) ** 2) for bins, shared in series
    )
    return sum(squares) / total if total else 1.0


def _shared(first: np.ndarray, second: np.ndarray) -> float:
    """The variance that two series have in common, in units of their means; 0 if they have none."""
    scale = float(first.mean() * second.mean())
    return max(0.0, float(np.cov(first, second)[0, 1]) / scale) if scale else 0.0


def _rise_and_fall_together(sums: dict[_Key, np.ndarray]) -> bool:
    """Whether the ranks of both sides are correlated, before and after together, by more than chance."""
    correlation = variance = 0.0
    for name in TIMES:
        first, second = (_ranks(sums[side, name]) for side in (True, False))
        scale = math.sqrt(float(np.square(first).sum() * np.square(second).sum()))
        correlation += float(first @ second) / scale if scale else 0.0
        variance += 1 / max(1, len(first) - 1)
    return correlation > -float(special.ndtri(CHANCE)) * math.sqrt(variance)


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks, the mean one for equal values, less their mean."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles = np.cumsum(counts) - (counts - 1) / 2
    centred: np.ndarray = middles[places] - (len(values) + 1) / 2
    return centred


def _of_contrast(sums: dict[_Key, np.ndarray]) -> float:
    """The variance of the difference of both sides, each in units of its mean, over that of Poisson's; infinite where a
    side had no events."""
    variance = poisson = 0.0
    for name in TIMES:
        first, second = sums[True, name], sums[False, name]
        if not first.any() or not second.any():
            return math.inf
        variance += float((first / first.mean() - second / second.mean()).var(ddof=1))
        poisson += 1 / float(first.mean()) + 1 / float(second.mean())
    return variance / poisson


def _of_hosts(hosts: Sequence[Host], dispersion: float) -> float:
    """The dispersion of what the switch did over the hosts of a side, if that is more than chance and that of times;
    else 1."""
    squares, degrees = 0.0, 0
    for side in (True, False):
        table = np.array([
            [float(np.nansum(host.before)), float(np.nansum(host.after))] for host in hosts if host.switched is side
        ])  # fmt: skip
        table = table[table.sum(axis=1) > 0]
        if len(table) < LEAST_HOSTS or (table.sum(axis=0) == 0).any():
            continue
        expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
        squares += float((np.square(table - expected) / expected).sum())
        degrees += len(table) - 1
    if degrees == 0 or special.chdtrc(degrees, squares / dispersion) > CHANCE:
        return 1.0
    return squares / degrees
