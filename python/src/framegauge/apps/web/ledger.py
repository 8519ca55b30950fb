"""The account of a run: every request and operation, and what their times come to. Times are of one monotonic clock."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from framegauge.apps.web.limits import Rule, quantile
from framegauge.apps.web.visits import MIX

__all__ = ["STALL_SECONDS", "Ledger", "Window", "spread"]

STALL_SECONDS = 0.035  # Linux delays an acknowledgement by 40 ms at least
MOST_FAILURES = 5  # that are told


class Window:
    """The steady time of a step: the times of what ended between `begin_seconds` and `end_seconds`."""

    def __init__(self, begin_seconds: float, end_seconds: float) -> None:
        self.begin_seconds, self.end_seconds = begin_seconds, end_seconds
        self.operations: dict[str, list[float]] = defaultdict(list)
        self.parts: dict[str, list[tuple[int, float]]] = defaultdict(list)
        self.late: list[float] = []
        self.ages: dict[str, list[float]] = defaultdict(list)  # of operations that were under way at its end

    def holds(self, moment: float) -> bool:
        """Whether a moment is within it."""
        return self.begin_seconds <= moment < self.end_seconds

    def as_json(self, rule: Rule) -> dict[str, Any]:
        """Its operations in base units, and whether they keep their limits."""
        times = [seconds for durations in self.operations.values() for seconds in durations]
        return {
            "operations": len(times),
            "operations_per_second": len(times) / (self.end_seconds - self.begin_seconds),
            "response": spread(times),
            "by_operation": {name: spread(self.operations[name]) for name in MIX if self.operations[name]},
            **self.judged(rule),
        }

    def judged(self, rule: Rule) -> dict[str, Any]:
        """Whether its operations keep their limits."""
        return rule.judged(self.operations, self.ages)

    def details(self) -> dict[str, Any]:
        """Its single requests by kind, and how late the driver was itself."""
        return {
            "parts": {kind: _part(requests) for kind, requests in sorted(self.parts.items())},
            "late": spread(self.late),
        }


class Ledger:
    """Counts all requests, and keeps the times of those that ended in the window of their time, the last one opened."""

    def __init__(self, begin_seconds: float, end_seconds: float) -> None:
        self.window = Window(begin_seconds, end_seconds)
        self.sent = self.answers = self.failures = 0
        self.open_at_end = self.begun = self.ended = 0
        self._told: list[str] = []
        self._under_way: dict[int, tuple[str, float]] = {}

    def open(self, begin_seconds: float, end_seconds: float) -> Window:
        """The next window, in which all times count from now on."""
        self.window = Window(begin_seconds, end_seconds)
        return self.window

    def close(self) -> None:
        """The end of the window, at its time."""
        for operation, begin in self._under_way.values():
            self.window.ages[operation].append(self.window.end_seconds - begin)

    def begins(self, user: int, operation: str, begun: float) -> None:
        """A user begins an operation; `ends` follows, whatever becomes of it."""
        self.begun += 1
        self._under_way[user] = operation, begun

    def ends(self, user: int) -> None:
        """The user's operation is over."""
        del self._under_way[user]

    def answered(self, kind: str, size: int, begun: float, ended: float) -> None:
        """A right answer."""
        self.answers += 1
        if self.window.holds(ended):
            self.window.parts[kind].append((size, ended - begun))

    def failed(self, path: str, error: BaseException) -> None:
        """A request without a right answer."""
        self.failures += 1
        if len(self._told) < MOST_FAILURES:
            self._told.append(f"{path}: {type(error).__name__}: {error}"[:300])

    def done(self, operation: str, begun: float, ended: float) -> None:
        """An operation whose page came whole. One that begins in time and ends late is counted as such."""
        self.ended += 1
        if self.window.holds(ended):
            self.window.operations[operation].append(ended - begun)
        elif begun < self.window.end_seconds <= ended:
            self.open_at_end += 1

    def woke(self, due: float, now: float) -> None:
        """The end of a time to think: how late the driver was itself."""
        if self.window.holds(now):
            self.window.late.append(max(0.0, now - due))

    def as_json(self) -> dict[str, Any]:
        """What is counted over the whole run."""
        return {
            "requests": {"sent": self.sent, "answered": self.answers, "failed": self.failures},
            "failures": self._told,
            "begun": self.begun,
            "ended": self.ended,
            "open_at_end": self.open_at_end,
        }


def spread(values: Sequence[float]) -> dict[str, float | int]:
    """Count, mean, quantiles and the largest of times."""
    ordered = sorted(values)
    return {
        "count": len(ordered),
        "mean_seconds": statistics.fmean(ordered) if ordered else 0.0,
        **{f"p{round(100 * share)}_seconds": quantile(ordered, share) for share in (0.5, 0.9, 0.99)},
        "most_seconds": ordered[-1] if ordered else 0.0,
    }


def _part(requests: Sequence[tuple[int, float]]) -> Mapping[str, float | int]:
    times = [time for _, time in requests]
    return {
        **spread(times),
        "mean_bytes": statistics.fmean(size for size, _ in requests),
        "stalled": sum(time > STALL_SECONDS for time in times),
    }
