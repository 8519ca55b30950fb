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
    own, ended = (sum(map(int, fields[place : place + 2])) * _TICK for place in (11, 13))
    return fields[1], own, ended


def _exact(number: str, ticks: float) -> float:
    """The CPU time of a process to the nanosecond, which `stat` has in ticks of 10 ms: the sum of its threads, unless
    one has ended, whose time is in the ticks alone (proc_pid_schedstat)."""
    total = 0
    for place in Path(f"/proc/{number}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or this kernel keeps no such figures
            total += int(place.read_text().split()[0])
    return max(ticks, total / 1e9)


def tree_seconds(roots: Mapping[str, int]) -> dict[str, float]:
    """The CPU time of each tree of processes, by the name of its root."""
    children: dict[str, list[str]] = defaultdict(list)
    used: dict[str, tuple[float, float]] = {}
    for number in filter(str.isdecimal, os.listdir("/proc")):
        if (found := _stat(number)) is not None:
            children[found[0]].append(number)
            used[number] = found[1:]
    totals = {}
    for name, root in roots.items():
        waiting, total = [str(root)], 0.0
        while waiting:
            number = waiting.pop()
            if number in used:
                ticks, ended = used[number]
                total += _exact(number, ticks) + ended
            waiting += children[number]
        totals[name] = total
    return totals


class Sampler:
    """The share of one CPU that each program has used in each second."""

    def __init__(self, roots: Mapping[str, int]) -> None:
        self._roots = dict(roots)
        self._shares: dict[str, list[float]] = {name: [] for name in roots}

    async def run(self, until: float) -> None:
        """Samples until a moment of the monotonic clock."""
        before, at = tree_seconds(self._roots), time.monotonic()
        while at + INTERVAL_SECONDS <= until + INTERVAL_SECONDS / 2:
            await asyncio.sleep(INTERVAL_SECONDS)
            read, then = tree_seconds(self._roots), time.monotonic()
            # Of a process that has ended its parent knows ticks alone, which may be less than what it had.
            now = {name: max(before[name], seconds) for name, seconds in read.items()}
            for name in self._roots:
                self._shares[name].append((now[name] - before[name]) / (then - at))
            before, at = now, then

    def as_json(self) -> dict[str, Any]:
        """Mean, largest and smallest share of a CPU in a second, by program."""
        return {
            name: {"mean": statistics.fmean(found), "most": max(found), "least": min(found), "seconds": len(found)}
            for name, found in self._shares.items()
            if found
        }
