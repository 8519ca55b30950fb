"""The CPU time of programs and of all that they have started, from /proc, once a second."""

from __future__ import annotations

import asyncio
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


def _stat(number: str) -> tuple[str, float] | None:
    """The parent of a process, and its CPU time with that of its children that have ended; None if it is gone."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[1], sum(int(each) for each in fields[11:15]) * _TICK


def tree_seconds(roots: Mapping[str, int]) -> dict[str, float]:
    """The CPU time of each tree of processes, by the name of its root."""
    children: dict[str, list[str]] = defaultdict(list)
    used: dict[str, float] = {}
    for number in filter(str.isdecimal, os.listdir("/proc")):
        if (found := _stat(number)) is not None:
            children[found[0]].append(number)
            used[number] = found[1]
    totals = {}
    for name, root in roots.items():
        waiting, total = [str(root)], 0.0
        while waiting:
            number = waiting.pop()
            total += used.get(number, 0.0)
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
            now, then = tree_seconds(self._roots), time.monotonic()
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
