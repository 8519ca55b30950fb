"""Where simulations run: on the cores of this machine, or on a Dask cluster that the user has."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from framegauge.agents import cluster, remote
from framegauge.agents.binary import find_agent
from framegauge.agents.simulator import Processes, Progress, Simulated, checked, files
from framegauge.experiment.simulated.pool import Simulate

__all__ = ["Engine", "opened"]


@dataclass(frozen=True)
class Engine:
    """How a scenario is simulated, how all are stopped, and how many may run at a time. `memory` says what bytes a
    scenario takes and what there are, where simulations run on this machine."""

    simulate: Simulate
    stop: Callable[[], None]
    jobs: int
    memory: Callable[[Mapping[str, Any]], tuple[int, int | None]] | None = None


@contextmanager
def opened(text: str, jobs: int | None = None) -> Iterator[Engine]:
    """The engine of `--engine`; InputError as `cluster.connected`. Without `jobs`, there are as many as CPUs."""
    if text == cluster.LOCAL:
        processes = Processes(find_agent())
        try:
            yield Engine(processes.run, processes.stop, jobs or len(os.sched_getaffinity(0)), processes.memory)
        finally:
            processes.stop()
        return
    with cluster.connected(text) as client:
        work = cluster.Work(client)

        def simulate(scenario: Mapping[str, Any], on_progress: Progress) -> Simulated:
            del on_progress  # workers tell none
            data = json.dumps(scenario).encode()
            code, line, message, left = work.answer("the simulation", remote.simulate, data, files(scenario))
            return checked(json.loads(line).get("result") if line else None, code, message, lambda: left)

        try:
            yield Engine(simulate, work.stop, jobs or work.threads())
        finally:
            work.stop()
