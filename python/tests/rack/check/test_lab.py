"""The truth of every lab, by capture: what really arrives, to the byte, and who says so when it does not."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import lab_probe
from helpers.real import await_end, leaves_nothing, output, spawn
from helpers.support import PATIENCE_SECONDS, ROOT, SOAK

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.errors import FramegaugeError
from framegauge.labs import file as lab_file
from framegauge.labs.file import LabFile, Truth
from framegauge.rack import state as kept
from framegauge.testbeds.base import Host
from framegauge.testbeds.lab import LabTestbed

# Every example, and the one in the document.
LABS = {path.stem: path.read_text() for path in sorted((ROOT / "examples/faults").glob("*.yaml"))}
LABS["docs"] = (ROOT / "docs/how-to/fault-lab.md").read_text().partition("```yaml\n")[2].partition("```")[0]
MAIN = [sys.executable, "-m", "framegauge"]
PROGRAM = [sys.executable, "-I", "-S", lab_probe.__file__]
# So that all flows miss a bad one of four members, or of two, about once in 10⁸ times.
FLOWS = {0.25: 64, 0.5: 32}
# Lost ten times in a row: once in 10¹⁰ times with the worst loss here.
REPEAT = 10


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    with Agent.open([find_agent(), "rack"]) as found:
        yield found


def text(host: Host, process: int) -> str:
    """Everything that a program has printed."""
    data = b""
    while True:
        asked = {"process": process, "stream": "stdout", "offset_bytes": len(data), "length_bytes": 1 << 20}
        piece = host.agent.request("process.output", asked)
        data += base64.b64decode(piece["data"])
        if len(data) >= piece["size_bytes"]:
            return data.decode()


def await_ready(host: Host, process: int) -> None:
    """Until a program has said so; one that has ended never will."""
    while "ready" not in output(host.agent, process):
        ended = host.agent.request("process.wait", {"process": process, "timeout_seconds": 0.001})["ended"]
        assert not ended, output(host.agent, process, "stderr")


def finished(host: Host, process: int) -> Any:
    """What a program of ours has printed last, once it has ended."""
    asked = {"process": process, "timeout_seconds": PATIENCE_SECONDS}
    ended = host.agent.request("process.wait", asked, timeout_seconds=PATIENCE_SECONDS)
    assert ended["exit_code"] == 0, (host.name, output(host.agent, process, "stderr"))
    return json.loads(text(host, process).splitlines()[-1])


def sizes(truth: Truth, target: int) -> list[int]:
    """Ascending, and every byte around what ought to arrive; of many flows the edge alone."""
    if truth.path_mtu_bytes is not None and 0 < truth.bad_share < 1:
        return [1280, truth.path_mtu_bytes, truth.path_mtu_bytes + 1, target]
    around = {
        size for edge in (truth.path_mtu_bytes, truth.configured_mtu) if edge for size in range(edge - 2, edge + 7)
    }
    return sorted(size for size in {1280, 1400, 2000, 4000, *around, target - 1, target} if size <= target)


def measured(bed: LabTestbed, lab: LabFile, folder: Path) -> dict[tuple[str, str, int], list[tuple[int, list[Any]]]]:
    """For each line of truth and each flow: the largest packet that was captured, and what the sender was told."""
    hosts = {host.name: host for host in bed.hosts()}
    captures = {name: spawn(host.agent, *PROGRAM, "capture") for name, host in hosts.items()}
    for name, host in hosts.items():
        await_ready(host, captures[name])
    senders = {}
    repeat = REPEAT if any(link.loss for link in lab.network.links) else 1
    for name, host in hosts.items():
        flows = [
            {
                "family": truth.family,
                "source": bed.addresses(name)[truth.family],
                "destination": bed.addresses(truth.destination)[truth.family],
                "to": truth.destination,
                "sizes": sizes(truth, lab.check.target_mtu),
                "repeat": repeat,
            }
            for truth in lab.truth
            if truth.source == name
            for _ in range(FLOWS.get(truth.bad_share, 2) if len(hosts) < 4 or truth.bad_share < 1 else 1)
        ]
        path = folder / f"{name}.json"
        path.write_text(json.dumps(flows))
        senders[name] = spawn(host.agent, *PROGRAM, "send", str(path))
    sent = {name: finished(host, senders[name]) for name, host in hosts.items()}
    caught = {}
    for name, host in hosts.items():
        host.agent.request("process.signal", {"process": captures[name], "signal": int(signal.SIGTERM)})
        caught[name] = finished(host, captures[name])
        assert caught[name]["dropped"] == 0
    found: dict[tuple[str, str, int], list[tuple[int, list[Any]]]] = {}
    for name, flows in sent.items():
        for flow in flows:
            largest = caught[flow["to"]]["largest"][f"{flow['source']} {flow['source_port']}"]
            found.setdefault((name, flow["to"], flow["family"]), []).append((largest, flow["told"]))
    return found


@pytest.mark.needs("ip", "nft")
@pytest.mark.soak(0.05)
@pytest.mark.parametrize("name", LABS)
def test_the_truth_of_an_example_is_what_is_captured(agent: Agent, name: str, tmp_path: Path) -> None:
    lab, bed = lab_file.parse(LABS[name], name), LabTestbed(agent)
    with leaves_nothing():
        begun = time.monotonic()
        bed.up(lab.network)
        built = time.monotonic() - begun
        begun = time.monotonic()
        try:
            found = measured(bed, lab, tmp_path)
        finally:
            bed.down()
    print(f"built in {built:.3f} s, measured in {time.monotonic() - begun:.2f} s")
    if SOAK:
        assert built < (1.0 if len(lab.network.nodes) <= 8 else 5.0)  # ten times what it takes
    assert set(found) == {(each.source, each.destination, each.family) for each in lab.truth}
    for truth in lab.truth:
        check(truth, found[truth.source, truth.destination, truth.family], lab.check.target_mtu)


def check(truth: Truth, flows: list[tuple[int, list[Any]]], target: int) -> None:
    """Every flow is as the bad ones ought to be, or as the good ones, and their shares are right."""
    wanted = {target} if truth.bad_share == 0 else {truth.path_mtu_bytes} | ({target} if truth.bad_share < 1 else set())
    assert {largest for largest, _ in flows} == wanted, truth
    for largest, told in flows:
        origins = {origin for origin, *_ in told}
        if truth.verdict == "too_small" and largest < target:
            assert origins in ({"icmp"}, {"local"}), (truth, told)
            assert {mtu for _, mtu, *_ in told} == {truth.configured_mtu}, (truth, told)
        else:
            assert told == [], truth


def built(agent: Agent, name: str) -> LabTestbed:
    bed = LabTestbed(agent)
    bed.up(lab_file.load(ROOT / f"examples/faults/{name}.yaml").network)
    return bed


def ask(bed: LabTestbed, node: str, *words: str) -> str:
    """What a program in a node prints."""
    relay = bed.nodes()[node].agent
    process = spawn(relay, *words)
    assert relay.request("process.wait", {"process": process, "timeout_seconds": PATIENCE_SECONDS})["exit_code"] == 0
    return output(relay, process)


@pytest.mark.needs("ip", "nft")
def test_what_a_kernel_believes_is_as_the_lab_says(agent: Agent) -> None:
    for name, cached in (("stale-cache", True), ("route-mtu", False)):
        bed = built(agent, name)
        try:
            for address in bed.addresses("b").values():
                route = ask(bed, "a", "ip", "route", "get", address)
                assert "mtu 1500" in route
                assert ("expires" in route) == cached, route
            for address in bed.addresses("a").values():
                assert "mtu" not in ask(bed, "b", "ip", "route", "get", address)
            assert "mtu" not in ask(bed, "r1", "ip", "route", "show")  # nothing of the detour stays
        finally:
            bed.down()


@pytest.mark.needs("ip", "nft")
def test_a_clamped_mss_lets_tcp_through_where_datagrams_vanish(agent: Agent) -> None:
    server = (
        "import socket; s = socket.create_server(('', 7879)); print('ready', flush=True);"
        "c, _ = s.accept(); n = 0\nwhile (d := c.recv(65536)): n += len(d)\nprint(n)"
    )
    client = "import socket, sys; c = socket.create_connection((sys.argv[1], 7879), 5); c.sendall(bytes(10**6))"
    bed = built(agent, "mss-clamped")
    try:
        host = next(each for each in bed.hosts() if each.name == "b")
        serving = spawn(host.agent, sys.executable, "-c", server)
        await_ready(host, serving)
        ask(bed, "a", sys.executable, "-c", client, host.address)
        assert finished(host, serving) == 10**6
    finally:
        bed.down()


@pytest.mark.needs("ip", "nft")
def test_a_lab_that_cannot_be_built_says_why_and_leaves_nothing(agent: Agent) -> None:
    lab = lab_file.load(ROOT / "examples/faults/clean.yaml")
    network = lab.network.model_copy(deep=True)
    network.links[0].mtu = 65536  # a veth takes 65535
    with leaves_nothing():
        with pytest.raises(
            FramegaugeError, match=r"^join the nodes: a: .*Invalid argument.*\(link add name to-r1 .* mtu 65536 "
        ):
            LabTestbed(agent).up(network)
        bed = LabTestbed(agent)
        bed.up(lab.network)
        bed.down()


@pytest.mark.needs("ip", "nft")
@pytest.mark.parametrize("victim", ["router", "agent", "all"])
def test_killed_it_leaves_nothing(victim: str) -> None:
    with leaves_nothing(lambda: None):  # a program in a node ends a moment after its agent
        agent = Agent.open([find_agent(), "rack"])
        bed = built(agent, "ecmp-one-of-four")
        nodes = {name: node.process_id for name, node in bed.nodes().items()}
        spawn(bed.nodes()["m1"].agent, "sleep", "1000")
        family = {"router": [nodes["m1"]], "agent": [agent.process_id], "all": [*nodes.values(), agent.process_id]}[
            victim
        ]
        for process in family:
            os.kill(process, signal.SIGKILL)
        bed.close()
        await_end([*nodes.values(), agent.process_id])
        Agent.open([find_agent(), "rack"]).close()  # sweeps up


def rack(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MAIN, "rack", *words], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )


@pytest.mark.needs("ip", "nft")
def test_a_lab_for_hand_use() -> None:
    assert not kept.FOR_ROOT.exists(), "a rack of yours is up: framegauge rack down"
    with leaves_nothing():
        found = rack("up", str(ROOT / "examples/faults/receiver-nic-1500.yaml"))
        try:
            assert found.returncode == 0, found.stderr
            assert found.stdout.splitlines()[:6] == [
                "One host on a jumbo switch was left at 1500. What is sent to it vanishes at its NIC.",
                "",
                "node  kind    interface  MTU   addresses",
                "a     host    to-s1      9000  10.78.1.1, fd78:0:0:1::1",
                "s1    switch  to-a       9000",
                "              to-b       9000",
            ]
            assert rack("show").stdout == found.stdout
            assert [node["name"] for node in json.loads(rack("show", "--json").stdout)["hosts"]] == ["a", "s1", "b"]
            assert "master br0" in rack("exec", "s1", "--", "ip", "-o", "link", "show", "to-a").stdout
            assert "mtu 1500" in rack("exec", "b", "--", "ip", "-o", "link", "show", "to-s1").stdout
            assert "expected one of a, s1, b" in rack("exec", "r9", "--", "true").stderr
        finally:
            rack("down")
    found = rack("up", str(ROOT / "examples/faults/clean.yaml"))
    state = json.loads(rack("show", "--json").stdout)
    with leaves_nothing():
        os.kill(state["keeper"]["pid"], signal.SIGKILL)
        await_end([each["pid"] for each in (state["agent"], *state["hosts"])])
        assert "has ended" in rack("show").stderr
