"""The interface of workloads: they run between hosts, and turn their records into metrics."""

from __future__ import annotations

import glob
import importlib.util
import queue
import shutil
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from framegauge.errors import AgentError, AgentFailure
from framegauge.record import Record
from framegauge.testbeds.base import Host, Json, Pending, Progress, Requests

__all__ = ["Executed", "Go", "Phases", "Program", "Runnable", "Spool", "Workload", "jain", "pairs", "side_by_side"]

ANSWER_SECONDS = 30.0
CANCELLED = -32005
# Requests that clean up are made even after a cancellation.
PUTS_BACK = ("process.kill", "rr.close", "stream.close", "datagrams.close", "quic.close")

Result = TypeVar("Result")


@dataclass(frozen=True)
class Program:
    """A program that a workload starts in a host, and the Debian package that contains it.

    `files`: it is there if a file of this pattern is, and need not be in PATH. `is_module`: a Python package that the
    interpreter of framegauge itself must find; `package` is then the command that installs it.
    """

    name: str
    package: str
    files: str | None = None
    is_module: bool = False

    def is_there(self, places: str) -> bool:
        """Whether this machine has it, in the folders `places` or where else it belongs."""
        if self.is_module:
            return importlib.util.find_spec(self.name) is not None
        if self.files is not None:
            return bool(glob.glob(self.files))
        return shutil.which(self.name, path=places) is not None

    @property
    def remedy(self) -> str:
        """The command that installs it."""
        return self.package if self.is_module else f"apt-get install {self.package}"


@dataclass(frozen=True)
class Spool:
    """A bulk record that waits in a host's agent until the run is over."""

    name: str
    host: str
    number: int


@dataclass(frozen=True)
class Executed:
    """The result of a workload: its record, and the spools to fetch."""

    record: Record
    spools: Sequence[Spool]


Go = Callable[[Progress | None], Executed]


class Phases(ABC):
    """What every workload has that has the phase `prepared`."""

    @abstractmethod
    def prepared(self, hosts: Sequence[Host], token: str) -> AbstractContextManager[Go]:
        """As in Runnable."""

    def run(self, hosts: Sequence[Host], token: str, on_progress: Progress | None = None) -> Executed:
        """All phases in turn, where nothing is measured beside."""
        with self.prepared(hosts, token) as go:
            return go(on_progress)


class Workload(Protocol):
    """One workload with its parameters. Hosts can run it if it is `Runnable`; a simulation if it is `work.Known`."""

    @property
    def name(self) -> str:
        """The name in a study file."""
        ...

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """Roughly how long a run takes, for progress and budget."""
        ...

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """The evidence that the checks of a run need from the fetched spools; it is added to the record."""
        ...

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """The values of metrics in base units, from the record and the fetched spools."""
        ...


@runtime_checkable
class Runnable(Workload, Protocol):
    """A workload that runs on hosts."""

    @property
    def needs(self) -> Sequence[Program]:
        """The programs that must be installed before the first run."""
        ...

    def prepared(self, hosts: Sequence[Host], token: str) -> AbstractContextManager[Go]:
        """Starts what must be ready before anything is measured, such as servers; ended on every way out.

        What it yields runs the workload, once, and may end the servers itself.
        """
        ...


def pairs(pattern: str, hosts: Sequence[Host]) -> list[tuple[Host, Host]]:
    """Client and server of every connection: h1 to h2; all to the last; first half to second half; each to each."""
    if pattern == "one-to-one":
        return [(hosts[0], hosts[1])]
    if pattern == "many-to-one":
        return [(host, hosts[-1]) for host in hosts[:-1]]
    if pattern == "half-to-half":
        half = len(hosts) // 2
        return [(client, server) for client in hosts[:half] for server in hosts[half:]]
    return [(client, server) for client in hosts for server in hosts if client is not server]


def jain(values: Sequence[float]) -> float:
    """Jain's fairness index: 1 if all are equal, 1/n if one has everything.

    (Σx)² / (n Σx²); R. Jain, D. Chiu, W. Hawe, "A quantitative measure of fairness and discrimination for
    resource allocation in shared computer systems", DEC-TR-301, 1984. ValueError without a value above 0.
    """
    squares = sum(value * value for value in values)
    if squares <= 0:
        raise ValueError("fairness needs a value above 0")
    return sum(values) ** 2 / (len(values) * squares)


class _Together:
    """The requests of several threads, so that one thread can cancel all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: set[Pending] = set()
        self._stopped = False

    def begin(
        self, agent: Requests, method: str, params: Mapping[str, Any] | None, progress: Progress | None
    ) -> Pending:
        """Begins a request, unless all have been stopped."""
        with self._lock:
            if self._stopped and method not in PUTS_BACK:
                raise AgentError(CANCELLED, f"{method}: cancelled because another host failed", {})
            call = agent.begin(method, params, progress)
            self._pending.add(call)
        return call

    def forget(self, call: Pending) -> None:
        """Removes a request that has been answered."""
        with self._lock:
            self._pending.discard(call)

    def stop(self) -> None:
        """Cancels all requests under way, and prevents new ones."""
        with self._lock:
            self._stopped = True
            pending = list(self._pending)
        for call in pending:
            with suppress(AgentFailure):
                call.cancel()


class _Joined:
    """An agent whose requests are registered with `together`."""

    def __init__(self, together: _Together, agent: Requests) -> None:
        self._together, self._agent = together, agent

    def begin(
        self, method: str, params: Mapping[str, Any] | None = None, on_progress: Progress | None = None
    ) -> Pending:
        """Like Agent.begin."""
        return self._together.begin(self._agent, method, params, on_progress)

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout_seconds: float | None = ANSWER_SECONDS,
        on_progress: Progress | None = None,
    ) -> Json:
        """Like Agent.request."""
        call = self.begin(method, params, on_progress)
        try:
            return call.result(timeout_seconds)
        finally:
            self._together.forget(call)


def side_by_side(tasks: Sequence[tuple[Host, Callable[[Host], Result]]]) -> list[Result]:
    """Runs each task with its host, all at the same time; returns their results in order.

    When one fails, or on Ctrl-C, the requests of the others are cancelled, all tasks are awaited, and the first error
    is raised. A task must use the host that it is given, so that its requests can be cancelled.
    """
    together = _Together()
    hosts = [replace(host, agent=_Joined(together, host.agent)) for host, _ in tasks]
    if len(tasks) == 1:
        return [tasks[0][1](hosts[0])]
    outcomes: queue.SimpleQueue[tuple[int, Any, BaseException | None]] = queue.SimpleQueue()

    def work(index: int) -> None:
        try:
            outcomes.put((index, tasks[index][1](hosts[index]), None))
        except BaseException as error:
            outcomes.put((index, None, error))

    threads = [threading.Thread(target=work, args=(index,), daemon=True) for index in range(len(tasks))]
    results: dict[int, Any] = {}
    failed: BaseException | None = None
    try:
        for thread in threads:
            thread.start()
        for _ in threads:
            index, results[index], error = outcomes.get()
            if error is not None:
                raise error
    except BaseException as error:
        failed = error
        together.stop()
    for thread in threads:
        if thread.ident is not None:
            thread.join()
    if failed is not None:
        raise failed
    return [results[index] for index in range(len(tasks))]
