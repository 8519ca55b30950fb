"""Verdicts on runs that moved nothing, against the two tests that they rest on."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from scipy import stats

from framegauge.statistics import failed
from framegauge.statistics.verdict import Verdict


@pytest.mark.parametrize(
    ("base", "new", "verdict"),
    [
        ((0, 16), (2, 16), Verdict.WORSE),  # 0.29 %: the binomial tail
        ((0, 12), (3, 12), Verdict.WORSE),
        ((0, 5), (5, 5), Verdict.WORSE),
        ((0, 16), (1, 16), Verdict.UNDECIDED),
        ((2, 16), (0, 16), Verdict.BETTER),
        ((5, 5), (5, 5), Verdict.UNDECIDED),
        ((1, 16), (12, 16), Verdict.WORSE),
        ((0, 16), (0, 3), Verdict.NO_PRACTICAL_DIFFERENCE),
        ((0, 16), (0, 0), Verdict.NOT_JUDGED),
    ],
)
def test_known_answers(base: tuple[int, int], new: tuple[int, int], verdict: Verdict) -> None:
    assert failed.judge(base, new) is verdict


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 8))
def test_of_networks_in_order_one_in_a_hundred_is_called_worse_at_most(base: int, new: int, comparisons: int) -> None:
    """Exactly: the sum over all outcomes in which BASE, too, fails as often as a network in order may."""
    chance = 0.0
    for first in range(min(base, 4) + 1):
        for second in range(min(new, 8) + 1):
            if failed.judge((first, base), (second, new), comparisons) is Verdict.WORSE:
                chance += stats.binom.pmf(first, base, failed.IN_ORDER) * stats.binom.pmf(second, new, failed.IN_ORDER)
    assert chance <= failed.ALPHA / comparisons + 1e-6


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_swapped_sides_have_the_opposite_verdict(one: int, more: int, other: int, others: int) -> None:
    opposite = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
    first, second = (one, one + more), (other, other + others)
    there = failed.judge(first, second)
    assert failed.judge(second, first) is opposite.get(there, there)
