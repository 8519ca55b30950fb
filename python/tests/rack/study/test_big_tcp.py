"""BIG TCP on the kernel's own links: aggregates above 64 KiB are really seen, and what cannot build them says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.real import UP, run, study

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.errors import Refused
from framegauge.study.model import Study
from framegauge.testbeds.rack import RackTestbed
from framegauge.testbeds.veth import VethTestbed

SIZES = {"gso_size": [65536, 180000], "offloads": True}


def asked(family: int = 4, stream: object = None, **factors: object) -> Study:
    return study(
        "veth", "unshaped", family, stream=stream or {"size": "20 MB", "repeat": "0 s"},
        factors={**SIZES, **factors}, blocks=1,
    )  # fmt: skip


@pytest.mark.parametrize("family", [4, 6])
def test_aggregates_above_64_kib_reach_the_receiver_at_both_mtus(
    rack_agent: Agent, tmp_path: Path, family: int
) -> None:
    runs = run(rack_agent, asked(family), tmp_path / "out")
    assert len(runs) >= 4
    for each in runs:
        assert [line for line in each.excluded if not line.startswith("fidelity: ")] == []
        size, readings = each.conditions["gso_size_bytes"], each.readings
        if size == 65536:
            assert readings["big_aggregates"] == readings["big_aggregates_sent"] == 0
            assert readings["mean_packet_bytes"] < 65536
        else:
            assert readings["big_aggregates"] > 10, (each.level, readings)
            assert readings["big_aggregates_sent"] == readings["big_aggregates"]
            assert 65536 < readings["largest_aggregate_bytes"] <= size, (each.level, readings)
            assert not any("64 KiB" in line for line in each.degraded)


def test_messages_that_are_too_small_are_said_to_prove_nothing(rack_agent: Agent, tmp_path: Path) -> None:
    small = {"size": "50 kB", "repeat": "0 s"}
    runs = run(rack_agent, asked(stream=small), tmp_path / "out")
    large = [each for each in runs if each.conditions["gso_size_bytes"] == 180000]
    assert large
    for each in large:
        assert not [line for line in each.excluded if line.startswith("proof: ")]
        assert any(line.startswith("not proved: aggregates above 64 KiB: none was seen") for line in each.degraded)


def test_the_requirements_of_a_rack_name_the_limit_that_a_tap_has() -> None:
    with Agent.open([find_agent(), "rack"]) as agent:
        (line,) = RackTestbed(agent).requirements(200_000_000, {"gso_size": 180000})["missing"]
        assert line["name"] == "aggregates"
        assert line["found"] == "gso_size 180000 above 65536 (tso_max_size of the device)"
        assert VethTestbed(agent).requirements(None, {"gso_size": 180000, "gro_size": 524280})["missing"] == []


def test_an_agent_that_is_asked_all_the_same_refuses(rack_agent: Agent) -> None:
    asked_for = {**UP, "nic": {**UP["nic"], "gso_bytes": 180_000}}
    with pytest.raises(Refused, match=r"gso_size of h[12]: asked for 180000, the limit is .*65536 \(tso_max_size"):
        rack_agent.request("rack.up", asked_for)
