"""How many events count as one: bursts, cycles that all hosts share, and those that they do not."""

import numpy as np
import pytest

from framegauge.statistics import dispersion, events
from framegauge.statistics.switched import Host

STEPS = 240
ALPHA = 0.05


def cycle(share, steps=160):
    return 1 + share * np.sin(2 * np.pi * np.arange(2 * STEPS) / steps)


def counted(rates, seed=0):
    """Hosts, of which the first half were switched, with so many events per step."""
    values = np.random.default_rng(seed).poisson(rates).astype(float)
    return [Host(f"h{n}", n < len(values) / 2, row[:STEPS], row[STEPS:]) for n, row in enumerate(values)]


@pytest.mark.parametrize("hosts", [1, 2, 5])
def test_a_cycle_that_all_hosts_share_takes_no_power_from_counts(hosts):
    """5 against 5 hosts and half as many events more and less in 40 minutes: ± 50 % in the interval, before."""
    rates = 30 * np.ones((2 * hosts, 1)) * cycle(0.5)
    found = dispersion.estimate(counted(rates), ALPHA)
    assert found.alone > 50
    assert found.compared < 5
    rates[:hosts, STEPS:] *= 1.6
    effect = events.estimate(counted(rates), 15.0)
    assert 1.4 < effect.low < 1.6 < effect.high < 1.8
    assert effect.dispersion < 5


def test_a_cycle_of_one_side_is_what_is_compared():
    rates = 30 * np.array([cycle(0.5), np.ones(2 * STEPS)])
    found = dispersion.estimate(counted(rates), ALPHA)
    assert found.compared == found.alone > 20


def test_what_is_left_of_a_cycle_that_is_larger_on_one_side_counts():
    """Twice as large: half of it is left, as much as if the other side had none and this one half of it."""
    rates = np.array([300 * cycle(0.6), 300 * cycle(0.3)])
    found = dispersion.estimate(counted(rates), ALPHA)
    half = dispersion.estimate(counted(np.array([300 * cycle(0.3), 300 * np.ones(2 * STEPS)])), ALPHA)
    assert half.compared / 2 < found.compared < found.alone / 2


def test_two_bursts_at_the_same_time_are_no_cycle():
    """They cancel in the contrast by chance, and nothing else shows that the sides do the same."""
    values = np.random.default_rng(4).poisson(0.2, (2, 2 * STEPS)).astype(float)
    values[:, 400] = 1000, 150
    hosts = [Host(f"h{n}", n == 0, row[:STEPS], row[STEPS:]) for n, row in enumerate(values)]
    found = dispersion.estimate(hosts, ALPHA)
    assert found.compared == found.alone > 300
    effect = events.estimate(hosts, 15.0)
    assert effect.low < 1 < effect.high


def test_events_that_remember_for_longer_than_a_bin_count_for_less():
    """The same numbers, in another order."""
    generator = np.random.default_rng(6)
    slow = np.repeat(np.where(generator.random((2, 12)) < 0.5, 0.3, 1.7), 40, axis=1)
    hosts = counted(3 * slow, seed=7)
    mixed = [
        Host(each.name, each.switched, generator.permutation(each.before), generator.permutation(each.after))
        for each in hosts
    ]
    long, short = dispersion.estimate(hosts, ALPHA), dispersion.estimate(mixed, ALPHA)
    assert long.compared > 10 * short.compared
