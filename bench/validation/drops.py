"""Runs of drops, compared: how many frames in a row one input of a port loses.

The statistic is that of Kolmogorov and Smirnov: the largest difference between two distributions of lengths, here of
all runs that count together. Its p value would take each run of drops for independent of the others, which those of one
simulation are not; so it is given beside what the same statistic is between two runs of the same kernels.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from scipy import stats

HEAD = (
    "| where | kernel: runs, mean, 90 %, longest | simulated | D, p | with delays | D, p | D of two kernel runs |",
    "| --- | --- | --- | --- | --- | --- | --- |",
)
Lengths = np.ndarray
ByRun = Mapping[tuple[str, ...], Sequence[Lengths]]


def lengths(file: Path) -> Lengths:
    """The lengths of a run's runs of drops, one each: shape (runs,), in frames."""
    drops = pl.read_parquet(file).filter(pl.col("action") == "dropped")
    following = pl.col("run_length").shift(-1).over("port", "input_port").fill_null(1)
    return drops.filter(following <= pl.col("run_length"))["run_length"].to_numpy()


@dataclass(frozen=True)
class Row:
    """One cell and arm of a study."""

    where: str
    kernel: Sequence[Lengths]
    others: Sequence[Sequence[Lengths]]

    def text(self) -> str:
        """A row of the table."""
        measured = np.concatenate(self.kernel)
        beside = [f"{_described(each)} | {_compared(measured, np.concatenate(each))}" for each in self.others]
        own = [stats.ks_2samp(*pair).statistic for pair in itertools.combinations(self.kernel, 2)]
        noise = f"{statistics.median(own):.3f} (up to {max(own):.3f})" if own else "one run"
        return f"| {self.where} | {_described(self.kernel)} | {' | '.join(beside)} | {noise} |"


def rows(kernel: ByRun, *others: ByRun) -> list[Row]:
    """What lost frames in all of them."""
    found = []
    for cell, runs in sorted(kernel.items()):
        beside = [[each for each in other.get(cell, []) if len(each)] for other in others]
        measured = [each for each in runs if len(each)]
        if measured and all(beside):
            found.append(Row(", ".join(cell), measured, beside))
    return found


def _described(runs: Sequence[Lengths]) -> str:
    together = np.concatenate(runs)
    count = len(together) / len(runs)
    return f"{count:.0f}, {together.mean():.2f}, {np.quantile(together, 0.9):.0f}, {together.max()}"


def _compared(one: Lengths, other: Lengths) -> str:
    found = stats.ks_2samp(one, other)
    return f"{found.statistic:.3f}, {found.pvalue:.2g}"
