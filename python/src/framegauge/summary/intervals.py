"""Which intervals are shown: one place for all kinds of figures, in words, pictures and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from framegauge.statistics.differences import Difference
from framegauge.statistics.ratio import is_usable

__all__ = ["interval", "usable"]


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
