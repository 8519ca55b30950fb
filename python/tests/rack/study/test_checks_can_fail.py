"""Checks that can fail: sabotage discards the run, a hurried fabric is unfaithful, a real loss is found."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from helpers.real import faithful, judged, output, run, shell, spawn, study
from helpers.support import by_length, holding

from framegauge.agents.pipe import Agent
from framegauge.results.journal import Run, read
from framegauge.summary import document as summary
from framegauge.testbeds.base import Conditions, Json
from framegauge.testbeds.rack import RackTestbed


class Meddled(RackTestbed):
    """A rack on which somebody does something to the hosts between set-up and run."""

    def __init__(self, agent: Agent, meddle: Callable[[RackTestbed, Conditions], None]) -> None:
        super().__init__(agent)
        self._meddle = meddle

    def up(self, conditions: Conditions) -> Json:
        built = super().up(conditions)
        self._meddle(self, conditions)
        return built


SHORT = {"size": "1 MB", "repeat": "0 s"}
SABOTAGE = {
    "mtu": ("ip link set fg1 mtu 1400", "MTU of h1"),
    "offloads": ("ethtool -K fg1 gro on", "gro of h1"),
    "congestion control": (
        "ip route replace 10.77.0.0/24 dev fg1 scope link congctl reno", "congestion control of live sockets on h1"
    ),
    "shaper": ("tc qdisc replace dev fg1 root tbf rate 100mbit burst 70000 limit 1000000", "rate of the shaper of h1"),
    "sysctl": ("echo 4096 87380 500000 > /proc/sys/net/ipv4/tcp_rmem", "net.ipv4.tcp_rmem of h1"),
}  # fmt: skip


@pytest.mark.needs("ethtool")
@pytest.mark.parametrize("what", SABOTAGE)
def test_sabotage_on_one_host_discards_the_run(rack_agent: Agent, what: str, tmp_path: Path) -> None:
    command, reason = SABOTAGE[what]
    asked = study(stream=SHORT, blocks=1, retries=0, sysctls={"net.ipv4.tcp_rmem": "4096 131072 33554432"})
    bed = Meddled(rack_agent, lambda bed, _: shell(bed.hosts()[0].agent, command))
    runs = run(rack_agent, asked, tmp_path / "out", bed)
    assert len(runs) == 2
    for each in runs:
        assert any(line.startswith("proof: ") and reason in line for line in each.excluded), each.excluded


LOOP = "while :; do :; done"


def test_a_cpu_hog_of_a_host_makes_a_run_unfaithful(rack_agent: Agent, tmp_path: Path) -> None:
    def hog(bed: RackTestbed, _: Conditions) -> None:
        agent = bed.hosts()[1].agent
        for _cpu in range(len(os.sched_getaffinity(0))):
            spawn(agent, "sh", "-c", LOOP)

    asked = study(stream={"duration": "0.5 s"}, blocks=1, retries=0)
    runs = run(rack_agent, asked, tmp_path / "out", Meddled(rack_agent, hog))
    assert len(runs) == 2
    for each in runs:
        assert any(line.startswith("fidelity: programs of a host waited") for line in each.excluded), each.excluded


def test_a_cpu_hog_beside_the_rack_does_not(rack_agent: Agent, tmp_path: Path) -> None:
    """Hosts go before it, so that its time was to spare; only what hosts cost is not judged beside it."""
    with contextlib.ExitStack() as stack:
        for _cpu in range(2 * len(os.sched_getaffinity(0))):
            loop = stack.enter_context(subprocess.Popen(["sh", "-c", LOOP]))
            stack.callback(loop.kill)
        margins = {"goodput": "1 %", "receiver_cpu_cost": "5 %"}
        runs = faithful(rack_agent, study(blocks=1, margins=margins), tmp_path / "out")
    for each in runs:
        assert each.readings["precedence"] == "real time"
        assert each.readings["shared_cpus"] is True
        assert "receiver_cpu_cost" not in each.metrics
        assert each.readings["not_measured"]["receiver_cpu_cost"].startswith("the machine was busy: other programs")


# For 10 ms of every 100 it goes before all programs on a CPU of the hosts, as a hypervisor does.
HOLD = holding(held_seconds=0.01, free_seconds=0.09)


def test_a_cpu_that_somebody_holds_makes_a_run_unfaithful(rack_agent: Agent, tmp_path: Path) -> None:
    def hold(bed: RackTestbed, _: Conditions) -> None:
        agent = bed.hosts()[1].agent
        process = spawn(agent, "python3", "-c", HOLD)
        while "ready" not in output(agent, process):
            pass

    asked = study(stream={"duration": "0.5 s"}, blocks=1, retries=0)
    runs = run(rack_agent, asked, tmp_path / "out", Meddled(rack_agent, hold))
    assert len(runs) == 2
    for each in runs:
        assert any("of the hosts held by something else" in line for line in each.excluded), each.excluded


def test_a_fabric_that_falls_behind_makes_a_run_unfaithful(rack_agent: Agent, tmp_path: Path) -> None:
    # Longer than a deadline of the fabric, on every CPU: as a machine that is too slow for its links.
    with contextlib.ExitStack() as stack:
        for cpu in os.sched_getaffinity(0):
            command = [sys.executable, "-S", "-c", holding(held_seconds=0.01, free_seconds=0.01, cpu=cpu)]
            stall = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            stack.callback(stall.kill)
            assert stall.stdout is not None
            assert stall.stdout.readline() == b"ready\n"
        runs = run(rack_agent, study(stream={"duration": "0.5 s"}, blocks=1, retries=0), tmp_path / "out")
    assert len(runs) == 2
    for each in runs:
        assert any(line.startswith("fidelity: lateness") for line in each.excluded), each.excluded


# While a connection stands: 1514 bytes every 2 ms, made up for when late: 6.2 Mb/s on the wire, 3.1 % of 200 Mb/s. It
# looks seldom, and goes before other programs: each time that it wakes up it would wait for its CPU otherwise, and what
# hosts wait makes a run unfaithful.
FLOOD = """
import socket, time
flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
due = None
print("ready", flush=True)
while True:
    with open("/proc/self/net/tcp") as table:
        busy = any(line.split()[3] == "01" for line in table.readlines()[1:])
    now = time.monotonic()
    due = (due or now) if busy else None
    while due is not None and due <= now:
        flood.sendto(bytes(1472), ("10.77.0.2", 9))
        due += 0.002
    time.sleep(0.03)
"""


# What a study says of runs that a busy machine has taken.
ROBBED = ("were excluded in one arm", "were lost", "no pair of runs is left to compare")


@pytest.mark.soak(6)
def test_the_same_rule_tells_nothing_from_three_per_cent(rack_agent: Agent, tmp_path: Path) -> None:
    """9000 against 9000 is not told apart; a neighbour that takes 3 % of the link at 8999 is found."""

    def neighbour(bed: RackTestbed, conditions: Conditions) -> None:
        if conditions.mtu["h1"] == 8999:
            agent = bed.hosts()[0].agent
            process = spawn(agent, "python3", "-c", FLOOD, precedence="real time")
            while "ready" not in output(agent, process):
                pass

    def verdicts_of(seed: int) -> dict[int, str]:
        """Of a study that kept its runs: one that a busy machine robs of them says so."""
        asked = study(
            stream={"duration": "0.3 s"}, factors={"mtu": {"levels": [9000, 8999], "baseline": 9000}},
            control=True, blocks=8, seed=seed,
        )  # fmt: skip
        folder = tmp_path / str(seed)
        judgements: list[Json] = []

        def is_judged(_: Sequence[Run]) -> bool:
            judgements[:] = summary.summarise(read(folder))["verdicts"]
            doubts = [each["warnings"][0] for each in judgements if each["verdict"] in ("suspect", "not judged")]
            assert all(any(words in line for words in ROBBED) for line in doubts), doubts
            return not doubts

        judged(lambda: run(rack_agent, asked, folder, Meddled(rack_agent, neighbour)), folder, is_judged)
        return {each["treatment"]["mtu"]: each["verdict"] for each in judgements}

    found = [verdicts_of(seed) for seed in range(by_length(1, 10))]
    for verdicts in found:
        assert verdicts[8999] == "worse", found
        assert verdicts[9000] in ("no practical difference", "undecided"), found
