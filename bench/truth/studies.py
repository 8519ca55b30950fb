"""Synthetic studies for bench/truth/calibration.py: run, stopped and judged as real ones are, and counted.

The order of the runs is the tool's own (`study.blocks`), and so are the judge, the rule of stopping and the looks. Only
looks that cannot end the study are left out, which saves most of the time: a comparison whose plain interval of 90 %
over all looks makes no claim makes none by the stricter interval of the judge. (`every_look=True` leaves none out; a
test shows that this changes nothing.)
"""

from __future__ import annotations

import math
import statistics
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from bench.truth.noises import Noise, Order, tool_order

from framegauge.metrics import METRICS
from framegauge.statistics import family
from framegauge.statistics.judge import Comparison, is_settled, judge
from framegauge.statistics.pairs import Row
from framegauge.statistics.ratio import ALPHA, Ratio, estimate, quantile
from framegauge.statistics.sequential import StoppingRule, looks
from framegauge.statistics.verdict import SETTLED, Verdict, decide

__all__ = ["Case", "Ended", "Figures", "by_earlier_rules", "ended", "run"]

ORDERS = 400  # seeds of a study's order, used in turn
JUST = 1e-9  # an effect as large as the margin is not within it, whatever its last digit


@dataclass(frozen=True)
class Case:
    """A noise and a plan. `effects`: the true log ratio of each cell, as a part of the margin. `stops`: by itself."""

    noise: Noise
    effects: Sequence[float]
    planned: int
    stops: bool = True
    control: bool = True

    @property
    def name(self) -> str:
        """For the seed and for people."""
        parts = [
            self.noise.name,
            f"{len(self.effects)} cells",
            f"{self.planned} blocks",
            f"effect {', '.join(f'{each:g}' for each in dict.fromkeys(self.effects))}",
        ]
        return "; ".join(
            [*parts, *(["all run"] if not self.stops else []), *(["no control"] if not self.control else [])]
        )


@dataclass(frozen=True)
class Ended:
    """A study at its end: the comparisons of its treatment, cell by cell."""

    blocks: int
    verdicts: Sequence[Verdict]
    alone: Sequence[Ratio]
    judged: Sequence[Ratio]


@dataclass(frozen=True)
class Figures:
    """Shares of studies in which any comparison is such; and of comparisons (`directed`, `none`, the two that cover).

    `false_direction`: better or worse where the effect is not beyond the margin on that side. `false_none`: no
    practical difference where the effect is as large as the margin, or larger. `directed`: better or worse, and not
    falsely. `covers` is about `Comparison.ratio`, `judged_covers` about `Comparison.judged`. `blocks` is a median.
    """

    studies: int
    false_direction: float
    false_none: float
    false_any: float
    suspect: float
    directed: float
    none: float
    covers: float
    judged_covers: float
    blocks: float


def _drawn(case: Case, random: np.random.Generator, number: int) -> tuple[Order, np.ndarray]:
    order = tool_order(len(case.effects), case.planned, case.control, number % ORDERS)
    return order, case.noise.values(random, order, np.asarray(case.effects) * case.noise.edge)


def _rows(case: Case, order: Order, logs: np.ndarray) -> list[Row]:
    """In the order in which they are run."""
    values, cells, arms = np.exp(logs), len(case.effects), len(order.names)
    levels = [1500 if role != "treatment" else 9000 for role in order.roles]
    found: list[Row] = []
    for number, flat in enumerate(order.place.ravel().argsort().tolist()):
        block, cell, arm = flat // (cells * arms), flat // arms % cells, flat % arms
        metrics = {case.noise.metric: float(values[block, cell, arm])}
        found.append(
            Row(
                block,
                cell,
                order.names[arm],
                order.roles[arm],
                levels[arm],
                "stream",
                {},
                metrics,
                False,
                number=number,
            )
        )
    return found


def _may_settle(ratios: np.ndarray, edge: float, rule: StoppingRule) -> bool:
    """Whether every comparison might make a claim: log ratios (blocks x cells) of the treatment to its reference."""
    blocks = len(ratios)
    critical = quantile(blocks - 1, rule.nominal(2 * ALPHA, blocks))
    centre, half = ratios.mean(axis=0), critical * ratios.std(axis=0, ddof=1) / math.sqrt(blocks)
    low, high = centre - half, centre + half
    return bool(((low > edge) | (high < -edge) | ((low >= -edge) & (high <= edge))).all())


def _comparisons(case: Case, order: Order, logs: np.ndarray, every_look: bool) -> list[Comparison]:
    margins, rule = {case.noise.metric: case.noise.margin}, StoppingRule(case.planned if case.stops else None)
    rows = _rows(case, order, logs)
    if not case.stops:
        return judge(rows, margins, rule, explain=False)
    per_block = order.place[0].size
    ratios = logs[:, :, -1] - logs[:, :, :-1].mean(axis=2)
    for blocks in looks(case.planned):
        is_last = blocks == case.planned
        if not is_last and not every_look and not _may_settle(ratios[:blocks], case.noise.edge, rule):
            continue
        found = judge(rows[: blocks * per_block], margins, rule, explain=False)
        if is_last or is_settled(found):
            return found
    raise AssertionError("the last look is the planned end")


def ended(case: Case, random: np.random.Generator, number: int, every_look: bool = False) -> Ended:
    """One study, judged by the tool."""
    found = [each for each in _comparisons(case, *_drawn(case, random, number), every_look) if each.role == "treatment"]
    alone = [each.ratio for each in found if each.ratio]
    judged = [each.judged for each in found if each.judged]
    return Ended(alone[0].blocks, [each.verdict for each in found], alone, judged)


def by_earlier_rules(case: Case, random: np.random.Generator, number: int) -> Ended:
    """The same study by the rules before version 2: the treatment against the baseline's run alone, and no least
    number of blocks for *no practical difference*. The control plays no part (normal noise never made it suspect).
    """
    _, logs = _drawn(case, random, number)
    rule = StoppingRule(case.planned if case.stops else None)
    metric = METRICS[case.noise.metric]
    base, treated = np.exp(logs[:, :, 0]), np.exp(logs[:, :, -1])

    def at(cell: int, blocks: int, alpha: float) -> Ratio:
        nominal = rule.nominal(alpha, blocks)
        return estimate(list(base[:blocks, cell]), list(treated[:blocks, cell]), nominal, metric.hull)

    def claims(cell: int, blocks: int, alpha: float) -> bool:
        return decide(at(cell, blocks, alpha), case.noise.margin, metric.higher_is_better) in SETTLED

    cells = range(len(case.effects))
    ratios = logs[:, :, -1] - logs[:, :, 0]
    for blocks in looks(case.planned) if case.stops else [case.planned]:
        if blocks < case.planned and not _may_settle(ratios[:blocks], case.noise.edge, rule):
            continue
        levels = family.levels([partial(claims, cell, blocks) for cell in cells], ALPHA)
        judged = [at(cell, blocks, level) for cell, level in zip(cells, levels, strict=True)]
        verdicts = [decide(each, case.noise.margin, metric.higher_is_better) for each in judged]
        if blocks == case.planned or all(each in SETTLED for each in verdicts):
            return Ended(blocks, verdicts, [at(cell, blocks, ALPHA) for cell in cells], judged)
    raise AssertionError("the last look is the planned end")


def _is_false_direction(case: Case, verdict: Verdict, effect: float) -> bool:
    higher = METRICS[case.noise.metric].higher_is_better
    if verdict is (Verdict.BETTER if higher else Verdict.WORSE):
        return effect <= 1 + JUST
    if verdict is (Verdict.WORSE if higher else Verdict.BETTER):
        return effect >= -1 - JUST
    return False


def _is_false_none(verdict: Verdict, effect: float) -> bool:
    return verdict is Verdict.NO_PRACTICAL_DIFFERENCE and abs(effect) >= 1 - JUST


def _holds(found: Ratio, truth: float) -> bool:
    return found.low is not None and found.high is not None and found.low <= truth <= found.high


def _studies(case: Case, studies: int, earlier: bool, seed: int) -> Iterator[Ended]:
    random = np.random.default_rng([zlib.crc32(case.name.encode()), seed])  # the same whatever is measured besides
    for number in range(studies):
        yield by_earlier_rules(case, random, number) if earlier else ended(case, random, number)


def run(case: Case, studies: int, earlier: bool = False, seed: int = 0) -> Figures:
    """So many studies of a case, by the rules as they are or, to compare, by the earlier ones."""
    false_direction = false_none = false_any = suspect = directed = none = covers = judged_covers = 0
    blocks = []
    for each in _studies(case, studies, earlier, seed):
        known = list(zip(each.verdicts, case.effects, strict=True))
        wrong = [_is_false_direction(case, *pair) for pair in known]
        wrong_none = [_is_false_none(*pair) for pair in known]
        false_direction += any(wrong)
        false_none += any(wrong_none)
        false_any += any(wrong + wrong_none)
        suspect += Verdict.SUSPECT in each.verdicts
        directed += sum(verdict in (Verdict.BETTER, Verdict.WORSE) for verdict in each.verdicts) - sum(wrong)
        none += each.verdicts.count(Verdict.NO_PRACTICAL_DIFFERENCE)
        truths = [math.exp(effect * case.noise.edge) for effect in case.effects]
        covers += sum(map(_holds, each.alone, truths))
        judged_covers += sum(map(_holds, each.judged, truths))
        blocks.append(each.blocks)
    all_of_them = studies * len(case.effects)
    return Figures(
        studies,
        false_direction / studies,
        false_none / studies,
        false_any / studies,
        suspect / studies,
        directed / all_of_them,
        none / all_of_them,
        covers / all_of_them,
        judged_covers / all_of_them,
        statistics.median(blocks),
    )
