"""What became of datagrams: known answers by hand, and the laws for any losses, copies and orders."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies

from framegauge.errors import BadAnswer
from framegauge.workloads.one_way import one_way

GAP_SECONDS = 0.02


def sent(*datagrams: tuple[int, int]) -> pa.Table:
    """Datagrams of these flows and numbers, sent a millisecond after they were due."""
    due = [number * GAP_SECONDS for _, number in datagrams]
    return pa.table(
        {
            "flow": pa.array([flow for flow, _ in datagrams], pa.uint32()),
            "sequence": pa.array([number for _, number in datagrams], pa.uint32()),
            "due_seconds": pa.array(due, pa.float64()),
            "sent_seconds": pa.array([at + 0.001 for at in due], pa.float64()),
        }
    )


def came(*datagrams: tuple[int, int, float], started: float = 100.0) -> pa.Table:
    """What came, with the delay of each since it was sent."""
    times = [started + number * GAP_SECONDS + 0.001 + delay for _, number, delay in datagrams]
    return pa.table(
        {
            "flow": pa.array([flow for flow, *_ in datagrams], pa.uint32()),
            "sequence": pa.array([number for _, number, _ in datagrams], pa.uint32()),
            "received_seconds": pa.array(times, pa.float64()),
        }
    )


def test_delays_and_their_variation_are_those_of_the_first_copies() -> None:
    whole = one_way(
        sent((0, 0), (0, 1), (0, 2), (0, 3)),
        came((0, 0, 0.001), (0, 1, 0.003), (0, 1, 0.009), (0, 3, 0.002), (5, 9, 0.0)),
        100.0,
    )
    assert whole.delays() == pytest.approx([0.001, 0.003, 0.002])
    # Between 0 and 1 only: 2 is lost, and 3 follows a lost one (RFC 3393: both of a pair must have come).
    assert whole.variations() == pytest.approx([0.002])
    assert (whole.lost, whole.copies, whole.strangers, whole.reordered) == (1, 1, 1, 0)
    assert whole.late() == pytest.approx([0.001] * 4)


def test_clocks_that_differ_shift_delays_and_leave_their_variation() -> None:
    both = sent((0, 0), (0, 1)), came((0, 0, 0.001), (0, 1, 0.004), started=7000.0)
    assert one_way(*both, 100.0).variations() == pytest.approx([0.003])
    assert one_way(*both, 100.0).delays() == pytest.approx([6900.001, 6900.004])


def test_only_what_comes_behind_a_later_one_of_its_flow_is_reordered() -> None:
    # The example of RFC 4737 section 3: 1 2 3 7 4 5 6 8: 4, 5 and 6 are reordered. Another flow changes nothing.
    order = [(0, number) for number in (1, 2, 3, 7, 4, 5, 6, 8)]
    mixed = [(1, 9), *order[:4], (1, 8), *order[4:]]
    table = came(*((flow, number, 0.1) for flow, number in mixed))
    assert one_way(sent(*mixed), table, 100.0).reordered == 4


def test_of_a_time_only_what_was_due_then_counts() -> None:
    whole = one_way(sent((0, 0), (0, 1), (0, 2)), came((0, 0, 0.001), (0, 2, 0.002)), 100.0)
    part = whole.within(0.01, 0.05)
    assert (len(part.sent), part.lost, part.delays().tolist()) == (2, 1, pytest.approx([0.002]))


def test_nothing_sent_and_nothing_that_came_are_whole_too() -> None:
    whole = one_way(sent(), came(), 1.0)
    assert (whole.lost, whole.reordered, len(whole.delays()), len(whole.variations())) == (0, 0, 0, 0)
    assert one_way(sent((0, 0)), came(), 1.0).lost == 1


def test_a_number_that_was_sent_twice_is_no_answer() -> None:
    with pytest.raises(BadAnswer, match="found the same number twice in a flow"):
        one_way(sent((0, 1), (0, 1)), came(), 1.0)


@given(
    strategies.lists(strategies.tuples(strategies.integers(0, 2), strategies.integers(0, 30)), max_size=60),
    strategies.randoms(),
)
def test_what_was_sent_came_or_was_lost(arrivals: list[tuple[int, int]], random: Any) -> None:
    every = [(flow, number) for flow in range(3) for number in range(31)]
    table = came(*((flow, number, random.random()) for flow, number in arrivals))
    whole = one_way(sent(*random.sample(every, len(every))), table, 100.0)
    distinct = set(arrivals)
    assert whole.lost == len(every) - len(distinct)
    assert len(arrivals) == len(distinct) + whole.copies + whole.strangers
    assert whole.reordered == sum(_behind(arrivals, flow) for flow in range(3))
    assert not np.isnan(whole.delays()).any()


def _behind(arrivals: list[tuple[int, int]], flow: int) -> int:
    """By the definition, one after the other: NextExp is one more than the highest so far."""
    expected, count = -math.inf, 0
    for number in dict.fromkeys(number for each, number in arrivals if each == flow):
        count += number < expected
        expected = max(expected, number + 1)
    return count
