"""No number is parted from its unit: on pages, and where a terminal breaks a line."""

from __future__ import annotations

import html

import pytest
from helpers.pages import as_read
from hypothesis import given, strategies as st

from framegauge.printable import escaped, printable, prose, wrapped

WORDS = st.lists(
    st.sampled_from(["14.5 %", "941.5 Mb/s", "200 us", "64 KiB", "MTU 1500", "it", "3 blocks", "raises", "5 sessions"]),
    max_size=12,
)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("by 14.5 % to 30 %", "by 14.5~% to 30~%"),
        ("941.5 Mb/s, 200 us (5 ms), 1 s.", "941.5~Mb/s, 200~us (5~ms), 1~s."),
        ("64 KiB of 9 GB at 2 s/GB", "64~KiB of 9~GB at 2~s/GB"),
        ("MTU 9000 of 9216, XMTU 1, MTU that", "MTU~9000 of 9216, XMTU 1, MTU that"),
        ("3 blocks, 5 sessions, 2 min/run, h1 s", "3 blocks, 5 sessions, 2 min/run, h1~s"),
    ],
)
def test_the_space_before_a_unit_keeps(said: str, kept: str) -> None:
    assert prose(said) == kept.replace("~", "\N{NO-BREAK SPACE}")
    assert as_read(prose(said)) == escaped(said) == html.escape(said)


@given(WORDS, st.integers(10, 60))
def test_a_line_ends_at_no_number_whose_unit_follows(said: list[str], width: int) -> None:
    lines = wrapped(" ".join(said), width)
    assert " ".join(lines) == " ".join(said)
    assert all(len(line) <= width for line in lines)
    units = ("%", "Mb/s", "us", "KiB")
    assert not [line for line in lines[1:] if line.startswith(units)]
    assert not [line for line in lines if line.endswith("MTU")]


def test_no_number_of_an_error_is_shown_beside_its_name() -> None:
    assert printable("open it: Permission denied (os error 13); ask root") == "open it: Permission denied; ask root"
    assert escaped("No such file (os error 2)\x1b") == "No such file\N{REPLACEMENT CHARACTER}"
