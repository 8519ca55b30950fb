import dataclasses
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from helpers.support import by_length
from hypothesis import given, strategies as st
from scipy import stats

from framegauge.metrics import METRICS
from framegauge.statistics import doubts, exclusions, robust, unpaired
from framegauge.statistics.assurance import more_blocks
from framegauge.statistics.exclusions import exclusions_differ, unequal
from framegauge.statistics.judge import judge
from framegauge.statistics.pairs import Row, log_ratios_by_cell
from framegauge.statistics.ratio import estimate
from framegauge.statistics.verdict import Verdict, decide
from framegauge.summary import judging


def warnings(before, after, margin, higher_is_better):
    metric = METRICS["goodput" if higher_is_better else "completion_time"]
    return doubts.warnings(before, after, estimate(before, after), margin, metric)


def test_an_arm_that_never_works_is_a_verdict_and_no_lost_runs():
    """Three arms over two cells: the mixed arm fails in the second cell, in every block. Nothing else is in doubt."""
    why = "h2: 0 of 100 operations answered"

    def row(block, cell, arm, level, fails=False):
        role = "baseline" if arm == "baseline" else "treatment"
        value = {"1500": 1.0, "mixed": 1.0001, "9000": 1.05}[level] * (1 + 0.0001 * block)
        return Row(
            block, cell, arm, role, level, "nfs", {"cell": cell}, {} if fails else {"goodput": value}, fails, {}, 0,
            why if fails else None,
        )  # fmt: skip

    rows = [
        row(block, cell, arm, level, fails=cell == 1 and arm == "mixed")
        for block in range(8)
        for cell in (0, 1)
        for arm, level in (("baseline", "1500"), ("mixed", "mixed"), ("jumbo", "9000"))
    ]
    found = {(each.cell, each.treatment_level): each for each in judge(rows, {"goodput": 0.01})}
    assert {key: each.verdict for key, each in found.items()} == {
        (0, "mixed"): Verdict.NO_PRACTICAL_DIFFERENCE, (0, "9000"): Verdict.BETTER,
        (1, "mixed"): Verdict.DOES_NOT_WORK, (1, "9000"): Verdict.BETTER,
    }  # fmt: skip
    broken = found[1, "mixed"]
    assert (broken.warnings, broken.ratio, broken.wants_runs) == ((why,), None, False)
    assert judging.is_faithful(list(found.values()))
    assert judging.statistics_settled(list(found.values()))
    # Behind a hash over several paths some runs work: as `compare` counts runs that moved nothing.
    for working, expected in ((1, "in 7 of 8 runs: "), (6, "in 2 of 8 runs: ")):
        some = [
            replace(each, excluded=False, failure=None, metrics={"goodput": 1.0}) if each.block < working else each
            for each in rows
        ]
        judged = {(each.cell, each.treatment_level): each for each in judge(some, {"goodput": 0.01})}
        partly = judged[1, "mixed"]
        assert (partly.verdict, partly.warnings[0], partly.ratio) == (Verdict.DOES_NOT_WORK, expected + why, None)
        assert judging.is_faithful(list(judged.values()))
    # One in eight is no proof, and neither are failures that the baseline has as well.
    once = [
        replace(each, excluded=False, failure=None, metrics={"goodput": 1.0}) if each.block < 7 else each
        for each in rows
    ]
    both = [
        replace(each, excluded=True, failure=why, metrics={}) if each.cell == 1 and each.block > 5 else each
        for each in once
    ]
    for measured in (once, both):
        verdicts = {(each.cell, each.treatment_level): each.verdict for each in judge(measured, {"goodput": 0.01})}
        assert verdicts[1, "mixed"] is not Verdict.DOES_NOT_WORK


def test_a_baseline_that_does_not_work_leaves_nothing_to_compare_with():
    rows = [
        Row(0, 0, "baseline", "baseline", 1500, "nfs", {}, {}, True, {}, 0, "h2: 0 of 1 operations answered"),
        Row(0, 0, "jumbo", "treatment", 9000, "nfs", {}, {"goodput": 1.0}, False),
    ]
    (found,) = judge(rows, {"goodput": 0.01})
    assert (found.verdict, found.warnings) == (
        Verdict.NOT_JUDGED, ("the baseline does not work: h2: 0 of 1 operations answered",),
    )  # fmt: skip


def test_before_the_baseline_was_run_its_level_is_that_of_the_control():
    rows = [
        Row(0, 0, "control", "control", 1500, "stream", {}, {"goodput": 1.0}, False),
        Row(0, 0, "4000", "treatment", 4000, "stream", {}, {"goodput": 1.1}, False),
        Row(0, 0, "9000", "treatment", 9000, "stream", {}, {"goodput": 1.2}, False),
    ]
    judged = judge(rows, {"goodput": 0.01})
    assert {each.treatment_level for each in judged} >= {4000, 9000}
    assert {each.baseline_level for each in judged} == {1500}


def test_interval_matches_a_worked_example():
    # Paired t test on ln(1.1), ln(1.2), ln(1.3): mean 0.180000, s 0.083542, t(0.975, 2) = 4.302653.
    found = estimate([1, 1, 1], [1.1, 1.2, 1.3])
    assert found.ratio == pytest.approx((1.1 * 1.2 * 1.3) ** (1 / 3))
    logs = np.log([1.1, 1.2, 1.3])
    half = 4.302652729911275 * logs.std(ddof=1) / math.sqrt(3)
    assert math.log(found.high) - math.log(found.ratio) == pytest.approx(half)
    assert math.log(found.ratio) - math.log(found.low) == pytest.approx(half)


@pytest.mark.parametrize("blocks", [3, 6, 12])
def test_the_interval_covers_the_truth_in_95_percent(blocks):
    random = np.random.default_rng(20261121)
    draws, truth = 2000, 1.05
    covered = 0
    for _ in range(draws):
        drift = np.exp(random.normal(0, 0.02, blocks))  # common to the block: must cancel
        before = drift * np.exp(random.normal(0, 0.003, blocks))
        after = truth * drift * np.exp(random.normal(0, 0.003, blocks))
        found = estimate(list(before), list(after))
        covered += found.low <= truth <= found.high
    assert covered / draws == pytest.approx(0.95, abs=0.015)


@given(st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)), min_size=2, max_size=20))
def test_swapping_sides_inverts_the_ratio(pairs):
    before, after = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    there, back = estimate(before, after), estimate(after, before)
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert there.low <= there.ratio * (1 + 1e-12)
    # A metric and its reciprocal come to the same verdict.
    assert decide(there, 0.01, True) == decide(back, 0.01, False)


@pytest.mark.parametrize("wrong", [([], []), ([1], [1, 2]), ([1], [0]), ([1], [math.inf])])
def test_refuses_what_has_no_ratio(wrong):
    with pytest.raises(ValueError, match="value"):
        estimate(*wrong)


def pairs(centre, spread):
    return [1.0] * 4, [centre * (1 + sign * spread) for sign in (-1, 1, -1, 1)]


@pytest.mark.parametrize(
    ("centre", "spread", "higher", "verdict"),
    [
        (1.05, 0.001, True, Verdict.BETTER), (1.05, 0.001, False, Verdict.WORSE),
        (0.95, 0.001, True, Verdict.WORSE), (0.95, 0.001, False, Verdict.BETTER),
        (1.0, 0.001, True, Verdict.NO_PRACTICAL_DIFFERENCE), (1.01, 0.01, True, Verdict.UNDECIDED),
        (1.0, 0.1, True, Verdict.UNDECIDED),
    ],
)  # fmt: skip
def test_verdicts(centre, spread, higher, verdict):
    assert decide(estimate(*pairs(centre, spread)), 0.01, higher) is verdict


def test_undecided_says_how_many_more_blocks_and_that_number_settles_it():
    before, after = pairs(1.0, 0.02)
    needed = more_blocks(estimate(before, after), 0.01)
    assert any(f"about {needed} more blocks would" in line for line in warnings(before, after, 0.01, True))


def test_warnings_name_what_weakens_a_verdict():
    assert any("only 4 blocks" in line for line in warnings(*pairs(1.05, 0.001), 0.01, True))
    assert any("do not vary" in line for line in warnings([1.0] * 6, [1.05] * 6, 0.01, True))
    drifting = [1.05 + 0.001 * block for block in range(10)]
    assert any("drifts" in line for line in warnings([1.0] * 10, drifting, 0.01, True))


@pytest.mark.parametrize(
    ("first", "second", "differ"),
    [
        ((0, 6), (0, 6), False),
        ((1, 7), (0, 6), False),
        ((1, 3), (0, 3), False),
        ((2, 6), (0, 6), True),
        ((3, 6), (0, 6), True),
        ((3, 6), (3, 6), False),
        ((2, 40), (12, 40), True),
    ],
)
def test_exclusions_that_differ_by_more_than_chance(first, second, differ):
    assert (exclusions_differ(first, second) is not None) is differ
    assert (exclusions_differ(second, first) is not None) is differ


def test_it_is_told_whether_more_runs_would_tell():
    shown, open_ = exclusions_differ((2, 40), (12, 40)), exclusions_differ((0, 8), (3, 11))
    assert shown is not None
    assert open_ is not None
    assert (shown.is_shown, open_.is_shown) == (True, False)
    assert shown.why.endswith("they were not lost at random")
    assert "too few to tell" in open_.why
    assert exclusions_differ((0, 9), (3, 12)) is None


def test_many_pairs_are_tested_together():
    """Holm: the one that is far from chance is found among many, and one of 5 % alone is not."""
    alike, rare = ((2, 20), (3, 20)), ((0, 20), (12, 20))
    assert exclusions_differ((0, 24), (6, 24)).is_shown
    many = dict.fromkeys(range(9), alike)
    assert unequal(many | {"odd": ((0, 24), (6, 24))}) == {}
    assert list(unequal(many | {"odd": rare})) == ["odd"]
    # Pairs that lost nothing test nothing, and cost no power.
    assert list(unequal(dict.fromkeys(range(99), ((0, 24), (0, 24))) | {"odd": ((0, 24), (6, 24))})) == ["odd"]


@pytest.mark.soak(1)
def test_runs_lost_at_random_rarely_look_otherwise():
    """Whole studies of 24 pairs that lose a tenth of all runs: without the correction a third of them would be doubted."""
    generator, studies, pairs, attempts = np.random.default_rng(1), by_length(300, 5000), 24, 12
    wrong = alone = 0
    for _ in range(studies):
        lost = generator.binomial(attempts, 0.1, (pairs, 2))
        tried = {index: ((int(a), attempts), (int(b), attempts)) for index, (a, b) in enumerate(lost)}
        wrong += any(each.is_shown for each in unequal(tried).values())
        alone += any((one := exclusions_differ(*pair)) is not None and one.is_shown for pair in tried.values())
    assert wrong / studies <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / studies)
    assert alone > wrong


def row(block, arm, value, excluded=False, cell=0):
    role = arm if arm in ("baseline", "control") else "treatment"
    return Row(
        block, cell, arm, role, 1500 if role != "treatment" else 9000, "stream", {}, {"goodput": value}, excluded
    )


def rows(treatment=1.05, control=1.0):
    noise = [0.999, 1.001, 1.0, 1.0005, 0.9995, 1.0002]
    return [
        row(block, arm, 1e9 * scale * (noise[block] if arm != "baseline" else 1))
        for block in range(6)
        for arm, scale in (("baseline", 1), ("control", control), ("9000", treatment))
    ]


def test_judges_control_first_then_treatment():
    control, treatment = judge(rows(), {"goodput": 0.01})
    assert (control.role, control.verdict) == ("control", Verdict.NO_PRACTICAL_DIFFERENCE)
    # The treatment is compared with the baseline's runs and the control's.
    assert (control.runs, treatment.runs) == (12, 18)
    assert treatment.verdict is Verdict.BETTER


def test_a_control_that_differs_makes_the_cell_suspect():
    assert {each.verdict for each in judge(rows(control=1.05), {"goodput": 0.01})} == {Verdict.SUSPECT}


@pytest.mark.parametrize("again", [1, 3])
@pytest.mark.parametrize(("blocks", "why"), [(4, "too few to tell"), (5, "not lost at random")])
def test_runs_lost_in_one_arm_only_make_it_suspect(blocks, again, why):
    lost = [row(block, "9000", 1, excluded=True) for block in range(blocks)] * again
    control, treatment = judge(rows() + lost, {"goodput": 0.01})
    assert control.verdict is Verdict.NO_PRACTICAL_DIFFERENCE
    assert treatment.verdict is Verdict.SUSPECT
    assert why in treatment.warnings[0]


def test_retries_of_one_run_that_are_lost_too_are_one_loss():
    """What spoils a run may last: nine of 15 attempts, in three of 6 slots, are no more than three of 6 first ones."""
    one, three = (
        exclusions.count(
            [(slot, True) for slot in range(3) for _ in range(times)] + [(slot, False) for slot in range(6)]
        )
        for times in (1, 3)
    )
    assert one == three == (3, 6)
    lost = [row(block, "9000", 1, excluded=True) for block in range(1)] * 3
    assert judge(rows() + lost, {"goodput": 0.01})[1].verdict is Verdict.BETTER


def cells(count, control=1.0):
    """As many cells as these, with an A/A control that differs in the last."""
    return [
        dataclasses.replace(each, cell=cell)
        for cell in range(count)
        for each in rows(control=control if cell == count - 1 else 1.0)
    ]


@pytest.mark.parametrize(("of", "faithful"), [(6, True), (2, False)])
def test_a_comparison_that_lost_its_runs_costs_itself_unless_they_are_many(of, faithful):
    lost = [row(block, "9000", 1, excluded=True) for block in range(3)]
    found = judge(cells(of) + lost, {"goodput": 0.01})
    assert [each.verdict for each in found].count(Verdict.SUSPECT) == 1
    assert judging.is_faithful(found) is faithful


def test_a_control_that_differs_in_one_cell_costs_the_study():
    found = judge(cells(6, control=1.05), {"goodput": 0.01})
    assert [each.verdict for each in found].count(Verdict.SUSPECT) == 2
    assert not judging.is_faithful(found)


def test_no_pair_left_is_not_judged():
    found = judge([row(0, "baseline", 1, excluded=True), row(0, "9000", 1e9)], {"goodput": 0.01})
    assert [each.verdict for each in found] == [Verdict.NOT_JUDGED]


def test_a_comparison_that_lost_most_of_its_blocks_is_not_judged():
    everything = [row(block, arm, 1e9, excluded=block > 1) for block in range(6) for arm in ("baseline", "9000")]
    (found,) = judge(everything, {"goodput": 0.01})
    assert found.verdict is Verdict.NOT_JUDGED
    assert found.warnings[0] == "4 of 6 blocks were lost: too many to judge the rest"


def test_runs_that_count_but_lack_the_figure_are_not_called_lost():
    whole = [row(block, arm, 1e9) for block in range(6) for arm in ("baseline", "9000")]
    few = [dataclasses.replace(each, metrics={}) if each.arm == "9000" and each.block > 1 else each for each in whole]
    (found,) = judge(few, {"goodput": 0.01})
    assert found.verdict is Verdict.NOT_JUDGED
    assert found.warnings[0].startswith("4 of 6 blocks lack this figure on a side")


def test_a_value_of_0_has_no_ratio_and_no_verdict():
    """One starved run: judged without it the rest would say better, and not why it is all that is left."""
    starved = [
        dataclasses.replace(each, metrics={"goodput": 0.0}) if (each.block, each.arm) == (2, "9000") else each
        for each in rows()
    ]
    control, treatment = judge(starved, {"goodput": 0.01})
    assert control.verdict is Verdict.NO_PRACTICAL_DIFFERENCE
    assert treatment.verdict is Verdict.NOT_JUDGED
    assert treatment.warnings[0] == "1 of 18 values are 0, so there is no ratio"
    nothing = [dataclasses.replace(each, metrics={"goodput": 0.0}) for each in rows()]
    assert {each.verdict for each in judge(nothing, {"goodput": 0.01})} == {Verdict.NOT_JUDGED}
    assert log_ratios_by_cell(nothing, "goodput", "9000") == {}


def test_outliers_are_kept_and_told():
    before, after = [1.0] * 12, [1.05 + 0.001 * (block % 3) for block in range(11)] + [2.0]
    found = estimate(before, after)
    assert found.blocks == 12
    assert any("1 of 12 blocks is an outlier, and kept" in line for line in warnings(before, after, 0.01, True))


def test_blocks_that_resemble_the_one_before_are_told():
    random = np.random.default_rng(3)
    way, logs = 0.0, []
    for _ in range(40):
        way = 0.95 * way + float(random.normal(0, 0.01))
        logs.append(way)
    lines = warnings([1.0] * 40, list(np.exp(logs)), 0.01, True)
    assert any("neighbouring blocks are alike" in line or "drifts" in line for line in lines)
    independent = warnings([1.0] * 40, list(np.exp(random.normal(0, 0.01, 40))), 0.01, True)
    assert not any("alike" in line or "drifts" in line for line in independent)


def test_the_middle_is_hodges_and_lehmanns_with_wilcoxons_interval():
    # Hollander, Wolfe & Chicken 2014, example 3.3: nine depression scores before and after tranquilizers; the estimate
    # of the difference is -0.46, its interval with 96.1 % confidence (-0.786, -0.010).
    before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    found = robust.middle(np.asarray(after) - np.asarray(before), alpha=0.0391)
    assert found.centre == pytest.approx(-0.46, abs=0.005)
    assert (found.low, found.high) == (pytest.approx(-0.786), pytest.approx(-0.010))
    assert robust.middle([0.1] * 4) == (pytest.approx(0.1), None, None)


@given(
    st.lists(st.floats(0.1, 10), min_size=2, max_size=30),
    st.lists(st.floats(0.1, 10), min_size=2, max_size=30),
)
def test_unpaired_sides_can_be_swapped_and_need_not_be_as_many(first, second):
    there, back = unpaired.estimate(first, second), unpaired.estimate(second, first)
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert there.low == pytest.approx(1 / back.high)


def test_unpaired_intervals_are_welchs():
    first = [1.0, 1.1, 1.3, 0.9, 1.0, 1.2, 1.1, 1.05]
    second = [2.0, 2.1, 1.9, 2.4, 2.2, 2.3, 2.0, 2.05, 1.95]
    found = unpaired.estimate(first, second)
    expected = stats.ttest_ind(np.log(second), np.log(first), equal_var=False).confidence_interval(0.95)
    assert (math.log(found.low), math.log(found.high)) == pytest.approx(tuple(expected))


@given(st.lists(st.floats(-3, 3).map(lambda value: round(value, 1)), min_size=6, max_size=60))
def test_ranks_and_drift_are_those_of_scipy(values):
    assert doubts._ranks(np.array(values)) == pytest.approx(stats.rankdata(values))
    if len(set(values)) > 2:
        wanted = stats.spearmanr(range(len(values)), values).pvalue
        assert doubts._drift(np.array(values)) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(("cells", "verdict"), [(1, Verdict.DOES_NOT_WORK), (20, Verdict.UNDECIDED)])
def test_two_runs_of_eight_that_fail_are_little_among_many_comparisons(cells: int, verdict: Verdict) -> None:
    """Of 20 cells of a network in order (1 run in 200 fails) one has two such runs with 1.4 %."""

    def row(block: int, cell: int, role: str) -> Row:
        fails = cell == 0 and role == "treatment" and block < 2
        return Row(
            block, cell, role, role, role, "nfs", {"cell": cell}, {} if fails else {"goodput": 1 + 0.0001 * block},
            fails, {}, 0, "h1: 0 of 1 operations answered" if fails else None,
        )  # fmt: skip

    rows = [row(*key) for key in itertools.product(range(8), range(cells), ("baseline", "treatment"))]
    first, *others = judge(rows, {"goodput": 0.01})
    assert first.verdict is verdict
    assert {each.verdict for each in others} <= {Verdict.NO_PRACTICAL_DIFFERENCE}
