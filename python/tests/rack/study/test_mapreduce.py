"""What stops the programs of a Hadoop cluster stops those of one host, and they end all the same."""

from __future__ import annotations

import os
import signal

from helpers.real import UP, await_end, leaves_nothing, spawn

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.files.placeholders import substitute
from framegauge.testbeds.base import Json
from framegauge.testbeds.rack import Relay
from framegauge.workloads.hadoop import Cluster


def test_what_is_stopped_is_of_one_host_and_ends_all_the_same() -> None:
    """By a request, and when the agent of the rack is killed."""
    cluster = Cluster("/cache", "h1", ["h2"], 32 << 20)
    asked = {"argv": ["sh", "-c", "sleep 97531 & wait"], "environment": {"HADOOP_CONF_DIR": "/run-1/conf"}}
    words = [substitute(word, {"run": "/run-1"}) for word in cluster.stop().argv]
    with leaves_nothing():
        agent = Agent.open([find_agent(), "rack"])
        try:
            built = agent.request("rack.up", UP)
            hosts = [Relay(agent, host["name"]) for host in built["hosts"]]
            mine, also_mine, other = [hosts[index].request("process.spawn", asked) for index in (0, 0, 1)]
            assert wait(hosts[0], spawn(hosts[0], *words))["exit_code"] == 0
            # What has been stopped does not do as it is told, but for this.
            for host, program in ((hosts[0], mine), (hosts[1], other)):
                host.request("process.signal", {"process": program["process"], "signal": signal.SIGTERM})
            assert wait(hosts[1], other["process"])["signal"] == signal.SIGTERM
            assert not wait(hosts[0], mine["process"], 0.2)["ended"]
            assert hosts[0].request("process.kill", {"process": mine["process"]})["ended"]
            os.kill(agent.process_id, signal.SIGKILL)
        finally:
            agent.close()
        await_end([agent.process_id, also_mine["pid"], *(host["pid"] for host in built["hosts"])])


def wait(host: Relay, program: int, seconds: float = 30.0) -> Json:
    return host.request("process.wait", {"process": program, "timeout_seconds": seconds})
