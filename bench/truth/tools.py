"""What tools say of two sides of runs, for many pairs of sides at once: bench/truth/false_alarms.py.

Each takes the log values of the runs of both sides in the order in which they ran (studies x runs), and returns -1, 0
or 1: lower, nothing, or higher. Otava is its authors' own code, where it is installed; the others are as documented:

- benchstat (golang.org/x/perf): Mann and Whitney's U test at 5 %, exact without ties;
- hyperfine (scripts/welch_ttest.py): Welch's t test of the values at 5 %;
- a gate: the means differ by more than 5 %;
- framegauge compare: `statistics.sides` with a margin of almost nothing. A test compares the two.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import special, stats

from framegauge.statistics import doubts, unpaired
from framegauge.statistics.ratio import ALPHA

__all__ = ["TOOLS", "Tool", "otava_version"]

Tool = Callable[[np.ndarray, np.ndarray], np.ndarray]
GATE = 0.05


def _sign(base: np.ndarray, new: np.ndarray, where: np.ndarray) -> np.ndarray:
    return np.where(where, np.sign(new.mean(axis=1) - base.mean(axis=1)), 0).astype(int)


def benchstat(base: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Values that are equal make the exact distribution wrong, and the normal one is taken."""
    both = np.sort(np.concatenate([base, new], axis=1), axis=1)
    ties = (np.diff(both, axis=1) == 0).any(axis=1)
    chance = stats.mannwhitneyu(new, base, axis=1, method="exact").pvalue
    if ties.any():
        chance[ties] = stats.mannwhitneyu(new[ties], base[ties], axis=1, method="asymptotic").pvalue
    return np.where(chance < ALPHA, np.sign(np.median(new, axis=1) - np.median(base, axis=1)), 0).astype(int)


def hyperfine(base: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Of values, not of logarithms."""
    first, second = np.exp(base), np.exp(new)
    errors = [each.var(axis=1, ddof=1) / each.shape[1] for each in (first, second)]
    total = np.maximum(errors[0] + errors[1], np.finfo(float).tiny)
    degrees = total**2 / np.maximum(sum(e**2 / (first.shape[1] - 1) for e in errors), np.finfo(float).tiny)
    statistic = np.abs(second.mean(axis=1) - first.mean(axis=1)) / np.sqrt(total)
    return _sign(first, second, 2 * special.stdtr(degrees, -statistic) < ALPHA)


def gate(base: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Without any test."""
    first, second = np.exp(base), np.exp(new)
    return _sign(first, second, np.abs(second.mean(axis=1) / first.mean(axis=1) - 1) > GATE)


def compare(base: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Welch's t of logarithms, as `unpaired` has it, and nothing where runs are shown to depend on each other."""
    errors = [each.var(axis=1, ddof=1) / each.shape[1] * unpaired.remembering(each.shape[1]) for each in (base, new)]
    total = np.maximum(errors[0] + errors[1], np.finfo(float).tiny)
    degrees = total**2 / np.maximum(
        sum(e**2 / unpaired.degrees_of(each.shape[1]) for e, each in zip(errors, (base, new), strict=True)),
        np.finfo(float).tiny,
    )
    half = -special.stdtrit(degrees, ALPHA / 2) * np.sqrt(total)
    differs = np.abs(new.mean(axis=1) - base.mean(axis=1)) > half
    return _sign(base, new, differs & ~_depends(base) & ~_depends(new))


def _depends(logs: np.ndarray) -> np.ndarray:
    """`doubts.order`."""
    count = logs.shape[1]
    if count < doubts.SERIES_BLOCKS:
        return np.zeros(len(logs), bool)
    ranks = stats.rankdata(logs, axis=1)
    varied = np.array([len(set(each)) > 2 for each in logs])
    places = np.arange(count) - (count - 1) / 2
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    squares = np.maximum(np.square(centred).sum(axis=1), np.finfo(float).tiny)
    correlation = np.clip(centred @ places / np.sqrt(squares * np.square(places).sum()), -1, 1)
    with np.errstate(divide="ignore"):
        statistic = np.abs(correlation) * np.sqrt((count - 2) / (1 - correlation**2))
    drift = 2 * special.stdtr(count - 2, -statistic)
    ratio = np.square(np.diff(ranks, axis=1)).sum(axis=1) / squares
    deviation = np.sqrt(4 * (count - 2) * (5 * count**2 - 2 * count - 9) / (5 * count * (count + 1) * (count - 1) ** 2))
    return varied & ((drift < doubts.UNLIKELY) | (special.ndtr((ratio - 2) / deviation) < doubts.UNLIKELY))


def _otava() -> Any:
    try:
        return importlib.import_module("otava.analysis")
    except ImportError:
        return None


def otava_version() -> str | None:
    """The version that is installed; None if there is none."""
    if _otava() is None:
        return None
    try:
        return importlib.metadata.version("apache-otava")
    except importlib.metadata.PackageNotFoundError:
        return "of an unknown version"


def otava(base: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Any change point in the series of both sides; its defaults (a chance of 0.001). Where it fails it found none."""
    analysis = _otava()
    found = []
    for values in np.exp(np.concatenate([base, new], axis=1)):
        try:
            points = analysis.compute_change_points(values)[0] if analysis else []
        except ValueError:  # version 0.8.0, of a change point at the beginning of its window
            points = []
        found.append(np.sign(points[0].stats.mean_2 - points[0].stats.mean_1) if points else 0)
    return np.array(found, int)


TOOLS: Mapping[str, Tool] = {
    "compare": compare, "benchstat": benchstat, "hyperfine": hyperfine, "Otava": otava, "5 % gate": gate,
}  # fmt: skip
