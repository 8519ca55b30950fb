"""From the series of a server to one value per host and step, before and after the switch; and what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

import numpy as np

from framegauge.printable import one_line
from framegauge.quantities import exact_share, print_seconds
from framegauge.statistics.autocorrelated import LEAST_VALUES
from framegauge.statistics.observed import Observed, Rule
from framegauge.statistics.switched import Host
from framegauge.watch.gaps import bridged
from framegauge.watch.model import WINDOW_STEPS, Metric, Watch
from framegauge.watch.prometheus import Series, matcher

__all__ = ["Sampled", "Times", "plan", "queries", "query", "rule", "sample"]

HOSTS_AT_ONCE = 10
_PORT = re.compile(r":\d+$")


@dataclass(frozen=True)
class Times:
    """The times of a watch, seconds since 1970: `grid` has the ends of all steps, and one more in front.

    `before` and `after` are the numbers of steps on either side of what is left out (`settle`); `asked` of those after
    the switch once their time is over.
    """

    grid: Sequence[float]
    before: int
    settle: int
    after: int
    asked: int

    @classmethod
    def of(cls, watch: Watch, now: float) -> Times:
        """The times up to `now`."""
        step, at = watch.step, watch.change.at.timestamp()
        before = round(watch.before / step)
        settle, after_steps = watch.settles, round(watch.after / step)
        after = min(after_steps, max(0, int((now - at) // step) - settle))
        passed = min(settle, max(0, int((now - at) // step)))
        return cls([at + step * k for k in range(-before, passed + after + 1)], before, settle, after, after_steps)

    @property
    def share(self) -> float:
        """How much of the time after the switch is over."""
        return self.after / self.asked

    def sides(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The values of steps before the switch, and of those after it that are compared."""
        return values[: self.before], values[self.before + self.settle : self.before + self.settle + self.after]


@dataclass(frozen=True)
class Sampled:
    """A metric as it was seen: what is judged, and each host's values over all steps, those left out included."""

    name: str
    query: str
    observed: Observed
    whole: Mapping[str, np.ndarray]
    coverage: Mapping[str, tuple[float, float]]


def queries(watch: Watch, metric: Metric) -> Iterator[str]:
    """The PromQL that is sent, for some hosts at a time: an answer has a series per device or CPU of each."""
    if "$hosts" not in (metric.query or ""):
        yield query(watch, metric)
        return
    hosts = watch.hosts
    for begin in range(0, len(hosts), HOSTS_AT_ONCE):
        yield query(watch, metric, hosts[begin : begin + HOSTS_AT_ONCE])


def query(watch: Watch, metric: Metric, some: Sequence[str] = ()) -> str:
    """The PromQL for some hosts, or for all; the counters of our own agents."""
    if metric.query is None or watch.agents is not None:
        return metric.counters or ""
    hosts = matcher(watch.label, some or watch.hosts)
    window = f"{WINDOW_STEPS * watch.step:g}s"
    return metric.query.replace("$hosts", hosts).replace("$label", watch.label).replace("$window", window)


def plan(watch: Watch) -> Iterator[str]:
    """What would be asked, in lines."""
    at, step = watch.change.at, timedelta(seconds=watch.step)
    times = Times.of(watch, watch.ends + 10 * watch.step)
    spans = {
        "before": (at - times.before * step, at),
        "after": (at + times.settle * step, at + (times.settle + times.after) * step),
    }
    if watch.prometheus is not None:
        yield f"would ask {watch.prometheus.url}, every {print_seconds(watch.step)}:"
    if watch.agents is not None:
        yield f"would read the samples in {watch.agents.folder}, one every {print_seconds(watch.step)}:"
    for name, (begin, end) in spans.items():
        yield f"  {name:6}  {begin:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S} UTC"
    if watch.earlier_text:
        yield f"  and the same hosts at these times, {watch.earlier_text}"
    for name, metric in watch.metrics.items():
        decides = "" if metric.decides else ", does not decide"
        yield f"  {name}: {metric.kind}, {metric.better} is better, margin {exact_share(metric.margin)}{decides}"
        yield f"    {query(watch, metric)}"


def rule(watch: Watch, name: str) -> Rule:
    """How a metric is judged."""
    metric = watch.metrics[name]
    return Rule(
        name,
        metric.kind,
        metric.better == "higher",
        metric.margin,
        metric.negligible,
        watch.ask == "not worse",
        metric.decides,
    )


def sample(
    watch: Watch,
    name: str,
    found: Sequence[Series],
    times: Times,
    earlier: Sequence[Series] = (),
    reasons: Mapping[str, str] = MappingProxyType({}),
) -> Sampled:
    """The values of a metric; `earlier` are those of the same hosts so long before. What is missing makes it lack, in
    words, with the host's reason if it has one in `reasons`: it is never taken for 0."""
    metric = watch.metrics[name]
    by_host, problem = _by_host(watch, metric, found)
    others, problem_then = _by_host(watch, metric, earlier)
    by_host |= {f"{host} {watch.earlier_text}": series for host, series in others.items()}
    problem = problem or problem_then
    whole = {
        host: _values(metric.kind, _whole(watch, metric, by_host.get(host, ()), times), len(times.grid) - 1, watch.step)
        for host in (*watch.change.hosts, *watch.control_names)
    }
    hosts = [Host(host, host in watch.change.hosts, *times.sides(values)) for host, values in whole.items()]
    coverage = {judged_host.name: (_covered(judged_host.before), _covered(judged_host.after)) for judged_host in hosts}
    lacking = problem or _too_early(times) or _lacking(watch, coverage, by_host, reasons)
    observed = Observed(rule(watch, name), hosts, watch.step, lacking, watch.alike)
    return Sampled(name, query(watch, metric), observed, whole, coverage)


def _covered(values: np.ndarray) -> float:
    return float(np.isfinite(values).mean()) if len(values) else 0.0


def _too_early(times: Times) -> str:
    if times.after >= LEAST_VALUES:
        return ""
    return f"{times.after} of {times.asked} steps after the switch are over, expected at least {LEAST_VALUES}"


def _lacking(
    watch: Watch,
    coverage: Mapping[str, tuple[float, float]],
    by_host: Mapping[str, Sequence[Series]],
    reasons: Mapping[str, str],
) -> str:
    """The first host without enough values, in words; "" if there is none."""
    none = [host for host in coverage if not by_host.get(host)]
    if none:
        more = f" and {len(none) - 1} more" if len(none) > 1 else ""
        why = _because(reasons, none[0])
        return f"found no series of {one_line(none[0], 80)}{more}, expected one of each host{why}"
    for host, shares in coverage.items():
        for share, when in zip(shares, ("before", "after"), strict=True):
            if share < watch.coverage:
                return (
                    f"{one_line(host, 80)} has values for {share:.0%} of the time {when} the switch, "
                    f"expected {watch.coverage:.0%}{_because(reasons, host)}"
                )
    return ""


def _because(reasons: Mapping[str, str], host: str) -> str:
    return f" ({one_line(reasons[host], 160)})" if host in reasons else ""


def _by_host(watch: Watch, metric: Metric, all_series: Sequence[Series]) -> tuple[dict[str, list[Series]], str]:
    """The series of each host that the file names, and why they cannot be used, if so."""
    known = set(watch.hosts)
    by_host: dict[str, list[Series]] = {}
    values: dict[str, set[str]] = {}
    for series in all_series:
        value = series.labels.get(watch.label, "")
        host = value if value in known else _PORT.sub("", value)
        if host in known:
            by_host.setdefault(host, []).append(series)
            values.setdefault(host, set()).add(value)
    if all_series and not by_host and not any(watch.label in entry.labels for entry in all_series):
        return by_host, f"found series without the label {watch.label}, expected it in what the query gives"
    for host, names in values.items():
        if len(names) > 1:
            shown = ", ".join(one_line(entry, 80) for entry in sorted(names)[:3])
            return by_host, f"found {shown} for {one_line(host, 80)}, expected one: name the port, too"
    if metric.kind == "gauge":
        for host, several in by_host.items():
            if len(several) > 1:
                words = f"found {len(several)} series of {one_line(host, 80)}, expected one"
                return by_host, f"{words}: aggregate them, such as sum by ({watch.label}) (…)"
    return by_host, ""


def _whole(watch: Watch, metric: Metric, all_series: Sequence[Series], times: Times) -> list[np.ndarray]:
    """The values of series. A counter goes on where a few scrapes were lost; samples of our own agents, which know when
    a host began anew, are so already."""
    if watch.agents is not None or metric.kind == "gauge":
        return [series.values for series in all_series]
    walls = times.before, times.before + times.settle
    return [bridged(series.values, walls) for series in all_series]


def _values(kind: str, rows: Sequence[np.ndarray], steps: int, step_seconds: float) -> np.ndarray:
    """One value per step of a host: events, an amount per second, or the level at the step's end; NaN where one of its
    series has none."""
    if not rows:
        return np.full(steps, np.nan)
    if kind == "gauge":
        return rows[0][1:]
    total: np.ndarray = np.sum([_increases(row) for row in rows], axis=0)
    return total if kind == "count" else total / step_seconds


def _increases(counter: np.ndarray) -> np.ndarray:
    """By how much a counter grew in each step; one that is lower than before has begun anew, at 0."""
    grown = np.diff(counter)
    return np.where(grown < 0, counter[1:], grown)
