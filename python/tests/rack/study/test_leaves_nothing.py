"""Many racks up and down, and agents and controllers killed at random moments: nothing stays."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from helpers.real import UP, await_end, children, hosts_of, leaves_nothing, spawn
from helpers.support import PATIENCE_SECONDS, by_length

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.errors import AgentError, AgentFailure, Refused
from framegauge.testbeds.base import Host
from framegauge.testbeds.rack import Relay
from framegauge.workloads.stream import Stream


@pytest.mark.soak(0.2)
def test_racks_up_and_down_leave_nothing(rack_agent: Agent) -> None:
    rack_agent.request("rack.up", UP)
    rack_agent.request("rack.down")
    with leaves_nothing():
        for _ in range(by_length(30, 100)):
            rack_agent.request("rack.up", UP)
            rack_agent.request("rack.down")


def test_a_namespace_that_stays_is_noticed_and_one_of_others_is_not() -> None:
    """Of a process without a parent, as an agent that was killed would leave."""
    orphan = "setsid unshare --net sleep 60 >/dev/null 2>&1 & echo $!"
    for environment, is_noticed in ((None, True), ({"PATH": os.environ["PATH"]}, False)):
        started = []
        try:
            with pytest.raises(AssertionError) if is_noticed else nullcontext(), leaves_nothing():
                done = subprocess.run(
                    ["sh", "-c", orphan], stdout=subprocess.PIPE, text=True, check=True, env=environment
                )
                started.append(int(done.stdout))
                await_program(started[0], "sleep")
        finally:
            for process in started:
                os.kill(process, signal.SIGKILL)
                await_end([process])


def await_program(process: int, name: str) -> None:
    """Wait until a process has become this program."""
    until = time.monotonic() + PATIENCE_SECONDS
    while Path(f"/proc/{process}/comm").read_text().strip() != name:
        assert time.monotonic() < until
        time.sleep(0.01)


def namespaces() -> int:
    """Network namespaces that the kernel keeps, some freed ones among them."""
    lines = [line.split() for line in Path("/proc/slabinfo").read_text().splitlines()]
    return next(int(words[1]) for words in lines if words[0] == "net_namespace")


def test_merged_frames_keep_no_namespace(rack_agent: Agent) -> None:
    """Where GRO has merged frames the kernel keeps a TAP's socket for ever, and with it the namespace it was opened in."""
    up = {**UP, "nic": {**UP["nic"], "gro": True}, "hosts": [{"name": f"h{i}", "mtu": 1500} for i in range(1, 7)]}
    before = namespaces()
    for number in range(15):
        built = rack_agent.request("rack.up", up)
        hosts = [Host(each["name"], each["address"], Relay(rack_agent, each["name"])) for each in built["hosts"]]
        done = Stream(size_bytes=300_000, pattern="half-to-half", repeat_seconds=0.1).run(hosts, f"{number:032x}", None)
        assert done.record["bytes"] >= 9 * 300_000
        rack_agent.request("rack.down")
    until = time.monotonic() + PATIENCE_SECONDS
    while namespaces() - before > 20 and time.monotonic() < until:
        time.sleep(0.5)  # the kernel takes them down in its own time
    assert namespaces() - before <= 20  # of 90


def test_a_rack_that_is_refused_leaves_nothing(rack_agent: Agent) -> None:
    with leaves_nothing():
        for change in ({"congestion_control": "vegas2"}, {"sysctls": {"net.ipv4.no_such_thing": "1"}}):
            with pytest.raises((AgentError, Refused)):
                rack_agent.request("rack.up", {**UP, **change})


STUDY = """\
question: Who is killed?
testbed: {kind: rack, link: {rate: 200 Mb/s}}
factors:
  mtu: {levels: [1500, 9000], baseline: 1500}
workloads:
  - stream: {size: 1 MB, repeat: 0.3 s}
control: false
blocks: 50
margins: {goodput: 1 %}
"""


@pytest.mark.soak(0.1)
@pytest.mark.parametrize("seed", range(by_length(6, 102)))
def test_killed_at_a_random_moment_leaves_nothing(seed: int, tmp_path: object) -> None:
    generator = random.Random(seed)
    victim = ("controller", "rack agent", "host agent")[seed % 3]
    path = f"{tmp_path}/study.yaml"
    with open(path, "w") as file:
        file.write(STUDY)
    family: list[int] = []
    with leaves_nothing(lambda: await_end(family)):
        command = [sys.executable, "-m", "framegauge", "study", path, "--out", f"{tmp_path}/out"]
        # The moment: after some runs have ended, anywhere in the next one.
        with _running(command, Path(f"{tmp_path}/out/runs.jsonl"), generator.randint(0, 2)) as controller:
            pass_time(generator.uniform(0.0, 0.5))
            root = children(controller.pid)[0]
            family.append(root)
            # Between two runs there are no hosts.
            hosts = hosts_of(root) or [root]
            target = {"controller": controller.pid, "rack agent": root, "host agent": hosts[0]}[victim]
            os.kill(target, signal.SIGKILL)
            if victim != "controller":
                # A lost agent ends the study, a lost host costs one run: end it in order.
                controller.send_signal(signal.SIGINT)
            controller.communicate(timeout=PATIENCE_SECONDS)
        family.extend(hosts_of(root))


def pass_time(seconds: float) -> None:
    """A random moment needs the passing of time itself; nothing is waited for."""
    select.select([], [], [], seconds)


def _running(command: Sequence[str], journal: Path, count: int) -> subprocess.Popen[bytes]:
    """A study whose journal has that many runs and whose rack agent is there. One that finds this machine too busy before
    its first run is started again."""
    while True:
        controller = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while controller.poll() is None:
            if _lines(journal) >= count and children(controller.pid):
                return controller
            pass_time(0.01)
        printed = controller.communicate()[1].decode()
        assert "too busy" in printed, printed


def _lines(path: Path) -> int:
    """How many a file has; -1 without it. A study that is refused as the machine is too busy takes its folder away."""
    try:
        return path.read_text().count("\n")
    except FileNotFoundError:
        return -1


def test_a_killed_host_takes_its_programs_along() -> None:
    with leaves_nothing(), Agent.open([find_agent(), "rack"]) as agent:
        built = agent.request("rack.up", UP)
        host = Relay(agent, "h1")
        # It leaves its session, its parent and its group: only the cgroup still knows it.
        spawn(host, "sh", "-c", "setsid sh -c 'sleep 1000 & sleep 1000' & exit 0")
        os.kill(built["hosts"][0]["pid"], signal.SIGKILL)
        with pytest.raises(AgentFailure):
            host.request("host.read")
        agent.request("rack.down")


def test_killed_together_they_are_swept_up_by_the_next() -> None:
    with leaves_nothing():
        agent = Agent.open([find_agent(), "rack"])
        built = agent.request("rack.up", UP)
        spawn(Relay(agent, "h1"), "sleep", "1000")
        family = [host["pid"] for host in built["hosts"]] + [agent.process_id]
        for process in family:
            os.kill(process, signal.SIGKILL)
        agent.close()
        await_end(family)
        Agent.open([find_agent(), "rack"]).close()
