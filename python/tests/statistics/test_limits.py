"""Of a metric that has a largest value, no interval reaches beyond what values of it can differ by."""

import math

import numpy as np
import pytest
from helpers.support import by_length
from hypothesis import given, strategies as st

from framegauge.metrics import METRICS
from framegauge.statistics import differences, leave_one_out, unpaired
from framegauge.statistics.ratio import estimate
from framegauge.statistics.verdict import decide, edges

HULL = METRICS["fairness"].hull
SHARES = st.lists(st.floats(0.01, 1.0), min_size=2, max_size=12)
NEAR = 1e-9


def test_where_nothing_is_left_to_gain_the_interval_ends_there():
    """Jain's index of 0.997 cannot rise by more than 0.3 %, however the treatment varies."""
    baseline, treatment = [0.997] * 8, [0.999, 0.998, 0.6, 0.999, 0.999, 0.998, 0.55, 0.999]
    cut, whole = estimate(baseline, treatment, hull=HULL, most=1.0), estimate(baseline, treatment, hull=HULL)
    assert whole.high == pytest.approx(1.114, abs=0.01)  # more than 1 by all of its blocks
    assert cut.high == pytest.approx(1 / 0.997)
    assert (cut.ratio, cut.low, cut.log_deviation) == (whole.ratio, whole.low, whole.log_deviation)
    apart = unpaired.estimate(baseline, treatment, most=1.0)
    assert apart.high == pytest.approx(1 / 0.997)
    by_itself = differences.estimate(baseline, treatment, hull=HULL, most=1.0)
    assert by_itself.high == pytest.approx(0.003)


def test_a_treatment_that_is_always_whole_is_no_worse():
    """The baseline lost packets in some runs, the treatment in none: it is worse by nothing."""
    baseline, treatment = [0.5, 1.0, 0.9, 0.99, 1.0, 0.7, 1.0, 1.0], [1.0] * 8
    assert estimate(baseline, treatment, hull=HULL, most=1.0).low == pytest.approx(1.0)
    assert unpaired.estimate(baseline, treatment, most=1.0).low == pytest.approx(1.0)
    assert differences.estimate(baseline, treatment, hull=HULL, most=1.0).low == pytest.approx(0.0)


@pytest.mark.parametrize("hull", [None, HULL])
@given(SHARES, st.data())
def test_what_is_cut_off_holds_neither_the_estimate_nor_equality(hull, baseline, data):
    size = {"min_size": len(baseline), "max_size": len(baseline)}
    treatment = data.draw(st.lists(st.floats(0.01, 1.0), **size))
    for cut, whole in (
        (estimate(baseline, treatment, hull=hull, most=1.0), estimate(baseline, treatment, hull=hull)),
        (unpaired.estimate(baseline, treatment, most=1.0), unpaired.estimate(baseline, treatment)),
    ):
        assert whole.low - NEAR <= cut.low <= cut.ratio * (1 + NEAR)
        assert cut.ratio * (1 - NEAR) <= cut.high <= whole.high + NEAR
        assert cut.low <= 1 + NEAR or whole.low > 1
        assert cut.high >= 1 - NEAR or whole.high < 1
    cut = differences.estimate(baseline, treatment, hull=hull, most=1.0)
    assert cut.low - NEAR <= cut.mean <= cut.high + NEAR


@pytest.mark.parametrize("worse", [0.0, 0.05])
def test_the_interval_holds_the_truth_as_often(worse):
    """Jain's index of four flows, of which one falls behind now and then."""
    random, studies, blocks = np.random.default_rng(5), by_length(1500, 20_000), 12

    def drawn(spread):
        shares = np.exp(spread * random.normal(size=(studies, blocks, 4)))
        return np.square(shares.sum(axis=2)) / (4 * np.square(shares).sum(axis=2))

    many = np.exp((0.2 + worse) * random.normal(size=(400_000, 4)))
    few = np.exp(0.2 * random.normal(size=(400_000, 4)))
    truth = float(
        np.log(np.square(many.sum(axis=1)) / (4 * np.square(many).sum(axis=1))).mean()
        - np.log(np.square(few.sum(axis=1)) / (4 * np.square(few).sum(axis=1))).mean()
    )
    held = {"cut": 0, "whole": 0}
    for baseline, treatment in zip(drawn(0.2), drawn(0.2 + worse), strict=True):
        for name, most in (("cut", 1.0), ("whole", None)):
            found = estimate(list(baseline), list(treatment), hull=HULL, most=most)
            held[name] += math.log(found.low) <= truth <= math.log(found.high)
    assert held["cut"] >= held["whole"] - 0.005 * studies
    assert held["cut"] >= 0.94 * studies


def test_the_first_block_on_which_a_verdict_depends_is_tried():
    random, changed = np.random.default_rng(11), 0
    for _ in range(by_length(150, 3000)):
        count, margin = int(random.integers(6, 20)), random.choice([0.01, 0.03])
        before, after = (
            [float(each) for each in np.round(np.minimum(1.0, 1 - np.abs(random.normal(0, 0.02, count))), 3)]
            for _ in range(2)
        )
        logs = np.log(after) - np.log(before)
        limits = (np.log(after), -np.log(before))

        def verdict(block, before=before, after=after, margin=margin):
            rest = (before[:block] + before[block + 1 :], after[:block] + after[block + 1 :])
            return decide(estimate(*rest, hull=HULL, most=1.0), margin, True)

        without = [verdict(block) for block in range(count)]
        tried = leave_one_out.of_means(logs, 0.05, edges(margin), hull=HULL, limits=limits)
        assert tried == sorted(set(tried))
        assert {without[block] for block in tried} == set(without)
        changed += len(set(without)) > 1
    assert changed > 10
