"""held.py: what a CPU that something else held may have taken from either arm is allowed for, and is no claim."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from framegauge.metrics import METRICS
from framegauge.statistics.judge import Comparison, judge
from framegauge.statistics.pairs import Row
from framegauge.statistics.verdict import Verdict

SHARES = st.floats(0.0, 0.02)


def rows(metric: str, ratio: float, shares: tuple[float, float], lost: tuple[float, float]) -> list[Row]:
    """Ten blocks with little noise; each arm lost so much of its figure to what held a CPU for its share of the time."""
    made = []
    for block in range(10):
        for side, (arm, level) in enumerate((("baseline", 1500), ("9000", 9000))):
            value = (ratio if side else 1.0) * (1 + 1e-4 * ((7 * block + level) % 5))
            value *= 1 - lost[side] if METRICS[metric].higher_is_better else 1 / (1 - lost[side])
            role = "treatment" if side else "baseline"
            made.append(Row(block, 0, arm, role, level, "stream", {}, {metric: value}, False, held=shares[side]))
    return made


def one(made: list[Row], margin: float = 0.02) -> Comparison:
    (metric,) = made[0].metrics
    (comparison,) = judge(made, {metric: margin})
    return comparison


@given(
    metric=st.sampled_from(["goodput", "completion_time", "transactions"]), ratio=st.floats(0.5, 2.0),
    shares=st.tuples(SHARES, SHARES), parts=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)  # fmt: skip
def test_the_interval_holds_the_ratio_that_nothing_held(
    metric: str, ratio: float, shares: tuple[float, float], parts: tuple[float, float]
) -> None:
    """But for a tenth of the margin, which is no effect. A run lacks 1.2 to 3.6 times its share, as was measured."""
    lost = (shares[0] * (1.2 + 2.4 * parts[0]), shares[1] * (1.2 + 2.4 * parts[1]))
    judged = one(rows(metric, ratio, shares, lost)).judged
    assert judged is not None
    assert judged.low is not None
    assert judged.high is not None
    small = 0.1 * 0.02 * 1.05
    assert judged.low * (1 - small) <= ratio * (1 + 1e-3)
    assert ratio * (1 - 1e-3) <= judged.high / (1 - small)


def test_an_arm_that_was_held_alone_is_not_called_slower() -> None:
    """2.4 % less goodput, all of it taken by what held a CPU for 1.2 % of the time in that arm."""
    made = rows("goodput", 1.0, (0.0, 0.012), (0.0, 0.024))
    found = one(made)
    assert found.verdict is Verdict.UNDECIDED
    assert any("held a CPU of the hosts now and then: the interval allows" in line for line in found.warnings)
    assert one([replace(row, held=0.0) for row in made]).verdict is Verdict.WORSE


@pytest.mark.parametrize("metric", ["latency_p50", "receiver_cpu_cost"])
def test_a_median_and_a_cost_lack_nothing(metric: str) -> None:
    made = rows(metric, 0.9, (0.01, 0.01), (0.0, 0.0))
    assert one(made).judged == one([replace(row, held=0.0) for row in made]).judged


def test_what_is_small_beside_the_margin_changes_nothing() -> None:
    made = rows("goodput", 1.05, (0.0007, 0.0007), (0.0, 0.0))
    assert one(made, 0.02).judged == one([replace(row, held=0.0) for row in made], 0.02).judged
    assert one(made, 0.01).judged != one([replace(row, held=0.0) for row in made], 0.01).judged
