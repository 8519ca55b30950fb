"""Diffs that are applied, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from framegauge.rollout.owners import Edit, Trouble
from framegauge.rollout.owners.patch import patched

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "mtu: 1500", "x" * 5]), max_size=12).map("\n".join)


@given(LINES, LINES)
def test_a_diff_makes_of_the_old_text_the_new_one_and_back(old: str, new: str) -> None:
    edit = Edit("netplan", "/etc/x", old, new)
    if old != new:
        assert patched(old, edit.diff, "x") == new
        assert patched(new, edit.undo.diff, "x") == old


@given(LINES)
def test_a_file_is_made_and_removed(text: str) -> None:
    edit = Edit("netplan", "/etc/x", None, text + "\n")
    assert patched(None, edit.diff, "x") == text + "\n"
    assert patched(text + "\n", edit.undo.diff, "x") is None
    with pytest.raises(Trouble, match="found a file that is there"):
        patched("there", edit.diff, "x")
    with pytest.raises(Trouble, match="found "):
        patched(text + "\nmore\n", edit.undo.diff, "x")


def test_lines_above_may_have_come_but_the_lines_themselves_must_be_there_once() -> None:
    text = "one\ntwo\nthree\nmtu: 1500\nfour\nfive\nsix\n"
    edit = Edit("netplan", "/etc/x", text, text.replace("1500", "9000"))
    assert patched("zero\n" + text, edit.diff, "x") == "zero\n" + text.replace("1500", "9000")
    with pytest.raises(Trouble, match="x: found 0 places for the change"):
        patched(text.replace("three", "3"), edit.diff, "x")
    with pytest.raises(Trouble, match="found no unified diff"):
        patched(text, "nonsense", "x")
