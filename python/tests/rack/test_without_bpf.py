"""A rack where the kernel refuses BPF: it says so, and works as well as it can."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from framegauge.agent import Agent, find_agent
from rack.test_networks import network, port_of, transfer, valid

WRAPPER = Path(__file__).with_name("without_bpf.py")


@pytest.fixture
def agent() -> Iterator[Agent]:
    """A rack agent without BPF."""
    with Agent.open([sys.executable, str(WRAPPER), find_agent(), "rack"]) as agent:
        yield agent


def lacks(agent: Agent) -> list[str]:
    """The names of what is degraded."""
    answer = agent.request("requirements", {"testbed": "fabric", "bits_per_second": 100_000_000})
    valid(answer, "requirements.result")
    assert answer["missing"] == []
    return [each["name"] for each in answer["degraded"]]


def test_it_is_said(agent: Agent, rack_agent: Agent) -> None:
    """And not where BPF is there."""
    assert "bpf" in lacks(agent)
    assert "bpf" not in lacks(rack_agent)


def test_every_frame_is_still_carried(agent: Agent) -> None:
    """Frames enter when they are read: nothing is lost by that, and the link is full."""
    with network(agent, 3) as (built, hosts):
        measured, rates = transfer(agent, hosts, 1.5)
        ceiling = next(iter(built["ceilings"].values()))["goodput_bits_per_second"]
    assert 0.9 < sum(rates.values()) / ceiling <= 1.001
    for port in measured["fabric"]["ports"]:
        counted = {name: port[f"{name}_frames"] for name in ("received", "sent", "dropped", "queued")}
        assert counted["received"] == counted["sent"] + counted["dropped"] + counted["queued"], port
    assert port_of(measured, "switch>h3")["sent_frames"] > 1000
