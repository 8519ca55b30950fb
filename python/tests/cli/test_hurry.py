"""Precedence while a command is loaded: taken where that is allowed, and given back."""

from __future__ import annotations

import contextlib
import os

import pytest

from framegauge.cli.hurry import NICENESS, hurried


class Kernel:
    """The kernel's niceness of this thread, which falls only if that is allowed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, niceness: int, allows: bool) -> None:
        self.niceness, self._allows = niceness, allows
        monkeypatch.setattr(os, "getpriority", lambda *_: self.niceness)
        monkeypatch.setattr(os, "setpriority", self._set)

    def _set(self, _which: int, _who: int, niceness: int) -> None:
        if niceness < self.niceness and not self._allows:
            raise PermissionError
        self.niceness = niceness


@pytest.mark.parametrize(
    ("before", "allows", "within"), [(0, True, NICENESS), (0, False, 0), (5, True, NICENESS), (-15, True, -15)]
)
def test_it_is_ahead_within_the_block_alone(
    monkeypatch: pytest.MonkeyPatch, before: int, allows: bool, within: int
) -> None:
    kernel = Kernel(monkeypatch, before, allows)
    with hurried():
        assert kernel.niceness == within
    assert kernel.niceness == before


def test_it_is_given_back_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch, 0, True)
    with contextlib.suppress(KeyError), hurried():
        raise KeyError
    assert kernel.niceness == 0
