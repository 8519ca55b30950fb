"""Runs that one side of a comparison lost more of: what is claimed of the rest, and of how many sets it is doubted."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, strategies as st

from framegauge.compare.comparison import compare
from framegauge.compare.failures import failures
from framegauge.compare.formats.samples import Sample, Side
from framegauge.statistics import sides
from framegauge.statistics.sides import Sets
from framegauge.statistics.verdict import Verdict

SPREAD = 0.01


def side(name: str, sets: Sequence[Sequence[float | None]]) -> Side:
    """Sets of runs, by their numbers of flows; None is one that was lost."""
    samples = [
        Sample(
            f"{flows} {number}", "stream", {"flows": flows}, {} if value is None else {"goodput": value},
            excluded=["lost"] if value is None else [],
        )
        for flows, values in enumerate(sets) for number, value in enumerate(values)
    ]  # fmt: skip
    return Side(name, name, "results", samples)


def test_runs_that_one_side_lost_for_their_value_make_no_effect() -> None:
    """The lowest fifth of NEW: an effect as large as the margin was "better" in 14.6 % of comparisons."""
    random, comparisons, better = np.random.default_rng(5), 400, 0
    for _ in range(comparisons):
        base, new = SPREAD * random.normal(size=(2, 16))
        left = [math.exp(value + SPREAD) if value > -0.8416 * SPREAD else None for value in new]
        document = compare(side("base", [list(np.exp(base))]), side("new", [left]), {"goodput": math.expm1(SPREAD)})
        better += document["verdicts"][0]["verdict"] == "better"
    assert better <= 0.05 * comparisons + 3 * math.sqrt(0.05 * 0.95 * comparisons)


@given(
    seed=st.integers(0, 2**32 - 1),
    lost=st.tuples(st.tuples(st.integers(0, 6), st.just(12)), st.tuples(st.integers(0, 6), st.just(12))),
)
def test_what_is_lost_widens_and_turns_with_the_sides(seed: int, lost: tuple[sides.Counts, sides.Counts]) -> None:
    base, new = (list(values) for values in np.exp(SPREAD * np.random.default_rng(seed).normal(size=(2, 10))))
    nothing = Sets("goodput", 0.01, base, new).at(0.05)
    there, back = (
        Sets("goodput", 0.01, base, new, lost=lost).at(0.05),
        Sets("goodput", 0.01, new, base, lost=lost[::-1]).at(0.05),
    )
    assert nothing is not None
    assert there is not None
    assert back is not None
    assert (there.low, there.high) == pytest.approx((1 / back.high, 1 / back.low))
    is_alike = lost[0][0] == lost[1][0]
    assert (there.low < nothing.low, there.high > nothing.high) == (not is_alike, not is_alike)


def test_values_of_which_some_are_0_allow_for_lost_runs_too() -> None:
    """Those that BASE lost may all have been as high as its highest."""
    base = [0.0, 0.0, 30.0, 0.0, 0.0, 0.0, 0.0, 30.0, 0.0, 0.0]
    new = [13.0, 17.0, 10.0, 19.0, 12.0, 15.0, 11.0, 18.0, 16.0, 14.0]
    (whole,) = sides.judge([Sets("retransmits", 0.05, base, new)])
    (left,) = sides.judge([Sets("retransmits", 0.05, base, new, lost=((10, 20), (0, 10)))])
    assert (whole.verdict, left.verdict) == (Verdict.WORSE, Verdict.UNDECIDED)


def test_the_line_says_what_was_lost() -> None:
    values = list(np.exp(SPREAD * np.random.default_rng(1).normal(size=(2, 12))))
    document = compare(side("base", [values[0]]), side("new", [[None, None, *values[1][2:]]]), {})
    (line,) = [line for line in document["verdicts"][0]["warnings"] if "lost" in line]
    assert line.startswith("BASE and NEW lost 0 of 12 and 2 of 12 runs when first tried: the interval covers the worst")


def test_of_many_sets_one_may_lose_more_by_chance() -> None:
    """1 of 24 against 7 of 24 is p = 0.048: too little, where there are eight such sets."""
    base, new = np.exp(SPREAD * np.random.default_rng(2).normal(size=(2, 24)))
    few, many = [None, *base[1:]], [*[None] * 7, *new[7:]]
    one, eight = (compare(side("base", [few] * sets), side("new", [many, *[few] * (sets - 1)]), {}) for sets in (1, 8))
    assert "not lost at random" in one["verdicts"][0]["warnings"][0]
    assert not any("not lost at random" in line for entry in eight["verdicts"] for line in entry["warnings"])


def test_of_many_sets_in_order_the_unlikeliest_is_not_called_worse() -> None:
    """Ten sets of 16 runs in a network in order, of which one has two runs without a byte by chance: a chance of 3 %,
    and it was called worse, because the nine others did not count."""

    def iperf3(name: str, moved_nothing: int) -> Side:
        samples = [
            Sample(
                f"{flows} {number}", "iperf3", {"flows": flows}, {"goodput": 1.0},
                moved_nothing=flows == 0 and number < moved_nothing,
            )
            for flows in range(10) for number in range(16)
        ]  # fmt: skip
        return Side(name, name, "iperf3", samples)

    def verdicts(count: int) -> list[str]:
        return [entry["verdict"] for entry in failures(iperf3("base", 0), iperf3("new", count))]

    assert verdicts(2) == ["undecided"]
    assert verdicts(3) == ["worse"]
