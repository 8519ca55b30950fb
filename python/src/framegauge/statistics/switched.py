"""What a switch did to hosts, from series of values before and after it, beside hosts that were not switched.

The estimate is the difference in differences of `before_after`, on one of three scales: the mean logarithm of each
host's after / before; where a host's mean is 0, the same of the sum of all hosts on a side; where even that is 0, the
difference of means in the metric's own unit, so that a baseline of 0 is legal.

The interval is from the series of what is compared at each time, switched hosts less the others: what happens to all at
once (a peak at noon) cancels. The error of its means is that of an autocorrelated series (`autocorrelated`), by the
delta method for logarithms; before and after are taken as independent, which is on the safe side, as neighbours in time
are alike. A short time after the switch varies by as much at least as the time before it says, so that an early look
does not take values that remember each other for values that agree. With three hosts or more on each side there is a
second interval, from one value per host (Welch's t; Bertrand, Duflo & Mullainathan 2004, Quarterly Journal of Economics
119:249, for series that are collapsed so). It holds what happened to single hosts, and the interval that counts is the
hull of both.

The second costs much power where hosts are few: with three on a side it has some four degrees of freedom. Who knows
that hosts are alike (`alike`) can do without it, unless they differ by more than time shows: that is tested at 1 %, by
the ratio of the two variances.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from framegauge.statistics import autocorrelated, before_after
from framegauge.statistics.ratio import ALPHA, quantile

__all__ = ["LEAST_HOSTS", "Estimate", "Host", "estimate"]

LEAST_HOSTS = 3  # on each side, for an interval from one value per host
CHANCE = 0.01  # of hosts that are alike to be taken as unlike
LARGEST = 700.0  # a logarithm whose exponential is a number


@dataclass(frozen=True)
class Host:
    """One host's values at equal distances of time, before and after the switch; NaN where there is none. All hosts of
    one estimate have the same times."""

    name: str
    switched: bool
    before: np.ndarray
    after: np.ndarray


@dataclass(frozen=True)
class Estimate:
    """The effect of the switch with its interval at level `alpha`: a ratio (1 is none), or a difference in the metric's
    unit (0 is none). Means over hosts are (before, after); `most_before` and `most_after` are the upper ends of those
    of the switched hosts."""

    value: float
    low: float
    high: float
    is_ratio: bool
    alpha: float
    switched: tuple[float, float]
    control: tuple[float, float]
    most_before: float
    most_after: float
    assumption: str
    are_unlike: bool = False  # hosts that were said to be alike differ by more than time shows
    too_slow_steps: float = 0.0  # for which the difference remembers, if only times tell and that is too long


_Sides = tuple[Sequence[Host], Sequence[Host]]  # switched, and not


class _Width(NamedTuple):
    """Half the width of an interval, and what the fields of `Estimate` say of it."""

    half: float
    assumption: str
    are_unlike: bool
    too_slow_steps: float


_Found = tuple[float, float, float, bool, _Width]  # value, ends, whether it is a ratio


def estimate(hosts: Sequence[Host], alpha: float = ALPHA, alike: bool = False) -> Estimate:
    """The effect; `alike` says that hosts would have changed alike but for noise over time. ValueError without hosts of
    both kinds, or with fewer values than `autocorrelated.LEAST_VALUES`."""
    sides = [host for host in hosts if host.switched], [host for host in hosts if not host.switched]
    if not sides[0] or not sides[1]:
        raise ValueError("found hosts of one kind, expected some that were switched and some that were not")
    joined = _joined(sides[0]), _joined(sides[1])
    means = [(_known(host.before), _known(host.after)) for host in joined]
    if all(value > 0 for host in hosts for value in (_known(host.before), _known(host.after))):
        result = _ratio(sides, alpha, "the logarithms of each host's after / before", alike)
    elif min(*means[0], *means[1]) > 0:
        result = _ratio(([joined[0]], [joined[1]]), alpha, "the logarithms of after / before of all hosts together")
    else:
        result = _difference(sides, alpha, alike)
    value, low, high, is_ratio, width = result
    most = [_upper(values, alpha) for values in (joined[0].before, joined[0].after)]
    return Estimate(value, low, high, is_ratio, alpha, means[0], means[1], most[0], most[1], *width[1:])


def _known(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else math.nan


def _joined(hosts: Sequence[Host]) -> Host:
    """The mean of several hosts as one."""
    before, after = (np.mean([_filled(getattr(host, name)) for host in hosts], axis=0) for name in ("before", "after"))
    return Host("", hosts[0].switched, before, after)


def _filled(values: np.ndarray) -> np.ndarray:
    """The values, with the mean of the others where there is none, which neither adds to the deviation nor hides it."""
    return np.where(np.isfinite(values), values, _known(values))


def _upper(values: np.ndarray, alpha: float) -> float:
    average = autocorrelated.mean(values)
    return average.mean + quantile(average.degrees, alpha) * average.error


def _ratio(sides: _Sides, alpha: float, quantity: str, alike: bool = False) -> _Found:
    units = [
        before_after.Unit(item.switched, _known(item.before), _known(item.after)) for side in sides for item in side
    ]
    centre = before_after.of_run(units)
    assert centre is not None
    logs = [[math.log(_known(item.after) / _known(item.before)) for item in side] for side in sides]
    width = _judged(sides, logs, alpha, quantity, alike, lambda values: _filled(values) / _known(values))
    ends = centre, centre - width.half, centre + width.half
    value, low, high = (math.exp(min(LARGEST, max(-LARGEST, item))) for item in ends)
    return value, low, high, True, width


def _difference(sides: _Sides, alpha: float, alike: bool) -> _Found:
    changes = [[_known(host.after) - _known(host.before) for host in side] for side in sides]
    centre = statistics.fmean(changes[0]) - statistics.fmean(changes[1])
    quantity = "the differences of after and before"
    width = _judged(sides, changes, alpha, quantity, alike, _filled)
    return centre, centre - width.half, centre + width.half, False, width


def _judged(
    sides: _Sides,
    changes: Sequence[Sequence[float]],
    alpha: float,
    quantity: str,
    alike: bool,
    scaled: Callable[[np.ndarray], np.ndarray],
) -> _Width:
    error, degrees, memory_steps = _error(sides, scaled)
    half = 0.0 if error == 0 else quantile(degrees, alpha) * error
    few = min(map(len, changes)) < LEAST_HOSTS
    are_unlike = alike and not few and _differ(changes, error)
    unit = "times" if few or (alike and not are_unlike) else "hosts and times"
    if unit != "times":
        half = max(half, _half_of_hosts(changes, alpha))
    steps = max(len(sides[0][0].before), len(sides[0][0].after))
    too_slow = unit == "times" and memory_steps * autocorrelated.LEAST_MEMORIES > steps
    assumption = f"{quantity} would have been the same on both sides, but for noise that is roughly normal over {unit}"
    return _Width(half, assumption, are_unlike, memory_steps if too_slow else 0.0)


def _differ(changes: Sequence[Sequence[float]], error: float) -> bool:
    """Whether the changes of hosts spread more than an error by time explains; by the ratio of variances, whose
    distribution is that of chi squared if the second is known well (Cochran 1954, Biometrics 10:101)."""
    between = sum(float(np.var(side, ddof=1)) / len(side) for side in changes)
    degrees = sum(len(side) - 1 for side in changes)
    return between * degrees > error**2 * float(special.chdtri(degrees, CHANCE))


def _error(sides: _Sides, scaled: Callable[[np.ndarray], np.ndarray]) -> tuple[float, float, float]:
    """The standard error from the series of what is compared, its degrees of freedom, and for how many steps it
    remembers."""
    series = []
    for name in ("before", "after"):
        first, second = (np.mean([scaled(getattr(item, name)) for item in side], axis=0) for side in sides)
        series.append(first - second)
    *means, memory = autocorrelated.both(series[0], series[1])
    variances = [item.error**2 for item in means]
    if sum(variances) == 0:
        return 0.0, 1.0, 0.0
    # Welch & Satterthwaite, for two errors of unlike sizes.
    degrees = sum(variances) ** 2 / sum(
        variance**2 / item.degrees for variance, item in zip(variances, means, strict=True)
    )
    return math.sqrt(sum(variances)), degrees, memory.likely.steps


def _half_of_hosts(sides: Sequence[Sequence[float]], alpha: float) -> float:
    """Half the width of Welch's interval from one value per host; 0 with fewer than LEAST_HOSTS on a side."""
    if min(map(len, sides)) < LEAST_HOSTS:
        return 0.0
    parts = [float(np.var(side, ddof=1)) / len(side) for side in sides]
    if sum(parts) == 0:
        return 0.0
    degrees = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, sides, strict=True))
    return quantile(degrees, alpha) * math.sqrt(sum(parts))
