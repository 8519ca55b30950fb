"""Hosts with and without jumbo frames on one network with one server of files: which datagrams arrive, exactly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.real import held_up, run, study

from framegauge.agents.pipe import Agent
from framegauge.evidence.carried import datagrams
from framegauge.experiment.planning import searched
from framegauge.results.journal import Run, read
from framegauge.testbeds.base import Json
from framegauge.workloads import iscsi, nfs

NEEDS = {each.name: each for each in (*nfs.NEEDS, *iscsi.NEEDS)}.values()
pytestmark = [pytest.mark.needs(each.name, remedy=each.remedy) for each in NEEDS if not each.is_there(searched())]
BED = {
    "kind": "rack", "topology": "rack", "hosts": 3, "link": {"rate": "200 Mb/s"},
    "links": [{"from": "*", "to": "*", "mtu": "host"}],
}  # fmt: skip
MIXED = {"h2": 1500, "default": 9000}  # h3 is the server
CALLS = 50


def runs(
    agent: Agent,
    folder: Path,
    level: Any,
    workload: str = "nfs",
    other: Any = 9000,
    bed: Json = BED,
    **of_workload: Any,
) -> tuple[Run, Json]:
    """A run of both clients at this level, and its record."""
    asked = study(
        blocks=1, retries=0, testbed=bed, margins={"operations": "5 %"},
        workloads=[{workload: {"block": "8 KiB", "rate": 100, "duration": f"{CALLS / 100} s", **of_workload}}],
        factors={"mtu": {"levels": [other, level], "baseline": other}},
    )  # fmt: skip
    done = run(agent, asked, folder)
    found = next(each for each in done if each.level == level)
    return found, json.loads((folder / f"runs/{found.number}/record.json").read_text())


def reasons(found: Run) -> list[str]:
    return [line for line in found.excluded if not line.startswith("fidelity: ")]


def giants(record: Json) -> dict[str, int]:
    """The frames too large that ports dropped, of those that dropped any."""
    ports = record["measure"]["fabric"]["ports"]
    return {each["port"]: each["giant_frames"] for each in ports if each["giant_frames"]}


def sent_by(record: Json, client: str) -> int:
    return sum(record["workload"]["messages"]["clients"][client]["sent"].values())


def test_what_a_small_host_reads_over_udp_is_dropped_by_its_port_and_every_frame_is_accounted_for(
    rack_agent: Agent, tmp_path: Path
) -> None:
    found, record = runs(rack_agent, tmp_path, MIXED, transport="udp", operation="read", retransmit="400 ms")
    answers = record["workload"]["answers"]
    assert answers == {"h1": {"asked": CALLS, "answered": CALLS}, "h2": {"asked": CALLS, "answered": 0}}
    # MNT and LOOKUP are small and answered; each READ is answered in one frame of 8,366 bytes, which h2's port drops.
    lost = sent_by(record, "h2") - 2
    if held_up(found):  # then some are lost elsewhere, or asked for while counters are read
        assert set(giants(record)) == {"switch>h2"}
        assert CALLS <= giants(record)["switch>h2"] <= lost
        return
    # It asks again after 0.4, 1.2 and 2.8 s, all within 5 s of the end.
    assert lost >= 4 * CALLS
    assert giants(record) == {"switch>h2": lost}
    counts = datagrams(record)
    assert counts == {
        "sent": sent_by(record, "h1") + sent_by(record, "h2"), "answered": counts["sent"] - lost,
        "lost_calls": 0, "lost_in_server": 0, "lost_replies": lost,
    }  # fmt: skip
    why = (
        f"h2: 0 of {CALLS} operations answered; port switch>h2 (MTU 1500) dropped {lost} frames that are too "
        "large for it, of up to 8366 bytes"
    )
    assert reasons(found) == [f"does not work: {why}"]


def test_what_a_small_host_writes_over_udp_arrives_in_fragments(rack_agent: Agent, tmp_path: Path) -> None:
    found, record = runs(rack_agent, tmp_path, MIXED, transport="udp", operation="write")
    assert reasons(found) == []
    assert giants(record) == {}
    frames = {each["host"]: each["read_frames"] for each in record["measure"]["fabric"]["hosts"]}
    # A WRITE of 8 KiB is six fragments at MTU 1500, and one frame at 9000; MNT, LOOKUP and COMMIT are one each.
    again = {name: one["sent_again"] for name, one in record["workload"]["nfs"]["clients"].items()}
    assert {name: frames[name] - 3 for name in ("h1", "h2")} == {
        "h1": CALLS + again["h1"], "h2": 6 * (CALLS + again["h2"]),
    }  # fmt: skip


def test_over_tcp_the_smaller_mss_holds_and_everything_arrives(rack_agent: Agent, tmp_path: Path) -> None:
    found, record = runs(rack_agent, tmp_path, MIXED, transport="tcp", operation="read")
    assert reasons(found) == []
    assert giants(record) == {}
    segments = {frozenset((row["host"], row["other"])): row["mss_bytes"] for row in record["workload"]["live"]}
    assert segments == {frozenset(("h1", "h3")): 8948, frozenset(("h2", "h3")): 1448}
    assert all(each["answered"] == CALLS for each in record["workload"]["answers"].values())


def test_a_port_that_is_smaller_than_both_ends_is_a_black_hole_for_iscsi_and_named(
    rack_agent: Agent, tmp_path: Path
) -> None:
    """All hosts have 9000, so TCP has no reason for smaller segments, and one port has 1500."""
    bed = {**BED, "links": [{"from": "switch", "to": "h2", "mtu": 1500}]}
    found, record = runs(rack_agent, tmp_path, 9000, "iscsi", 1500, bed)
    assert record["workload"]["answers"] == {
        "h1": {"asked": CALLS, "answered": CALLS}, "h2": {"asked": CALLS, "answered": 0},
    }  # fmt: skip
    assert set(giants(record)) == {"switch>h2"}
    # Responses of 8,240 bytes: as many as the first window has room for, and then the first again and again.
    dropped = giants(record)["switch>h2"]
    assert dropped >= 3
    why = (
        f"h2: 0 of {CALLS} operations answered; port switch>h2 (MTU 1500) dropped {dropped} frames that are too "
        "large for it, of up to 8310 bytes"
    )
    assert reasons(found) == [f"does not work: {why}"]
    (small,) = (path for path in tmp_path.glob("runs/*/record.json") if path.parent.name != str(found.number))
    answers = json.loads(small.read_text())["workload"]["answers"]
    assert {host: each["asked"] for host, each in answers.items()} == {"h1": CALLS, "h2": CALLS}
    # That all are answered in the time of a run that is held up is the machine's to say.
    (other,) = (each for each in read(tmp_path).runs if each.number != found.number)
    least = CALLS / 2 if held_up(other) else CALLS
    assert all(least <= each["answered"] <= CALLS for each in answers.values())


def test_a_host_that_is_raised_before_its_server_writes_nothing_over_udp_unless_its_routes_are_held(
    rack_agent: Agent, tmp_path: Path
) -> None:
    raised = {"h1": 9000, "default": 1500}
    held = {**raised, "routes": 1500}
    found, record = runs(
        rack_agent, tmp_path, raised, other=held, transport="udp", operation="write", retransmit="400 ms"
    )
    assert record["workload"]["answers"] == {
        "h1": {"asked": CALLS, "answered": 0}, "h2": {"asked": CALLS, "answered": CALLS},
    }  # fmt: skip
    # MNT, LOOKUP and COMMIT are small; each WRITE is one frame of 8,354 bytes, which the server's port drops.
    lost = sent_by(record, "h1") - 3
    assert giants(record) == {"switch>h3": lost}
    # What the other client sent again, to a server that was late, may have been answered and lie there unread.
    unread = record["workload"]["nfs"]["clients"]["h2"]["sent_again"]
    assert 4 * CALLS <= lost <= datagrams(record)["lost_calls"] <= lost + unread
    why = (
        f"h1: 0 of {CALLS} operations answered; port switch>h3 (MTU 1500) dropped {lost} frames that are too "
        "large for it, of up to 8354 bytes"
    )
    assert reasons(found) == [f"does not work: {why}"]
    (path,) = (path for path in tmp_path.glob("runs/*/record.json") if path.parent.name != str(found.number))
    record = json.loads(path.read_text())
    assert record["before"]["h1"]["mtu"] == 9000
    assert giants(record) == {}
    frames = {each["host"]: each["read_frames"] for each in record["measure"]["fabric"]["hosts"]}
    for host in ("h1", "h2"):
        again = record["workload"]["nfs"]["clients"][host]["sent_again"]
        assert record["workload"]["answers"][host]["answered"] == CALLS
        assert frames[host] - 3 == 6 * (CALLS + again)
