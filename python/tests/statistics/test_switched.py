"""Difference in differences of series, against answers that are known."""

import math

import numpy as np
import pytest
from scipy import signal

from framegauge.statistics import autocorrelated, switched
from framegauge.statistics.change_points import change_points
from framegauge.statistics.ratio import quantile
from framegauge.statistics.switched import Host

STEPS = 96


def noise(seed, size=STEPS, scale=0.05):
    return np.exp(scale * np.random.default_rng(seed).normal(size=size))


def host(name, is_switched, level, after=1.0, seed=0):
    values = level * noise(seed, 2 * STEPS)
    return Host(name, is_switched, values[:STEPS], after * values[STEPS:])


def test_the_error_of_independent_values_is_that_of_a_mean():
    generator = np.random.default_rng(1)
    squares = [autocorrelated.mean(generator.normal(5, 2, 200)).error ** 2 for _ in range(400)]
    assert np.mean(squares) == pytest.approx(4 / 200, rel=4 * math.sqrt(2 / 6 / 400))


def test_the_error_of_dependent_values_is_that_of_their_long_run_variance():
    """An AR(1) series with memory 0.8 has nine times the variance of the mean of independent values."""
    generator = np.random.default_rng(2)
    series = signal.lfilter([1], [1, -0.8], generator.normal(size=(400, 2400)), axis=1)[:, 400:]
    squares = [autocorrelated.mean(values).error ** 2 for values in series]
    assert np.mean(squares) == pytest.approx(1 / (1 - 0.8) ** 2 / 2000, rel=0.12)


def test_a_wave_of_one_cosine_has_the_error_of_the_formula():
    values = np.cos(np.pi * (np.arange(64) + 0.5) / 64)
    found = autocorrelated.mean(values)
    # Its projection is sqrt(2/T) * T/2; the other five are 0.
    assert found.error == pytest.approx(math.sqrt(64 / 2 / 6 / 64))
    assert found.mean == pytest.approx(0, abs=1e-12)


def test_the_effect_is_the_difference_of_the_changes():
    """Without noise: switched hosts double, the others grow by a half, so the switch made 4/3 of it."""
    flat = np.ones(STEPS)
    hosts = [
        Host("a", True, 10 * flat, 20 * flat),
        Host("b", True, 4 * flat, 8 * flat),
        Host("c", False, flat, 1.5 * flat),
    ]
    found = switched.estimate(hosts)
    assert found.is_ratio
    assert (found.value, found.low, found.high) == pytest.approx((4 / 3,) * 3)
    assert found.switched == pytest.approx((7, 14))
    assert found.control == pytest.approx((1, 1.5))


def test_what_happens_to_all_at_once_cancels():
    hosts = [host("a", True, 10, seed=1), host("b", False, 30, seed=2)]
    wave = np.exp(np.sin(np.linspace(0, 6, 2 * STEPS)))
    waved = [Host(each.name, each.switched, each.before * wave[:STEPS], each.after * wave[STEPS:]) for each in hosts]
    plain, found = switched.estimate(hosts), switched.estimate(waved)
    alone = np.log(waved[0].after.mean() / waved[0].before.mean())
    assert abs(alone) > 0.5  # by itself it looks like an effect
    assert found.low < 1 < found.high
    assert found.high / found.low < 3 * plain.high / plain.low


def test_one_value_per_host_widens_the_interval_where_hosts_differ():
    """Student's interval of what each host did, worked out by hand; time says little here."""
    changes = [1.0, 1.2, 1.5]
    hosts = [host(f"s{n}", True, 10, each, seed=n) for n, each in enumerate(changes)]
    hosts += [host(f"c{n}", False, 10, 1.0, seed=10 + n) for n in range(3)]
    found = switched.estimate(hosts)
    logs = [
        [math.log(each.after.mean() / each.before.mean()) for each in hosts if each.switched is side]
        for side in (True, False)
    ]
    parts = [np.var(side, ddof=1) / 3 for side in logs]
    degrees = sum(parts) ** 2 / sum(part**2 / 2 for part in parts)
    assert math.log(found.high / found.value) == pytest.approx(quantile(degrees) * math.sqrt(sum(parts)))
    two = switched.estimate([each for each in hosts if not each.name.endswith("2")])
    assert math.log(two.high / two.value) < math.log(found.high / found.value) / 3


def test_hosts_that_are_said_to_be_alike_have_the_interval_of_time_unless_they_differ():
    """Three on each side, whose changes spread by about what time explains, or by some 20 %."""
    hosts = [host(f"h{n}", n < 3, 10, 1.0, seed=n) for n in range(6)]
    plain, found = switched.estimate(hosts), switched.estimate(hosts, alike=True)
    assert (found.value, found.are_unlike) == (plain.value, False)
    assert found.high / found.low <= plain.high / plain.low
    assert found.assumption.endswith("over times")
    unlike = [host(f"h{n}", n < 3, 10, each, seed=n) for n, each in enumerate((0.8, 1.0, 1.2, 0.8, 1.0, 1.2))]
    plain, found = switched.estimate(unlike), switched.estimate(unlike, alike=True)
    assert found.are_unlike
    assert (found.low, found.high, found.assumption) == (plain.low, plain.high, plain.assumption)
    two = [each for each in unlike if not each.name.endswith(("2", "5"))]
    assert switched.estimate(two, alike=True) == switched.estimate(two)


def test_a_host_without_anything_before_makes_the_ratio_that_of_all_together():
    flat = np.ones(STEPS)
    hosts = [Host("a", True, 0 * flat, 0 * flat), Host("b", True, 2 * flat, 6 * flat), Host("c", False, flat, flat)]
    found = switched.estimate(hosts)
    assert found.is_ratio
    assert found.value == pytest.approx(3)


def test_a_baseline_of_0_is_a_difference():
    hosts = [
        Host("a", True, np.zeros(STEPS), np.full(STEPS, 5.0)),
        Host("b", False, np.zeros(STEPS), np.full(STEPS, 1.0)),
    ]
    found = switched.estimate(hosts)
    assert not found.is_ratio
    assert (found.value, found.low, found.high) == (4, 4, 4)


def test_a_step_that_is_missing_changes_nothing_but_itself():
    hosts = [host("a", True, 10, 2.0, seed=1), host("b", False, 10, seed=2)]
    after = hosts[0].after.copy()
    after[7] = np.nan
    found = switched.estimate([Host("a", True, hosts[0].before, after), hosts[1]])
    assert found.value == pytest.approx(switched.estimate(hosts).value, rel=0.01)
    assert math.isfinite(found.low)
    assert math.isfinite(found.high)


def test_hosts_of_one_kind_are_no_comparison():
    with pytest.raises(ValueError, match="one kind"):
        switched.estimate([host("a", True, 10)])


def test_a_step_of_a_series_is_found_where_it_is():
    values = np.random.default_rng(5).normal(size=60)
    values[40:] += 3
    (found,) = change_points(values)
    assert abs(found.index - 40) <= 1
    assert found.after - found.before == pytest.approx(3, abs=0.8)
    assert found.chance <= 0.01


def test_two_steps_are_two_changes_in_their_order():
    values = np.random.default_rng(6).normal(size=90)
    values[30:] += 5
    values[60:] += 5
    assert [round(each.index, -1) for each in change_points(values)] == [30, 60]


def test_noise_has_no_change():
    generator = np.random.default_rng(7)
    assert sum(bool(change_points(generator.normal(size=60))) for _ in range(20)) <= 3  # 1 % of them, and chance
    assert change_points(np.ones(60)) == []
