"""Intervals of skewed values, against an audit's cases: quantiles and fairness where one side only is skewed."""

import math

import numpy as np
import pytest
from helpers.support import by_length
from scipy import stats

from framegauge.metrics import METRICS
from framegauge.statistics import skewness
from framegauge.statistics.ratio import estimate, quantile


def skewed_on_one_side(random, blocks):
    """The baseline varies a little, the treatment's values are lognormal: mean 0 in logarithms."""
    return 0.3 * random.normal(size=blocks) + np.exp(0.6 * random.normal(size=blocks)) - math.exp(0.18)


def alike(random, blocks):
    return np.exp(0.6 * random.normal(size=blocks)) - np.exp(0.6 * random.normal(size=blocks))


def normal(random, blocks):
    return random.normal(size=blocks)


@pytest.mark.soak(1)
@pytest.mark.parametrize("blocks", [8, 12, 20])
@pytest.mark.parametrize("noise", [skewed_on_one_side, alike, normal])
def test_it_holds_the_mean_at_few_blocks(noise, blocks):
    random, studies, held = np.random.default_rng(5), by_length(1500, 20_000), 0
    for _ in range(studies):
        low, high = skewness.hull(noise(random, blocks), quantile(blocks - 1, 0.05))
        held += low <= 0 <= high
    assert held / studies >= 0.94 - 3 * math.sqrt(0.06 * 0.94 / studies)


@pytest.mark.parametrize("blocks", [5, 8, 11, 12, 14, 20])
def test_an_interval_of_a_stricter_level_holds_that_of_a_milder_one(blocks):
    """Holm's procedure relies on it."""
    random = np.random.default_rng(7)
    for _ in range(100):
        values = np.exp(0.1 * skewed_on_one_side(random, blocks))
        found = [estimate([1.0] * blocks, list(values), alpha, hull=1.0) for alpha in (0.2, 0.05, 0.00501, 0.00499)]
        assert [each.low for each in found] == sorted((each.low for each in found), reverse=True)
        assert [each.high for each in found] == sorted(each.high for each in found)


def test_it_is_never_narrower_than_students_and_the_same_without_skewness():
    random = np.random.default_rng(9)
    for _ in range(100):
        logs = alike(random, 12) / 10
        there, hull = estimate([1.0] * 12, list(np.exp(logs))), estimate([1.0] * 12, list(np.exp(logs)), hull=1.0)
        assert hull.low <= there.low
        assert hull.high >= there.high
    even = list(np.exp([-0.2, -0.1, 0.1, 0.2]))
    there, hull = estimate([1.0] * 4, even), estimate([1.0] * 4, even, hull=1.0)
    # Hall's transformation of a symmetric sample is the identity.
    assert (hull.low, hull.high) == pytest.approx((there.low, there.high))


def test_a_metric_can_have_a_wider_hull():
    """Fairness: its interval is as many times wider as its table says, without skewness and about so with it."""
    even = list(np.exp([-0.2, -0.1, 0.1, 0.2]))
    usual, wider = estimate([1.0] * 4, even, hull=1.0), estimate([1.0] * 4, even, hull=1.12)
    assert math.log(wider.high) == pytest.approx(1.12 * math.log(usual.high))
    assert METRICS["fairness"].hull > 1
    skew = list(np.exp(skewed_on_one_side(np.random.default_rng(3), 12) / 10))
    usual, wider = estimate([1.0] * 12, skew, hull=1.0), estimate([1.0] * 12, skew, hull=1.12)
    assert wider.low < usual.low
    assert wider.high > usual.high


def test_the_transformation_is_halls():
    """What `_inverse` gives, Hall's cubic takes back; the skewness is that of scipy."""
    for gamma in (-2.0, -0.3, 0.5, 3.0):
        for count in (5, 20):
            for x in (-4.0, -1.0, 0.5, 6.0):
                t = skewness._inverse(x, gamma, count)
                a, b = 1 / (3 * math.sqrt(count)), 1 / (6 * math.sqrt(count))
                assert t + a * gamma * t**2 + a**2 * gamma**2 * t**3 / 3 + b * gamma == pytest.approx(x)
    values = np.random.default_rng(3).exponential(size=9)
    assert skewness.skewness(values) == pytest.approx(stats.skew(values, bias=False))
