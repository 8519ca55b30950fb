"""What weakens a verdict, one line for each reason. Such verdicts and blocks are kept; the lines are for the reader."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy import special

from framegauge.metrics import SMALL, Metric
from framegauge.statistics import leave_one_out, robust
from framegauge.statistics.assurance import ASSURANCE, more_blocks
from framegauge.statistics.cycles import Cycle
from framegauge.statistics.ratio import Ratio, blocks_to_use, estimate, is_usable, log_ratios
from framegauge.statistics.verdict import EQUAL, SETTLED, Verdict, decide, edges
from framegauge.statistics.worst_case import Bound

__all__ = [
    "FEW_BLOCKS", "SERIES_BLOCKS", "UNLIKELY", "counted", "on_its_own", "order", "periodic", "unusable", "warnings",
    "worst_case",
]  # fmt: skip

FEW_BLOCKS = 5
SERIES_BLOCKS = 8  # fewer blocks, or runs of a side (`unpaired.SERIES`), cannot show an effect of their order
UNLIKELY = 0.01


def counted(count: int, noun: str) -> str:
    """A count with its noun: "1 block", "3 blocks"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def on_its_own(verdict: Verdict, comparisons: int) -> str:
    """The warning on an undecided comparison that would have this verdict if it were the only one of the study."""
    claim = "inside the margin" if verdict is Verdict.NO_PRACTICAL_DIFFERENCE else str(verdict)
    return f"{claim} on its own, but not after correcting for {comparisons} comparisons"


def warnings(
    baseline: Sequence[float],
    treatment: Sequence[float],
    judged: Ratio,
    margin: float,
    metric: Metric,
    least: int = 0,
    not_worse: bool = False,
    of_some: Callable[[Sequence[float], Sequence[float], float], Ratio] = estimate,
    trials: leave_one_out.Trials = leave_one_out.of_means,
) -> list[str]:
    """What weakens the verdict on these pairs; `judged` is their ratio at the level of the verdict, `least` the number
    of blocks that "no practical difference" needs, `not_worse` what is asked, `of_some` estimates the ratio of other
    pairs at a level, `trials` names the blocks that are left out for it."""
    logs = log_ratios(baseline, treatment)
    verdict = decide(judged, margin, metric.higher_is_better, not_worse)
    lines = []
    if judged.blocks < FEW_BLOCKS and judged.low is not None:
        blocks = counted(judged.blocks, "block")
        lines.append(f"only {blocks}: the interval relies on the assumption of normal log ratios")
    lines += [*unusable(judged), *_too_few(judged)]
    if judged.log_deviation == 0:
        lines.append("the blocks do not vary at all: the interval has no width")
    if verdict in EQUAL and judged.blocks < least:
        lines.append(f"undecided: {verdict} needs {least} blocks, since fewer show too little of what happens seldom")
        lines.append(_to_settle(judged, margin, metric, least, not_worse))
    elif verdict is Verdict.UNDECIDED:
        lines.append(_to_settle(judged, margin, metric, least, not_worse))
    # Fewer blocks widen the interval anyway, so only a change from one settled verdict to another is worth a warning.
    elif judged.blocks > FEW_BLOCKS:
        for block in trials(logs, judged.alpha, edges(margin)):
            rest = [value for index, value in enumerate(baseline) if index != block]
            other = [value for index, value in enumerate(treatment) if index != block]
            ratio = of_some(rest, other, judged.alpha)
            without = decide(ratio, margin, metric.higher_is_better, not_worse)
            if without not in (verdict, Verdict.UNDECIDED):
                lines.append(f"the verdict depends on one block: without it, it would be {without}")
                break
    return [*lines, *_outliers(logs, judged, margin), *order(logs)]


def _too_few(judged: Ratio) -> Iterator[str]:
    """Why a median of differences has no interval yet: the signs of so few blocks have no combination that rare."""
    if judged.low is None and judged.blocks > 1:
        enough = math.ceil(1 - math.log2(judged.alpha))
        yield f"no interval from {judged.blocks} blocks: the median of differences needs {enough} for this level"


def unusable(judged: Ratio, unit: str = "block") -> Iterator[str]:
    """Why an interval is not shown, and how many more blocks would give one; nothing if it is shown, or there is none,
    for which there are other reasons."""
    if judged.low is None or judged.high is None or is_usable(judged.low, judged.high):
        return
    enough = blocks_to_use(judged)
    more = f"; about {counted(enough - judged.blocks, f'more {unit}')} would give one" if enough else ""
    yield f"no usable interval from {counted(judged.blocks, unit)}, which differ too much{more}"


def worst_case(
    found: Bound, whole: Ratio, verdict: Verdict, margin: float, metric: Metric, not_worse: bool
) -> Iterator[str]:
    """The warning that a verdict hangs on the excluded runs: at worst the interval of those that count (`whole`) would
    not lie where it claims."""
    if verdict not in SETTLED or whole.low is None or whole.high is None:
        return
    low, high = whole.low * found.low / whole.ratio, whole.high * found.high / whole.ratio
    at_worst = decide(Ratio(whole.ratio, low, high, 2, 0.0), margin, metric.higher_is_better, not_worse)
    if at_worst is not verdict:
        lost = counted(sum(found.lost), "excluded run")
        could = f"{found.low:.4f} to {found.high:.4f}" if is_usable(found.low, found.high) else "anything"
        yield (
            f"had the {lost} been as low or as high as any of their arm, the ratio could be {could}: the verdict "
            "supposes that they were lost at random"
        )


def _to_settle(judged: Ratio, margin: float, metric: Metric, least: int, not_worse: bool) -> str:
    if judged.log_deviation is None:
        return "undecided: a single block shows no spread; more of them would"
    bad_edge = (-1 if metric.higher_is_better else 1) if not_worse else None
    more = more_blocks(judged, margin, bad_edge=bad_edge, least=least)
    if more is None:
        return "undecided: the effect is too close to the margin, or too noisy, for more blocks to settle it"
    return f"undecided: about {counted(more, 'more block')} would settle it, with {100 * ASSURANCE:.0f} % assurance"


def _outliers(logs: np.ndarray, judged: Ratio, margin: float) -> Iterator[str]:
    """A line if blocks far from the others move the ratio by what is not small beside the margin."""
    # With fewer blocks the median deviation is so uncertain that ordinary blocks would often look like outliers.
    far = robust.outliers(logs) if len(logs) >= SERIES_BLOCKS else []
    if not far:
        return
    centre = math.exp(robust.middle(logs).centre)
    if abs(math.log(judged.ratio / centre)) <= SMALL * margin:
        return
    yield (
        f"{len(far)} of {len(logs)} blocks {'is an outlier' if len(far) == 1 else 'are outliers'}, and kept: the ratio "
        f"of all blocks is {judged.ratio:.4f}, the median over pairs of blocks {centre:.4f}"
    )


def order(logs: np.ndarray, what: str = "the ratio", unit: str = "block", comparisons: int = 1) -> Iterator[str]:
    """Warnings that successive blocks (or runs) may not be independent: there is a trend, or neighbours are alike.

    Of so many `comparisons` with independent runs, one has a warning with the probability that a single one has.
    """
    if len(logs) < SERIES_BLOCKS or len(set(logs)) <= 2:
        return
    if _drift(logs) < UNLIKELY / comparisons:
        yield f"{what} drifts from {unit} to {unit}: the {unit}s may not be independent"
    elif _alike(logs) < UNLIKELY / comparisons:
        whose = "" if what == "the ratio" else f" of {what}"
        dependent = f"the {unit}s may not be independent, and the interval may be too narrow"
        yield f"neighbouring {unit}s{whose} are alike: {dependent}"


def periodic(found: Cycle | None, metrics: int) -> list[str]:
    """The warning that a metric, one of so many, varies with a period."""
    if found is None or found.chance >= UNLIKELY / metrics:
        return []
    return [
        f"runs vary with a period of about {found.period:.3g} runs: something acts at regular times, and may look like "
        "an effect"
    ]


# scipy.stats has these two, and takes half a second to import, which every verb that judges would wait for.
def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def _drift(logs: np.ndarray) -> float:
    """The chance that independent blocks drift this much: Spearman's rank correlation with their order, two-sided
    (Student's t approximation; Kendall & Stuart 1973, section 31.19)."""
    correlation = float(np.corrcoef(np.arange(len(logs)), _ranks(logs))[0, 1])
    degrees = len(logs) - 2
    if abs(correlation) >= 1:
        return 0.0
    return 2 * float(special.stdtr(degrees, -abs(correlation) * math.sqrt(degrees / (1 - correlation**2))))


def _alike(logs: np.ndarray) -> float:
    """The chance that neighbours of independent blocks are this alike: rank von Neumann ratio (Bartels 1982)."""
    ranks = _ranks(logs)
    count = len(ranks)
    ratio = float(np.square(np.diff(ranks)).sum() / np.square(ranks - ranks.mean()).sum())
    deviation = math.sqrt(
        4 * (count - 2) * (5 * count**2 - 2 * count - 9) / (5 * count * (count + 1) * (count - 1) ** 2)
    )
    return float(special.ndtr((ratio - 2) / deviation))
