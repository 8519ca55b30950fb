"""A rack where the kernel refuses what the fabric can do without: it says so, and works as well as it can."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from helpers.networks import network, port_of, transfer, valid
from helpers.support import ROOT, SOAK, NotRun

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent

WRAPPER = ROOT / "python/tests/helpers/refusing.py"


@pytest.fixture(params=["bpf", "io_uring"])
def refused(request: pytest.FixtureRequest) -> str:
    """The call that is refused."""
    return str(request.param)


@pytest.fixture
def agent(refused: str) -> Iterator[Agent]:
    """A rack agent without that call."""
    with Agent.open([sys.executable, str(WRAPPER), refused, find_agent(), "rack"]) as agent:
        yield agent


def lacks(agent: Agent) -> list[str]:
    """The names of what is degraded."""
    answer = agent.request("requirements", {"testbed": "fabric", "bits_per_second": 100_000_000})
    valid(answer, "requirements.result")
    assert answer["missing"] == []
    return [each["name"] for each in answer["degraded"]]


def test_it_is_said(agent: Agent, rack_agent: Agent, refused: str) -> None:
    """And not where it is there."""
    here = lacks(rack_agent)
    if refused in here:
        NotRun().stop(f"this machine refuses {refused} to everybody")
    assert set(lacks(agent)) - set(here) == {refused}


@pytest.mark.soak(0.1)
def test_every_frame_is_still_carried(agent: Agent) -> None:
    """Without BPF frames enter when they are read, without io_uring each is written by itself; in `make soak` the link is
    full all the same."""
    with network(agent, 3) as (built, hosts):
        measured, rates = transfer(agent, hosts, 1.5)
        ceiling = next(iter(built["ceilings"].values()))["goodput_bits_per_second"]
    assert (0.9 if SOAK else 0) < sum(rates.values()) / ceiling <= 1.001
    for port in measured["fabric"]["ports"]:
        counted = {name: port[f"{name}_frames"] for name in ("received", "sent", "dropped", "queued")}
        assert counted["received"] == counted["sent"] + counted["dropped"] + counted["queued"], port
    assert port_of(measured, "switch>h3")["sent_frames"] > 1000
