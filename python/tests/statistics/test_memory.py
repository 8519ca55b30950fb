"""How long a series remembers, against the formulas of AR(1) and against noise."""

import math

import numpy as np
import pytest
from scipy import signal

from framegauge.statistics import autocorrelated, memory
from framegauge.statistics.memory import NONE, Memory


def remembering(generator, steps, count=240, white=0.0):
    r = math.exp(-1 / steps)
    slow = signal.lfilter([math.sqrt(1 - r * r)], [1, -r], generator.normal(size=count + 40 * math.ceil(steps)))
    return slow[-count:] + white * generator.normal(size=count)


@pytest.mark.parametrize(("steps", "share", "count"), [(1, 1.0, 16), (10, 1.0, 24), (20, 0.5, 240)])
def test_the_variance_of_a_mean_is_the_sum_of_all_covariances(steps, share, count):
    distances = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    covariances = share * np.exp(-distances / steps) + (1 - share) * (distances == 0)
    assert Memory(steps, share).variance_of_mean(count) == pytest.approx(covariances.mean())


def test_white_noise_remembers_nothing():
    generator = np.random.default_rng(1)
    noises = [[generator.normal(size=240), generator.normal(3, 1, 96)] for _ in range(60)]
    assert sum(memory.fit(each).likely != NONE for each in noises) <= 9  # 5 % of them, and chance
    assert memory.fit([np.ones(48), np.zeros(48)]).longest == NONE


@pytest.mark.parametrize(("steps", "white"), [(4, 0.0), (10, 0.0), (20, 0.0), (20, 1.0)])
def test_what_remembers_is_found_with_and_without_noise(steps, white):
    generator = np.random.default_rng(2)
    found = [memory.fit([remembering(generator, steps, white=white) for _ in range(2)]) for _ in range(40)]
    assert sum(each.likely != NONE for each in found) >= 38
    assert np.median([each.likely.steps for each in found]) == pytest.approx(steps, rel=0.5)
    true = Memory(steps, 1 / (1 + white**2)).shortfall(240)
    assert sum(each.longest.shortfall(240) <= 1.2 * true for each in found) >= 32


def test_the_error_of_what_remembers_for_minutes_is_large_enough():
    """AR(1) of 20 steps: without its memory, the variance of the mean of 240 comes out at about a half."""
    generator = np.random.default_rng(3)
    series = [(remembering(generator, 20), remembering(generator, 20)) for _ in range(200)]
    true = Memory(20, 1.0).variance_of_mean(240)
    plain = np.mean([autocorrelated.mean(before).error ** 2 for before, _ in series])
    known = np.median([autocorrelated.both(*each)[0].error ** 2 for each in series])
    assert plain < 0.75 * true
    assert true <= known <= 2 * true


def test_a_short_time_varies_as_the_long_one_before_it_says():
    """24 values that happen to agree after 240 that do not; and as many values say what they say."""
    generator = np.random.default_rng(4)
    before, after = generator.normal(size=240), 0.01 * generator.normal(size=24)
    first, second, _ = autocorrelated.both(before, after)
    assert second.error == pytest.approx(math.sqrt(0.9 * 10) * first.error, rel=0.02)
    assert first.error == autocorrelated.mean(before).error
    equal = 0.01 * generator.normal(size=240)
    assert autocorrelated.both(before, equal)[1].error == pytest.approx(autocorrelated.mean(equal).error, rel=0.2)
