"""What weakens a verdict, a line each. Nothing is dropped because of it: the reader is told."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy import stats

from framegauge.statistics import bootstrap, robust
from framegauge.statistics.ratio import Ratio, blocks_to_settle, estimate, log_ratios
from framegauge.statistics.verdict import Verdict, decide

__all__ = ["FEW_BLOCKS", "order", "warnings"]

FEW_BLOCKS = 5
SERIES_BLOCKS = 8  # fewer tell nothing of order
UNLIKELY = 0.01


def warnings(
    baseline: Sequence[float],
    treatment: Sequence[float],
    judged: Ratio,
    margin: float,
    higher_is_better: bool,
    skewed: bool = False,
) -> list[str]:
    """What weakens the verdict on these pairs; `judged` is their ratio at the level of the verdict."""
    logs = log_ratios(baseline, treatment)
    verdict = decide(judged, margin, higher_is_better)
    lines = []
    if judged.blocks < FEW_BLOCKS:
        lines.append(f"only {judged.blocks} blocks: the interval leans on the assumption of normal log ratios")
    elif skewed and not bootstrap.can(judged.blocks, judged.alpha):
        lines.append(f"{judged.blocks} blocks are too few for the bootstrap that this skewed metric wants: paired t")
    if judged.log_deviation == 0:
        lines.append("the blocks do not vary at all: the interval has no width")
    if verdict is Verdict.UNDECIDED:
        lines.append(_to_settle(judged, margin))
    # With one block less the interval widens anyway, so only a change between settled verdicts tells.
    elif judged.blocks > FEW_BLOCKS:
        for block in range(judged.blocks):
            rest = [value for index, value in enumerate(baseline) if index != block]
            other = [value for index, value in enumerate(treatment) if index != block]
            without = decide(estimate(rest, other, judged.alpha), margin, higher_is_better)
            if without not in (verdict, Verdict.UNDECIDED):
                lines.append(f"one block decides: without it the verdict would be {without}")
                break
    return [*lines, *_outliers(logs, judged), *order(logs)]


def _to_settle(judged: Ratio, margin: float) -> str:
    needed = blocks_to_settle(judged, margin)
    if needed is None:
        return "undecided: the effect is too close to the margin, or too noisy, for more blocks to settle it"
    return f"undecided: about {needed - judged.blocks} more blocks would settle it"


def _outliers(logs: np.ndarray, judged: Ratio) -> Iterator[str]:
    # Of fewer blocks the median deviation is so uncertain that normal ones would often seem far out.
    far = robust.outliers(logs) if len(logs) >= SERIES_BLOCKS else []
    if not far:
        return
    centre = math.exp(robust.middle(logs).centre)
    yield (
        f"{len(far)} of {len(logs)} blocks {'lies' if len(far) == 1 else 'lie'} far out; kept: with all blocks the "
        f"ratio is {judged.ratio:.4f}, the median of pairs of blocks {centre:.4f}"
    )


def order(logs: np.ndarray, what: str = "the ratio", unit: str = "block") -> Iterator[str]:
    """Blocks (or runs) that follow one another are not independent: a trend, or each like the one before."""
    if len(logs) < SERIES_BLOCKS or len(set(logs)) <= 2:
        return
    if float(stats.spearmanr(range(len(logs)), logs).pvalue) < UNLIKELY:
        yield f"{what} drifts from {unit} to {unit}: the {unit}s may not be independent"
    elif _alike(logs) < UNLIKELY:
        whose = "" if what == "the ratio" else f" of {what}"
        dependent = f"the {unit}s may not be independent, and the interval too narrow"
        yield f"each {unit}{whose} resembles the one before: {dependent}"


def _alike(logs: np.ndarray) -> float:
    """Chance of neighbours this alike in independent blocks: rank von Neumann ratio (Bartels 1982), one-sided."""
    ranks = stats.rankdata(logs)
    count = len(ranks)
    ratio = float(np.square(np.diff(ranks)).sum() / np.square(ranks - ranks.mean()).sum())
    deviation = math.sqrt(
        4 * (count - 2) * (5 * count**2 - 2 * count - 9) / (5 * count * (count + 1) * (count - 1) ** 2)
    )
    return float(stats.norm.cdf((ratio - 2) / deviation))
