"""Verdicts on observed metrics: margins, words, and the named bugs of Kayenta, which judges canaries.

The numbers are those of its issues on GitHub (spinnaker/kayenta, and #377 of spinnaker's own list).
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from framegauge.statistics.observed import Observed, Rule, judge
from framegauge.statistics.switched import Host
from framegauge.statistics.verdict import Verdict

STEPS = 96
COUNT = Rule("drops", "count", higher_is_better=False, margin=0.2, negligible=0.02, not_worse=True)
LEVEL = Rule("latency", "gauge", higher_is_better=False, margin=0.05, not_worse=True)


def noise(seed, scale):
    return np.exp(scale * np.random.default_rng(seed).normal(size=STEPS))


def series(switched, control, scale=0.05, hosts=2):
    """Hosts of both kinds with these levels before and after."""
    return [
        Host(f"{kind}{n}", kind == "s", before * noise(4 * n + k, scale), after * noise(4 * n + k + 2, scale))
        for k, (kind, (before, after)) in enumerate((("s", switched), ("c", control)))
        for n in range(hosts)
    ]


def counted(switched, control, seed=0):
    generator = np.random.default_rng(seed)
    rates = (("s", switched), ("c", control))
    return [
        Host(f"{kind}{n}", kind == "s", *(generator.poisson(rate, STEPS).astype(float) for rate in pair))
        for kind, pair in rates
        for n in range(2)
    ]


def one(rule, hosts, **more):
    return judge([Observed(rule, hosts, 15.0, **more)])[0]


def test_the_words_are_those_of_a_study():
    difference = replace(LEVEL, not_worse=False)
    assert one(difference, series((10, 12), (10, 10))).verdict is Verdict.WORSE
    assert one(difference, series((10, 8), (10, 10))).verdict is Verdict.BETTER
    assert one(difference, series((10, 10), (10, 10), 0.02)).verdict is Verdict.NO_PRACTICAL_DIFFERENCE
    assert one(difference, series((10, 10.5), (10, 10), 0.3)).verdict is Verdict.UNDECIDED
    assert one(LEVEL, series((10, 9.6), (10, 10), 0.05)).verdict is Verdict.NOT_WORSE
    assert one(replace(LEVEL, higher_is_better=True), series((10, 12), (10, 10))).verdict is Verdict.BETTER


def test_what_happens_on_both_sides_is_no_effect():
    assert one(LEVEL, series((10, 30), (20, 60), 0.02)).verdict is Verdict.NO_PRACTICAL_DIFFERENCE


@pytest.mark.parametrize("kind", ["rate", "count"])
def test_hosts_that_are_not_alike_though_somebody_says_so_are_told(kind):
    generator = np.random.default_rng(3)
    hosts = [
        Host(f"h{n}", n < 3, *(generator.poisson(100 * each, STEPS).astype(float) for each in (1, 1 + 0.03 * (n % 3))))
        for n in range(6)
    ]
    rule = replace(COUNT, kind=kind)
    said = "hosts that were said to be alike differ by more than time shows, so they are judged as unlike"
    assert said in one(rule, hosts, alike=True).doubts
    assert said not in one(rule, hosts).doubts
    assert one(rule, hosts, alike=True).judged.low == one(rule, hosts).judged.low


def test_counts_that_are_mostly_0_have_a_verdict_and_figures():
    """Kayenta #674: zero-inflated counts, whose mean is 0 after its outliers are gone, give NaN."""
    found = one(COUNT, counted((0.01, 0.01), (0.01, 0.01)))
    assert found.verdict in (Verdict.NOT_WORSE, Verdict.UNDECIDED, Verdict.NO_PRACTICAL_DIFFERENCE)
    assert "nan" not in found.why.lower()
    gone = one(COUNT, counted((0.0, 0.0), (0.0, 0.0)))
    assert gone.verdict is Verdict.NO_PRACTICAL_DIFFERENCE
    assert gone.why.startswith("No practical difference: at most 0.0")


def test_a_baseline_of_0_can_fail():
    """Kayenta #799, spinnaker #377: with a baseline of 0 a metric passes, or can never fail."""
    found = one(COUNT, counted((0.0, 0.5), (0.0, 0.0)))
    assert found.verdict is Verdict.WORSE
    assert "0 before and " in found.why
    level = Rule("errors", "gauge", higher_is_better=False, margin=0.1, negligible=0.5, not_worse=True)
    assert one(level, series((0, 4), (0, 0))).verdict is Verdict.WORSE
    unsaid = one(replace(level, negligible=None), series((0, 4), (0, 0)))
    assert unsaid.verdict is Verdict.UNDECIDED
    assert "no negligible level" in unsaid.why


def test_nothing_on_either_side_of_too_short_a_time_says_so():
    """Not that it "changed by anything"."""
    negligible = replace(COUNT, negligible=1e-9)
    assert one(negligible, counted((0.0, 0.0), (0.0, 0.0))).why == (
        f"Undecided: too few events to say by how much {COUNT.name} changed against the hosts not switched "
        "(0 before and 0 after the switch; the others 0 and 0)."
    )


def test_what_falls_to_0_is_an_outage():
    traffic = Rule("bytes", "rate", higher_is_better=True, margin=0.2)
    found = one(traffic, series((10, 0), (10, 10)))
    assert found.verdict is Verdict.WORSE
    assert "beyond the margin of 1.99" in found.why or "beyond the margin of 2" in found.why


def test_what_was_not_seen_never_passes():
    """Kayenta #799, spinnaker #377: no data counts as a pass."""
    empty = [Host(name, name == "s", np.full(STEPS, np.nan), np.full(STEPS, np.nan)) for name in "sc"]
    found = one(COUNT, empty, lacking="found no series of s, expected one of each host")
    assert found.verdict is Verdict.NOT_JUDGED
    assert found.why == "Not judged: found no series of s, expected one of each host."
    assert one(COUNT, []).verdict is Verdict.NOT_JUDGED


def test_a_ratio_of_3_18_does_not_pass():
    """Kayenta #744."""
    for rule, hosts in ((LEVEL, series((1, 3.18), (1, 1), 0.3)), (COUNT, counted((1, 3.18), (1, 1)))):
        found = one(rule, hosts)
        assert found.verdict is Verdict.WORSE
        assert "× 3." in found.why or "× 2.9" in found.why


def test_a_larger_effect_is_never_judged_milder_and_the_sentence_has_the_figures():
    """Kayenta #803: +16.8 % fails while +18.4 % passes, and nobody can see why."""
    order = (Verdict.BETTER, Verdict.NO_PRACTICAL_DIFFERENCE, Verdict.NOT_WORSE, Verdict.UNDECIDED, Verdict.WORSE)
    for not_worse in (True, False):
        rule = replace(LEVEL, margin=0.1, not_worse=not_worse)
        effects = (1.0, 1.02, 1.05, 1.1, 1.168, 1.184, 1.3, 2.0)
        found = [one(rule, series((10, 10 * effect), (10, 10), 0.1)) for effect in effects]
        places = [order.index(each.verdict) for each in found]
        assert places == sorted(places)
        assert len(set(places)) >= 3
    (found,) = judge([Observed(rule, series((10, 11.84), (10, 10), 0.02), 15.0)])
    assert found.verdict is Verdict.WORSE
    assert f"{100 * (found.judged.value - 1):+.3g} %" in found.why
    assert "margin of 10 %" in found.why


def test_no_value_is_left_out_as_an_outlier():
    """Kayenta #420: outliers are removed until the mean is 0."""
    spikes = np.zeros(STEPS)
    spikes[::8] = 400.0
    hosts = [Host(f"s{n}", True, np.zeros(STEPS), spikes) for n in range(2)]
    hosts += [Host(f"c{n}", False, np.zeros(STEPS), np.zeros(STEPS)) for n in range(2)]
    found = one(COUNT, hosts)
    assert found.own.switched == (0, 2 * 12 * 400)
    assert found.verdict is Verdict.WORSE


def test_all_metrics_that_decide_are_one_family_and_the_others_cost_nothing():
    hosts = series((10, 10.9), (10, 10), 0.15)
    rules = [replace(LEVEL, name=f"m{n}") for n in range(8)]
    several = judge([Observed(rule, hosts, 15.0) for rule in rules])
    assert several[0].judged.alpha == pytest.approx(0.05 / 8)
    assert several[0].judged.high > several[0].own.high
    shown = judge([Observed(replace(rule, decides=rule.name == "m0"), hosts, 15.0) for rule in rules])
    assert {each.judged.alpha for each in shown} == {0.05}


def test_a_level_that_nobody_cares_for_is_never_worse():
    rule = replace(COUNT, negligible=10.0)
    assert one(COUNT, counted((0.1, 0.5), (0.1, 0.1))).verdict is Verdict.WORSE
    found = one(rule, counted((0.1, 0.5), (0.1, 0.1)))
    assert found.verdict is Verdict.NO_PRACTICAL_DIFFERENCE
    assert "up to 10 counts as nothing" in found.why


def test_one_host_on_a_side_is_a_doubt():
    found = one(LEVEL, series((10, 10), (10, 10), hosts=1))
    assert [each for each in found.doubts if each.startswith("only one host was switched")]
    assert len(found.doubts) == 2


def test_what_remembers_for_longer_than_a_twelfth_of_the_time_is_a_doubt():
    """Where only time tells; three hosts on each side tell by themselves."""
    generator = np.random.default_rng(5)
    slow = np.exp(0.1 * np.cumsum(generator.normal(size=(6, 2 * STEPS)), axis=1))
    hosts = [Host(f"h{n}", n < 3, 10 * row[:STEPS], 10 * row[STEPS:]) for n, row in enumerate(slow)]
    said = "a side has fewer than 12 times of that"
    assert any(said in line for line in one(LEVEL, [hosts[0], hosts[3]]).doubts)
    assert not any(said in line for line in one(LEVEL, hosts).doubts)
    assert not any(said in line for line in one(LEVEL, series((10, 10), (10, 10), hosts=1)).doubts)


def test_too_short_a_time_is_not_judged():
    short = [replace(each, after=each.after[:10]) for each in series((10, 10), (10, 10))]
    assert one(LEVEL, short).why == "Not judged: found 10 steps after the switch, expected at least 16."


def test_no_sentence_has_a_figure_that_is_none():
    generator = np.random.default_rng(9)
    for _ in range(25):
        levels = generator.choice([0.0, 0.01, 0.3, 5.0], 4)
        for rule, hosts in (
            (COUNT, counted(levels[:2], levels[2:])), (LEVEL, series(levels[:2], levels[2:])),
            (replace(LEVEL, negligible=0.1), series(levels[:2], levels[2:])),
        ):  # fmt: skip
            found = one(rule, hosts)
            assert "nan" not in found.why
            assert "inf" not in found.why
            assert found.why.endswith(".")
            assert found.verdict in Verdict
            assert not math.isnan(found.own.low)
