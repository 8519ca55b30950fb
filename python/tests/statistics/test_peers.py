"""Our statistics against well-kept libraries, on the same numbers."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import DescrStatsW, ttost_paired

from framegauge.statistics import differences, family
from framegauge.statistics.power import reach
from framegauge.statistics.ratio import estimate
from framegauge.statistics.verdict import Verdict, decide

ALPHA = 0.05
values = st.lists(st.floats(0.9, 1.12), min_size=4, max_size=20).filter(lambda found: len(set(found)) > 2)


@pytest.fixture(scope="module", autouse=True)
def short_collections() -> Iterator[None]:
    """multipletests calls gc.collect() each time, which looks at all objects of the modules that are loaded: 0.1 s."""
    gc.freeze()
    yield
    gc.unfreeze()


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=30))
def test_a_family_is_judged_as_by_multipletests(chances: list[float]) -> None:
    levels = family.levels([lambda alpha, chance=chance: chance <= alpha for chance in chances], ALPHA)
    rejected = [chance <= level for chance, level in zip(chances, levels, strict=True)]
    assert rejected == list(multipletests(chances, alpha=ALPHA, method="holm")[0])


@given(values, st.floats(0.005, 0.1), st.sampled_from([0.05, 0.01]))
def test_no_practical_difference_is_what_two_one_sided_tests_show(
    treatment: list[float], margin: float, alpha: float
) -> None:
    """The interval at level alpha lies inside the margin where both tests reject at alpha / 2 (TOST)."""
    base = [1.0] * len(treatment)
    edge = math.log1p(margin)
    chance, *_ = ttost_paired(np.log(treatment), np.log(base), -edge, edge)
    if abs(chance - alpha / 2) > 1e-9:
        found = decide(estimate(base, treatment, alpha), margin, True)
        assert (found is Verdict.NO_PRACTICAL_DIFFERENCE) == (chance < alpha / 2)


@given(values, st.floats(0.005, 0.1))
def test_better_worse_and_not_worse_are_what_one_sided_tests_show(treatment: list[float], margin: float) -> None:
    base, edge, logs = [1.0] * len(treatment), math.log1p(margin), np.log(treatment)
    found = estimate(base, treatment, ALPHA)

    def beyond(null: float, alternative: str) -> float:
        return float(stats.ttest_1samp(logs, null, alternative=alternative).pvalue)

    shown = {
        Verdict.BETTER: beyond(edge, "greater"), Verdict.WORSE: beyond(-edge, "less"),
        Verdict.NOT_WORSE: beyond(-edge, "greater"),
    }  # fmt: skip
    if all(abs(chance - ALPHA / 2) > 1e-9 for chance in shown.values()):
        verdict = decide(found, margin, True)
        assert (verdict is Verdict.BETTER) == (shown[Verdict.BETTER] < ALPHA / 2)
        assert (verdict is Verdict.WORSE) == (shown[Verdict.WORSE] < ALPHA / 2)
        # Better, and no practical difference, are not worse either.
        no_harm = decide(found, margin, True, not_worse=True) not in (Verdict.WORSE, Verdict.UNDECIDED)
        assert no_harm == (shown[Verdict.NOT_WORSE] < ALPHA / 2)


@given(values, st.sampled_from([0.05, 0.002]))
def test_intervals_are_those_of_the_paired_t_test(treatment: list[float], alpha: float) -> None:
    base = list(np.linspace(0.97, 1.03, len(treatment)))
    logs = np.log(treatment) - np.log(base)
    low, high = DescrStatsW(logs).tconfint_mean(alpha)
    ratio = estimate(base, treatment, alpha)
    assert (math.log(ratio.low or 0), math.log(ratio.high or 0)) == pytest.approx((low, high), abs=1e-12)
    found = differences.estimate(base, treatment, alpha)
    interval = stats.ttest_rel(treatment, base).confidence_interval(1 - alpha)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-12)


def test_power_is_that_of_the_one_sample_t_test() -> None:
    """Of finding an effect beyond equality, with a margin so small that it does not matter."""
    found = reach(0.02, 12, 1e-9, 1)
    expected = TTestPower().power(math.log(found.better) / 0.02, 12, ALPHA, alternative="two-sided")
    assert expected == pytest.approx(0.8, abs=0.005)
