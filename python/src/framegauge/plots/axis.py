"""Ticks in percent of change on a logarithmic axis of ratios."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import altair as alt

__all__ = ["Place", "label", "ratio_domain", "ratio_ticks", "ratios"]

Place = Callable[[float], float]  # a ratio's pixels from the top

MOST_TICKS = 6
CLOSEST = 0.09  # least distance between ticks, as a share of the axis
CHARACTER = 0.02  # of a label, as a share of the axis of a chart on a phone, which is the narrowest
FURTHEST = 4.0  # the most by which an interval may widen the axis beyond the ratios, as a factor
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_FACTORS = (0.001, 0.01, 0.03, 0.1, 0.2, 0.33, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 100, 1000)


def ratio_domain(ratios: Sequence[float], intervals: Sequence[Sequence[float]], margin: float) -> tuple[float, float]:
    """The range of the axis: all ratios and the margin's band, and intervals unless they are far wider."""
    low, high = min(*ratios, 1 / (1 + margin), 1.0), max(*ratios, 1 + margin, 1.0)
    low = max(min(low, *(interval[0] for interval in intervals), low), low / FURTHEST)
    high = min(max(high, *(interval[1] for interval in intervals), high), high * FURTHEST)
    room = (high / low) ** 0.04
    return low / room, high * room


def ratio_ticks(low: float, high: float) -> list[float]:
    """At most MOST_TICKS ratios including 1, whose labels do not meet: whole steps of percent, or round factors on a
    wide axis."""
    width = math.log(high / low)
    for step in _STEPS:
        first, last = math.ceil((low - 1) / step - 1e-9), math.floor((high - 1) / step + 1e-9)
        if last - first < MOST_TICKS:
            ticks = [round(1 + number * step, 6) for number in range(first, last + 1)]
            if _apart(ticks, width):
                return ticks
            break
    factors = [factor for factor in _FACTORS if low <= factor <= high]
    while len(factors) > MOST_TICKS or not _apart(factors, width):
        factors = [factor for number, factor in enumerate(factors) if (number - factors.index(1)) % 2 == 0]
    return factors


def _apart(ticks: Sequence[float], width: float) -> bool:
    """Whether no two labels meet on an axis of this width, in logarithms."""

    def least(before: float, after: float) -> float:
        characters = (len(label(before)) + len(label(after))) / 2 + 1  # half of each, and a space between them
        return max(CLOSEST, CHARACTER * characters) * width

    return all(math.log(after / before) >= least(before, after) for before, after in pairwise(ticks))


def ratios(low: float, high: float, title: str) -> alt.X:
    """A logarithmic axis of ratios from the field `x`, labelled by their change in percent."""
    values = ratio_ticks(low, high)
    labels = [label(value) for value in values]
    return alt.X(
        "x:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False, clamp=True),
        axis=alt.Axis(
            values=values, title=title, labelExpr=f"{labels!r}[indexof({values!r}, datum.value)]", labelOverlap=False
        ),
    )


def label(ratio: float) -> str:
    """The label of a tick: the change in percent, or the factor from 3 on."""
    if ratio == 1:
        return "same"
    return f"{100 * (ratio - 1):+.3g} %".replace("-", "\u2212") if ratio < 3 else f"× {ratio:g}"
