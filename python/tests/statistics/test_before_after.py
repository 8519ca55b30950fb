"""Difference in differences beside known answers."""

import math
import random

import pytest

from framegauge.statistics.before_after import Unit, alone, effect, judge, of_run
from framegauge.statistics.verdict import Verdict


def test_what_time_does_to_all_is_no_effect() -> None:
    """All become half as fast again; two are changed, which makes them 20 % faster besides."""
    units = [
        Unit(True, 100, 1.5 * 1.2 * 100), Unit(True, 40, 1.5 * 1.2 * 40), Unit(False, 70, 1.5 * 70), Unit(False, 7, 1.5 * 7),
    ]  # fmt: skip
    assert of_run(units) == pytest.approx(math.log(1.2))
    assert of_run([Unit(False, each.before, each.after) for each in units]) is None
    assert of_run([*units, Unit(True, 0, 5)]) == pytest.approx(math.log(1.2))


def test_without_others_the_change_of_the_changed_ones_is_what_is_known() -> None:
    units = [Unit(True, 100, 25), Unit(True, 8, 2), Unit(False, 100, 50)]
    assert alone(units) == pytest.approx(math.log(0.25))
    assert alone([Unit(False, 1, 2), Unit(True, 0, 2)]) is None


def test_a_verdict_needs_the_whole_interval_on_one_side_and_equivalence_eight_runs() -> None:
    """Logarithms alternate by 0.01 around their mean: Student's half width of 8 is 2.364624 x 0.01069 / sqrt(8) = 0.00894."""

    def runs(count: int, centre: float) -> list[float]:
        return [math.log(centre) + (0.01 if place % 2 else -0.01) for place in range(count)]

    found, verdict = judge(runs(8, 1.0), 0.05, False, 0.05)
    assert verdict is Verdict.NO_PRACTICAL_DIFFERENCE
    assert found.low is not None
    assert found.high is not None
    half = 2.364624 * math.sqrt(8 / 7) * 0.01 / math.sqrt(8)
    assert [math.log(found.low), math.log(found.high)] == pytest.approx([-half, half], rel=1e-5)
    assert judge(runs(6, 1.0), 0.05, False, 0.05)[1] is Verdict.UNDECIDED
    assert judge(runs(8, 1.05), 0.05, False, 0.05)[1] is Verdict.UNDECIDED
    # Fewer packets are better, and fewer operations are worse; three runs are enough where the effect is so large.
    assert judge(runs(3, 0.25), 0.05, False, 0.05)[1] is Verdict.BETTER
    assert judge(runs(3, 0.25), 0.05, True, 0.05)[1] is Verdict.WORSE


def test_equivalence_is_claimed_of_a_true_difference_as_large_as_the_margin_in_five_percent_at_most() -> None:
    """2000 studies of ten runs whose true ratio is the margin's edge: a false claim of equivalence is a rare one."""
    draw, claimed, studies = random.Random(2), 0, 2000
    for _ in range(studies):
        runs = [math.log(1.05) + draw.gauss(0, 0.03) for _ in range(10)]
        claimed += judge(runs, 0.05, False, 0.05)[1] is Verdict.NO_PRACTICAL_DIFFERENCE
    # Two one-sided tests at 5 % would be wrong in 5 %; an interval of 95 % in 2.5 %.
    assert claimed / studies <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / studies)


def test_the_interval_is_students_over_runs() -> None:
    """By hand: logarithms 0.1, 0.2, 0.3 have the mean 0.2, the deviation 0.1 and the quantile 4.302653 (2 degrees)."""
    found = effect([0.1, 0.2, 0.3])
    assert found is not None
    assert found.interval is not None
    half = 4.302653 * 0.1 / math.sqrt(3)
    assert found.ratio == pytest.approx(math.exp(0.2))
    assert [math.log(each) for each in found.interval] == pytest.approx([0.2 - half, 0.2 + half])
    assert effect([]) is None
    two = effect([0.1, 0.2])
    assert two is not None
    assert two.interval is None


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """2000 studies of six runs, each with a drift of its own and noise in every unit: 95 %, within 3 standard errors."""
    draw, held, studies = random.Random(1), 0, 2000
    for _ in range(studies):
        runs = []
        for _ in range(6):
            drift = draw.gauss(0, 0.5)
            noise = [draw.gauss(0, 0.1) for _ in range(4)]
            units = [
                Unit(place < 2, 1, math.exp(drift + each + (0.3 if place < 2 else 0)))
                for place, each in enumerate(noise)
            ]
            runs.append(of_run(units) or 0.0)
        found = effect(runs)
        assert found is not None
        assert found.interval is not None
        held += found.interval[0] <= math.exp(0.3) <= found.interval[1]
    assert held / studies == pytest.approx(0.95, abs=3 * math.sqrt(0.95 * 0.05 / studies))
