"""What a client saw over time: answers in windows, the longest times without one, and the packets of its host."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["WINDOW_SECONDS", "Course", "counted", "packets"]

WINDOW_SECONDS = 0.05
MOST_GAPS = 20
RECEIVED, SENT = 1, 9  # places of the packets in a line of /proc/net/dev


def counted(lines: Iterable[str]) -> int:
    """The packets that all interfaces but the loopback have received and sent, from /proc/net/dev."""
    total = 0
    for line in lines:
        name, colon, figures = line.partition(":")
        if colon and name.strip() != "lo":
            fields = figures.split()
            total += int(fields[RECEIVED]) + int(fields[SENT])
    return total


def packets() -> int:
    """Those of this network namespace."""
    return counted(Path("/proc/net/dev").read_text().splitlines())


@dataclass
class Course:
    """Times are on the machine's monotonic clock. `count` tells how many packets there have been."""

    count: Callable[[], int] = packets
    begun_seconds: float = 0.0
    last_seconds: float = 0.0
    windows: list[list[float]] = field(default_factory=list)  # answers, and the sum of their latencies in seconds
    gaps: list[tuple[float, float]] = field(default_factory=list)  # seconds, and when it began
    packets: list[tuple[float, int]] = field(default_factory=list)  # since the beginning: seconds, and how many

    def begin(self, now: float) -> None:
        """The first window begins."""
        self.begun_seconds = self.last_seconds = now
        self.look(now)

    def look(self, now: float) -> None:
        """Counts packets, once in a window."""
        elapsed = now - self.begun_seconds
        if not self.packets or elapsed >= self.packets[-1][0] + WINDOW_SECONDS:
            self.packets.append((elapsed, self.count()))

    def answered(self, now: float, latency_seconds: float) -> None:
        """Counts an answer."""
        index = int((now - self.begun_seconds) / WINDOW_SECONDS)
        while len(self.windows) <= index:
            self.windows.append([0, 0.0])
        self.windows[index][0] += 1
        self.windows[index][1] += latency_seconds
        gap = now - self.last_seconds, self.last_seconds
        if len(self.gaps) < MOST_GAPS:
            heapq.heappush(self.gaps, gap)
        elif gap > self.gaps[0]:
            heapq.heapreplace(self.gaps, gap)
        self.last_seconds = now

    def as_json(self) -> dict[str, Any]:
        """Everything."""
        return {
            "window_seconds": WINDOW_SECONDS,
            "answered": [int(count) for count, _ in self.windows],
            "latency_seconds": [total for _, total in self.windows],
            "gaps": [
                {"begun_seconds": begin, "seconds": seconds} for seconds, begin in sorted(self.gaps, reverse=True)
            ],
            "packets": [[round(elapsed, 6), count] for elapsed, count in self.packets],
        }
