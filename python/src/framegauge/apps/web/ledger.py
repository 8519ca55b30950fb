"""The account of a run: every request and operation, and what their times come to. Times are of one monotonic clock."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from framegauge.apps.web.visits import LIMITS

__all__ = ["STALL_SECONDS", "Ledger", "quantile", "spread"]

STALL_SECONDS = 0.035  # Linux delays an acknowledgement by 40 ms at least
MOST_FAILURES = 5  # that are told
LIMIT_SHARE = 0.9  # of the operations of a kind, which must keep its limit


class Ledger:
    """Counts all requests, and keeps the times of those that ended between `steady_seconds` and `end_seconds`."""

    def __init__(self, steady_seconds: float, end_seconds: float) -> None:
        self._steady, self._end = steady_seconds, end_seconds
        self.sent = self.answers = self.failures = 0
        self.open_at_end = self.begun = self.ended = 0
        self._told: list[str] = []
        self._operations: dict[str, list[float]] = defaultdict(list)
        self._parts: dict[str, list[tuple[int, float]]] = defaultdict(list)
        self._late: list[float] = []

    def answered(self, kind: str, size: int, begun: float, ended: float) -> None:
        """A right answer."""
        self.answers += 1
        if self._steady <= ended < self._end:
            self._parts[kind].append((size, ended - begun))

    def failed(self, path: str, error: BaseException) -> None:
        """A request without a right answer."""
        self.failures += 1
        if len(self._told) < MOST_FAILURES:
            self._told.append(f"{path}: {type(error).__name__}: {error}"[:300])

    def done(self, operation: str, begun: float, ended: float) -> None:
        """An operation whose page came whole. One that begins in time and ends late is counted as such."""
        self.ended += 1
        if self._steady <= ended < self._end:
            self._operations[operation].append(ended - begun)
        elif begun < self._end <= ended:
            self.open_at_end += 1

    def woke(self, due: float, now: float) -> None:
        """The end of a time to think: how late the driver was itself."""
        if self._steady <= now < self._end:
            self._late.append(max(0.0, now - due))

    def as_json(self) -> dict[str, Any]:
        """Everything, in base units."""
        times = [each for one in self._operations.values() for each in one]
        return {
            "operations": len(times),
            "operations_per_second": len(times) / (self._end - self._steady),
            "response": spread(times),
            "by_operation": {name: spread(self._operations[name]) for name in LIMITS if self._operations[name]},
            "parts": {kind: _part(found) for kind, found in sorted(self._parts.items())},
            "requests": {"sent": self.sent, "answered": self.answers, "failed": self.failures},
            "failures": self._told,
            "begun": self.begun,
            "ended": self.ended,
            "open_at_end": self.open_at_end,
            "late": spread(self._late),
        }

    def beyond(self) -> list[str]:
        """The operations that did not keep their limits."""
        found = {name: quantile(sorted(times), LIMIT_SHARE) for name, times in self._operations.items()}
        return [
            f"{name}: found {time:.3g} s at {LIMIT_SHARE:.0%}, expected at most {LIMITS[name]:g} s"
            for name, time in found.items()
            if time > LIMITS[name]
        ]


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that so large a share does not exceed; 0 without values."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def spread(values: Sequence[float]) -> dict[str, float | int]:
    """Count, mean, quantiles and the largest of times."""
    ordered = sorted(values)
    return {
        "count": len(ordered),
        "mean_seconds": statistics.fmean(ordered) if ordered else 0.0,
        **{f"p{round(100 * share)}_seconds": quantile(ordered, share) for share in (0.5, 0.9, 0.99)},
        "most_seconds": ordered[-1] if ordered else 0.0,
    }


def _part(found: Sequence[tuple[int, float]]) -> Mapping[str, float | int]:
    times = [time for _, time in found]
    return {
        **spread(times),
        "mean_bytes": statistics.fmean(size for size, _ in found),
        "stalled": sum(time > STALL_SECONDS for time in times),
    }
