"""The client of a kept rack's agent: its errors are those of an agent of one's own."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.kept import AGENT, Kept

from framegauge.errors import AgentError, AgentLost, AgentMissing, AgentTimeout, Refused
from framegauge.rack.client import KeptAgent


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Kept]:
    it = Kept(tmp_path / "framegauge-rack.json", [sys.executable, "-c", AGENT])
    it.commit()
    yield it
    it.keeper.send_signal(signal.SIGTERM)
    it.ends()


def test_results_and_errors_are_those_of_the_agent(rack: Kept) -> None:
    with KeptAgent(rack.path) as agent:
        for name in ("h1", "h2"):
            asked = {"host": name, "method": "host.read", "params": {}}
            assert agent.request("relay", asked)["asked"]["params"] == asked
        assert len(agent.request("rack.ports", {"bytes": 1_000_000})["text"]) == 1_000_000
        with pytest.raises(Refused, match="a: requested 2, the limit here is 1"):
            agent.request("rack.set", {"refuse": True})
        with pytest.raises(AgentError, match=r"found the method .rack\.down., expected one of rack\.ports") as error:
            agent.request("rack.down")
        assert error.value.code == -32601
        # Progress is no answer, and who gave up holds up nobody.
        with KeptAgent(rack.path) as other, pytest.raises(AgentTimeout, match=r"no answer .* within 0\.05 s"):
            other.request("rack.ports", {"hold": 2}, timeout_seconds=0.05)
        assert agent.request("rack.ports")["asked"]["method"] == "rack.ports"


def test_after_a_timeout_it_is_of_no_use(rack: Kept) -> None:
    agent = KeptAgent(rack.path)
    with pytest.raises(AgentTimeout, match=r"rack\.set: no answer from the agent within 0 s"):
        agent.request("rack.set", timeout_seconds=0)
    with pytest.raises(AgentLost, match="no longer connected"):
        agent.request("rack.set")
    agent.close()


def test_a_rack_that_goes_is_lost(tmp_path: Path) -> None:
    it = Kept(tmp_path / "framegauge-rack.json", [sys.executable, "-c", AGENT])
    it.commit()
    with (
        KeptAgent(it.path) as agent,
        pytest.raises(AgentLost, match=r"rack\.ports: the rack's keeper closed the connection"),
    ):
        agent.request("rack.ports", {"end": True})
    it.ends()


def test_without_a_keeper_it_is_missing(tmp_path: Path) -> None:
    with pytest.raises(AgentMissing, match=r"rack\.sock: the rack's keeper does not answer \(No such file"):
        KeptAgent(tmp_path / "rack.json")
    with socket.socket(socket.AF_UNIX) as left:  # by a keeper that was killed
        left.bind(str(tmp_path / "rack.sock"))
    with pytest.raises(AgentMissing, match="Connection refused"):
        KeptAgent(tmp_path / "rack.json")
