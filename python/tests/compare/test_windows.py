"""Time windows after a folder's name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from framegauge.compare import windows
from framegauge.errors import InputError


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


TEN = at("2026-11-21T10:00")


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("10:00..10:20", ["2026-11-21T10:00", "2026-11-21T10:19:59"], ["2026-11-21T09:59:59", "2026-11-21T10:20"]),
        ("10:00:30..10:20", ["2026-11-21T10:01"], ["2026-11-21T10:00:29"]),
        ("11:00+01:00..11:20+01:00", ["2026-11-21T10:10"], ["2026-11-21T11:10"]),
        ("23:50..00:10", ["2026-11-21T23:55", "2026-11-22T00:05"], ["2026-11-22T00:10"]),
        ("2026-11-21T10:00..2026-11-21T10:20", ["2026-11-21T10:00"], ["2026-11-22T10:00"]),
        ("2026-11-21T10:00Z..10:20", ["2026-11-21T10:19"], ["2026-11-21T10:20"]),
        ("2026-11-21T23:50..00:10", ["2026-11-22T00:05"], ["2026-11-21T00:05"]),
        ("20261121T100000..20261121T102000", ["2026-11-21T10:00"], ["2026-11-21T10:20"]),
        ("2026-11-21..2026-11-22", ["2026-11-21T00:00", "2026-11-21T23:59"], ["2026-11-22T00:00"]),
    ],
)
def test_what_lies_within(text, inside, outside):
    window = windows.parse(text)
    assert window.choose([at(each) for each in inside]) == [True] * len(inside)
    assert window.choose([at(each) for each in outside]) == [False] * len(outside)


def test_a_time_of_day_that_could_be_of_two_days_is_refused():
    window = windows.parse("10:00..10:20")
    with pytest.raises(InputError, match="found runs of 2026-11-21 and 2026-11-22, expected a window with dates"):
        window.choose([TEN, TEN + timedelta(days=1)])


@pytest.mark.parametrize("text", ["..", "10..", "10:00..", "..10:20", "ten..eleven", "25:00..26:00", "10:00..2026-11-21T10:20", "2026-11-21T25:00..2026-11-22"])  # fmt: skip
def test_what_is_no_window(text):
    with pytest.raises(InputError, match=r'^@.*: found ".*", expected a window such as 10:00\.\.10:20'):
        windows.parse(text)


@pytest.mark.parametrize("text", ["10:00..10:00", "2026-11-21T10:00..2026-11-21T09:00"])
def test_an_end_before_its_beginning(text):
    with pytest.raises(InputError, match="found an end that is not after the beginning"):
        windows.parse(text)


@pytest.mark.parametrize("name", ["results/a", "results/me@host", "a@b/c..d", "."])
def test_a_folder_may_have_an_at_in_its_name(name):
    assert windows.split(name) == (name, None)


def test_the_last_at_counts():
    folder, window = windows.split("results/me@host@10:00..10:20")
    assert folder == "results/me@host"
    assert window.text == "10:00..10:20"


@given(st.text("0123456789:-T.Z+@W ", max_size=40))
def test_any_text_is_a_window_or_one_line(text):
    try:
        windows.parse(text).choose([TEN])
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017
