import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framegauge.statistics.judge import Row, judge
from framegauge.statistics.ratio import blocks_to_settle, estimate
from framegauge.statistics.verdict import Verdict, decide, exclusions_differ, warnings


def test_interval_matches_a_worked_example():
    # Paired t test on ln(1.1), ln(1.2), ln(1.3): mean 0.180000, s 0.083542, t(0.975, 2) = 4.302653.
    found = estimate([1, 1, 1], [1.1, 1.2, 1.3])
    assert found.ratio == pytest.approx((1.1 * 1.2 * 1.3) ** (1 / 3))
    logs = np.log([1.1, 1.2, 1.3])
    half = 4.302652729911275 * logs.std(ddof=1) / math.sqrt(3)
    assert math.log(found.high) - math.log(found.ratio) == pytest.approx(half)
    assert math.log(found.ratio) - math.log(found.low) == pytest.approx(half)


@pytest.mark.parametrize("blocks", [3, 6, 12])
def test_the_interval_covers_the_truth_in_95_percent(blocks):
    random = np.random.default_rng(20261121)
    draws, truth = 2000, 1.05
    covered = 0
    for _ in range(draws):
        drift = np.exp(random.normal(0, 0.02, blocks))  # common to the block: must cancel
        before = drift * np.exp(random.normal(0, 0.003, blocks))
        after = truth * drift * np.exp(random.normal(0, 0.003, blocks))
        found = estimate(list(before), list(after))
        covered += found.low <= truth <= found.high
    assert covered / draws == pytest.approx(0.95, abs=0.015)


@given(st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)), min_size=2, max_size=20))
def test_swapping_sides_inverts_the_ratio(pairs):
    before, after = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    there, back = estimate(before, after), estimate(after, before)
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert there.low <= there.ratio * (1 + 1e-12)
    # A metric and its reciprocal come to the same verdict.
    assert decide(there, 0.01, True) == decide(back, 0.01, False)


@pytest.mark.parametrize("wrong", [([], []), ([1], [1, 2]), ([1], [0]), ([1], [math.inf])])
def test_refuses_what_has_no_ratio(wrong):
    with pytest.raises(ValueError, match="value"):
        estimate(*wrong)


def pairs(centre, spread):
    return [1.0] * 4, [centre * (1 + sign * spread) for sign in (-1, 1, -1, 1)]


@pytest.mark.parametrize(
    ("centre", "spread", "higher", "verdict"),
    [
        (1.05, 0.001, True, Verdict.BETTER), (1.05, 0.001, False, Verdict.WORSE),
        (0.95, 0.001, True, Verdict.WORSE), (0.95, 0.001, False, Verdict.BETTER),
        (1.0, 0.001, True, Verdict.NO_PRACTICAL_DIFFERENCE), (1.01, 0.01, True, Verdict.UNDECIDED),
        (1.0, 0.1, True, Verdict.UNDECIDED),
    ],
)  # fmt: skip
def test_verdicts(centre, spread, higher, verdict):
    assert decide(estimate(*pairs(centre, spread)), 0.01, higher) is verdict


def test_undecided_says_how_many_more_blocks_and_that_number_settles_it():
    before, after = pairs(1.0, 0.02)
    found = estimate(before, after)
    needed = blocks_to_settle(found, 0.01)
    assert any(f"about {needed - 4} more blocks" in line for line in warnings(before, after, 0.01, True))
    assert blocks_to_settle(estimate([1.0], [1.0]), 0.01) is None


def test_warnings_name_what_weakens_a_verdict():
    assert any("only 4 blocks" in line for line in warnings(*pairs(1.05, 0.001), 0.01, True))
    assert any("do not vary" in line for line in warnings([1.0] * 6, [1.05] * 6, 0.01, True))
    drifting = [1.05 + 0.001 * block for block in range(10)]
    assert any("drifts" in line for line in warnings([1.0] * 10, drifting, 0.01, True))


@pytest.mark.parametrize(
    ("first", "second", "differ"),
    [
        ((0, 6), (0, 6), False),
        ((1, 7), (0, 6), False),
        ((2, 6), (0, 6), True),
        ((3, 6), (0, 6), True),
        ((3, 6), (3, 6), False),
        ((2, 40), (12, 40), True),
    ],
)
def test_exclusions_that_differ_by_more_than_chance(first, second, differ):
    assert (exclusions_differ(first, second) is not None) is differ
    assert (exclusions_differ(second, first) is not None) is differ


def row(block, arm, value, excluded=False, cell=0):
    role = arm if arm in ("baseline", "control") else "treatment"
    return Row(
        block, cell, arm, role, 1500 if role != "treatment" else 9000, "stream", {}, {"goodput": value}, excluded
    )


def rows(treatment=1.05, control=1.0):
    noise = [0.999, 1.001, 1.0, 1.0005, 0.9995, 1.0002]
    return [
        row(block, arm, 1e9 * scale * (noise[block] if arm != "baseline" else 1))
        for block in range(6)
        for arm, scale in (("baseline", 1), ("control", control), ("9000", treatment))
    ]


def test_judges_control_first_then_treatment():
    control, treatment = judge(rows(), {"goodput": 0.01})
    assert (control.role, control.verdict) == ("control", Verdict.NO_PRACTICAL_DIFFERENCE)
    assert (treatment.verdict, treatment.runs) == (Verdict.BETTER, 12)


def test_a_control_that_differs_makes_the_cell_suspect():
    assert {each.verdict for each in judge(rows(control=1.05), {"goodput": 0.01})} == {Verdict.SUSPECT}


def test_runs_lost_in_one_arm_only_make_it_suspect():
    lost = [row(block, "9000", 1, excluded=True) for block in range(4)]
    control, treatment = judge(rows() + lost, {"goodput": 0.01})
    assert control.verdict is Verdict.NO_PRACTICAL_DIFFERENCE
    assert treatment.verdict is Verdict.SUSPECT
    assert "not lost at random" in treatment.warnings[0]


def test_no_pair_left_is_not_judged():
    found = judge([row(0, "baseline", 1, excluded=True), row(0, "9000", 1e9)], {"goodput": 0.01})
    assert [each.verdict for each in found] == [Verdict.NOT_JUDGED]
