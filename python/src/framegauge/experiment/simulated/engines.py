"""Where simulations run: on the cores of this machine, or on a Dask cluster that the user has."""

from __future__ import annotations

import json
import os
import platform
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from framegauge.agents import cluster, remote
from framegauge.agents.binary import find_agent
from framegauge.agents.simulator import Processes, Progress, Simulated, checked, files
from framegauge.errors import AgentFailure
from framegauge.experiment.simulated.pool import Simulate

__all__ = ["Engine", "opened"]


@dataclass(frozen=True)
class Engine:
    """How a scenario is simulated, how all are stopped, and how many may run at a time."""

    simulate: Simulate
    stop: Callable[[], None]
    jobs: int


@contextmanager
def opened(text: str, jobs: int | None = None) -> Iterator[Engine]:
    """The engine of `--engine`; InputError as `cluster.connected`. Without `jobs`, there are as many as CPUs."""
    if text == cluster.LOCAL:
        processes = Processes(find_agent())
        try:
            yield Engine(processes.run, processes.stop, jobs or len(os.sched_getaffinity(0)))
        finally:
            processes.stop()
        return
    with cluster.connected(text) as client:
        there = _Cluster(client)
        threads = sum(worker["nthreads"] for worker in client.scheduler_info()["workers"].values())
        try:
            yield Engine(there.run, there.stop, jobs or threads)
        finally:
            there.stop()


class _Cluster:
    """Simulations on the workers of a cluster; they tell no progress."""

    def __init__(self, client: Any) -> None:
        self._client, self._agent = client, cluster.agent(client)
        self._lock = threading.Lock()
        self._running: list[Any] = []
        self._stopped = False

    def run(self, scenario: Mapping[str, Any], on_progress: Progress) -> Simulated:
        """One simulation; another worker does it again if one is lost."""
        del on_progress
        data = json.dumps(scenario).encode()
        with self._lock:
            if self._stopped:
                raise AgentFailure("the simulation was stopped")
            future = self._client.submit(
                remote.simulate, self._agent, platform.machine(), data, files(scenario), pure=False, retries=1
            )
            self._running.append(future)
        code, line, said, left = cluster.result(future, "the simulation")
        with self._lock:
            if future in self._running:
                self._running.remove(future)
        return checked(json.loads(line).get("result") if line else None, code, said, lambda: left)

    def stop(self) -> None:
        """Cancels all."""
        with self._lock:
            self._stopped = True
            running, self._running = self._running, []
        if running:
            self._client.cancel(running, force=True)
