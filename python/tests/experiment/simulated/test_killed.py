"""A simulation whose controller is killed leaves no process that goes on."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest
from helpers.support import PATIENCE_SECONDS

# What would take hours; it prints the process of each simulation once that has told of itself.
CONTROLLER = """\
from framegauge.agents.binary import find_agent
from framegauge.agents.simulator import Processes
from framegauge.experiment.simulated import plan, pool
from framegauge.study.sweep import Source, points

text = '''
testbed: {kind: simulator, topology: rack, hosts: 8, link: {rate: 10 Gb/s, buffer: 64 KiB}}
factors: {mtu: [1500, 9000]}
workloads: [{stream: {duration: 900 s, pattern: many-to-one}}]
blocks: 2
'''
[[first, *_], *_] = plan.blocks(points(Source(text, "s.yaml"), []))
processes = Processes(find_agent())
processes.run(pool.scenario_of(first), lambda _: print(next(iter(processes._running)).pid, flush=True))
"""


@pytest.mark.agent
def test_when_the_controller_is_killed_its_simulation_ends() -> None:
    with subprocess.Popen([sys.executable, "-c", CONTROLLER], stdout=subprocess.PIPE) as controller:
        assert controller.stdout is not None
        try:
            simulation = os.pidfd_open(int(controller.stdout.readline()))
        finally:
            controller.send_signal(signal.SIGKILL)
    ended = select.poll()
    ended.register(simulation, select.POLLIN)
    try:
        assert ended.poll(PATIENCE_SECONDS * 1000), "it goes on"
    finally:
        if not ended.poll(0):
            signal.pidfd_send_signal(simulation, signal.SIGKILL)
        os.close(simulation)
