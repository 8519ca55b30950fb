"""Looking after every block: what it spends, and what all comparisons together may claim."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from framegauge.statistics import family
from framegauge.statistics.judge import is_settled, judge
from framegauge.statistics.pairs import Row
from framegauge.statistics.ratio import quantile
from framegauge.statistics.sequential import FIRST_LOOK, StoppingRule, _chance_of_any, _levels, _Walk, looks


@pytest.mark.parametrize("planned", [2, 5, 6, 8, 60, 10_000])
def test_the_last_look_is_at_the_planned_end_and_there_are_not_too_many(planned):
    found = looks(planned)
    assert found[-1] == planned
    assert found == sorted(set(found))
    assert len(found) <= 50


def test_boundaries_of_two_looks_are_those_of_two_t_statistics():
    """The second is crossed first with what is left of alpha: by the density of the first, and of the block between."""
    alpha, planned = 0.05, FIRST_LOOK + 1
    (blocks, first), (_, last) = _levels(alpha, planned)
    assert first == pytest.approx(alpha * (blocks / planned) ** 3, rel=1e-3)

    def place(level, count):
        t = quantile(count - 1, level)
        return t * math.sqrt(count / (count - 1 + t * t))

    nodes, weights = np.polynomial.legendre.leggauss(2000)
    before, edge = nodes * place(first, blocks), place(last, planned)
    t = before * np.sqrt((blocks - 1) / (blocks - before**2))
    density = stats.t.pdf(t, blocks - 1) * math.sqrt(blocks - 1) * blocks / (blocks - before**2) ** 1.5
    angles = (np.arange(20_000) + 0.5) / 20_000 * math.pi - math.pi / 2
    chances = np.cos(angles) ** (blocks - 1)
    beyond = [np.sum(chances[np.abs(w * np.cos(angles) + np.sin(angles)) > edge]) / chances.sum() for w in before]
    second = place(first, blocks) * float((weights * density) @ np.array(beyond))
    assert first + second == pytest.approx(alpha, rel=2e-3)


def test_an_effect_is_found_more_often_than_where_half_of_the_error_is_spent_early():
    """12 blocks, and an effect that one look finds in 80 %: it was 70 % with twice the error in the middle of a study,
    and with boundaries that allowed for t by a factor."""
    random, studies, rule = np.random.default_rng(20261129), 20_000, StoppingRule(12)
    values = random.normal(size=(studies, 12)) + 0.889
    crossed = np.zeros(studies, dtype=bool)
    for blocks in looks(12):
        seen = values[:, :blocks]
        half = quantile(blocks - 1, rule.nominal(0.05, blocks)) * seen.std(axis=1, ddof=1) / math.sqrt(blocks)
        crossed |= seen.mean(axis=1) > half
    one = values.mean(axis=1) > quantile(11, 0.05) * values.std(axis=1, ddof=1) / math.sqrt(12)
    assert one.mean() == pytest.approx(0.8, abs=0.01)
    assert crossed.mean() >= 0.74


@pytest.mark.parametrize("planned", [8, 20, 70])
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_all_looks_together_miss_the_truth_with_alpha_at_most(planned, alpha):
    random, studies, rule = np.random.default_rng(20261121), 20_000, StoppingRule(planned)
    values = random.normal(size=(studies, planned))
    missed = np.zeros(studies, dtype=bool)
    for blocks in looks(planned):
        seen = values[:, :blocks]
        half = quantile(blocks - 1, rule.nominal(alpha, blocks)) * seen.std(axis=1, ddof=1) / math.sqrt(blocks)
        missed |= np.abs(seen.mean(axis=1)) > half
    error = math.sqrt(alpha * (1 - alpha) / studies)
    assert missed.mean() <= alpha + 3 * error
    assert missed.mean() >= alpha - 3 * error  # and not by making the intervals needlessly wide


def test_an_unplanned_study_has_one_look_at_the_whole_level():
    assert StoppingRule().nominal(0.05, 7) == 0.05
    assert not StoppingRule().looks_after(7)


def test_between_looks_nothing_more_is_spent():
    rule = StoppingRule(500)
    at, after = looks(500)[3:5]
    assert rule.nominal(0.05, at) == rule.nominal(0.05, after - 1)
    assert rule.looks_after(at)
    assert not rule.looks_after(at + 1)


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=30))
def test_the_family_is_settled_as_holm_does_it(chances):
    levels = family.levels([lambda alpha, chance=chance: chance <= alpha for chance in chances], 0.05)
    rejected = {index for index, chance in enumerate(chances) if chance <= levels[index]}
    expected = set()
    for rank, index in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        if chances[index] > 0.05 / (len(chances) - rank):
            break
        expected.add(index)
    assert rejected == expected


def rows(effects, blocks, spread, seed=1):
    random = np.random.default_rng(seed)
    return [
        Row(block, cell, arm, "baseline" if arm == "baseline" else "treatment", 0, "stream", {},
            {"goodput": float(scale * np.exp(random.normal(0, spread)))}, False)
        for cell, effect in enumerate(effects) for block in range(blocks)
        for arm, scale in (("baseline", 1.0), ("9000", effect))
    ]  # fmt: skip


def test_one_of_many_comparisons_needs_more_than_one_alone():
    found = judge(rows([1.05] + [1.0] * 19, 6, 0.012), {"goodput": 0.02})
    first = found[0]
    assert first.judged.alpha < first.ratio.alpha == 0.05
    assert first.judged.low < first.ratio.low
    alone = judge(rows([1.05], 6, 0.012), {"goodput": 0.02})[0]
    assert alone.judged.alpha == 0.05


def test_a_study_is_settled_once_every_treatment_has_its_verdict():
    assert is_settled(judge(rows([1.05, 1.0], 8, 0.001), {"goodput": 0.01}))
    assert not is_settled(judge(rows([1.05, 1.01], 8, 0.001), {"goodput": 0.01}))
    assert not is_settled([])


def with_control(blocks, lost):
    """A clear effect, and an A/A control of which so many more runs were lost."""
    random = np.random.default_rng(1)
    control = [(block, block >= blocks) for block in range(blocks + lost)]
    return rows([1.05], blocks, 0.001) + [
        Row(block % blocks, 0, "control", "control", 0, "stream", {},
            {} if excluded else {"goodput": float(np.exp(random.normal(0, 0.001)))}, excluded)
        for block, excluded in control
    ]  # fmt: skip


def test_a_control_is_waited_for_as_long_as_too_few_runs_tell_how_some_were_lost():
    # 2 of 5 are more than a quarter, 2 of 8 are not. 5 of 5 against none are no chance: more runs would not help.
    for blocks, lost, settled in [(5, 0, True), (5, 2, False), (8, 2, True), (5, 5, True)]:
        found = judge(with_control(blocks, lost), {"goodput": 0.01})
        assert found[-1].verdict == "better"
        assert is_settled(found) is settled, (blocks, lost, [each.warnings for each in found])


def test_no_effect_is_rarely_claimed_in_a_study_of_many_looks_and_comparisons():
    rule, wrong, studies = StoppingRule(8), 0, 300
    for seed in range(studies):
        everything = rows([1.0] * 4, 8, 0.02, seed)
        for blocks in looks(8):
            so_far = [row for row in everything if row.block < blocks]
            found = judge(so_far, {"goodput": 0.001}, rule, explain=False)
            if is_settled(found) or blocks == 8:
                wrong += any(each.verdict in ("better", "worse") for each in found)
                break
    assert wrong / studies <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / studies)


# Published boundaries: after each look, the critical value of the standard normal statistic.
OBRIEN_FLEMING = {2: 1.977, 3: 2.004, 4: 2.024, 5: 2.040}  # Jennison & Turnbull 2000, table 2.3, C_B(K, 0.05)
POCOCK = {2: 2.178, 3: 2.289, 4: 2.361, 5: 2.413}  # the same, table 2.1, C_P(K, 0.05)
MANY = 200  # blocks from look to look, after which Student's t is nearly normal


@pytest.mark.parametrize("count", OBRIEN_FLEMING)
def test_the_recursion_gives_the_published_error_of_known_boundaries(count):
    def level(edge):
        return 2 * float(stats.norm.sf(edge))

    pocock = tuple((MANY * look, level(POCOCK[count])) for look in range(1, count + 1))
    assert _chance_of_any(pocock) == pytest.approx(0.05, abs=2e-4)
    fleming = tuple(
        (MANY * look, level(OBRIEN_FLEMING[count] * math.sqrt(count / look))) for look in range(1, count + 1)
    )
    assert _chance_of_any(fleming) == pytest.approx(0.05, abs=2e-4)


@pytest.mark.parametrize(
    ("looks_made", "error"), [(1, 0.05), (2, 0.083), (3, 0.107), (4, 0.126), (5, 0.142), (10, 0.193)]
)
def test_repeated_looks_at_one_level_miss_the_truth_as_often_as_published(looks_made, error):
    """Armitage, McPherson & Rowe 1969, table 2 (normal, 5 %)."""
    looked = tuple((MANY * look, 0.05) for look in range(1, looks_made + 1))
    assert _chance_of_any(looked) == pytest.approx(error, abs=8e-4)


def test_boundaries_of_the_power_family_spend_what_they_may():
    """Kim & DeMets 1987, exponent 3: five looks at equal steps have spent alpha t^3 after each of them."""
    walk, spent = _Walk(), 0.0
    for look in range(1, 6):
        share = 0.05 * (look / 5) ** 3
        walk.go_to(8 * look)
        level = walk.level_for(share - spent)
        assert walk.pass_by(level) == pytest.approx(share - spent, rel=1e-6)
        spent = share
        if look == 1:
            assert level == pytest.approx(share, rel=1e-3)
    assert spent == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("planned", "ends"),
    [
        (None, (2, 3)),
        (None, (2, 4)),
        (None, (8, 12)),
        (None, (8, 16)),
        (None, (8, 10, 12)),
        (8, (8, 12)),
        (20, (20, 30)),
    ],
)
@pytest.mark.parametrize("alpha", [0.05, 0.005])
def test_an_extension_costs_what_it_says(planned, ends, alpha):
    random, studies, rule = np.random.default_rng(20261125), 40_000, StoppingRule(planned, ends)
    values = random.normal(size=(studies, ends[-1]))
    missed = np.zeros(studies, dtype=bool)
    looked = [blocks for blocks in range(2, ends[-1] + 1) if blocks in ends or rule.looks_after(blocks)]
    for blocks in looked:
        seen = values[:, :blocks]
        half = quantile(blocks - 1, rule.nominal(alpha, blocks)) * seen.std(axis=1, ddof=1) / math.sqrt(blocks)
        missed |= np.abs(seen.mean(axis=1)) > half
    said = rule.error(alpha)
    error = math.sqrt(said / studies)
    assert missed.mean() <= said + 3 * error
    assert missed.mean() >= 0.8 * said
    assert alpha < said < len(ends) * 1.1 * alpha


def test_an_extension_takes_no_verdict_back():
    before, after = StoppingRule(8), StoppingRule(8, (8, 12))
    assert [after.nominal(0.05, blocks) for blocks in range(2, 9)] == [before.nominal(0.05, n) for n in range(2, 9)]
    assert after.nominal(0.05, 12) == before.nominal(0.05, 8)
    assert all(after.looks_after(blocks) for blocks in range(8, 13))
    assert not after.looks_after(13)
    assert StoppingRule(None, (8,)).error(0.05) == 0.05
