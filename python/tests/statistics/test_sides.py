"""Two sides of runs: do intervals and verdicts err as often as they say?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.support import by_length
from scipy import signal, stats

from framegauge.statistics import unpaired
from framegauge.statistics.sides import Sets, judge
from framegauge.statistics.verdict import Verdict

SEED = 20261121


def draw(random, count, centre=1.0, spread=0.02):
    return list(centre * np.exp(random.normal(0, spread, count)))


def test_interval_matches_welchs_t():
    base, new = [1.0, 1.02, 0.99, 1.01, 1.03, 0.98, 1.0, 1.0, 1.01], [1.1, 1.15, 1.05, 1.2, 1.12, 1.09, 1.11, 1.14]
    found = unpaired.estimate(base, new)
    welch = stats.ttest_ind(np.log(new), np.log(base), equal_var=False).confidence_interval()
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((welch.low, welch.high))


@pytest.mark.parametrize(
    ("first", "second"), [((8, 0.02), (8, 0.02)), ((9, 0.01), (12, 0.05)), ((20, 0.03), (8, 0.01))]
)
def test_the_interval_covers_the_truth_in_95_percent(first, second):
    random, truth, draws = np.random.default_rng(SEED), 1.07, 2000
    covered = 0
    for _ in range(draws):
        found = unpaired.estimate(draw(random, *first[:1], spread=first[1]), draw(random, second[0], truth, second[1]))
        covered += found.low <= truth <= found.high
    assert covered / draws == pytest.approx(0.95, abs=0.015)


def remembering(random, count, memory=0.8, spread=0.02):
    """Runs that resemble the ones before."""
    shocks = spread * random.normal(size=count)
    shocks[1:] *= math.sqrt(1 - memory * memory)
    return list(np.exp(signal.lfilter([1.0], [1.0, -memory], shocks)))


@pytest.mark.parametrize("count", [3, 5, 7])
def test_few_runs_that_depend_on_each_other_rarely_make_a_claim(count):
    """They cannot show it: with 5 to 7 runs a side, 38 to 42 % of comparisons without a difference claimed one."""
    random, draws, wrong = np.random.default_rng(SEED), by_length(300, 4000), 0
    for _ in range(draws):
        sets = Sets("goodput", 1e-9, remembering(random, count), remembering(random, count))
        (found,) = judge([sets])
        wrong += found.verdict in (Verdict.BETTER, Verdict.WORSE)
    assert wrong / draws <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)
    assert any(
        "too few to show whether successive runs depend on each other: the interval allows" in line
        for line in found.warnings
    )


def test_few_runs_still_show_a_large_difference():
    random = np.random.default_rng(SEED)
    for _ in range(50):
        (found,) = judge([Sets("goodput", 0.02, draw(random, 5), draw(random, 5, 0.7))])
        assert found.verdict is Verdict.WORSE
    # From eight runs on they show whether they depend on each other, and nothing is allowed for it.
    seven, eight = (unpaired.estimate(draw(random, n), draw(random, n)) for n in (7, 8))
    assert math.log(seven.high / seven.low) > 2 * math.log(eight.high / eight.low)


def test_an_undecided_comparison_of_few_runs_asks_for_as_many_as_show_that():
    random = np.random.default_rng(SEED)
    (found,) = judge([Sets("goodput", 0.01, draw(random, 5), draw(random, 5, 1.035))])
    assert found.verdict is Verdict.UNDECIDED
    assert any(line.startswith("undecided: about 3 more runs on each side") for line in found.warnings)


def test_what_only_independent_runs_would_show_is_stated_with_its_condition_and_not_claimed():
    random, worse = np.random.default_rng(SEED), 0
    for _ in range(50):
        base, new = draw(random, 6), draw(random, 6, 0.94)
        (found,) = judge([Sets("goodput", 0.01, base, new)])
        plain = unpaired.estimate(base, new, independent=True)
        if found.verdict is Verdict.SUSPECT:
            worse += 1
            assert found.warnings[0].startswith("worse if runs are independent (0.")
            assert found.warnings[0].endswith("too few to show that: measure 8 or more on each side")
            assert plain.high < 1 / 1.01 < found.ratio.high
        assert found.verdict in (Verdict.SUSPECT, Verdict.WORSE, Verdict.UNDECIDED)
    assert worse > 30
    # With as many as show it, it is claimed.
    (found,) = judge([Sets("goodput", 0.01, draw(random, 12), draw(random, 12, 0.94))])
    assert found.verdict is Verdict.WORSE


@pytest.mark.parametrize("family", [1, 20])
def test_where_nothing_differs_few_independent_runs_are_seldom_suspect(family):
    random, draws = np.random.default_rng(SEED), by_length(300, 4000)
    wrong = 0
    for _ in range(draws):
        sets = [Sets("goodput", 1e-9, draw(random, 5), draw(random, 5)) for _ in range(family)]
        wrong += any(each.verdict not in (Verdict.UNDECIDED,) for each in judge(sets))
    assert wrong / draws <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)


@pytest.mark.soak(4)
def test_many_comparisons_of_what_is_alike_rarely_claim_a_difference():
    random, draws, family = np.random.default_rng(SEED), by_length(60, 2000), 10
    wrong = 0
    for _ in range(draws):
        # A margin of nearly nothing: every claim of a difference is false.
        sets = [Sets("goodput", 1e-9, draw(random, 8), draw(random, 8)) for _ in range(family)]
        wrong += any(each.verdict in (Verdict.BETTER, Verdict.WORSE) for each in judge(sets))
    assert wrong / draws <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)
    # Without the family, two studies of five would claim one.
    assert 1 - 0.95**family == pytest.approx(0.40, abs=0.01)


@pytest.mark.parametrize(
    ("metric", "ratio", "spread", "verdict"),
    [
        ("goodput", 1.10, 0.005, Verdict.BETTER),
        ("goodput", 0.90, 0.005, Verdict.WORSE),
        ("completion_time", 1.10, 0.005, Verdict.WORSE),
        ("completion_time", 0.90, 0.005, Verdict.BETTER),
        ("goodput", 1.00, 0.002, Verdict.NO_PRACTICAL_DIFFERENCE),
        ("goodput", 1.02, 0.05, Verdict.UNDECIDED),
    ],
)
def test_verdicts(metric, ratio, spread, verdict):
    random = np.random.default_rng(SEED)
    (found,) = judge([Sets(metric, 0.02, draw(random, 10, spread=spread), draw(random, 10, ratio, spread))])
    assert found.verdict is verdict
    assert found.new / found.base == pytest.approx(found.ratio.ratio)


def test_swapping_the_sides_inverts_the_ratio():
    random = np.random.default_rng(SEED)
    base, new = draw(random, 5), draw(random, 9, 1.3)
    (there,), (back,) = judge([Sets("goodput", 0.02, base, new)]), judge([Sets("goodput", 0.02, new, base)])
    assert there.ratio.ratio == pytest.approx(1 / back.ratio.ratio)
    assert there.ratio.low == pytest.approx(1 / back.ratio.high)
    assert {there.verdict, back.verdict} == {Verdict.BETTER, Verdict.WORSE}


def test_one_run_a_side_is_undecided_and_two_have_an_interval_of_any_width():
    (one,) = judge([Sets("goodput", 0.02, [1.0], [2.0, 2.1])])
    assert (one.verdict, one.ratio.low) == (Verdict.UNDECIDED, None)
    assert any("only 1 run on" in line for line in one.warnings)
    found = judge([Sets("goodput", 0.02, [1e-9, 1e9], [1e-9, 2e9])] * 50)
    assert all(0 < each.judged.low < each.judged.high < math.inf for each in found)


def test_what_has_no_runs_is_not_judged_and_does_not_weaken_the_rest():
    sets = Sets("retransmits", 0.05, [0.0, 2.0], [0.0, 0.0])
    able = Sets("goodput", 0.02, [1.0, 1.001, 0.999], [1.1, 1.101, 1.099])
    zeros, better, empty = judge([sets, able, Sets("goodput", 0.02, [], [1.0])])
    assert (zeros.verdict, zeros.base, zeros.new) == (Verdict.UNDECIDED, 1.0, 0.0)
    assert zeros.warnings[0] == "3 of 4 values are 0: compared by ranks, and the means are shown"
    assert better.judged.alpha == 0.025  # one of two that can be judged
    assert (empty.verdict, empty.base) == (Verdict.NOT_JUDGED, None)


def warnings(base, new, margin=0.02, **more):
    return list(judge([Sets("goodput", margin, base, new, **more)])[0].warnings)


def test_warnings_name_what_weakens_a_verdict():
    random = np.random.default_rng(SEED)
    calm = draw(random, 12, spread=0.001)
    assert warnings(calm, draw(random, 12, 1.1, 0.001)) == []
    assert any("only 3 blocks" in line for line in warnings(calm, calm[:3], unit="block"))
    assert any("do not vary" in line for line in warnings([1.0] * 6, [1.0] * 6))
    drifting = [1.0 + 0.01 * step for step in range(12)]
    assert any("NEW drifts from run to run" in line for line in warnings(calm, drifting))
    assert any("1 of 12 runs of BASE is an outlier" in line for line in warnings([*calm[:11], 5.0], calm))


def test_undecided_says_how_many_more_and_so_many_settle_it():
    random = np.random.default_rng(SEED)
    base, new = draw(random, 8), draw(random, 8)
    (line,) = (line for line in warnings(base, new) if line.startswith("undecided: about"))
    more = int(line.split()[2])
    # The same spread, so many more runs.
    times = math.ceil((8 + more) / 8) + 1
    assert judge([Sets("goodput", 0.02, base * times, new * times)])[0].verdict is not Verdict.UNDECIDED


def test_a_doubt_makes_it_suspect_whatever_the_values_say():
    found = judge([Sets("goodput", 0.02, [1.0, 1.001], [1.5, 1.501], "run", "not lost at random")])[0]
    assert found.verdict is Verdict.SUSPECT
    assert found.warnings[0] == "not lost at random"


@pytest.mark.parametrize("comparisons", [1, 8, 24])
def test_of_folders_with_independent_runs_one_in_twenty_is_suspect_at_most(comparisons):
    """However many comparisons a folder has: before, it was one in two of those with 24."""
    random, folders = np.random.default_rng(SEED), by_length(300, 2000)
    suspect = 0
    for _ in range(folders):
        found = judge([Sets("goodput", 0.02, draw(random, 12), draw(random, 12)) for _ in range(comparisons)])
        suspect += any(each.verdict is Verdict.SUSPECT for each in found)
    assert stats.binomtest(suspect, folders, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize(
    ("runs", "verdict"), [(2, Verdict.UNDECIDED), (7, Verdict.UNDECIDED), (8, Verdict.NO_PRACTICAL_DIFFERENCE)]
)
@pytest.mark.parametrize("values", [0.0, 1.0])
def test_equality_needs_as_many_runs_as_a_study_needs_blocks(runs, verdict, values):
    metric = "retransmits" if values == 0 else "goodput"
    [found] = judge([Sets(metric, 0.05, [values] * runs, [values] * (runs + 3))])
    assert found.verdict is verdict
    assert any("no practical difference needs 8" in line for line in found.warnings) is (runs < 8)


@pytest.mark.parametrize(
    ("count", "times", "is_said"), [(8, 0.97, True), (19, 0.97, True), (20, 0.97, False), (8, 0.5, False)]
)
def test_a_verdict_that_supposes_independent_runs_says_so(count, times, is_said):
    """With a memory of 0.8 and no difference, 37 % of comparisons of 8 runs make a claim, and 4 % of 20."""
    random = np.random.default_rng(SEED)
    (found,) = judge([Sets("goodput", 0.001, draw(random, count), draw(random, count, times))])
    assert found.verdict is Verdict.WORSE
    assert any("the verdict takes runs as independent" in line for line in found.warnings) is is_said
    (doubted,) = judge([Sets("goodput", 0.001, draw(random, count), draw(random, count, times), doubt="lost")])
    assert not any("the verdict takes" in line for line in doubted.warnings)


def test_a_memory_seldom_makes_a_claim_of_as_many_runs_as_show_it():
    random, draws, wrong = np.random.default_rng(SEED), by_length(300, 2000), 0
    for _ in range(draws):
        base, new = (remembering(random, unpaired.SHOWN) for _ in range(2))
        (found,) = judge([Sets("goodput", 1e-9, base, new)])
        wrong += found.verdict in (Verdict.BETTER, Verdict.WORSE)
    assert wrong / draws <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)
