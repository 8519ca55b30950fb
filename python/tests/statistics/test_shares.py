"""The share of one effect in another: Fieller's interval, its coverage, and when there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from framegauge.statistics.ratio import quantile
from framegauge.statistics.shares import share

LOGS = st.lists(st.tuples(*[st.floats(-1, 1, allow_subnormal=False)] * 2), min_size=3, max_size=12)


def test_an_exact_share_has_no_width():
    found = share([0.2, 0.3, 0.25, 0.28], [0.1, 0.15, 0.125, 0.14], 0.05)
    assert found is not None
    assert (found.share, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))


def test_nothing_is_a_share_of_what_may_be_nothing():
    assert share([0.2, -0.2, 0.1, -0.1], [0.1, 0.1, 0.1, 0.1], 0.05) is None
    assert share([0.2, 0.2], [0.1, 0.1], 0.05) is None
    with pytest.raises(ValueError, match=r"2 and 1 log ratios"):
        share([0.2, 0.2], [0.1], 0.05)


@given(LOGS)
def test_the_ends_are_the_quotients_that_are_not_refuted(pairs):
    whole, part = (list(side) for side in zip(*pairs, strict=True))
    found = share(whole, part, 0.05)
    if found is None or found.high - found.low < 1e-6 or max(abs(found.low), abs(found.high)) > 1e3:
        return
    assert found.low <= found.share <= found.high
    for end in (found.low, found.high):
        rest = np.asarray(part) - end * np.asarray(whole)
        limit = quantile(len(rest) - 1) * rest.std(ddof=1) / math.sqrt(len(rest))
        assert abs(rest.mean()) == pytest.approx(limit, rel=1e-3, abs=1e-9)


def test_the_interval_covers_as_often_as_it_says():
    draw, hits, rounds = np.random.default_rng(29), 0, 2000
    for _ in range(rounds):
        noise = draw.normal(0, 0.05, (3, 8))
        whole, part = 0.3 + noise[0] + noise[2], 0.12 + noise[1] + noise[2]  # of a shared baseline
        found = share(list(whole), list(part), 0.05)
        hits += found is not None and found.low <= 0.4 <= found.high
    assert 0.935 < hits / rounds < 0.965
