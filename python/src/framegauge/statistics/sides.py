"""Verdicts on two sides whose runs were measured apart: before and after, two folders, two time windows.

Each comparison is unpaired (`unpaired`: Welch's t on logarithms; `ranks` where a value is 0), and all of them are one
family (`family`: Holm), so that together they make a false claim with a probability of 5 % at most. There is no verdict
where the runs of a side are shown to depend on each other. Values in, verdicts out; no files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from framegauge.metrics import METRICS
from framegauge.statistics import doubts, family, losses, ranks, robust, unpaired
from framegauge.statistics.exclusions import Counts
from framegauge.statistics.ratio import ALPHA, Ratio, blocks_to_settle
from framegauge.statistics.unpaired import SERIES, SHOWN
from framegauge.statistics.verdict import DIFFERENT, EQUAL, LEAST_FOR_EQUALITY, SETTLED, Verdict, decide

__all__ = ["Judged", "Sets", "judge"]


@dataclass(frozen=True)
class Sets:
    """One comparison: the values of a metric on both sides, in the order in which they were measured.

    `unit`: each value is of one "run", or of one "block". `doubt`: why there is no verdict, whatever the values are.
    `lost`: how many runs either side lost, of how many.
    """

    metric: str
    margin: float
    base: Sequence[float]
    new: Sequence[float]
    unit: str = "run"
    doubt: str | None = None
    lost: tuple[Counts, Counts] = ((0, 0), (0, 0))

    @property
    def higher_is_better(self) -> bool:
        """The metric's direction."""
        return METRICS[self.metric].higher_is_better

    @property
    def has_zeros(self) -> bool:
        """Whether a value is 0: then there is no ratio."""
        return any(value == 0 for value in (*self.base, *self.new))

    def at(self, alpha: float) -> Ratio | None:
        """The ratio with its interval at level `alpha`; None if a value is 0."""
        return None if self.has_zeros else self._estimate(alpha)

    @property
    def excess(self) -> float:
        """The share of its runs that one side lost beyond the share of the other."""
        return losses.excess(*self.lost)

    @property
    def new_lost_more(self) -> bool:
        """Whether it is NEW that lost the larger share."""
        (base, of_base), (new, of_new) = self.lost
        return new * of_base > base * of_new

    def _estimate(self, alpha: float, independent: bool = False, shown: int = SERIES) -> Ratio:
        """The ratio with an interval that allows for the runs that one side lost more of."""
        most = METRICS[self.metric].most
        ratio = unpaired.estimate(self.base, self.new, alpha, independent, shown, most)
        if not self.excess or ratio.low is None:
            return ratio
        lower, upper = losses.reach(np.log(self.new if self.new_lost_more else self.base), self.excess)
        return losses.widened(ratio, *((lower, upper) if self.new_lost_more else (upper, lower)))

    def verdict(self, alpha: float) -> Verdict:
        """The verdict at level `alpha`. Equality needs as many runs on each side as a study needs blocks: few runs show
        nothing of what happens in one of ten."""
        ratio = self.at(alpha)
        verdict = self._by_ranks(alpha) if ratio is None else decide(ratio, self.margin, self.higher_is_better)
        return Verdict.UNDECIDED if verdict in EQUAL and self.fewest < LEAST_FOR_EQUALITY else verdict

    def _by_ranks(self, alpha: float) -> Verdict:
        """The verdict where a value is 0: that of all runs, whatever those were that one side lost more of."""
        verdicts = {
            ranks.decide(base, new, self.margin, self.higher_is_better, alpha) for base, new in self._completed()
        }
        return verdicts.pop() if len(verdicts) == 1 else Verdict.UNDECIDED

    def _completed(self) -> Iterator[tuple[Sequence[float], Sequence[float]]]:
        """The values, and the same with the lost runs as low, and as high, as any of their side."""
        yield self.base, self.new
        side = self.new if self.new_lost_more else self.base
        count = round(self.excess / (1 - self.excess) * len(side))
        for value in (min(side), max(side)) if count else ():
            more = [*side, *([value] * count)]
            yield (self.base, more) if self.new_lost_more else (more, self.new)

    def if_independent(self, alpha: float) -> Ratio | None:
        """The ratio at level `alpha` where a difference shows only if the runs of a side are independent, and one side
        has too few to show that they are; else None."""
        if self.has_zeros or self.fewest >= SERIES or self.settled(alpha):
            return None
        ratio = self._estimate(alpha, independent=True)
        return ratio if decide(ratio, self.margin, self.higher_is_better) in DIFFERENT else None

    def takes_independence(self, alpha: float) -> bool:
        """Whether the verdict at level `alpha` is none of runs with a memory, which so many often do not show."""
        if self.fewest < SERIES or self.fewest >= SHOWN or not self.settled(alpha):
            return False
        if self.has_zeros:
            return True
        ratio = self._estimate(alpha, shown=SHOWN)
        return decide(ratio, self.margin, self.higher_is_better) is not self.verdict(alpha)

    @property
    def fewest(self) -> int:
        """The number of runs on the side that has less."""
        return min(len(self.base), len(self.new))

    def settled(self, alpha: float) -> bool:
        """Whether the values support a verdict at level `alpha`."""
        return self.verdict(alpha) in SETTLED


@dataclass(frozen=True)
class Judged:
    """The outcome of a comparison. `base` and `new` are geometric means, or plain means if a value is 0.

    `ratio` has the 95 % interval of this comparison alone; `judged` has the interval that decides the verdict. Both are
    None if a value is 0. `assumption`: that of the verdict, None if there is none.
    """

    base: float | None
    new: float | None
    ratio: Ratio | None
    judged: Ratio | None
    verdict: Verdict
    warnings: Sequence[str]
    assumption: str | None = None


def judge(compared: Sequence[Sets]) -> list[Judged]:
    """Every comparison with its verdict; values must be finite and at least 0."""
    judgeable = [index for index, sets in enumerate(compared) if _why_not(sets) is None]
    levels = family.levels([partial(compared[index].settled) for index in judgeable], ALPHA)
    nominal = dict(zip(judgeable, levels, strict=True))
    return [
        _judged(sets, nominal[index], len(judgeable)) if index in nominal else _nothing(sets)
        for index, sets in enumerate(compared)
    ]


def _why_not(sets: Sets) -> str | None:
    return None if sets.base and sets.new else "one side has no run that counts"


def _nothing(sets: Sets) -> Judged:
    means = [math.fsum(values) / len(values) if values else None for values in (sets.base, sets.new)]
    lines = [line for line in (_why_not(sets), sets.doubt) if line is not None]
    return Judged(means[0], means[1], None, None, Verdict.NOT_JUDGED, lines)


def _judged(sets: Sets, alpha: float, count: int) -> Judged:
    """The comparison at level `alpha`, which corrects for a family of `count` comparisons."""
    alone, judged, verdict = sets.at(ALPHA), sets.at(alpha), sets.verdict(alpha)
    lines = list(_warnings(sets, judged, verdict))
    if verdict is Verdict.UNDECIDED and (single := sets.verdict(ALPHA)) in SETTLED:
        lines.insert(0, doubts.on_its_own(single, count))
    reasons = [*([sets.doubt] if sets.doubt is not None else []), *_dependent(sets, count)]
    if (ratio := sets.if_independent(alpha)) is not None:
        reasons.append(_on_condition(ratio, sets))
    if not reasons and sets.takes_independence(alpha):
        lines.append(
            f"the verdict takes {sets.unit}s as independent: that successive ones depend on each other often shows "
            f"only with {SHOWN} on each side"
        )
    if reasons:
        verdict, lines = Verdict.SUSPECT, [*reasons, *lines]
    if judged is None:
        means = [math.fsum(values) / len(values) for values in (sets.base, sets.new)]
        return Judged(means[0], means[1], None, None, verdict, lines, ranks.ASSUMPTION)
    means = [math.exp(float(np.log(values).mean())) for values in (sets.base, sets.new)]
    return Judged(means[0], means[1], alone, judged, verdict, lines, judged.assumption)


def _dependent(sets: Sets, count: int) -> Iterator[str]:
    """Why the runs of a side are no independent samples: they drift, or resemble their neighbours. Of `count`
    comparisons with independent runs one is called so with 4 % at most: two sides, two tests."""
    for name, values in (("BASE", sets.base), ("NEW", sets.new)):
        yield from doubts.order(np.asarray(values, dtype=float), name, sets.unit, count)


def _on_condition(ratio: Ratio, sets: Sets) -> str:
    """What would be claimed of independent runs."""
    assert ratio.low is not None
    assert ratio.high is not None
    verdict = decide(ratio, sets.margin, sets.higher_is_better)
    return (
        f"{verdict} if {sets.unit}s are independent ({ratio.low:.3f} to {ratio.high:.3f} times BASE); "
        f"{doubts.counted(sets.fewest, sets.unit)} on a side are too few to show that: measure {SERIES} or more on "
        f"each side"
    )


def _warnings(sets: Sets, judged: Ratio | None, verdict: Verdict) -> Iterator[str]:
    """What weakens the verdict, one line for each reason."""
    fewest = sets.fewest
    few = f"only {doubts.counted(fewest, sets.unit)} on one side"
    has_interval = (
        judged is not None and judged.low is not None
    )  # a single run has no interval, which nothing can weaken
    if judged is None:
        zeros = sum(value == 0 for value in (*sets.base, *sets.new))
        yield f"{zeros} of {len(sets.base) + len(sets.new)} values are 0: compared by ranks, and the means are shown"
    elif has_interval and fewest < doubts.FEW_BLOCKS:
        yield f"{few}: the interval relies on the assumption of normal logarithms"
    elif has_interval and METRICS[sets.metric].hull is not None:
        yield "the values of this metric are skewed even as logarithms: the interval is approximate"
    if fewest < LEAST_FOR_EQUALITY and verdict is Verdict.UNDECIDED:
        yield f"{few}: no practical difference needs {LEAST_FOR_EQUALITY}"
    if fewest < doubts.SERIES_BLOCKS and (has_interval or judged is None):
        wide = f"the interval allows for {sets.unit}s that do" if judged is not None else "which would make it wrong"
        yield f"{few}: too few to show whether successive {sets.unit}s depend on each other: {wide}"
    if sets.excess:
        yield losses.said("BASE and NEW", *sets.lost, sets.unit)
    if judged is not None:
        yield from doubts.unusable(judged, sets.unit)
    if judged is not None and judged.log_deviation == 0:
        yield f"the {sets.unit}s do not vary at all: the interval has no width"
    if judged is not None and verdict is Verdict.UNDECIDED:
        yield _to_settle(judged, sets)
    for name, values in (("BASE", sets.base), ("NEW", sets.new)):
        if judged is None or len(values) < doubts.FEW_BLOCKS:
            continue
        if far := robust.outliers(np.log(np.asarray(values, dtype=float))):
            are = "is an outlier" if len(far) == 1 else "are outliers"
            yield f"{len(far)} of {len(values)} {sets.unit}s of {name} {are}, and kept"


def _to_settle(judged: Ratio, sets: Sets) -> str:
    if judged.log_deviation is None:
        return f"undecided: a single {sets.unit} shows no spread; more of them on each side would"
    needed = blocks_to_settle(judged, sets.margin)
    if needed is None:
        return f"undecided: the difference is too close to the margin, or too noisy, for more {sets.unit}s to settle it"
    # From so many on they show whether they depend on each other, and the interval need not allow for it.
    more = doubts.counted(max(needed, SERIES) - judged.blocks, f"more {sets.unit}")
    return f"undecided: about {more} on each side would settle it, if effect and spread are as measured"
