"""Bytes of blocks on the wire, worked out by hand for a client, a monitor and three OSDs."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from framegauge.evidence.blocks import block_failures, block_readings, payload_bytes, unproved_blocks
from framegauge.testbeds.base import Conditions

CONDITIONS = cast(
    Conditions, SimpleNamespace(hosts=["h1", "h2", "h3", "h4", "h5"], first_mtus=[1500, 1500], changes=())
)
BLOCK, WRITES, READS = 65_536, 1000, 500
SECONDS = 3.2  # one round of heartbeats: each of three OSDs asks two others over two networks, and is answered
ROUND = 3 * 2 * 2 * 2 * 2080
OSDS = 3 * WRITES * BLOCK + (WRITES + READS) * 375 + WRITES * 2 * 2270 + ROUND
CLIENT = READS * BLOCK + READS * 275 + WRITES * 315 + 10_000


def port(name: str, payload: int, frames: int = 1000) -> dict[str, Any]:
    return {"port": name, "sent_frames": frames, "sent_bytes": payload + frames * 70}


def record(osds: int = OSDS, client: int = CLIENT, again: int = 0, **change: Any) -> dict[str, Any]:
    """What a run has for it; OSDs have two NICs, and replication is on the second."""
    ports = [port(f"h{number}>switch", 5_000_000) for number in range(1, 6)]
    ports += [port("switch>h1", client), port("switch>h2", 3000)]
    ports += [port(f"switch>h{number}.1", osds // 9) for number in (3, 4, 5)]
    ports += [port(f"switch>h{number}.2", (osds - 3 * (osds // 9)) // 3) for number in (3, 4, 5)]
    done = {
        "reads": READS, "writes": WRITES, "read_bytes": READS * BLOCK, "written_bytes": WRITES * BLOCK,
        "replication": 3, "client": "h1", "osds": ["h3", "h4", "h5"],
    }  # fmt: skip
    counters = {host: {"nstat": {"TcpRetransSegs": 7}} for host in CONDITIONS.hosts}
    after = {**counters, "h1": {"nstat": {"TcpRetransSegs": 7 + again}}}
    return {
        "workload": {"ceph": {**done, **change}, "ceph_version": 16, "active_seconds": SECONDS},
        "measure": {"fabric": {"ports": ports}}, "counters_before": counters, "counters_after": after,
        "rack": {"ceilings": {host: {"mtu": 1500} for host in CONDITIONS.hosts}},
    }  # fmt: skip


def failures(**given: Any) -> list[str]:
    return list(block_failures(CONDITIONS, record(**given)))


def test_payload_is_what_ports_sent_without_headers_to_all_nics_of_hosts() -> None:
    assert payload_bytes(record(), ["h1"]) == CLIENT
    assert payload_bytes(record(), ["h3", "h4", "h5"]) == pytest.approx(OSDS, abs=3)
    inside = record()
    inside["rack"]["ceilings"]["h1"]["inner_mtu"] = 1450
    assert payload_bytes(inside, ["h1"]) == CLIENT - 1000 * 50


def test_what_adds_up_is_in_order() -> None:
    assert failures() == []
    assert failures(osds=round(1.03 * OSDS), client=round(0.97 * CLIENT)) == []


@pytest.mark.parametrize(
    ("given", "whose"),
    [
        ({"osds": round(1.031 * OSDS) + ROUND}, "OSDs"),
        ({"osds": round(0.969 * OSDS) - ROUND}, "OSDs"),
        ({"client": round(1.031 * CLIENT) + 10_000}, "client h1"),
        ({"client": round(0.969 * CLIENT) - 10_000}, "client h1"),
        # A copy that is not there.
        ({"replication": 2}, "OSDs"),
        # fio counts a twentieth too many.
        ({"written_bytes": round(1.05 * WRITES * BLOCK)}, "OSDs"),
        ({"read_bytes": round(1.05 * READS * BLOCK)}, "client h1"),
    ],
)
def test_what_does_not_is_one_line_that_says_whose(given: dict[str, Any], whose: str) -> None:
    (line,) = failures(**given)
    assert line.startswith(f"payload that ports sent to {whose}: ")
    assert "are not those of blocks and messages: " in line


def test_what_was_sent_again_is_allowed_for() -> None:
    beyond = {"osds": round(1.03 * OSDS) + ROUND + 100 * 1500}
    assert len(failures(**beyond, again=99)) == 1
    assert failures(**beyond, again=101) == []


def test_without_reads_only_osds_are_looked_at() -> None:
    less = {"reads": 0, "read_bytes": 0, "client": 0, "osds": OSDS - READS * 375}
    assert failures(**less) == []


def test_messages_of_another_version_are_not_known() -> None:
    other = record(osds=0)
    other["workload"]["ceph_version"] = 19
    assert list(block_failures(CONDITIONS, other)) == []
    assert list(unproved_blocks(other)) == [
        "bytes of blocks on the wire: the messages of Ceph 19 are not known, only those of 16"
    ]
    assert list(unproved_blocks(record())) == []


@pytest.mark.parametrize("what", [block_readings, lambda found: list(unproved_blocks(found))])
def test_other_workloads_have_none_of_it(what: Callable[[dict[str, Any]], Any]) -> None:
    assert not what({"workload": {}, "measure": {"fabric": None}})


def test_every_osd_has_its_frames_and_their_size() -> None:
    found = block_readings(record())["osds"]
    assert list(found) == ["h3", "h4", "h5"]
    assert found["h3"]["received_frames"] == 2000
    assert found["h3"]["received_frame_bytes"] == pytest.approx((OSDS / 3 + 2000 * 70) / 2000, abs=1)
    assert (found["h3"]["sent_frames"], found["h3"]["sent_frame_bytes"]) == (1000, 5070)
    assert found["h3"]["cpu_seconds"] is None
    assert "storage" not in found["h3"]
    storage = block_readings(record(storage_network=True))["osds"]["h4"]["storage"]
    assert (storage["received_frames"], storage["sent_frames"], storage["sent_frame_bytes"]) == (1000, 0, None)
    assert storage["received_frame_bytes"] == pytest.approx(OSDS * 2 / 9 / 1000 + 70, abs=1)
