"""Series of metrics from a folder of samples, in the form in which a Prometheus server answers.

A sample belongs to the multiple of the step that it is nearest to; the steps of a watch are these, so that none reaches
over the switch. Where a host was started anew, or a counter is lower than before, what happened in between is not
known: the steps on both sides of it have no value. Where some samples are missing or came late and the host went on
counting, what happened between those around them is known exactly, and only not when: these steps share it evenly. That
leaves every mean as it was, and how much means vary; but none is shared by steps before and after the switch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from framegauge.errors import InputError
from framegauge.files.types import nearest
from framegauge.printable import one_line
from framegauge.watch import counters, samples
from framegauge.watch.counters import Expression
from framegauge.watch.gaps import Walls, bridged
from framegauge.watch.model import WINDOW_STEPS, Metric, Watch
from framegauge.watch.prometheus import BadQuery, Series
from framegauge.watch.samples import Sample

__all__ = ["Recorded"]

MOST_NAMES = 300  # characters
Slots = Sequence[Sample | None]


@dataclass
class _Host:
    """Of a host: its sample for each step or none, the counters that it has, and the last reason for a gap."""

    slots: list[Sample | None]
    names: set[str] = field(default_factory=set)
    gap: str = ""


class Recorded:
    """The samples of a watch; InputError if its folder is not there."""

    def __init__(self, watch: Watch) -> None:
        assert watch.agents is not None
        self._watch, self._folder = watch, Path(watch.agents.folder)
        if not self._folder.is_dir():
            raise InputError(
                f"{self._folder}: found no such folder, expected one of samples: framegauge watch FILE --sample"
            )
        expressions = [counters.parse(entry.counters) for entry in watch.metrics.values() if entry.counters is not None]
        self._wanted = {name.rpartition(":")[2] for entry in expressions for name in entry.names}
        self._loaded: dict[tuple[float, float], dict[str, _Host]] = {}

    def series(self, metric: Metric, times: Sequence[float]) -> list[Series]:
        """The series of a metric at these times (seconds since 1970, a step apart); BadQuery if hosts have no counter
        of such a name."""
        expression = counters.parse(metric.counters or "")
        switch = WINDOW_STEPS + round(self._watch.before / self._watch.step)
        walls = switch, switch + self._watch.settles
        return [
            Series({self._watch.label: name, "counter": key}, values[WINDOW_STEPS:])
            for name, host in self._load(times).items()
            if any(host.slots)
            for key, values in _of_host(metric, expression, _demand(expression, name, host), walls)
        ]

    def reasons(self, times: Sequence[float]) -> dict[str, str]:
        """Why hosts have gaps between these times, where that is known."""
        gaps = {}
        for name, host in self._load(times).items():
            anew = _began_anew(host.slots)
            if why := f"it began anew about {anew}" if anew else host.gap:
                gaps[name] = why
        return gaps

    def _load(self, times: Sequence[float]) -> dict[str, _Host]:
        key = times[0], times[-1]
        if key not in self._loaded:
            self._loaded[key] = self._read(times)
        return self._loaded[key]

    def _read(self, times: Sequence[float]) -> dict[str, _Host]:
        step = self._watch.step
        first = math.floor(times[0] / step + 1e-6) - WINDOW_STEPS
        count = len(times) + WINDOW_STEPS
        hosts = {name: _Host([None] * count) for name in self._watch.hosts}
        for sample in samples.read(self._folder, (first - 0.5) * step, (first + count - 0.5) * step):
            if sample.host not in hosts:
                continue
            hosts[sample.host].names.update(sample.names)
            place = round(sample.at / step) - first
            if sample.gap:
                hosts[sample.host].gap = sample.gap
            elif sample.life and 0 <= place < count:
                slots, due = hosts[sample.host].slots, (first + place) * step
                there = slots[place]
                if there is None or abs(sample.at - due) < abs(there.at - due):
                    slots[place] = self._narrowed(sample)
        return hosts

    def _narrowed(self, sample: Sample) -> Sample:
        """With the counters alone that are asked for."""
        values = {key: value for key, value in sample.values.items() if key.rpartition(":")[2] in self._wanted}
        return Sample(sample.at, sample.host, sample.life, values, sample.indexes)


def _demand(expression: Expression, host: str, record: _Host) -> Slots:
    """The samples of a host that has all of these counters; BadQuery if one is not there, which is not 0."""
    for name in expression.names:
        if not counters.is_of_interface(name) and name not in record.names:
            known = one_line(nearest(name, record.names), MOST_NAMES)  # as the host has sent them
            raise BadQuery(f"found no counter {name} on {one_line(host, 80)}, expected {known}")
    return record.slots


def _of_host(metric: Metric, expression: Expression, slots: Slots, walls: Walls) -> Iterator[tuple[str, np.ndarray]]:
    """Each counter of a host by its name; or one ratio or level."""
    if expression.below:
        above, below = (_increases(part, slots, walls) for part in (expression.above, expression.below))
        if above is not None and below is not None:
            yield metric.counters or "", _ratio(above, below)
        return
    for name in expression.above:
        keys = _keys(name, slots)
        if metric.kind == "gauge" and len(keys) > 1:
            raise BadQuery(
                f"found {one_line(', '.join(keys), MOST_NAMES)} for {name}, expected one of them in its place"
            )
        for key in keys:
            yield key, _levels(key, slots) if metric.kind == "gauge" else _counter(key, slots, walls)


def _keys(name: str, slots: Slots) -> list[str]:
    """The counters of a host that a name stands for."""
    if not counters.is_of_interface(name):
        return [name]
    interfaces = sorted({interface for sample in slots if sample is not None for interface in sample.indexes})
    if ":" in name:
        return [name] if name.partition(":")[0] in interfaces else []
    return [f"{interface}:{name}" for interface in interfaces]


def _value(key: str, sample: Sample) -> float | None:
    """A counter of a sample; None if its interface was not there."""
    interface = key.rpartition(":")[0]
    return None if interface and interface not in sample.indexes else sample.values.get(key, 0.0)


def _life(key: str, sample: Sample) -> tuple[str, int | None]:
    return sample.life, sample.indexes.get(key.rpartition(":")[0])


def _levels(key: str, slots: Slots) -> np.ndarray:
    levels = [None if sample is None else _value(key, sample) for sample in slots]
    return np.array([np.nan if value is None else value for value in levels])


def _counter(key: str, slots: Slots, walls: Walls) -> np.ndarray:
    """A counter at each step; none at the first one after it began anew."""
    levels = _levels(key, slots)
    values = _bridged(key, slots, levels, walls)
    for place, (before, now) in enumerate(pairwise(slots), 1):
        if before is not None and now is not None:
            began_anew = _life(key, before) != _life(key, now) or levels[place] < levels[place - 1]
            values[place] = np.nan if began_anew else levels[place]
    return values


def _bridged(key: str, slots: Slots, levels: np.ndarray, walls: Walls) -> np.ndarray:
    """A counter at each step, with values for samples that are missing between two of one life."""

    def goes_on(first: int, last: int) -> bool:
        before, now = slots[first], slots[last]
        return before is not None and now is not None and _life(key, before) == _life(key, now)

    return bridged(levels, walls, goes_on)


def _increases(sum_of: Sequence[str], slots: Slots, walls: Walls) -> np.ndarray | None:
    keys = [key for name in sum_of for key in _keys(name, slots)]
    if not keys:
        return None
    total: np.ndarray = np.sum([np.diff(_counter(key, slots, walls), prepend=np.nan) for key in keys], axis=0)
    return total


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Of what both grew by in the last steps; none where the second did not."""
    ratios = np.full(len(above), np.nan)
    for place in range(WINDOW_STEPS, len(above)):
        last = slice(place - WINDOW_STEPS + 1, place + 1)
        grown = float(np.sum(below[last]))
        if grown > 0:
            ratios[place] = float(np.sum(above[last])) / grown
    return ratios


def _began_anew(slots: Sequence[Sample | None]) -> str:
    """When the host last began a new life, in words; "" if it did not."""
    known = [sample for sample in slots if sample is not None]
    times = [now.at for before, now in pairwise(known) if before.life != now.life]
    return time.strftime("%H:%M:%S UTC", time.gmtime(times[-1])) if times else ""
