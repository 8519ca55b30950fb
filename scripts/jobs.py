"""Runs commands side by side, as many as the CPUs carry, and leaves nothing of them when it ends.

Standard library only. Each command is the leader of a session, and all that it starts has a mark in its environment. So
its whole tree can be ended: when it takes longer than it may, and when this process is told to end. Signals of the
terminal reach this process alone.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

LOOK_SECONDS = 0.2
WAITING_SECONDS = 30.0  # between two lines that tell what is still running
# So long a tree has to end by itself, to take down what it has built, and to be killed.
PATIENCE = ((signal.SIGINT, 30.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 10.0))
MARK = "FRAMEGAUGE_CHECK"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, eq=False)
class Job:
    """A command. `cpus`: how many it keeps busy; 0 if it mostly waits. `after`: jobs that must have ended. Of those
    that share a word of `one_of`, one runs at a time; one that is `apart` has no other of its `kind` beside it."""

    name: str
    command: Sequence[str]
    cpus: int = 1
    after: Sequence[str] = ()
    one_of: str = ""
    kind: str = ""
    apart: bool = False
    limit_seconds: float = 600.0
    environment: Mapping[str, str] = field(default_factory=dict)

    def bears(self, other: Job) -> bool:
        """Whether both may run at a time."""
        if self.one_of and self.one_of == other.one_of:
            return False
        return self.kind != other.kind or not (self.apart or other.apart)


@dataclass(frozen=True)
class Ended:
    """How a job ended: its output, and why it was ended if it was."""

    passed: bool
    lines: Sequence[str]
    seconds: float
    cpu_seconds: float
    why: str = ""


@contextlib.contextmanager
def noted() -> Iterator[list[str]]:
    """The names of SIGINT, SIGTERM and SIGHUP as they come, which do nothing else."""
    names: list[str] = []

    def note(number: int, _: FrameType | None) -> None:
        names.append(signal.Signals(number).name)

    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield names
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _state(process: int) -> tuple[str, int] | None:
    """The state and the parent of a process."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return words[0], int(words[1])


def tree(leader: int, mark: str) -> set[int]:
    """The processes that a job has started, and that run: its descendants, and all that have its mark."""
    wanted, below, running = f"{MARK}={mark}".encode(), {leader}, set()
    processes = sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    states = {process: state for process in processes if (state := _state(process)) is not None}
    while more := {process for process, (_, parent) in states.items() if parent in below} - below:
        below |= more
    for process, (state, _) in states.items():
        is_marked = False
        with contextlib.suppress(OSError):
            is_marked = wanted in Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        if state not in "ZX" and process != os.getpid() and (is_marked or process in below):
            running.add(process)
    return running


def words_of(processes: set[int]) -> list[str]:
    """Their command lines."""
    said = []
    for process in sorted(processes):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{process}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            said.append(f"  {process} {b' '.join(words).decode(errors='replace')[:150]}")
    return said


def end(leader: int, mark: str, patience: Sequence[tuple[signal.Signals, float]] = PATIENCE) -> None:
    """End all that a job has started. First its group is interrupted, as from a terminal, and may clean up."""
    for number, seconds in patience:
        for process in tree(leader, mark):
            with contextlib.suppress(OSError):
                if number is not signal.SIGINT or os.getpgid(process) == leader:
                    os.kill(process, number)
        until = time.monotonic() + seconds
        while (left := tree(leader, mark)) and time.monotonic() < until:
            if number is signal.SIGINT and leader not in left:
                break  # what it has left behind was not interrupted
            time.sleep(0.1)
        if not left:
            return


class Jobs:
    """Jobs, begun in their order as soon as there is room for each. `on_end` is called for each, one at a time."""

    def __init__(self, jobs: Sequence[Job], cpus: int, folder: Path, on_end: Callable[[Job, Ended], None]) -> None:
        names = {job.name for job in jobs}
        assert len(names) == len(jobs)
        assert all(names >= set(job.after) for job in jobs)
        self._waiting, self._cpus, self._folder, self._on_end = list(jobs), cpus, folder, on_end
        self._live = all(job.cpus >= cpus for job in jobs)
        self._changed = threading.Condition()
        self._running: dict[Job, tuple[int, float]] = {}  # the leader, and when it began
        self._ended: set[str] = set()
        self._stopped = False

    def run(self, signals: Sequence[str] = ()) -> bool:
        """All of them, to their end. Once `signals` has something in it, all that they have started is ended, at once
        if it has more; then this is false."""
        said = time.monotonic()
        with self._changed:
            while (self._waiting or self._running) and not signals:
                self._begin_some()
                self._changed.wait(LOOK_SECONDS)
                if self._running and time.monotonic() - said > WAITING_SECONDS:
                    said = time.monotonic()
                    running = [f"{job.name} ({said - began:.0f} s)" for job, (_, began) in self._running.items()]
                    print(f"   running: {', '.join(running)}", flush=True)
            self._stopped = bool(signals)
            left = [(leader, _mark(job)) for job, (leader, _) in self._running.items()]
        threads = [threading.Thread(target=end, args=pair, daemon=True) for pair in left]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(LOOK_SECONDS)
            if len(signals) > 1:
                for each in left:
                    end(*each, patience=PATIENCE[-1:])
        return not self._stopped

    def _begin_some(self) -> None:
        """In their order: one that waits for CPUs has the first that are free; only those that need none pass it."""
        is_full = False
        for job in list(self._waiting):
            if not set(job.after) <= self._ended or not all(job.bears(other) for other in self._running):
                continue
            busy = sum(other.cpus for other in self._running)
            is_full = is_full or busy + job.cpus > max(self._cpus, job.cpus)
            if not is_full or not job.cpus:
                self._waiting.remove(job)
                self._begin(job)

    def _begin(self, job: Job) -> None:
        """Start a job, and a thread that reads what it says."""
        if self._live:
            print(f"\n== {job.name}: {shlex.join(job.command)}", flush=True)
        try:
            process = subprocess.Popen(
                job.command, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                env={**os.environ, **job.environment, MARK: _mark(job)},
            )  # fmt: skip
        except OSError as error:
            self._finish(job, Ended(False, [f"{job.command[0]}: {error.strerror}\n"], 0.0, 0.0))
            return
        self._running[job] = process.pid, time.monotonic()
        threading.Thread(target=self._follow, args=(job, process), daemon=True).start()

    def _follow(self, job: Job, process: subprocess.Popen[str]) -> None:
        began, lines, why = time.monotonic(), list[str](), list[str]()

        def is_late() -> None:
            running = words_of(tree(process.pid, _mark(job)))
            why.append(f"ended after {job.limit_seconds:.0f} s, which is all it may take; these were running:")
            why.extend(running)
            end(process.pid, _mark(job))

        limit = threading.Timer(job.limit_seconds, is_late)
        limit.daemon = True
        limit.start()
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if self._live:
                print(line, end="", flush=True)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        limit.cancel()
        if why:
            limit.join()
        with self._changed:
            took, cpu = time.monotonic() - began, usage.ru_utime + usage.ru_stime
            self._finish(job, Ended(process.returncode == 0 and not why, lines, took, cpu, "\n".join(why)))

    def _finish(self, job: Job, ended: Ended) -> None:
        self._running.pop(job, None)
        self._ended.add(job.name)
        if not self._stopped:
            print("" if self._live else f"\n== {job.name}: {shlex.join(job.command)}\n{''.join(ended.lines)}", end="")
            print(f"{ended.why}\n" if ended.why else "", end="")
            said = "passed" if ended.passed else "FAILED"
            print(f"-- {job.name}: {said}, {ended.seconds:.0f} s", flush=True)
            self._on_end(job, ended)
        self._changed.notify_all()


def _mark(job: Job) -> str:
    return f"{os.getpid()}.{job.name}"
