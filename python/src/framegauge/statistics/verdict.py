"""From an interval to a verdict against a margin, and what the reader should be warned of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from scipy import stats

from framegauge.statistics.ratio import Ratio, blocks_to_settle, estimate

__all__ = ["FEW_BLOCKS", "Verdict", "decide", "exclusions_differ", "warnings"]

FEW_BLOCKS = 5


class Verdict(StrEnum):
    """Every verdict there is. The last two say that there is no verdict, and why."""

    BETTER = "better"
    WORSE = "worse"
    NO_PRACTICAL_DIFFERENCE = "no practical difference"
    UNDECIDED = "undecided"
    SUSPECT = "suspect"  # exclusions differ between the arms, or the A/A control differs from its twin
    NOT_JUDGED = "not judged"  # no pair of runs was left


def decide(found: Ratio, margin: float, higher_is_better: bool) -> Verdict:
    """The verdict on an interval. The margin is symmetrical as a factor: 1/(1 + margin) … 1 + margin."""
    if found.low is None or found.high is None:
        return Verdict.UNDECIDED
    low_edge, high_edge = 1 / (1 + margin), 1 + margin
    if found.low > high_edge:
        return Verdict.BETTER if higher_is_better else Verdict.WORSE
    if found.high < low_edge:
        return Verdict.WORSE if higher_is_better else Verdict.BETTER
    if low_edge <= found.low and found.high <= high_edge:
        return Verdict.NO_PRACTICAL_DIFFERENCE
    return Verdict.UNDECIDED


def warnings(baseline: Sequence[float], treatment: Sequence[float], margin: float, higher_is_better: bool) -> list[str]:
    """What weakens the verdict on these pairs, one line each."""
    found = estimate(baseline, treatment)
    verdict = decide(found, margin, higher_is_better)
    lines = []
    if found.blocks < FEW_BLOCKS:
        lines.append(f"only {found.blocks} blocks: the interval leans on the assumption of normal log ratios")
    if found.log_deviation == 0:
        lines.append("the blocks do not vary at all: the interval has no width")
    if verdict is Verdict.UNDECIDED:
        needed = blocks_to_settle(found, margin)
        lines.append(
            f"undecided: about {needed - found.blocks} more blocks would settle it"
            if needed is not None
            else "undecided: the effect is too close to the margin, or too noisy, for more blocks to settle it"
        )
    # With one block less the interval widens anyway, so only a change between settled verdicts tells.
    elif found.blocks > FEW_BLOCKS:
        for block in range(found.blocks):
            rest = [value for index, value in enumerate(baseline) if index != block]
            other = [value for index, value in enumerate(treatment) if index != block]
            without = decide(estimate(rest, other), margin, higher_is_better)
            if without not in (verdict, Verdict.UNDECIDED):
                lines.append(f"one block decides: without it the verdict would be {without}")
                break
    if found.blocks >= 8:
        logs = [math.log(after / before) for before, after in zip(baseline, treatment, strict=True)]
        if len(set(logs)) > 2 and float(stats.spearmanr(range(len(logs)), logs).pvalue) < 0.01:
            lines.append("the ratio drifts from block to block: the blocks may not be independent")
    return lines


def exclusions_differ(first: tuple[int, int], second: tuple[int, int]) -> str | None:
    """Why the exclusions of two arms, each (excluded, attempted), differ by more than chance; or None.

    Runs that are lost more often in one arm than in the other are not lost at random, and a comparison
    of the rest would be biased. Fisher's exact test, p < 0.05; or more than a quarter against none,
    for which few runs would give the test no power.
    """
    if 0 in (first[1], second[1]):
        return None
    shares = sorted((first[0] / first[1], second[0] / second[1]))
    table = np.array([[excluded, attempted - excluded] for excluded, attempted in (first, second)])
    chance = float(stats.fisher_exact(table).pvalue)
    if (shares[0] == 0 and shares[1] > 0.25) or chance < 0.05:
        return (
            f"excluded {first[0]} of {first[1]} runs in one arm and {second[0]} of {second[1]} in the other "
            f"(p = {chance:.2g}): not lost at random"
        )
    return None
