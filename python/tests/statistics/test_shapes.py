"""What is seen of an arm that varies alone, and what an interval allows for then."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from framegauge.statistics.ratio import STUDENT, estimate, quantile
from framegauge.statistics.shapes import ALIKE, Compared, Shape, shape_of
from framegauge.statistics.skewness import hull


def cells(random, count, spreads, blocks=12, runs=1, shift=0.0, tail=None):
    """Cells whose baseline and treatment spread so much; `tail` draws the treatment's noise."""
    draw = tail or (lambda size: random.normal(size=size))
    found = []
    for _ in range(count):
        common = random.normal(0, shift, blocks) if shift else 0.0
        before = random.normal(0, spreads[0], (runs, blocks)).mean(axis=0)
        found.append(Compared(list(np.exp(common + before)), list(np.exp(common + spreads[1] * draw(blocks))), runs))
    return found


def low_tail(random):
    """Lognormal, to low values."""
    return lambda size: -np.exp(0.6 * random.normal(size=size))


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("shift", [0.0, 0.05])
def test_arms_that_vary_alike_keep_their_degrees_of_freedom(runs, shift):
    random = np.random.default_rng(1)
    found = [shape_of(cells(random, 1, (0.01, 0.01), runs=runs, shift=shift)) for _ in range(400)]
    assert np.mean([each.degrees for each in found]) > 0.75
    assert np.mean([each.degrees == 1 for each in found]) > 0.3


@pytest.mark.parametrize("spreads", [(0.003, 0.01), (0.01, 0.003)])
def test_an_arm_that_varies_alone_is_seen_whichever_it_is(spreads):
    random = np.random.default_rng(2)
    found = [shape_of(cells(random, 1, spreads)).degrees for _ in range(200)]
    assert np.mean([each == 0.5 for each in found]) > 0.8


def test_the_skewness_of_many_cells_is_their_mean():
    random = np.random.default_rng(3)
    one, many = (
        [shape_of(cells(random, count, (0.003, 0.01), tail=low_tail(random))) for _ in range(60)] for count in (1, 16)
    )
    assert np.std([each.skewness for each in many]) < 0.4 * np.std([each.skewness for each in one])
    assert np.mean([each.skewness for each in many]) < -0.8
    assert min(each.degrees for each in many) == pytest.approx(1 - 0.5 / 16)


def test_cells_of_normal_noise_lose_little():
    random = np.random.default_rng(4)
    assert max(abs(shape_of(cells(random, 24, (0.01, 0.01))).skewness) for _ in range(30)) < 0.6


def test_few_blocks_and_no_noise_have_no_shape():
    random = np.random.default_rng(5)
    assert shape_of(cells(random, 3, (0.003, 0.01), blocks=3)) == ALIKE
    assert shape_of([]) == ALIKE
    assert shape_of([Compared([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 4.0, 6.0, 8.0, 10.0])]) == ALIKE


def test_an_interval_has_the_shape_that_it_is_given():
    random = np.random.default_rng(6)
    logs = random.normal(size=12) / 10
    base, treated = [1.0] * 12, list(np.exp(logs))
    plain, shaped = estimate(base, treated), estimate(base, treated, shape=Shape(-2.0, 0.5))
    assert plain.assumption == STUDENT != shaped.assumption
    low, high = hull(logs, quantile(5.5), -2.0)
    assert (math.log(shaped.low), math.log(shaped.high)) == pytest.approx((low, high))
    assert shaped.low < plain.low < plain.high < shaped.high
    # Holm's procedure relies on intervals of stricter levels that hold those of milder ones.
    nested = [estimate(base, treated, alpha, shape=Shape(-2.0, 0.5)) for alpha in (0.2, 0.05, 0.005, 0.0005)]
    assert [each.low for each in nested] == sorted((each.low for each in nested), reverse=True)
    assert [each.high for each in nested] == sorted(each.high for each in nested)


@given(st.lists(st.sampled_from([(2.0, 3.0), (3.0, 2.0), (2.0, 2.0), (3.0, 3.0)]), min_size=4, max_size=12))
def test_values_of_two_levels_have_a_shape(pairs):
    """As where a run takes one of two paths. Those that mirror each other have a constant sum, which ended in an error."""
    found = shape_of([Compared([before for before, _ in pairs], [after for _, after in pairs])])
    assert math.isfinite(found.skewness)
    assert 0.5 <= found.degrees <= 1


def test_arms_that_mirror_each_other_vary_alike():
    mirrored = [(2.0, 3.0), (3.0, 2.0)] * 3
    found = shape_of([Compared([before for before, _ in mirrored], [after for _, after in mirrored])])
    assert (found.skewness, found.degrees) == (pytest.approx(0.0), 1.0)
