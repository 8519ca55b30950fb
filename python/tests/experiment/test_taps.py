"""Captures while a run is measured: begun everywhere, ended whatever happens, and bounded whatever a host answers."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest

from framegauge.agents.pipe import Json
from framegauge.agents.spools import PIECE_BYTES
from framegauge.errors import AgentLost, BadAnswer, InputError
from framegauge.experiment import taps
from framegauge.testbeds.base import Host

TOLD = dict.fromkeys(taps.TOLD, 1)


class Answers:
    """An agent that captures nothing but what it is given."""

    def __init__(self, ssh: Json | None = None, size: int | None = None, lost: str = "") -> None:
        self.asked: list[tuple[str, Any]] = []
        self._ssh, self._size, self._lost = ssh, size, lost

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> Json:
        self.asked.append((method, params))
        if method == self._lost:
            raise AgentLost("gone")
        match method:
            case "capture.about":
                return {"ssh": self._ssh}
            case "capture.end":
                return {**TOLD, "spool": 7}
            case "spool.read":
                size = self._size or 3
                piece = b"abc" if size == 3 else bytes(min(size, PIECE_BYTES))
                return {"size_bytes": size, "data": base64.b64encode(piece).decode()}
            case _:
                return {}

    def methods(self) -> list[str]:
        return [method for method, _ in self.asked]


def hosts(*agents: Answers) -> list[Host]:
    return [Host(f"h{number}", f"10.0.0.{number}", agent) for number, agent in enumerate(agents, 1)]  # type: ignore[arg-type]


def diagnosed(files: Mapping[str, Path], addresses: Mapping[str, Sequence[str]]) -> Json:
    return {"files": {name: file.read_bytes() for name, file in files.items()}, "addresses": dict(addresses)}


def nothing(_part: float, _what: str) -> None:
    """No progress is told."""


def test_every_hosts_capture_is_diagnosed_and_none_is_left() -> None:
    one, other = Answers(), Answers()
    with taps.captured(hosts(one, other), diagnosed, nothing) as found:
        assert "capture.end" not in one.methods() + other.methods()
        assert found == {}
    assert found["files"] == {"h1": b"abc", "h2": b"abc"}
    assert found["addresses"] == {"h1": ("10.0.0.1",), "h2": ("10.0.0.2",)}
    assert found["captures"] == {"h1": TOLD, "h2": TOLD}
    assert one.methods() == ["capture.about", "capture.begin", "capture.end", "spool.read", "spool.drop"]


def test_the_connections_of_a_diagnosis_are_a_table() -> None:
    columns = {
        "client": ["h1"], "server": ["h2"], "begin_seconds": [1.5], "end_seconds": [2.5], "bytes": [7],
        "reverse_bytes": [0],
    }  # fmt: skip
    told = {"flows": columns, "connections": 1}
    ((name, data),) = taps.flows(told).items()
    assert (name, told) == ("connections", {"connections": 1})
    assert pa.ipc.open_file(data).read_all().to_pydict() == columns
    assert taps.flows(told) == {}


def test_nothing_is_captured_for_nobody() -> None:
    agent = Answers()
    with taps.captured(hosts(agent), None, nothing) as found:
        pass
    assert (found, agent.asked) == ({}, [])


def test_the_connections_that_control_the_hosts_are_left_out() -> None:
    one, other = Answers({"client": "192.0.2.9:4000", "server": "10.0.0.1:22"}), Answers()
    with taps.captured(hosts(one, other), diagnosed, nothing):
        pass
    for agent in (one, other):
        (begun,) = (params for method, params in agent.asked if method == "capture.begin")
        assert begun["left_out"] == [["192.0.2.9:4000", "10.0.0.1:22"]]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_whatever_happens_the_captures_end(kind: type[BaseException]) -> None:
    agents = Answers(), Answers(lost="capture.end"), Answers()
    with pytest.raises(kind), taps.captured(hosts(*agents), diagnosed, nothing):
        raise kind
    assert all(agent.methods()[2] == "capture.end" for agent in agents)
    assert agents[2].methods()[-1] == "spool.drop"


def test_one_that_cannot_begin_ends_the_others() -> None:
    agents = Answers(), Answers(lost="capture.begin")
    with pytest.raises(AgentLost), taps.captured(hosts(*agents), diagnosed, nothing):
        pytest.fail("it began")
    assert "capture.end" in agents[0].methods()


def test_a_capture_without_end_is_given_up() -> None:
    with (
        pytest.raises(BadAnswer, match="h1: found a capture of 80000000 bytes, expected at most 72000000"),
        taps.captured(hosts(Answers(size=80_000_000)), diagnosed, nothing),
    ):
        pass


def test_what_is_no_capture_spoils_the_run_and_not_the_study() -> None:
    def refuse(_files: Mapping[str, Path], _addresses: Mapping[str, Sequence[str]]) -> Json:
        raise InputError("h1.pcapng: found no capture")

    with (
        pytest.raises(BadAnswer, match=r"cannot be read: h1\.pcapng"),
        taps.captured(hosts(Answers()), refuse, nothing),
    ):
        pass


def test_a_host_that_is_lost_at_the_end_leaves_no_capture_on_the_others() -> None:
    agents = Answers(lost="capture.end"), Answers()
    with pytest.raises(AgentLost), taps.captured(hosts(*agents), diagnosed, nothing):
        pass
    assert "capture.end" in agents[1].methods()
