"""Which ends of intervals a `watch` writes."""

from __future__ import annotations

import math

import pytest

from framegauge.statistics.switched import Estimate
from framegauge.watch.document import ends


def estimate(value: float, low: float, high: float, is_ratio: bool = True) -> Estimate:
    return Estimate(value, low, high, is_ratio, 0.05, (1.0, 1.0), (1.0, 1.0), 1.0, 1.0, "")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (estimate(1.2, 0.9, 1.6), [0.9, 1.6]), (estimate(500, 200, 900), [200, 900]),
        # Of two hosts per side that differ much: numbers that nobody can mean.
        (estimate(1.2, 1e-20, 1e21), [0.0, None]), (estimate(1.2, 0.9, 1e21), [0.9, None]),
        (estimate(1.2, 0.9, math.inf), [0.9, None]),
        # A difference has a unit, and no size that is too large.
        (estimate(1.2, -1e6, 1e6, is_ratio=False), [-1e6, 1e6]),
    ],
)  # fmt: skip
def test_an_end_of_a_ratio_that_says_nothing_is_none(given: Estimate, expected: list[float | None]) -> None:
    assert ends(given) == expected
