"""Verdicts on switches whose effect is known: how often they are wrong, and whether they find what is there.

bench/truth/switches.py makes the series; `make soak` draws many more. A count of wrong verdicts is compared with the
most that 5 % (or, for what must be found, the least that 65 %) would give in all but one of ten thousand cases.
"""

import pytest
from helpers.support import bench, by_length
from scipy import stats

switches = bench("truth.switches")
COUNT, FOUND, LOOKED = by_length(30, 2000), by_length(30, 1000), by_length(10, 1000)
RARELY = 1e-4


def most(share: float, count: int) -> int:
    return int(stats.binom.isf(RARELY, count, share))


def least(share: float, count: int) -> int:
    return int(stats.binom.ppf(RARELY, count, share))


CASES = [(name, make, "rate") for name, make in switches.LEVELS.items()]
CASES += [(f"{name}, counted", make, "count") for name, make in switches.COUNTS.items()]


@pytest.mark.soak(3)
@pytest.mark.thorough
@pytest.mark.parametrize("hosts", [1, 4])
@pytest.mark.parametrize(("make", "kind"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_switch_without_effect_is_rarely_called_worse(make, kind, hosts):
    assert switches.worse(make, kind, hosts, COUNT, seed=7 + hosts) <= most(0.05, COUNT)


@pytest.mark.soak(1)
@pytest.mark.thorough
@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("name", switches.DRIFTS)
def test_hosts_that_change_by_themselves_are_no_effect(name, alike):
    """Also where somebody says that they are alike, which shows to be wrong."""
    kind, make = switches.DRIFTS[name]
    share = 0.05 if not alike else 0.08
    assert switches.worse(make, kind, 4, COUNT, seed=23, alike=alike) <= most(share, COUNT)


@pytest.mark.soak(1)
@pytest.mark.thorough
@pytest.mark.parametrize(("hosts", "alike"), [(2, False), (3, True)])
@pytest.mark.parametrize("name", switches.LEVELS)
def test_an_effect_of_three_standard_errors_is_found(name, hosts, alike):
    """Beyond the margin; no test that is wrong in 2.5 % on this side finds more than 85 %."""
    assert switches.found(switches.LEVELS[name], hosts, FOUND, seed=3, alike=alike) >= least(0.65, FOUND)


@pytest.mark.soak(1)
@pytest.mark.thorough
@pytest.mark.parametrize("name", switches.LEVELS)
def test_hosts_that_are_alike_and_said_to_be_are_rarely_called_worse(name):
    assert switches.worse(switches.LEVELS[name], "rate", 3, COUNT, seed=29, alike=True) <= most(0.05, COUNT)


@pytest.mark.soak(5)
@pytest.mark.thorough
@pytest.mark.parametrize("hosts", by_length([1], [1, 2]))
@pytest.mark.parametrize("name", [name for name in switches.SLOW if not name.startswith(switches.TOO_SLOW)])
def test_twenty_looks_at_what_remembers_for_minutes_rarely_find_it_worse(name, hosts):
    """The promise is for all looks together, and the first have fewer steps than what is compared remembers."""
    kind, make = switches.SLOW[name]
    ever, _ = switches.ever_worse(make, kind, hosts, LOOKED, seed=31 + hosts)
    assert ever <= most(0.05, LOOKED)


@pytest.mark.soak(1)
@pytest.mark.thorough
@pytest.mark.parametrize("hosts", [1, 5])
def test_more_events_are_found_beside_a_cycle_that_all_share(hosts):
    """The number of events that a switch of 1.6 times needs does not depend on what all hosts do at once."""
    count = by_length(10, 500)
    assert switches.found_more(switches.COUNTS["a cycle of 40 min"], hosts, count, 37, 1.6) >= least(0.95, count)
