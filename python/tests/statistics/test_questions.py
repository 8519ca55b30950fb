"""What a study may ask besides a difference: that a treatment is not worse, and that some metrics come first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from scipy import stats

from framegauge.statistics import differences
from framegauge.statistics.judge import Comparison, is_settled, judge
from framegauge.statistics.pairs import Row
from framegauge.statistics.ratio import estimate
from framegauge.statistics.verdict import Verdict, decide

MARGINS = {"goodput": 0.02, "receiver_cpu_cost": 0.05}


def rows(logs: Mapping[str, np.ndarray]) -> Iterator[Row]:
    """By metric: log values, blocks x (baseline, treatment)."""
    blocks = len(next(iter(logs.values())))
    for block in range(blocks):
        for place, (arm, role, level) in enumerate((("baseline", "baseline", 1500), ("9000", "treatment", 9000))):
            values = {metric: math.exp(found[block, place]) for metric, found in logs.items()}
            yield Row(block, 0, arm, role, level, "stream", {}, values, False, number=2 * block + place)


def verdicts(found: list[Comparison]) -> dict[str, Verdict]:
    return {each.metric: each.verdict for each in found}


# Intervals by where they lie around a margin of 2 %, and the verdict where higher is better.
CASES = [
    (0.97, 0.975, Verdict.WORSE),
    (0.97, 0.99, Verdict.UNDECIDED),
    (0.99, 1.01, Verdict.NO_PRACTICAL_DIFFERENCE),
    (0.99, 1.05, Verdict.NOT_WORSE),
    (1.03, 1.05, Verdict.BETTER),
]


@pytest.mark.parametrize(("low", "high", "verdict"), CASES)
@pytest.mark.parametrize("higher_is_better", [True, False])
def test_not_worse_needs_one_edge_only(low: float, high: float, verdict: Verdict, higher_is_better: bool) -> None:
    found = estimate([1.0, 1.0, 1.0], [low, math.sqrt(low * high), high])
    low, high = (low, high) if higher_is_better else (1 / high, 1 / low)
    known = type(found)(found.ratio, low, high, 8, 0.01)
    assert decide(known, 0.02, higher_is_better, not_worse=True) is verdict
    usual = Verdict.UNDECIDED if verdict is Verdict.NOT_WORSE else verdict
    assert decide(known, 0.02, higher_is_better) is usual


def test_a_loss_as_large_as_the_margin_is_called_not_worse_in_5_percent_at_most() -> None:
    random, studies, wrong = np.random.default_rng(1), 1000, 0
    for _ in range(studies):
        logs = random.normal([0, -math.log1p(0.02)], 0.01, (12, 2))
        (found,) = judge(list(rows({"goodput": logs})), {"goodput": 0.02}, explain=False, not_worse=True)
        wrong += found.verdict in (Verdict.NOT_WORSE, Verdict.NO_PRACTICAL_DIFFERENCE, Verdict.BETTER)
    assert wrong / studies <= 0.05


def test_few_blocks_are_not_enough_for_not_worse() -> None:
    logs = np.array([[0.0, 0.015 + 0.01 * (-1) ** block] for block in range(7)])  # 0.5 to 2.5 %
    (found,) = judge(list(rows({"goodput": logs})), {"goodput": 0.02}, not_worse=True)
    assert found.verdict is Verdict.UNDECIDED
    assert "not worse needs 8 blocks" in found.warnings[0]


def both(goodput: float, cost: float, spread: float = 0.004) -> list[Row]:
    random = np.random.default_rng(3)
    logs = {
        "goodput": random.normal([0, goodput], spread, (8, 2)),
        "receiver_cpu_cost": random.normal([0, cost], 0.01, (8, 2)),
    }
    return list(rows(logs))


def test_secondary_metrics_take_nothing_from_the_primary_one() -> None:
    """At an interval that is settled at 5 % and not at 2.5 %."""
    found = both(0.05, 0.0)
    alone = judge(found, {"goodput": MARGINS["goodput"]})[0]
    first = judge(found, MARGINS, primary=["goodput"])[0]
    assert first.judged == alone.judged
    flat = judge(both(0.05, 0.06, 0.02), MARGINS)[0]  # goodput too noisy: the flat family corrects it for two
    assert flat.judged is not None
    assert flat.judged.alpha == pytest.approx(0.025)


def test_secondary_metrics_wait_for_the_primary_ones() -> None:
    open_, settled = both(0.02, -0.3), both(0.05, -0.3)
    assert verdicts(judge(open_, MARGINS)) == {"goodput": Verdict.UNDECIDED, "receiver_cpu_cost": Verdict.BETTER}
    held = judge(open_, MARGINS, primary=["goodput"])
    assert verdicts(held) == {"goodput": Verdict.UNDECIDED, "receiver_cpu_cost": Verdict.UNDECIDED}
    assert held[1].warnings[0] == "secondary: better, if the primary metrics had their verdicts"
    assert not is_settled(held)
    found = judge(settled, MARGINS, primary=["goodput"])
    assert verdicts(found) == {"goodput": Verdict.BETTER, "receiver_cpu_cost": Verdict.BETTER}
    assert is_settled(found)


def test_the_difference_on_its_own_scale_is_the_paired_t_interval() -> None:
    random = np.random.default_rng(4)
    before, after = random.normal(900e6, 5e6, 10), random.normal(950e6, 5e6, 10)
    found = differences.estimate(before.tolist(), after.tolist())
    peer = stats.ttest_rel(after, before).confidence_interval()
    assert found.mean == pytest.approx((after - before).mean())
    assert (found.low, found.high) == pytest.approx((peer.low, peer.high))
    assert differences.estimate([1.0], [2.0]) == differences.Difference(1.0, None, None)
    assert differences.estimate([1.0] * 3, [2.0] * 3) == differences.Difference(1.0, 1.0, 1.0)
    skewed = differences.estimate(before.tolist(), after.tolist(), hull=1.0)
    assert skewed.low <= found.low  # type: ignore[operator]
