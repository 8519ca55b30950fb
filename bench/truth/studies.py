"""Synthetic studies for bench/truth/calibration.py: run, stopped and judged as real ones are, and counted.

The order of the runs is the tool's own (`study.blocks`). The rules are those of bench/truth/rule.py, which judges all
studies of a case at once; `ended` has the tool's own judge do it, to which a test compares them.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from bench.truth import rule
from bench.truth.noises import Noise, Order, tool_order

from framegauge.statistics import medians
from framegauge.statistics.judge import is_settled, judge
from framegauge.statistics.pairs import Row
from framegauge.statistics.ratio import Ratio
from framegauge.statistics.sequential import StoppingRule, looks
from framegauge.statistics.verdict import Verdict

__all__ = ["Case", "Ended", "Figures", "drawn", "ended", "plan_of", "run"]

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
    median: bool = False

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
            [
                *parts,
                *(["all run"] if not self.stops else []),
                *(["no control"] if not self.control else []),
                *(["median"] if self.median else []),
            ]
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


def ended(case: Case, logs: np.ndarray, order: Order) -> Ended:
    """One study of these log values (blocks x cells x arms), judged by the tool after each look."""
    margins, stopping = {case.noise.metric: case.noise.margin}, StoppingRule(case.planned if case.stops else None)
    rows, per_block = _rows(case, order, logs), order.place[0].size
    for blocks in looks(case.planned) if case.stops else [case.planned]:
        estimators = {case.noise.metric: medians.MEDIAN} if case.median else {}
        compared = judge(rows[: blocks * per_block], margins, stopping, explain=False, estimators=estimators)
        if blocks == case.planned or is_settled(compared):
            found = [each for each in compared if each.role == "treatment"]
            return Ended(
                blocks,
                [each.verdict for each in found],
                [each.ratio for each in found if each.ratio],
                [each.judged for each in found if each.judged],
            )
    raise AssertionError("the last look is the planned end")


def drawn(case: Case, random: np.random.Generator, number: int) -> tuple[Order, np.ndarray]:
    """The order of the runs of one study, and their log values."""
    order = tool_order(len(case.effects), case.planned, case.control, number % ORDERS)
    return order, case.noise.values(random, order, np.asarray(case.effects) * case.noise.edge)


def plan_of(case: Case, earlier: bool = False) -> rule.Plan:
    """The case as `rule` takes it."""
    return rule.Plan(case.noise.metric, case.noise.edge, case.planned, case.stops, case.control, earlier, case.median)


def run(case: Case, studies: int, earlier: bool = False, seed: int = 0) -> Figures:
    """So many studies of a case, by the rules as they are or, to compare, by the earlier ones."""
    random = np.random.default_rng([zlib.crc32(case.name.encode()), seed])  # the same whatever is measured besides
    logs = np.stack([drawn(case, random, number)[1] for number in range(studies)])
    found = rule.end(logs, plan_of(case, earlier))
    effects = np.asarray(case.effects)
    higher, lower = found.verdicts == rule.HIGHER, found.verdicts == rule.LOWER
    wrong = (higher & (effects <= 1 + JUST)) | (lower & (effects >= -1 - JUST))
    is_none = found.verdicts == rule.NONE
    wrong_none = is_none & (np.abs(effects) >= 1 - JUST)
    truth = effects * case.noise.edge

    def share(of: np.ndarray) -> float:
        return float(of.mean())

    return Figures(
        studies=studies,
        false_direction=share(wrong.any(axis=1)),
        false_none=share(wrong_none.any(axis=1)),
        false_any=share((wrong | wrong_none).any(axis=1)),
        suspect=share((found.verdicts == rule.SUSPECT).any(axis=1)),
        directed=share((higher | lower) & ~wrong),
        none=share(is_none),
        covers=share((found.low <= truth) & (truth <= found.high)),
        judged_covers=share((found.judged_low <= truth) & (truth <= found.judged_high)),
        blocks=float(np.median(found.blocks)),
    )
