"""Scrapes that were lost: a counter goes on, and nothing is shared over the switch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from watch.test_watch import AT, of, watch

from framegauge.watch import sampling
from framegauge.watch.gaps import bridged
from framegauge.watch.model import WINDOW_STEPS
from framegauge.watch.sampling import Times

NONE = float("nan")


@pytest.mark.parametrize(
    ("levels", "walls", "whole"),
    [
        ([10, NONE, 14], (), [10, 12, 14]),
        ([10, NONE, NONE, 15], (), [10, 11, 13, 15]),  # whole events
        ([0.5, NONE, 1.5], (), [0.5, 1.0, 1.5]),
        ([10, NONE, 14], (1,), [10, NONE, 14]),  # the switch lies between
        ([10, NONE, 14, NONE, 18], (2,), [10, 12, 14, 16, 18]),
        ([10, NONE, 4], (), [10, NONE, 4]),  # it began anew
        ([10, *[NONE] * WINDOW_STEPS, 14], (), [10, *[NONE] * WINDOW_STEPS, 14]),  # too long
        ([NONE, 10, NONE], (), [NONE, 10, NONE]),
    ],
)
def test_what_is_missing_between_two_values(levels: list[float], walls: tuple[int, ...], whole: list[float]) -> None:
    np.testing.assert_array_equal(bridged(np.array(levels, dtype=float), walls), np.array(whole, dtype=float))


@given(st.lists(st.integers(0, 50), min_size=2, max_size=60), st.data())
def test_what_was_counted_stays(grown: list[int], data: st.DataObject) -> None:
    levels = np.cumsum(grown).astype(float)
    lost = data.draw(st.sets(st.integers(0, len(levels) - 1)))
    seen = np.array([NONE if place in lost else level for place, level in enumerate(levels)])
    found = bridged(seen, ())
    known = np.isfinite(seen)
    np.testing.assert_array_equal(found[known], levels[known])
    assert np.all(np.diff(found[np.isfinite(found)]) >= 0)


def test_one_scrape_in_twenty_that_is_lost_leaves_everything_judged() -> None:
    """Each was two steps without a value: at 5 % all was not judged."""
    asked, random = watch(), np.random.default_rng(1)
    times = Times.of(asked, AT + 3600)
    counter = np.arange(len(times.grid), dtype=float)
    lossy = [of(host, np.where(random.random(len(counter)) < 0.05, NONE, counter)) for host in ("a1", "a2", "b1", "b2")]
    sampled = sampling.sample(asked, "drops", lossy, times)
    assert sampled.observed.lacking == ""
    for values in sampled.whole.values():
        assert np.nanmean(values) == 1.0


def test_a_gauge_has_no_value_where_it_has_none() -> None:
    asked = watch()
    times = Times.of(asked, AT + 3600)
    level = np.where(np.arange(len(times.grid)) == 5, NONE, 7.0)
    sampled = sampling.sample(asked, "size", [of(host, level) for host in ("a1", "a2", "b1", "b2")], times)
    assert np.isnan(sampled.whole["a1"]).sum() == 1
