"""Hosts of racks and labs know each other by name, in every program, and nothing else of the machine does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.networks import network, valid
from helpers.real import UP, output, spawn
from helpers.support import PATIENCE_SECONDS, ROOT

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.errors import AgentError
from framegauge.labs import file as lab_file
from framegauge.rack import state as kept
from framegauge.testbeds.base import Json
from framegauge.testbeds.lab import LabTestbed
from framegauge.testbeds.rack import Relay

pytestmark = pytest.mark.needs("ping", "getent")

HOSTS = Path("/etc/hosts")
MAIN = [sys.executable, "-m", "framegauge"]
# From h1 to h2 by the router, or by a link that both have besides.
SHAPE = {
    "switches": ["near", "far", "beside"],
    "routers": [{"name": "r1", "mtu": 1500}],
    "links": [["h1", "near"], ["near", "r1"], ["r1", "far"], ["far", "h2"], ["h1", "beside"], ["beside", "h2"]],
}
STUDY = f"""\
question: Do hosts know each other by name?
testbed: {{kind: rack, hosts: 2, link: {{rate: 200 Mb/s}}, topology: {{custom: {json.dumps(SHAPE)}}}}}
factors:
  mtu: {{levels: [9000, 1500], baseline: 9000}}
workloads:
  - stream: {{size: 1 MB, repeat: 0.1 s}}
control: false
blocks: 2
margins: {{goodput: 1 %}}
"""
# Addresses by name; not in the order of the file.
ADDRESSES = 'for name; do echo "$name $(getent ahosts "$name" | cut -d " " -f 1 | sort -u | tr "\\n" " ")"; done'
PINGS = "set -e; family=$1; shift; for name; do ping $family -nqc 1 -W 5 $name | head -n 1; done"


@pytest.fixture(autouse=True)
def same_machine() -> Iterator[None]:
    """The machine's own file is the same afterwards, as is what its mounts show."""

    def seen() -> tuple[int, int, int, bytes]:
        found = HOSTS.stat()
        return found.st_dev, found.st_ino, found.st_mtime_ns, HOSTS.read_bytes()

    before = seen()
    yield
    assert seen() == before


def ended(agent: Any, *argv: str) -> str:
    """What a program in a host prints, which must succeed."""
    number = spawn(agent, *argv)
    asked = {"process": number, "timeout_seconds": PATIENCE_SECONDS}
    code = agent.request("process.wait", asked, timeout_seconds=PATIENCE_SECONDS)["exit_code"]
    assert code == 0, (argv, output(agent, number), output(agent, number, "stderr"))
    return output(agent, number)


def known(agent: Any, *names: str) -> dict[str, set[str]]:
    """The addresses that a host knows of each name."""
    lines = [line.split() for line in ended(agent, "sh", "-c", ADDRESSES, "sh", *names).splitlines()]
    return {line[0]: set(line[1:]) for line in lines}


def pinged(agent: Any, *names: str, family: str = "-4") -> list[str]:
    """The address that answered by each name."""
    lines = ended(agent, "sh", "-c", PINGS, "sh", family, *names).splitlines()
    return [line.partition("(")[2].partition(")")[0] if family == "-4" else line for line in lines]


def own_names(built: Json) -> dict[str, str]:
    """Every name that is told, and the address that programs use, or that of a NIC."""
    found = {each["name"]: each.get("address", each["nics"][0]["address"]) for each in every(built)}
    return found | {nic["end"]: nic["address"] for each in every(built) for nic in each["nics"]}


def every(built: Json) -> list[Json]:
    return [*built["hosts"], *built["routers"]]


@pytest.mark.parametrize("family", [4, 6])
def test_hosts_routers_and_nics_have_names(rack_agent: Agent, family: int) -> None:
    with network(rack_agent, 2, topology={"kind": "custom", **SHAPE}, family=family) as (built, _):
        valid(built, "rack.up.result")
        assert built["names"] is True
        names = own_names(built)
        assert list(names) == ["h1", "h2", "r1", "h1.1", "h1.2", "h2.1", "h2.2", "r1.1", "r1.2"]
        assert names["h2"] == names["h2.1"] != names["h2.2"]
        agents = {each["name"]: Relay(rack_agent, each["name"]) for each in every(built)}
        for agent in agents.values():
            assert known(agent, *names) == {name: {address} for name, address in names.items()}
            # The rack's lines go before the machine's, all of which are there.
            text = ended(agent, "cat", "/etc/hosts")
            assert text.endswith(HOSTS.read_text())
            assert text.splitlines()[: len(names)] == [
                f"{nic}\t{name}"
                for each in every(built)
                for name, nic in names.items()
                if name.partition(".")[0] == each["name"]
            ]
        reached = ["h2", "h2.1", "h2.2", "r1", "r1.1", "r1.2"]
        option = f"-{family}"
        found = pinged(agents["h1"], *reached, family=option)
        assert all(names[name] in line for name, line in zip(reached, found, strict=True)), found
        pinged(agents["r1"], "h1", "h2", family=option)


def test_names_mean_what_programs_use(rack_agent: Agent) -> None:
    """The address inside an overlay; and the kernel testbed tells names, too."""
    with network(rack_agent, 2, overlay="vxlan") as (built, hosts):
        assert pinged(hosts[0].agent, "h2") == [hosts[1].address]
        assert known(hosts[1].agent, "h1", "h2") == {host.name: {host.address} for host in hosts}
        assert hosts[0].address not in {built["hosts"][0]["nics"][0]["mac"], "10.77.0.1"}
    nic = {**UP["nic"], "moderation_seconds": 0.0}
    link = {**UP["link"], "rtt_seconds": 0.0}
    built = rack_agent.request(
        "rack.up", {**UP, "testbed": "kernel", "nic": nic, "link": link}, timeout_seconds=PATIENCE_SECONDS
    )
    try:
        assert built["names"] is True
        assert pinged(Relay(rack_agent, "h1"), "h2") == ["10.77.0.2"]
    finally:
        rack_agent.request("rack.down", timeout_seconds=PATIENCE_SECONDS)


def test_nodes_of_a_lab_have_names_in_both_families(rack_agent: Agent) -> None:
    lab = lab_file.load(ROOT / "examples/faults/ipv4-ipv6-apart.yaml")
    testbed = LabTestbed(rack_agent)
    built = testbed.up(lab.network)
    try:
        assert built["names"] is True
        addresses = {
            node["name"]: {each for interface in node["interfaces"] for each in interface["addresses"]}
            for node in built["nodes"]
        }
        for node in testbed.nodes().values():
            assert known(node.agent, *addresses) == addresses
        for name in ("a", "r1"):
            own = testbed.nodes()[name].agent
            assert pinged(own, "b", family="-4") == [testbed.addresses("b")[4]]
            assert testbed.addresses("b")[6] in pinged(own, "b", family="-6")[0]
    finally:
        testbed.down()


def test_names_are_replaced_and_checked(rack_agent: Agent) -> None:
    with network(rack_agent, 2) as (_, hosts):
        agent = hosts[0].agent
        agent.request("host.names", {"entries": [{"name": "other_one.x", "addresses": ["10.77.0.2", "fd77::2"]}]})
        # Shorter than what was there before.
        agent.request("host.names", {"entries": [{"name": "b", "addresses": ["::1"]}]})
        assert ended(agent, "cat", "/etc/hosts") == f"::1\tb\n{HOSTS.read_text()}"
        assert ended(agent, "stat", "-c", "%a %U", "/etc/hosts") == "644 root\n"
        for entry in ({"name": "a b", "addresses": ["::1"]}, {"name": "b", "addresses": ["10.77.0"]}):
            with pytest.raises(AgentError) as error:
                agent.request("host.names", {"entries": [entry]})
            assert error.value.code == -32602
        assert ended(hosts[1].agent, "cat", "/etc/hosts").splitlines()[:2] == ["10.77.0.1\th1", "10.77.0.2\th2"]


def rack(*words: str, **options: Any) -> str:
    found = subprocess.run(
        [*MAIN, "rack", *words], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS, **options
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.fixture
def routed(tmp_path: Path) -> Iterator[str]:
    """A rack for hand use with a router that takes 1500 bytes, between hosts that take 9000; what printed it says."""
    file = tmp_path / "study.yaml"
    file.write_text(STUDY)
    assert not kept.FOR_ROOT.exists(), "a rack of yours is up: framegauge rack down"
    try:
        yield rack("up", str(file))
    finally:
        rack("down")


def test_by_hand_names_are_known_and_a_router_takes_another_mtu(routed: str) -> None:
    hint = "hosts know each other by name: framegauge rack exec h1 -- ping h2"
    assert routed.splitlines()[-1] == hint
    state = json.loads(rack("show", "--json"))
    assert state["names"] is True
    assert [each["mtu"] for each in (*state["hosts"], *state["routers"])] == [9000, 9000, 1500]
    assert "PING h2 (10.77.2.2)" in rack("exec", "h1", "--", "ping", "-nqc", "1", "-W", "5", "h2")
    assert rack("exec", "r1", "--", "getent", "hosts", "h2.2") == "10.77.1.2       h2.2\n"

    # As whoever is in sudo's place: it only looks like one.
    host = state["hosts"][0]
    words = [
        "--pid",
        str(host["pid"]),
        "--start-ticks",
        str(host["start_ticks"]),
        "--",
        "sh",
        "-c",
        "id -u; getent hosts h2",
    ]
    environment = {"PATH": os.environ["PATH"], "SUDO_UID": "65534", "SUDO_GID": "65534"}
    found = subprocess.run(
        [find_agent(), "exec", *words], capture_output=True, text=True, check=True, env=environment, cwd="/"
    )
    assert found.stdout.split() == ["65534", "10.77.2.2", "h2"]

    # 8,972 bytes of data, 8 of ICMP and 20 of IP, which must not come in pieces.
    large = ["exec", "h1", "--", "ping", "-nqc", "1", "-W", "5", "-M", "do", "-s", "8972", "h2"]
    refused = subprocess.run(
        [*MAIN, "rack", *large], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    assert refused.returncode == 1
    for mtu, passes in (("9000", True), ("4000", False)):
        assert rack("set", "r1", "--mtu", mtu).endswith(": r1\n")
        shown = json.loads(rack("show", "--json"))
        assert [each["mtu"] for each in (*shown["hosts"], *shown["routers"])] == [9000, 9000, int(mtu)]
        assert "\nr1    fg" in rack("show")
        # What the kernel has remembered of the smaller one goes.
        rack("exec", "h1", "--", "ip", "route", "flush", "cache")
        found = subprocess.run(
            [*MAIN, "rack", *large], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
        )
        assert (found.returncode == 0) == passes, found.stdout + found.stderr
        if not passes:
            assert f"mtu = {mtu}" in found.stdout + found.stderr or "100% packet loss" in found.stdout
