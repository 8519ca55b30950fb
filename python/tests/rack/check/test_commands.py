"""The commands of findings, run as they stand on the machines that they name: they repair the path, or work around it."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.checks import lab
from helpers.real import leaves_nothing, shell

from framegauge.check import plan as check_plan, run as check
from framegauge.testbeds.lab import LabTestbed

Json = dict[str, Any]


def checked(bed: LabTestbed) -> Json:
    asked = check_plan.Asked(9000, flows=32, bits_per_second=float("inf"))
    members = [check_plan.Member(host) for host in bed.hosts()]
    return check.run(check_plan.prepare(members, asked), asked).document


def machine(bed: LabTestbed, on: str) -> Any:
    """The node that a command names: a host, or the router that has an address."""
    kind, name = on.removesuffix(", if it runs Linux").split(" ", 1)
    if kind == "host":
        return bed.nodes()[name].agent
    for node in bed.nodes().values():
        if node.kind == "router":
            try:
                shell(node.agent, f"ip -o addr show to {name} | grep -q .")
            except AssertionError:
                continue
            return node.agent
    raise AssertionError(on)


def run_all(bed: LabTestbed, document: Json, start: str) -> int:
    commands = [each for each in document["findings"][0]["commands"] if each["run"].startswith(start)]
    for each in commands:
        shell(machine(bed, each["on"]), each["run"])
    return len(commands)


@pytest.mark.parametrize(
    ("name", "count"), [("hop-1500-icmp-blocked", 2), ("far-side-silent", 1), ("receiver-nic-1500", 1)]
)
def test_the_commands_repair_the_path(name: str, count: int) -> None:
    with leaves_nothing(), lab(name) as bed:
        assert run_all(bed, checked(bed), "ip link set dev ") == count
        assert checked(bed)["verdict"] == "carries_target"


def test_the_workaround_sets_the_route_mtu_to_what_passes() -> None:
    with leaves_nothing(), lab("switch-port-1500") as bed:
        before = checked(bed)
        assert {pair["route_mtu_bytes"] for pair in before["pairs"]} == {9000}
        assert run_all(bed, before, "ip ") == 4
        assert {pair["route_mtu_bytes"] for pair in checked(bed)["pairs"]} == {1504}
