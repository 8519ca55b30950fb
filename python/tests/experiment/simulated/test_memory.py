"""How many simulations run at a time, by the memory that there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from framegauge.agents.binary import find_agent
from framegauge.agents.simulator import Processes
from framegauge.errors import AgentFailure, InputError
from framegauge.experiment.simulated import memory, plan
from framegauge.experiment.simulated.engines import Engine
from framegauge.experiment.simulated.pool import scenario_of
from framegauge.study.sweep import Axis, Source, points

FILE = """\
testbed: {kind: simulator, topology: {fat-tree: {k: 4}}}
factors: {mtu: [1500, 9000]}
workloads: [{stream: {duration: 10 ms}}]
"""
SWEEP = Axis("testbed.topology.fat-tree.k", ("2", "4"))


@pytest.mark.parametrize(
    ("bytes_by_hosts", "available", "jobs", "said"),
    [
        ({16: 10**9, 2: 10**8}, 9 * 10**9, 4, "a run takes about 1.0 GB of the 9.0 GB that are available: 4 at a time"),
        ({16: 2 * 10**9, 2: 1}, 5 * 10**9, 2, "a run takes about 2.0 GB of the 5.0 GB that are available: 2 at a time"),
        ({16: 10**10, 2: 1}, 10**9, 1, "a run takes about 10.0 GB of the 1.0 GB that are available: 1 at a time"),
        ({16: 10**9, 2: 1}, None, 4, "a run takes about 1.0 GB: 4 at a time"),
        ({16: 10**8, 2: 1}, 10**8, 4, None),
    ],
)
def test_as_many_run_as_fit(
    bytes_by_hosts: Mapping[int, int], available: int | None, jobs: int, said: str | None
) -> None:
    def of(scenario: Mapping[str, Any]) -> tuple[int, int | None]:
        return bytes_by_hosts[len(scenario["hosts"])], available

    def refuse(*_: object) -> Any:
        raise AgentFailure("nothing is simulated here")

    lines: list[str] = []
    blocks = plan.blocks(points(Source(FILE, "s.yaml"), [SWEEP]))
    assert memory.within(Engine(refuse, lambda: None, 4, of), blocks, lines.append).jobs == jobs
    assert lines == ([] if said is None else [said])
    there = memory.within(Engine(refuse, lambda: None, 4), blocks, lines.append)
    assert there.jobs == 4, "on a cluster, whose memory nobody knows here"


@pytest.mark.agent
def test_the_simulator_says_what_a_scenario_takes() -> None:
    found = points(Source(FILE, "s.yaml"), [SWEEP])
    processes = Processes(find_agent())
    small, large = (processes.memory(scenario_of(plan.blocks([point])[0][0])) for point in found)
    assert 0 < small[0] < large[0] < 10**7
    assert small[1] is not None
    with pytest.raises(InputError, match="simulation: scenario: missing field"):
        processes.memory({})
