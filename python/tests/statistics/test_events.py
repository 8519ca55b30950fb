"""Ratios of rates of seldom events, against exact answers and against what trips others."""

import math

import numpy as np
import pytest
from scipy import stats

from framegauge.statistics import events
from framegauge.statistics.switched import Host

STEPS = 48


def spread_out(total):
    """So many events, as evenly as counts can be: no excess over Poisson's variance."""
    return np.diff(np.floor(np.linspace(0, total, STEPS + 1) + 1e-9))


def hosts(switched, control):
    return [Host("s", True, *map(spread_out, switched)), Host("c", False, *map(spread_out, control))]


def found(switched, control, **more):
    return events.estimate(hosts(switched, control), 15.0, **more)


@pytest.mark.parametrize(
    ("switched", "control"), [((20, 45), (30, 28)), ((5, 0), (12, 14)), ((0, 9), (11, 10)), ((40, 41), (400, 380))]
)
def test_the_interval_is_the_exact_one_of_the_conditional_odds_ratio(switched, control):
    table = [[switched[1], switched[0]], [control[1], control[0]]]
    exact = stats.contingency.odds_ratio(table, kind="conditional").confidence_interval(0.95)
    mine = found(switched, control)
    assert mine.dispersion == 1
    assert mine.low == pytest.approx(exact.low, rel=1e-6)
    assert mine.high == pytest.approx(exact.high, rel=1e-6)


def test_many_events_have_the_normal_interval_of_logarithms():
    mine = found((2000, 3000), (2100, 2000))
    half = 1.959964 * math.sqrt(1 / 2000 + 1 / 3000 + 1 / 2100 + 1 / 2000)
    assert mine.ratio == pytest.approx(3000 / 2000 * 2100 / 2000)
    assert (mine.low, mine.high) == pytest.approx((mine.ratio * math.exp(-half), mine.ratio * math.exp(half)), rel=1e-5)


def test_the_exact_interval_nears_the_normal_one():
    """On either side of the number up to which it is exact."""
    low, high = found((950, 950), (950, 950)), found((1050, 1050), (1050, 1050))
    assert math.log(low.high) / math.log(high.high) == pytest.approx(math.sqrt(1050 / 950), rel=0.02)


def test_a_baseline_of_0_can_be_worse():
    """Where the others have no events either: at least as many as the two exact comparisons have."""
    mine = found((0, 40), (0, 0))
    p = 0.025 ** (1 / 40)  # Clopper & Pearson, 40 of 40
    assert mine.ratio is None
    assert mine.low == pytest.approx(p / (1 - p))
    assert mine.high == math.inf


def test_what_only_one_of_two_comparisons_shows_is_not_shown():
    """The switched hosts had as many before: they are unlike the others, and nothing happened."""
    mine = found((60, 60), (0, 1))
    assert mine.low < 1 < mine.high


def test_no_events_at_all_say_nothing_of_a_ratio_but_bound_the_rate():
    mine = found((0, 0), (0, 0))
    assert (mine.low, mine.high) == (0, math.inf)
    assert mine.most_after == pytest.approx(-math.log(0.025) / (STEPS * 15))


def test_a_burst_counts_as_one_event():
    burst = np.zeros(STEPS)
    burst[30] = 1000.0
    quiet = spread_out(12)
    mine = events.estimate([Host("s", True, quiet, burst), Host("c", False, quiet, quiet)], 15.0)
    assert mine.switched == (12, 1000)  # and is not left out
    assert mine.dispersion > 500
    assert mine.low < 1 < mine.high


def test_hosts_that_differ_more_than_by_chance_widen_the_interval():
    same = [Host(f"s{n}", True, spread_out(100), spread_out(150)) for n in range(4)]
    other = [Host(f"c{n}", False, spread_out(100), spread_out(100)) for n in range(4)]
    unlike = [Host(f"s{n}", True, spread_out(100), spread_out(each)) for n, each in enumerate((20, 20, 20, 540))]
    one, two = events.estimate([*same, *other], 15.0), events.estimate([*unlike, *other], 15.0)
    assert one.switched == two.switched
    assert one.low > 1.2
    assert two.dispersion > 10 * one.dispersion
    assert two.low < 1


def test_a_host_that_was_seen_for_half_of_the_time_counts_for_half():
    after = spread_out(40)
    half = np.concatenate([after[: STEPS // 2], np.full(STEPS // 2, np.nan)])
    control = Host("c", False, spread_out(40), spread_out(40))
    mine = events.estimate([Host("s", True, spread_out(40), half), control], 15.0)
    assert mine.switched == (40, 20)
    assert mine.ratio == pytest.approx(1)
    assert mine.switched_seconds == (STEPS * 15, STEPS * 15 / 2)
