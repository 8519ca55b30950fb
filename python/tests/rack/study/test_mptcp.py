"""MPTCP by the kernel on a rack: its subflows are counted, what they carry is whole, and they take several paths."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.real import held_up, judged, record, run, study

from framegauge.agents.pipe import Agent
from framegauge.results.journal import Run

# Two equally long paths of half the hosts' rate each.
DIAMOND = {
    "switches": ["left", "up", "down", "right"],
    "links": [
        ["h1", "left"], ["left", "up"], ["left", "down"], ["up", "right"], ["down", "right"], ["right", "h2"],
    ],
}  # fmt: skip
HALF = 100_000_000


# A worker of the kernel opens subflows, on a busy machine after a short transfer has ended.
LATE = "proof: subflows of each connection"


def is_late(each: Run) -> bool:
    return any(line.startswith(LATE) for line in each.excluded)


def proven(agent: Agent, folder: Path, **rest: Any) -> list[Run]:
    """Runs with all their subflows, of each level; only a machine that held a run up may have opened them too late."""
    made: list[Run] = []

    def make() -> list[Run]:
        made[:] = run(agent, study(treatment="mptcp", **rest), folder)
        return [
            replace(each, excluded=[line for line in each.excluded if not (held_up(each) and line.startswith(LATE))])
            for each in made
        ]

    judged(
        make, folder, lambda runs: {each.level for each in made if not is_late(each)} == {each.level for each in runs}
    )
    return [each for each in made if not is_late(each)]


def workload(folder: Path, each: Run) -> dict[str, Any]:
    found: dict[str, Any] = record(folder, each)["workload"]
    return found


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("reverse", [False, True])
def test_subflows_are_counted_and_bytes_are_whole(
    rack_agent: Agent, tmp_path: Path, family: int, reverse: bool
) -> None:
    factors = {"mtu": 1500, "mptcp": {"levels": ["off", 1, 3], "baseline": "off"}}
    stream = {"size": "5 MB", "reverse": reverse, "repeat": "0 s"}
    # With timestamps there is no room for the announcement of an IPv6 address.
    sysctls = {"net.ipv4.tcp_timestamps": "0"} if family == 6 else {}
    runs = proven(
        rack_agent, tmp_path / "out", blocks=1, factors=factors, stream=stream, family=family, sysctls=sysctls
    )
    for each in runs:
        found = workload(tmp_path / "out", each)
        sender = "h2" if reverse else "h1"
        assert found["subflows"] == {sender: {"off": [], "1 subflow": [1], "3 subflows": [3]}[each.level]}
        assert found["bytes"] == 5_000_000
        assert found["received_bytes"] == {"h1" if reverse else "h2": 5_000_000}


def test_what_was_delivered_in_a_time_counts_once(rack_agent: Agent, tmp_path: Path) -> None:
    """What was acknowledged at the end of the time is no more than what arrived; conservation knows the ceiling."""
    factors = {"mtu": 1500, "mptcp": {"levels": ["off", 2], "baseline": "off"}}
    for each in proven(rack_agent, tmp_path / "out", blocks=1, factors=factors, stream={"duration": "1 s"}):
        found = workload(tmp_path / "out", each)
        assert 0 < sum(found["received_bytes"].values()) <= found["bytes"]


def test_subflows_take_both_paths(rack_agent: Agent, tmp_path: Path) -> None:
    """One connection of TCP takes one path. All of eight subflows take the same in one of 128 runs."""
    bed = {
        "kind": "rack", "topology": {"custom": DIAMOND}, "link": {"rate": "200 Mb/s"},
        "links": [{"from": side, "to": way, "rate": "100 Mb/s"} for side in ("left", "right") for way in ("up", "down")]
        + [{"from": way, "to": side, "rate": "100 Mb/s"} for side in ("left", "right") for way in ("up", "down")],
    }  # fmt: skip
    factors = {"mtu": 1500, "mptcp": {"levels": ["off", 8], "baseline": "off"}}
    asked = {"factors": factors, "stream": {"duration": "1 s"}, "testbed": bed, "blocks": 2}
    shares: dict[str, list[float]] = {"off": [], "8 subflows": []}
    for each in proven(rack_agent, tmp_path / "out", **asked):
        ports = record(tmp_path / "out", each)["measure"]["fabric"]["ports"]
        sent = [port["sent_bytes"] for port in ports if port["port"] in ("left>up", "left>down")]
        shares[each.level].append(min(sent) / sum(sent))
        assert each.level != "off" or each.metrics["goodput"] <= 0.95 * HALF
    assert max(shares["off"]) < 0.02, shares
    # As many as two of eight on the less used path; how much more goodput that is hangs on the machine, too.
    assert max(shares["8 subflows"]) > 0.1, shares
