"""Whether datagrams are accounted for: what closes, and each thing that does not, from records."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from framegauge.evidence.datagrams import datagram_failures, fragment_failures, readings, unproved_mtu
from framegauge.testbeds.base import Conditions

CONDITIONS = Conditions(
    testbed="fabric", mtu={"h1": 1500, "h2": 1500}, rtt_seconds=0.0, tso=False, lro=False, gro=False, checksum=False,
    congestion_control="cubic", bits_per_second=10**9, buffer_bytes=1, port_mtu=9216, moderation_seconds=0.0,
    aggregate_bytes=0, shaper_factor=1.0, shaper_burst_bytes=0, family=4,
)  # fmt: skip


def counters(**nstat: int) -> dict[str, Any]:
    return {"nstat": nstat, "interface": {}}


def record() -> dict[str, Any]:
    """Ten datagrams of 8 KiB at MTU 1500, of which a port dropped three fragments of two, and one had no room."""
    counts = {
        "client": "h1", "server": "h2", "size_bytes": 8192, "flows": 1, "sent": 10, "received": 7, "lost": 3,
        "copies": 0, "strangers": 0, "reordered": 0, "dropped_by_host": 0, "late_p99_seconds": 0.0,
    }  # fmt: skip
    return {
        "workload": {"transport": "udp", "datagrams": counts, "came": {"refused": 0}},
        "measure": {"fabric": {"ports": [{"dropped_frames": 1, "lost_frames": 2}, {"dropped_frames": 0}]}},
        "rack": {"ceilings": {"h1": {"mtu": 1500}, "h2": {"mtu": 1500}}},
        "counters_before": {"h1": counters(), "h2": counters()},
        "counters_after": {
            "h1": counters(UdpOutDatagrams=10, IpFragOKs=10, IpFragCreates=60),
            "h2": counters(UdpInDatagrams=7, UdpInErrors=1, IpReasmReqds=57, IpReasmOKs=8),
        },
    }  # fmt: skip


def changed(**places: int) -> dict[str, Any]:
    """The record with other values: `h1_…` and `h2_…` of a host's counters, the others of the workload."""
    found = copy.deepcopy(record())
    for name, value in places.items():
        host, _, counter = name.partition("_")
        if host in ("h1", "h2"):
            found["counters_after"][host]["nstat"][counter] = value
        else:
            found["workload"]["datagrams"][name] = value
    return found


def test_what_is_accounted_for_closes_and_says_where_the_rest_was_lost() -> None:
    assert list(datagram_failures(CONDITIONS, record())) == []
    assert list(fragment_failures(CONDITIONS, record())) == []
    told = readings(record())["datagrams"]
    assert (told["lost_in_network"], told["dropped_by_receiver"], told["packets_per_datagram"]) == (2, 1, 6)
    assert list(unproved_mtu(CONDITIONS, record())) == []


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ({"h1_UdpOutDatagrams": 11}, "datagrams sent by the kernel of h1: 11 is not the number that its program counted: 10"),
        ({"h2_UdpInDatagrams": 6}, "datagrams taken in by the kernel of h2: 6 is not the number that its program counted: 7"),
        ({"strangers": 2}, "datagrams that h2 received and h1 never sent: 2"),
        ({"h2_UdpInErrors": 4}, "datagrams lost in network: found -1, expected 0 or more"),
        ({"h2_IpReasmReqds": 50}, "frames of datagrams that did not reach h2: 10 is not the ports' drops: 3"),
    ],
)  # fmt: skip
def test_each_count_that_disagrees_is_a_line(places: dict[str, int], said: str) -> None:
    assert said in list(datagram_failures(CONDITIONS, changed(**places)))


def test_beside_bulk_the_ports_may_have_dropped_more_and_not_less() -> None:
    beside = changed(h2_IpReasmReqds=58)
    assert any("is not the ports' drops: 3" in line for line in datagram_failures(CONDITIONS, beside))
    for found in (beside, fewer := changed(h2_IpReasmReqds=50)):
        del found["workload"]["transport"]
    assert list(datagram_failures(CONDITIONS, beside)) == []
    assert list(datagram_failures(CONDITIONS, fewer)) == [
        "frames of datagrams that did not reach h2: 10 is more than the ports dropped: 3"
    ]


def test_datagrams_in_other_pieces_than_the_mtu_says_are_a_failure() -> None:
    assert list(fragment_failures(CONDITIONS, changed(h1_IpFragCreates=50))) == [
        "packets of 10 datagrams of h1: expected 6 each at this MTU, found 50"
    ]
    # At 9000 each takes one.
    whole = replace(CONDITIONS, mtu={"h1": 9000, "h2": 9000})
    uncut = changed(h1_IpFragOKs=0, h1_IpFragCreates=0)
    assert list(fragment_failures(whole, uncut)) == []
    uncut["rack"]["ceilings"] = {"h1": {"mtu": 9000}, "h2": {"mtu": 9000}}
    assert list(unproved_mtu(whole, uncut)) == [
        "MTU on the wire: it was read; datagrams in one packet each show only that it is 8220 or more"
    ]


def test_on_hosts_that_others_use_only_the_ends_are_compared() -> None:
    theirs = replace(CONDITIONS, testbed="hosts")
    busy = changed(h1_UdpOutDatagrams=5000, h2_UdpInDatagrams=9000)
    assert list(datagram_failures(theirs, busy)) == list(fragment_failures(theirs, busy)) == []
    assert readings(busy)["datagrams"]["lost_in_network"] is None
    assert list(datagram_failures(theirs, changed(strangers=1))) != []


def test_other_workloads_have_none() -> None:
    other = {"workload": {"transport": "udp"}, "measure": {"fabric": None}}
    assert list(datagram_failures(CONDITIONS, other)) == list(fragment_failures(CONDITIONS, other)) == []
    assert (readings(other), list(unproved_mtu(CONDITIONS, other))) == ({}, [])
