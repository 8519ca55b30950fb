"""What a switch did to the rate of events that are seldom: drops, retransmits, ICMP errors; most times have none.

Four totals are compared: of hosts that were switched, before and after, and of the others. Their ratio of ratios is
what the switch did if time did the same to both sides. Given the sums of rows and columns, one of the four decides all,
and is noncentral hypergeometric if events are Poisson; its interval is exact at any counts, 0 included (Cornfield 1956,
Proc. 3rd Berkeley Symposium 4:135; Fay 2010, Biostatistics 11:373). With many events it is the normal one.

Events come in bursts, so their variance is larger than their mean. The counts are divided by its excess
(`dispersion`), so that a burst counts as about one event. Nothing is left out as an outlier: a burst stays in the
totals. What all hosts do at the same times cancels in the ratio of ratios, and is no burst there.

Where all four totals are large, events are an amount like any other, and have the interval of series of amounts
(`switched`), for which a peak that all hosts share is no excess; it is never narrower than Poisson's.

Where the others had almost no events, nothing is known of what time did to them, and the exact interval has no end.
Then two comparisons remain, each of two counts and exact (Clopper & Pearson 1934, Biometrika 26:404): the switched
hosts with themselves before, and with the others after. What counts is the hull of both: only what both show is shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from framegauge.statistics import dispersion as dispersions, switched
from framegauge.statistics.dispersion import Dispersion
from framegauge.statistics.ratio import ALPHA
from framegauge.statistics.switched import Host

__all__ = ["TOO_FEW", "Events", "estimate"]

MANY = 100  # effective events of each total, from which on the series of events say more than totals do
BY_TOTALS = "time multiplied the rates of both sides alike"
TOO_FEW = "the other hosts had too few events to show what time did; hosts of both sides would have like rates"
FEW = 10  # effective events of the others, below which time's effect on them is not known
MOST_EXACT = 4000  # effective events; the normal interval of more is as good
FARTHEST = 60.0  # logarithm of the largest ratio that an end is looked for at


@dataclass(frozen=True)
class Events:
    """The effect of the switch as a ratio of rates; `high` may be infinite and `low` 0, and `ratio` is None where a
    total that it would be divided by is 0. Totals are (before, after), `seconds` are those that hosts were seen for.

    `most_after` and `most_before`: the upper ends of the switched hosts' rates, in events per second and host.
    """

    ratio: float | None
    low: float
    high: float
    alpha: float
    switched: tuple[int, int]
    control: tuple[int, int]
    switched_seconds: tuple[float, float]
    control_seconds: tuple[float, float]
    dispersion: float
    most_before: float
    most_after: float
    assumption: str
    are_unlike: bool = False  # these as those of `switched`
    too_slow_steps: float = 0.0

    @property
    def by_totals(self) -> bool:
        """Whether totals were compared, divided by the dispersion, and not the series of events."""
        return self.assumption in (BY_TOTALS, TOO_FEW)


class _Effect(NamedTuple):
    """Fields of `Events`."""

    ratio: float | None
    low: float
    high: float
    assumption: str
    are_unlike: bool = False
    too_slow_steps: float = 0.0


@dataclass(frozen=True)
class _Total:
    count: int
    seconds: float

    @property
    def rate(self) -> float:
        """Events per second and host."""
        return self.count / self.seconds

    def effective(self, dispersion: float) -> int:
        """The number of independent events that say as much; 0 only for none."""
        return max(1, round(self.count / dispersion)) if self.count else 0


class _Table(NamedTuple):
    """The switched hosts after and before, then the others."""

    after: _Total
    before: _Total
    others_after: _Total
    others_before: _Total


def estimate(hosts: Sequence[Host], step_seconds: float, alpha: float = ALPHA, alike: bool = False) -> Events:
    """The effect on events that were counted per step; NaN where a host was not seen. `alike`: as `switched`, where
    they are judged as an amount. ValueError without hosts of both
    kinds, or if a side was never seen."""
    totals = {
        (side, name): _total([getattr(item, name) for item in hosts if item.switched is side], step_seconds)
        for side in (True, False)
        for name in ("before", "after")
    }
    if any(item.seconds == 0 for item in totals.values()):
        raise ValueError("found no values of a side, expected some of both kinds of hosts, before and after")
    dispersion = dispersions.estimate(hosts, alpha)
    table = _Table(*(totals[key] for key in ((True, "after"), (True, "before"), (False, "after"), (False, "before"))))
    effect = _effect(hosts, table, dispersion, alpha, alike)
    after, before = table.after, table.before
    return Events(
        effect.ratio, effect.low, effect.high, alpha,
        (before.count, after.count), (table.others_before.count, table.others_after.count),
        (before.seconds, after.seconds), (table.others_before.seconds, table.others_after.seconds),
        dispersion.alone if effect.assumption == TOO_FEW else dispersion.compared,
        _most(before, dispersion.alone, alpha), _most(after, dispersion.alone, alpha), *effect[3:],
    )  # fmt: skip


def _effect(hosts: Sequence[Host], table: _Table, dispersion: Dispersion, alpha: float, alike: bool) -> _Effect:
    counts = [item.effective(dispersion.compared) for item in table]
    after, before, others_after, others_before = table
    if counts[2] + counts[3] < FEW:
        ends = [_of_two(after, other, dispersion.alone, alpha) for other in (before, others_after)]
        ratio = after.rate / before.rate if before.count else None
        return _Effect(ratio, min(item[0] for item in ends), max(item[1] for item in ends), TOO_FEW)
    if min(counts) >= MANY:
        effect = switched.estimate(hosts, alpha, alike)
        least = -float(special.ndtri(alpha / 2)) * math.sqrt(sum(1 / item.count for item in table))
        half = max(math.log(effect.high / effect.value), least)
        low, high = effect.value * math.exp(-half), effect.value * math.exp(half)
        return _Effect(effect.value, low, high, effect.assumption, effect.are_unlike, effect.too_slow_steps)
    low, high = _of_four(table, dispersion.compared, alpha)
    bottom = before.rate * others_after.rate
    ratio = after.rate * others_before.rate / bottom if bottom else None
    return _Effect(ratio, low, high, BY_TOTALS)


def _total(series: Sequence[np.ndarray], step_seconds: float) -> _Total:
    steps = sum(int(np.isfinite(values).sum()) for values in series)
    return _Total(round(math.fsum(float(np.nansum(values)) for values in series)), steps * step_seconds)


def _most(total: _Total, dispersion: float, alpha: float) -> float:
    """The upper end of a rate (Garwood 1936, Biometrika 28:437), per second and host."""
    count = total.effective(dispersion)
    return float(special.chdtri(2 * (count + 1), alpha / 2)) / 2 * dispersion / total.seconds


def _of_two(first: _Total, second: _Total, dispersion: float, alpha: float) -> tuple[float, float]:
    """The exact interval of the ratio of two rates."""
    count, other = first.effective(dispersion), second.effective(dispersion)
    scale = second.seconds / first.seconds
    low = 0.0 if count == 0 else float(special.betaincinv(count, other + 1, alpha / 2))
    high = 1.0 if other == 0 else float(special.betaincinv(count + 1, other, 1 - alpha / 2))
    return low / (1 - low) * scale, math.inf if high >= 1 else high / (1 - high) * scale


def _of_four(table: _Table, dispersion: float, alpha: float) -> tuple[float, float]:
    """The interval of the ratio of ratios."""
    a, b, c, d = (total.effective(dispersion) for total in table)
    seconds = [total.seconds for total in table]
    scale = seconds[1] * seconds[2] / (seconds[0] * seconds[3])
    if a + b + c + d > MOST_EXACT and min(a, b, c, d) > 0:
        centre = math.log(table.after.count / table.before.count)
        centre -= math.log(table.others_after.count / table.others_before.count)
        half = -float(special.ndtri(alpha / 2)) * math.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
        return math.exp(centre - half) * scale, math.exp(centre + half) * scale
    k = np.arange(max(0, a + c - (c + d)), min(a + c, a + b) + 1)
    weights = _log_choose(a + b, k) + _log_choose(c + d, a + c - k)

    def tail(log_odds: float, upper: bool) -> float:
        logs = weights + k * log_odds
        chances = np.exp(logs - logs.max())
        return float(chances[(k >= a) if upper else (k <= a)].sum() / chances.sum())

    low = 0.0 if a == k[0] else math.exp(_solved(lambda x: tail(x, True) - alpha / 2))
    high = math.inf if a == k[-1] else math.exp(_solved(lambda x: alpha / 2 - tail(x, False)))
    return low * scale, high * scale


def _solved(rising: Callable[[float], float]) -> float:
    """Where a rising function of a logarithm is 0, by bisection."""
    low, high = -FARTHEST, FARTHEST
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2


def _log_choose(n: int, k: np.ndarray) -> np.ndarray:
    logs: np.ndarray = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return logs
