"""quic with real kernels: its discovery settles at the path MTU, the wire shows datagrams of that size and none above it,
nothing is lost, and a link that is too small for the hosts is no obstacle where TCP does not get through.

What is asserted counts or proves, so that it is true of runs that a busy machine held up, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.real import held_up, judged, record, run, shown, study

from framegauge.agents.pipe import Agent
from framegauge.results.journal import Run
from framegauge.workloads.base import Json

HEADERS = {4: 28, 6: 48}
STEP = 20  # at which quinn's search ends
LOAD = {"size": "24 MB", "repeat": "0 s"}  # a search takes some ten round trips, of whatever is under way


def is_whole(each: Run, mtu: int) -> bool:
    """Whether its search ended where the path does. Where the machine holds hosts up, three probes in a row that the path
    carries may be lost, and the search ends below (MAX_PROBES, RFC 8899, section 5.1.2); above, it never does."""
    (settled,) = each.readings["quic"]["settled_mtu"]
    assert settled <= mtu
    return bool(mtu - STEP < settled)


def asked(
    folder: Path, agent: Agent, family: int = 4, factors: Any = None, kind: str = "rack"
) -> list[tuple[Run, Json]]:
    bed: dict[str, Any] = {"kind": kind, "family": family, "link": {"rate": "200 Mb/s"}}
    given = study(
        kind, testbed=bed, blocks=1, retries=0, margins={"completion_time": "10 %"}, workloads=[{"quic": LOAD}],
        factors={"congestion_control": "cubic", **(factors or {})},
    )  # fmt: skip

    def are_whole(runs: Sequence[Run]) -> bool:
        return all(is_whole(each, each.level) for each in runs if each.conditions.get("plpmtud", True))

    return [(each, record(folder, each)) for each in shown(agent, given, folder, are_whole)]


@pytest.mark.parametrize(("family", "offloads", "shaping"), [(4, False, True), (6, True, True), (4, True, False)])
def test_discovery_settles_at_the_mtu_and_the_wire_shows_it(
    rack_agent: Agent, tmp_path: Path, family: int, offloads: bool, shaping: bool
) -> None:
    runs = asked(tmp_path, rack_agent, family, {"offloads": offloads, "shaping": shaping, "moderation": "50 us"})
    assert {each.level for each, _ in runs} == {1500, 9000}
    for each, told in runs:
        found = each.readings["quic"]
        assert found["black_holes"] == 0
        # The fabric counted as many frames and bytes as the ends handed over; none is above the MTU.
        (sender,) = (host for host in told["measure"]["fabric"]["hosts"] if host["host"] == "h1")
        assert sender["largest_frame_bytes"] <= each.level + 18
        handed_over = sum(count for _, count in told["workload"]["quic"]["ends"]["h1"]["sizes"])
        # Without a shaper the ring of the interface overflows, and where the fabric has to wait.
        assert handed_over <= sender["read_frames"] or not shaping or held_up(each)
        assert found["share_at_settled"] > 0
        # The shaper's table of sizes is that of TCP's aggregates.
        assert (found["datagrams_per_call"] > 1) == (offloads and not shaping)
        assert each.metrics["goodput"] > 0


def test_without_discovery_packets_have_the_size_that_every_path_carries(rack_agent: Agent, tmp_path: Path) -> None:
    runs = asked(tmp_path, rack_agent, factors={"plpmtud": [True, False]})
    assert {(each.level, each.conditions["plpmtud"]) for each, _ in runs} == {
        (mtu, on) for mtu in (1500, 9000) for on in (True, False)
    }
    for each, _ in runs:
        (settled,) = each.readings["quic"]["settled_mtu"]
        assert (settled == 1228) == (not each.conditions["plpmtud"])


@pytest.mark.parametrize("offloads", [False, True])
def test_on_the_kernels_own_links_it_settles_too(rack_agent: Agent, tmp_path: Path, offloads: bool) -> None:
    for each, _ in asked(tmp_path, rack_agent, kind="veth", factors={"offloads": offloads}):
        assert (each.readings["quic"]["datagrams_per_call"] > 1) == offloads


def test_behind_a_silent_smaller_link_quic_gets_through_and_tcp_does_not(rack_agent: Agent, tmp_path: Path) -> None:
    """The ports of the middle link drop what is above 1500 and tell nobody; rr is over TCP."""
    sides = [{"from": one, "to": other, "mtu": 1500} for one, other in (("left", "right"), ("right", "left"))]
    bed = {"kind": "rack", "topology": "dumbbell", "hosts": 2, "link": {"rate": "100 Mb/s"}, "links": sides}
    loads = [{"quic": {"size": "12 MB", "repeat": "0 s"}}, {"rr": {"response": "100 kB", "duration": "0.2 s"}}]
    given = study(
        testbed=bed, workloads=loads, margins={"completion_time": "10 %", "transactions": "10 %"}, blocks=1, retries=0,
    )  # fmt: skip
    tcp: list[Run] = []

    def made() -> list[Run]:
        runs = {(each.workload, each.level): each for each in run(rack_agent, given, tmp_path)}
        tcp.append(runs["rr", 9000])
        return [runs["quic", 9000]]

    (quic,) = judged(made, tmp_path, lambda runs: all(is_whole(each, 1500) for each in runs))
    assert all(any(line.startswith("does not work: ") for line in each.excluded) for each in tcp)
    assert quic.readings["quic"]["lost_probes"] > 0
    told = record(tmp_path, quic)
    dropped = sum(port.get("giant_frames", 0) for port in told["measure"]["fabric"]["ports"])
    assert dropped >= quic.readings["quic"]["lost_probes"]
    assert any("QUIC's discovery ended at packets of" in line for line in quic.degraded)
