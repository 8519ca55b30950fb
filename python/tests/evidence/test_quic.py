"""Whether QUIC's datagrams are accounted for, and have the sizes that its discovery says: what closes, and each thing
that does not, from records."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from framegauge.evidence.conservation import ceiling
from framegauge.evidence.nic import is_bulk, is_over_udp
from framegauge.evidence.proof import _rtt
from framegauge.evidence.quic import discovery_failures, quic_failures, readings, unproved_discovery
from framegauge.testbeds.base import Conditions

CONDITIONS = Conditions(
    testbed="fabric", mtu={"h1": 9000, "h2": 9000}, rtt_seconds=0.0, tso=False, lro=False, gro=False, checksum=False,
    congestion_control="cubic", bits_per_second=10**9, buffer_bytes=1, port_mtu=9216, moderation_seconds=0.0,
    aggregate_bytes=0, shaper_factor=1.0, shaper_burst_bytes=0, family=4,
)  # fmt: skip
AROUND = 14 + 20 + 8  # of a frame without FCS


def end(sizes: list[list[int]], settled: list[int]) -> dict[str, Any]:
    return {
        "sizes": sizes, "calls": sum(count for _, count in sizes), "refused_calls": 0, "received": 0,
        "received_aggregates": 0, "settled_bytes": settled, "probes": 9, "lost_probes": 0, "black_holes": 0,
        "lost_packets": 0,
    }  # fmt: skip


def record() -> dict[str, Any]:
    """One connection that settled at 8972 bytes: twenty datagrams before it had, and 200 then."""
    client, server = end([[1200, 20], [8972, 200]], [8972]), end([[40, 30]], [1200])
    fabric = [
        {"host": name, "read_frames": sum(count for _, count in each["sizes"]),
         "read_bytes": sum(count * (size + AROUND) for size, count in each["sizes"])}
        for name, each in (("h1", client), ("h2", server))
    ]  # fmt: skip
    told = {
        "client": "h1", "server": "h2", "ends": {"h1": client, "h2": server}, "written_bytes": 1_800_000,
        "confirmed_bytes": 1_800_000, "served_bytes": 1_800_000, "plpmtud": True, "gso": False, "gro": False,
    }  # fmt: skip
    counters = {host: {"nstat": {}, "interface": {}} for host in ("h1", "h2")}
    sent = {host: {"nstat": {"UdpOutDatagrams": told["ends"][host]["calls"]}, "interface": {}} for host in counters}
    return {
        "workload": {"transport": "quic", "transfer_bytes": None, "bytes": 1_800_000, "quic": told},
        "measure": {"fabric": {"hosts": fabric}},
        "rack": {
            "ceilings": {host: {"mtu": 9000, "goodput_bits_per_second": 9e8} for host in counters},
            "hosts": [{"name": "h1", "address": "10.77.0.1"}],
        },
        "counters_before": counters,
        "counters_after": sent,
    }  # fmt: skip


def changed(host: str | None = None, **values: Any) -> dict[str, Any]:
    """The record with other values of an end, or of both together."""
    found = copy.deepcopy(record())
    told = found["workload"]["quic"]
    (told if host is None else told["ends"][host]).update(values)
    return found


def test_what_is_accounted_for_closes() -> None:
    assert list(quic_failures(CONDITIONS, record())) == []
    assert list(discovery_failures(CONDITIONS, record())) == []
    assert list(unproved_discovery(CONDITIONS, record())) == []
    told = readings(record())["quic"]
    assert (told["settled_bytes"], told["settled_mtu"], told["datagrams"]) == ([8972], [9000], 220)
    assert told["share_at_settled"] == pytest.approx(200 * 8972 / (200 * 8972 + 20 * 1200))
    assert told["datagrams_per_call"] == 1.0


def test_of_another_workload_nothing_is_asked() -> None:
    other = {"workload": {"transport": "udp"}}
    for check in (quic_failures, discovery_failures, unproved_discovery):
        assert list(check(CONDITIONS, other)) == []
    assert readings(other) == {}


def test_proofs_of_tcp_are_not_asked_of_quic() -> None:
    assert is_over_udp(record())
    assert not is_bulk(CONDITIONS, record())
    assert ceiling(CONDITIONS, record()) is None


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"served_bytes": 1_799_999}, "bytes that h1 wrote to QUIC: 1800000 is not what was delivered"),
        ({"confirmed_bytes": 1}, "bytes that h1 wrote to QUIC"),
        ({"host": "h1", "calls": 219}, "calls of QUIC that the kernel of h1 took: 220 is not the number that it made: 219"),
        ({"host": "h1", "sizes": [[1200, 20], [8972, 201]]}, "frames of h1: 220 is less than its datagrams of QUIC: 221"),
        ({"host": "h1", "sizes": [[1200, 21], [8972, 199]]}, "bytes of the frames of h1: "),
        ({"host": "h2", "sizes": [[41, 30]]}, "bytes of the frames of h2: "),
    ],
)  # fmt: skip
def test_each_balance_that_does_not_close_is_told(values: dict[str, Any], said: str) -> None:
    told = list(quic_failures(CONDITIONS, changed(**values)))
    assert any(line.startswith(said) for line in told), told


def test_a_slow_handshake_of_many_connections_says_nothing_of_the_rtt() -> None:
    told = {"workload": {"transport": "quic", "handshake_seconds": 0.5}, "rack": {"network": None}}
    assert list(_rtt(replace(CONDITIONS, rtt_seconds=0.0002), {**record(), **told})) == []


def test_what_a_ring_dropped_has_no_frames() -> None:
    found = changed("h1", sizes=[[1200, 20], [8972, 210]], calls=230)
    counters = found["counters_after"]["h1"]
    counters["nstat"]["UdpOutDatagrams"] = 230
    assert [line[:12] for line in quic_failures(CONDITIONS, found)] == ["frames of h1"]
    counters["interface"] = {"tx_dropped": 10}
    found["counters_before"]["h1"]["interface"] = {"tx_dropped": 0}
    assert list(quic_failures(CONDITIONS, found)) == []


def test_a_few_messages_of_others_are_no_difference() -> None:
    found = record()
    counts = found["measure"]["fabric"]["hosts"][0]
    counts["read_frames"] += 1
    counts["read_bytes"] += 98
    assert list(quic_failures(CONDITIONS, found)) == []
    counts["read_bytes"] += 9100
    assert [line[:26] for line in quic_failures(CONDITIONS, found)] == ["bytes of the frames of h1:"]


@pytest.mark.parametrize(
    ("values", "conditions", "said"),
    [
        ({"host": "h1", "sizes": [[8973, 1]]}, {}, "datagrams of QUIC of h1: expected at most 8972 bytes at this MTU, found 8973"),
        ({"host": "h1", "settled_bytes": [8973]}, {}, "datagrams of QUIC of h1: expected at most 8972 bytes"),
        ({"host": "h2", "settled_bytes": [8972]}, {}, "settled path MTU of h2: 8972 bytes is more than any datagram"),
        ({}, {"plpmtud": False}, "datagrams of QUIC of h1 without discovery: expected at most 1200 bytes, found 8972"),
        ({"host": "h1", "calls": 30}, {}, "datagrams of QUIC of h1 with GSO off: expected one a call, found 220 in 30"),
        ({"host": "h2", "received_aggregates": 3}, {}, "aggregates that QUIC of h2 took in with GRO off: found 3"),
        ({"gso": True}, {}, "datagrams of QUIC of h1 with GSO on: expected several a call, found one"),
    ],
)  # fmt: skip
def test_each_size_that_the_conditions_forbid_is_told(
    values: dict[str, Any], conditions: dict[str, Any], said: str
) -> None:
    told = list(discovery_failures(replace(CONDITIONS, **conditions), changed(**values)))
    assert any(line.startswith(said) for line in told), told


def test_what_settled_below_the_hosts_mtu_is_no_failure_and_is_told() -> None:
    behind = changed("h1", sizes=[[1200, 20], [1460, 200]], settled_bytes=[1460])
    assert list(discovery_failures(CONDITIONS, behind)) == []
    assert list(unproved_discovery(CONDITIONS, behind)) == [
        "MTU 9000 in use: QUIC's discovery ended at packets of 1488 bytes"
    ]
    assert list(unproved_discovery(replace(CONDITIONS, plpmtud=False), behind)) == []
    late = changed("h1", sizes=[[1200, 1000], [8972, 20]], calls=1020)
    assert list(unproved_discovery(CONDITIONS, late)) == [
        "MTU 9000 in use: QUIC sent 13% of its bytes in packets of the 9000 that it settled at"
    ]
