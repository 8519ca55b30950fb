"""The CPU time of programs and of all that they have started, from /proc, once a second."""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["Sampler", "tree_seconds"]

INTERVAL_SECONDS = 1.0
_TICK = 1.0 / os.sysconf("SC_CLK_TCK")


def _stat(number: str) -> tuple[str, float, float] | None:
    """The parent of a process, its CPU time, and that of its children that have ended; None if it is gone."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    seconds, children_seconds = (sum(map(int, fields[index : index + 2])) * _TICK for index in (11, 13))
    return fields[1], seconds, children_seconds


def _exact(number: str, ticks: float) -> float:
    """The CPU time of a process to the nanosecond, which `stat` has in ticks of 10 ms: the sum of its threads, unless
    one has ended, whose time is in the ticks alone (proc_pid_schedstat)."""
    total = 0
    for path in Path(f"/proc/{number}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or this kernel keeps no such figures
            total += int(path.read_text().split()[0])
    return max(ticks, total / 1e9)


def tree_seconds(roots: Mapping[str, int]) -> dict[str, float]:
    """The CPU time of each tree of processes, by the name of its root."""
    children: dict[str, list[str]] = defaultdict(list)
    times: dict[str, tuple[float, float]] = {}
    for number in filter(str.isdecimal, os.listdir("/proc")):
        if (stat := _stat(number)) is not None:
            children[stat[0]].append(number)
            times[number] = stat[1:]
    totals = {}
    for name, root in roots.items():
        pending, total = [str(root)], 0.0
        while pending:
            number = pending.pop()
            if number in times:
                ticks, children_seconds = times[number]
                total += _exact(number, ticks) + children_seconds
            pending += children[number]
        totals[name] = total
    return totals


class Sampler:
    """The share of one CPU that each program has used in each second."""

    def __init__(self, roots: Mapping[str, int]) -> None:
        self._roots = dict(roots)
        self._shares: dict[str, list[float]] = {name: [] for name in roots}

    async def run(self, until: float) -> None:
        """Samples until a moment of the monotonic clock."""
        previous, previous_time = tree_seconds(self._roots), time.monotonic()
        while previous_time + INTERVAL_SECONDS <= until + INTERVAL_SECONDS / 2:
            await asyncio.sleep(INTERVAL_SECONDS)
            sample, sample_time = tree_seconds(self._roots), time.monotonic()
            # Of a process that has ended its parent knows ticks alone, which may be less than what it had.
            now = {name: max(previous[name], seconds) for name, seconds in sample.items()}
            for name in self._roots:
                self._shares[name].append((now[name] - previous[name]) / (sample_time - previous_time))
            previous, previous_time = now, sample_time

    def as_json(self) -> dict[str, Any]:
        """Mean, largest and smallest share of a CPU in a second, by program."""
        return {
            name: {"mean": statistics.fmean(shares), "most": max(shares), "least": min(shares), "seconds": len(shares)}
            for name, shares in self._shares.items()
            if shares
        }
