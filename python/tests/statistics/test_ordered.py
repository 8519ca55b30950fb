"""The smallest sufficient level, against truths that are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import special

from framegauge.statistics.judge import judge
from framegauge.statistics.ordered import Enough, Smallest, smallest
from framegauge.statistics.pairs import Row
from framegauge.statistics.sequential import StoppingRule, looks

LEVELS = (1500, 4200, 9000)
SPREAD = 0.01
MARGIN = {"goodput": 0.02}


def rows(logs: np.ndarray, levels: Sequence[int] = LEVELS, cell: int = 0, metric: str = "goodput") -> Iterator[Row]:
    """Log values, blocks x levels, the baseline first."""
    for block, values in enumerate(logs):
        for level, value in zip(levels, values, strict=True):
            role = "baseline" if level == levels[0] else "treatment"
            yield Row(
                block, cell, role if role == "baseline" else str(level), role, level, "stream", {"rtt_seconds": cell},
                {metric: float(np.exp(value))}, False,
            )  # fmt: skip


def stopped(random: np.random.Generator, effects: Sequence[float], planned: int = 12) -> Smallest:
    """A study that looks after every block and stops once the question is settled."""
    every = list(rows(random.normal(effects, SPREAD, (planned, len(effects)))))
    rule, width = StoppingRule(planned), len(effects)
    for blocks in looks(planned):
        (found,) = smallest(every[: blocks * width], MARGIN, rule)
        if found.is_settled:
            break
    return found


# Log effects of the levels, and the smallest that is within the margin of the largest.
TRUTHS = {
    "reached at 4200": ((0.0, 0.05, 0.05), 4200),
    "at 9000 only": ((0.0, 0.0, 0.05), 9000),
    "never": ((0.0, 0.0, 0.0), 1500),
}


@pytest.mark.parametrize("truth", TRUTHS)
def test_finds_the_smallest_sufficient_level(truth: str) -> None:
    effects, level = TRUTHS[truth]
    random, seeds = np.random.default_rng(1), 1000
    right = sum(stopped(random, effects).level == level for _ in range(seeds))
    assert right >= 0.95 * seeds


def test_errs_at_the_margin_in_5_percent_at_most() -> None:
    """4200 lacks the gain of 9000 by exactly the margin: it must not be called enough."""
    edge = float(np.log1p(MARGIN["goodput"]))
    random, seeds = np.random.default_rng(2), 1000
    wrong = sum(stopped(random, (0.0, 0.1 - edge, 0.1)).level != 9000 for _ in range(seeds))
    assert wrong <= 0.05 * seeds


def _told(found: Smallest) -> Mapping[int, Enough]:
    return {step.level: step.enough for step in found.steps}


def test_ends_with_the_first_level_that_is_not_enough() -> None:
    logs = np.array([[0.0, 0.05, 0.0, 0.05]] * 10) + np.linspace(0, 1e-3, 40).reshape(10, 4)
    (found,) = smallest(list(rows(logs, (1500, 3000, 6000, 9000))), MARGIN)
    assert _told(found) == {6000: Enough.NO}, "3000 is not tested, although it would pass"
    assert (found.level, found.largest, found.is_settled) == (9000, 9000, True)


def test_a_level_must_be_enough_in_every_cell() -> None:
    noise = np.linspace(0, 1e-3, 30).reshape(10, 3)
    near, far = (noise + np.array(each) for each in ((0.0, 0.05, 0.05), (0.0, 0.0, 0.05)))
    found = smallest([*rows(near), *rows(far, cell=1)], MARGIN)
    assert [(each.cell, each.level) for each in found] == [(None, 9000), (0, 4200), (1, 9000)]
    assert [each.conditions for each in found] == [{}, {"rtt_seconds": 0}, {"rtt_seconds": 1}]


def test_lower_is_better_turns_the_edge() -> None:
    logs = np.array([[0.0, -0.05, -0.05]] * 10) + np.linspace(0, 1e-3, 30).reshape(10, 3)
    (found,) = smallest(list(rows(logs, metric="completion_time")), {"completion_time": 0.02})
    assert _told(found) == {4200: Enough.YES, 1500: Enough.NO}


def test_few_blocks_show_too_little_to_call_a_level_enough() -> None:
    logs = np.array([[0.0, 0.05, 0.05]] * 7) + np.linspace(0, 1e-4, 21).reshape(7, 3)
    (found,) = smallest(list(rows(logs)), MARGIN)
    assert _told(found) == {4200: Enough.OPEN}
    assert not found.is_settled


def test_the_baseline_may_be_the_largest_level() -> None:
    logs = np.array([[0.05, 0.05, 0.0]] * 10) + np.linspace(0, 1e-3, 30).reshape(10, 3)
    (found,) = smallest(list(rows(logs, (9000, 4200, 1500))), MARGIN)
    assert _told(found) == {4200: Enough.YES, 1500: Enough.NO}


def test_needs_three_levels_that_are_numbers() -> None:
    two = np.zeros((8, 2))
    assert smallest(list(rows(two, (1500, 9000))), MARGIN) == []
    named = [Row(0, 0, str(each), "treatment", each, "stream", {}, {"goodput": 1.0}, False) for each in "abc"]
    assert smallest(named, MARGIN) == []


def test_a_cell_whose_control_differs_leaves_the_answer_open() -> None:
    logs = np.array([[0.0, 0.05, 0.05]] * 10) + np.linspace(0, 1e-3, 30).reshape(10, 3)
    (found,) = smallest(list(rows(logs)), MARGIN, doubted={(0, "goodput")})
    assert _told(found) == {4200: Enough.OPEN}


def losing(random: np.random.Generator, lost: float) -> list[Row]:
    """A study whose level 4200 is worse than 9000 by the margin, and lost the lowest of its runs; these are repeated."""
    edge = float(np.log1p(MARGIN["goodput"]))
    study = list(rows(random.normal((0.0, 0.1 - edge, 0.1), SPREAD, (12, 3))))
    runs: list[Row] = []
    for row in study:
        value = row.metrics["goodput"]
        while row.level == 4200 and value < np.exp(0.1 - edge + SPREAD * special.ndtri(lost)):
            runs.append(replace(row, metrics={}, excluded=True))
            value = float(np.exp(random.normal(0.1 - edge, SPREAD)))
        runs.append(replace(row, metrics={"goodput": value}))
    return runs


def test_runs_that_a_level_lost_for_their_value_do_not_make_it_enough() -> None:
    """The lowest fifth: the level was called enough in 11.6 % of studies."""
    random, studies = np.random.default_rng(3), 500
    wrong = sum(smallest(losing(random, 0.2), MARGIN)[0].level != 9000 for _ in range(studies))
    assert wrong <= 0.05 * studies


@given(seed=st.integers(0, 2**32 - 1), lost=st.booleans(), skewed=st.booleans(), busy=st.booleans())
def test_a_level_is_judged_by_the_interval_of_its_verdict(seed: int, lost: bool, skewed: bool, busy: bool) -> None:
    """The baseline is the largest level here, so that both answers are about the same ratio."""
    random = np.random.default_rng(seed)
    logs = random.normal(0, SPREAD, (10, 3))
    logs[:, 1] -= skewed * 5 * SPREAD * random.exponential(size=10)
    study = [
        replace(row, held=0.01 * busy, excluded=lost and row.level == 4200 and row.block < 2)
        for row in rows(logs, (9000, 4200, 1500))
    ]
    comparison = next(item for item in judge(study, MARGIN, explain=False) if item.treatment_level == 4200)
    (answer,) = smallest(study, MARGIN)
    assert answer.steps[0].ratio == comparison.ratio


def test_the_cell_that_is_told_is_the_one_that_keeps_a_level_open() -> None:
    """4200 is a little worse in one cell, which is sure, and as good in the other, where nothing is sure."""
    noise = np.array([-1.0, 1.0] * 5)
    sure, noisy = (
        np.column_stack([np.zeros(10), 0.05 + effect + spread * noise, np.full(10, 0.05)])
        for effect, spread in ((-0.005, 1e-4), (0.0, 0.05))
    )
    every = [*rows(sure, cell=0), *rows(noisy, cell=1)]
    whole = next(answer for answer in smallest(every, MARGIN) if answer.cell is None)
    (step,) = whole.steps
    assert step.enough is Enough.OPEN
    assert step.ratio is not None
    assert step.ratio.low is not None
    assert step.ratio.low < 1 / 1.02
