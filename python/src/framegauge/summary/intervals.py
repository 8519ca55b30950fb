"""Which intervals are shown: one place for all kinds of figures, in words, pictures and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from framegauge.statistics.differences import Difference
from framegauge.statistics.ratio import is_usable

__all__ = ["head", "interval", "label", "usable"]


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


def head(summary: Mapping[str, Any], all_together: bool = False) -> str:
    """The head of a column of intervals: corrected for several looks, or to hold for all of its rows at once."""
    confidence, _, corrected = label(summary).partition(", ")
    return f"{confidence} interval" + (" (corrected)" if corrected or all_together else "")


def label(summary: Mapping[str, Any]) -> str:
    """The confidence of the intervals of a study: one label, since one that may stop early looks at them repeatedly.
    Older summaries do not say how it stopped, and comparisons of two sides do not stop."""
    stopping = summary.get("stopping") or {}
    several = stopping.get("stop") == "settled" or stopping.get("extended_from")
    return f"{100 * stopping.get('confidence', 0.95):.3g} %{', corrected' if several else ''}"
