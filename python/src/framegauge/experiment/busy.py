"""Who uses the CPUs of this machine beside us: the largest users between two readings of /proc."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from framegauge.printable import one_line

__all__ = ["NOTHING", "Process", "Reading", "User", "age", "largest", "parse", "read", "said"]

MOST = 3
LEAST_SHARE = 0.05  # of a CPU; smaller users hold nobody up
KERNEL_THREAD = 0x00200000  # PF_KTHREAD: nobody can end those


@dataclass(frozen=True)
class Process:
    """A line of /proc/PID/stat (proc_pid_stat(5)); `started` tells it from a later process with the same number."""

    pid: int
    parent: int
    name: str
    started: int
    cpu_seconds: float
    is_kernel: bool = False


@dataclass(frozen=True)
class Reading:
    """All processes at one time, by number; `seconds` on any clock that does not jump."""

    seconds: float
    processes: Mapping[int, Process] = field(default_factory=dict)


NOTHING = Reading(0.0)


@dataclass(frozen=True)
class User:
    """A process and its share of one CPU between two readings."""

    name: str
    pid: int
    share: float


def parse(line: str, ticks_per_second: float) -> Process:
    """The process of a line of /proc/PID/stat; ValueError if it is none. Its name may have any letters."""
    begin, opened, rest = line.partition("(")
    name, closed, after = rest.rpartition(")")
    values = after.split()
    if not opened or not closed or len(values) < 20:
        raise ValueError(f"found {line[:40]!r}, expected a line of /proc/PID/stat")
    return Process(
        pid=int(begin),
        parent=int(values[1]),
        name=one_line(name),
        started=int(values[19]),
        cpu_seconds=(int(values[11]) + int(values[12])) / ticks_per_second,
        is_kernel=bool(int(values[6]) & KERNEL_THREAD),
    )


def read(now: Callable[[], float] = time.monotonic, root: Path = Path("/proc")) -> Reading:
    """All processes that can be seen; those that end meanwhile are left out."""
    ticks = os.sysconf("SC_CLK_TCK")
    processes = {}
    for entry in root.iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, ValueError):
                process = parse((entry / "stat").read_text(errors="replace"), ticks)
                processes[process.pid] = process
    return Reading(now(), processes)


def age() -> float:
    """Seconds since this process was started, the time to load it included."""
    ticks = os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - parse(Path("/proc/self/stat").read_text(), ticks).started / ticks


def largest(before: Reading, after: Reading, own: int) -> list[User]:
    """The largest users between the readings: neither the process `own`, nor what it has started, nor the kernel."""
    elapsed = after.seconds - before.seconds
    if elapsed <= 0:
        return []
    users = []
    for process in after.processes.values():
        old = before.processes.get(process.pid)
        since = old.cpu_seconds if old is not None and old.started == process.started else 0.0
        share = (process.cpu_seconds - since) / elapsed
        if share >= LEAST_SHARE and not process.is_kernel and own not in _line(process, after.processes):
            users.append(User(process.name, process.pid, share))
    return sorted(users, key=lambda user: (-user.share, user.pid))[:MOST]


def _line(process: Process, processes: Mapping[int, Process]) -> Iterator[int]:
    """The numbers of a process and all above it."""
    passed: set[int] = set()
    above: Process | None = process
    while above is not None and above.pid not in passed:
        yield above.pid
        passed.add(above.pid)
        above = processes.get(above.parent)


def said(users: Sequence[User]) -> str:
    """The users in words: "cc1plus (process 4711, 98 % of a CPU), …"."""
    texts = [f"{user.name} (process {user.pid}, {100 * user.share:.0f} % of a CPU)" for user in users]
    return ", ".join(texts)
