"""Which intervals are shown: one place for all kinds of figures, in words, pictures and JSON.

A verdict has one interval wherever its figure is: the one that decided it, corrected for all comparisons of the
study. Its own, which is narrower, is in JSON alone: beside a verdict that rests on another it would be a second answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from framegauge.statistics.differences import Difference
from framegauge.statistics.ratio import is_usable

__all__ = ["CORRECTED", "interval", "label", "shown", "usable"]

CORRECTED = "95 % interval (corrected)"  # the name of what `shown` returns


class Ends(Protocol):
    """What has an interval, or may have one: a ratio, a bound, a part."""

    @property
    def low(self) -> float | None:
        """Its lower end; None if it has no interval."""

    @property
    def high(self) -> float | None:
        """Its upper end; None if it has no interval."""


def interval(found: Ends | None) -> list[float] | None:
    """An interval as it is written, low and high; None if there is none, or none of ratios that is usable."""
    if found is None or found.low is None or found.high is None:
        return None
    ends = [found.low, found.high]
    return ends if isinstance(found, Difference) else usable(ends)


def usable(ends: Sequence[float] | None) -> list[float] | None:
    """An interval of ratios; None where it is not known or says nothing."""
    return list(ends) if ends is not None and is_usable(*ends) else None


def shown(verdict: Mapping[str, Any]) -> list[float] | None:
    """The interval of a verdict in a summary or comparison; older ones may have none but its own."""
    judged = verdict.get("judged")
    return usable(verdict["ci95"] if judged is None else judged["interval"])


def label(summary: Mapping[str, Any]) -> str:
    """The confidence of the intervals of a study: one label, since one that may stop early looks at them repeatedly.
    Older summaries do not say how it stopped, and comparisons of two sides do not stop."""
    stopping = summary.get("stopping") or {}
    several = stopping.get("stop") == "settled" or stopping.get("extended_from")
    return f"{100 * stopping.get('confidence', 0.95):.3g} %{', corrected' if several else ''}"
