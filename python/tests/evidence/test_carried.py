"""Whether the wire carried what programs count: known answers of fragments, and what is found where counts differ."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from framegauge.evidence.carried import carried_failures, readings
from framegauge.testbeds.base import Conditions


def counters(**nstat: int) -> dict[str, Any]:
    return {"nstat": nstat, "interface": {}}


def record(transport: str) -> tuple[Conditions, dict[str, Any]]:
    """Ten calls of h1 at MTU 1500, each with an answer of 8 KiB."""
    conditions = CONDITIONS
    hosts = {
        "udp": [
            {"host": "h1", "read_frames": 10, "read_bytes": 1500},
            {"host": "h2", "read_frames": 60, "read_bytes": 84_680},
        ],
        "tcp": [
            {"host": "h1", "read_frames": 20, "read_bytes": 3000, "data_frames": 10, "data_frame_bytes": 1120 + 700},
            {
                "host": "h2",
                "read_frames": 60,
                "read_bytes": 87_200,
                "data_frames": 60,
                "data_frame_bytes": 83_240 + 4200,
            },
        ],
    }[transport]
    work = {
        "transport": transport, "calls": 10,
        "messages": {"server": "h2", "clients": {"h1": {"sent": {"112": 10}, "received": {"8324": 10}}}},
    }  # fmt: skip
    return conditions, {
        "workload": work, "measure": {"fabric": {"hosts": hosts}},
        "rack": {"ceilings": {"h1": {"mtu": 1500}, "h2": {"mtu": 1500}}},
        "counters_before": {host: counters() for host in ("h1", "h2")},
        "counters_after": {
            host: counters(UdpOutDatagrams=10, UdpInDatagrams=10, TcpRetransSegs=0) for host in ("h1", "h2")
        },
    }  # fmt: skip


CONDITIONS = Conditions(
    testbed="fabric", mtu={"h1": 1500, "h2": 1500}, rtt_seconds=0.0, tso=False, lro=False, gro=False, checksum=False,
    congestion_control="cubic", bits_per_second=10**9, buffer_bytes=1, port_mtu=9216, moderation_seconds=0.0,
    aggregate_bytes=0, shaper_factor=1.0, shaper_burst_bytes=0, family=4,
)  # fmt: skip


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_what_agrees_is_no_failure_and_gives_readings(transport: str) -> None:
    conditions, found = record(transport)
    assert list(carried_failures(conditions, found)) == []
    told = readings(found)["carried"]
    assert told["frames"] == {"udp": 70, "tcp": 80}[transport]
    assert told["frames_per_call"] == told["frames"] / 10
    assert told["bytes_per_frame"] == {"udp": 86_180 / 70 + 4, "tcp": 90_200 / 80 + 4}[transport]
    none = dict.fromkeys(("lost_calls", "lost_in_server", "lost_replies"), 0)
    assert told["datagrams"] == ({"sent": 10, "answered": 10, **none} if transport == "udp" else None)


def test_a_workload_that_states_no_messages_has_no_such_check() -> None:
    conditions, found = record("tcp")
    del found["workload"]["messages"]
    assert list(carried_failures(conditions, found)) == []
    assert readings(found) == {}


def changed(found: dict[str, Any], *path: Any, value: Any) -> dict[str, Any]:
    whole = copy.deepcopy(found)
    place = whole
    for each in path[:-1]:
        place = place[each]
    place[path[-1]] = value
    return whole


def nstat(host: str, name: str) -> tuple[Any, ...]:
    return "counters_after", host, "nstat", name


def frames(place: int, name: str) -> tuple[Any, ...]:
    return "measure", "fabric", "hosts", place, name


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        (frames(0, "read_frames"), 11, "frames of the datagrams of h1: 11 is not the number by arithmetic: 10"),
        (frames(1, "read_frames"), 59, "frames of the datagrams of h2: 59 is not the number by arithmetic: 60"),
        (
            nstat("h1", "UdpOutDatagrams"),
            12,
            "datagrams that clients sent: 10 is not answered + lost: 10 + 2 lost calls, 0 lost in server, 0 lost replies",
        ),
        (nstat("h2", "UdpInDatagrams"), 11, "datagrams lost calls: found -1, expected 0 or more"),
    ],
)
def test_datagrams_that_nobody_accounts_for_are_found(path: tuple[Any, ...], value: int, line: str) -> None:
    conditions, found = record("udp")
    assert line in list(carried_failures(conditions, changed(found, *path, value=value)))


def test_datagrams_of_ipv6_are_counted_and_its_neighbour_discovery_is_a_frame_each() -> None:
    """8,320 bytes of payload take six fragments of at most 1,448 at MTU 1500, and ICMPv6 one frame more."""
    conditions, found = record("udp")
    conditions = replace(conditions, family=6)
    for host in ("h1", "h2"):
        six = {
            "UdpOutDatagrams": 0,
            "UdpInDatagrams": 0,
            "Udp6OutDatagrams": 10,
            "Udp6InDatagrams": 10,
            "Icmp6OutMsgs": 1,
        }
        found = changed(found, "counters_after", host, "nstat", value=six)
    found = changed(found, *frames(0, "read_frames"), value=11)
    found = changed(found, *frames(1, "read_frames"), value=61)
    assert list(carried_failures(conditions, found)) == []
    assert "frames of the datagrams of h2: 61 is not the number by arithmetic: 60" in list(
        carried_failures(conditions, changed(found, *frames(1, "read_frames"), value=62))
    )


def test_a_lost_reply_explains_its_frames() -> None:
    conditions, found = record("udp")
    sent_again = {"sent": {"112": 11}, "received": {"8324": 10}}
    found = changed(found, "workload", "messages", "clients", "h1", value=sent_again)
    found = changed(found, *nstat("h1", "UdpOutDatagrams"), value=11)
    for name in ("UdpOutDatagrams", "UdpInDatagrams"):
        found = changed(found, *nstat("h2", name), value=11)
    found = changed(found, *frames(0, "read_frames"), value=11)
    found = changed(found, *frames(1, "read_frames"), value=66)
    assert list(carried_failures(conditions, found)) == []
    assert readings(found)["carried"]["datagrams"]["lost_replies"] == 1
    (line,) = carried_failures(conditions, changed(found, *frames(1, "read_frames"), value=60))
    assert line == "frames of the datagrams of h2: 60 is not the number by arithmetic: 66"


@pytest.mark.parametrize(("share", "fails"), [(0.96, True), (0.98, False), (1.02, False), (1.04, True)])
def test_segments_may_differ_by_3_percent_from_what_programs_sent(share: float, fails: bool) -> None:
    conditions, found = record("tcp")
    found = changed(found, *frames(1, "data_frame_bytes"), value=int(83_240 * share) + 4200)
    assert bool(list(carried_failures(conditions, found))) is fails


@pytest.mark.parametrize(("extra", "fails"), [(-9001, True), (-9000, False), (9000, False), (9001, True)])
def test_bytes_that_were_given_up_may_be_there_or_not(extra: int, fails: bool) -> None:
    conditions, found = record("tcp")
    clients = ("workload", "messages", "clients", "h1")
    found = changed(found, *clients, "given_up", value={"sent": 0, "received": 9000})
    value = 83_240 + 4200 + extra + (2497 if extra > 0 else -2497)  # 3 %
    lines = list(carried_failures(conditions, changed(found, *frames(1, "data_frame_bytes"), value=value)))
    assert bool(lines) is fails
    # The other way has its own: 1120 bytes that h1 counted.
    found = changed(found, *frames(0, "data_frame_bytes"), value=1120 + 700 + 5000)
    assert "bytes in the segments of h1: 6120 is not what its programs sent: 1120" in list(
        carried_failures(conditions, found)
    )
    found = changed(found, *clients, "given_up", value={"sent": 5000, "received": 9000})
    assert list(carried_failures(conditions, found)) == []


def test_what_was_sent_again_may_be_more() -> None:
    conditions, found = record("tcp")
    found = changed(found, *frames(1, "data_frame_bytes"), value=83_240 + 4200 + 7 * 1448)
    assert list(carried_failures(conditions, found)) == [
        f"bytes in the segments of h2: {83_240 + 7 * 1448} is not what its programs sent: 83240"
    ]
    assert list(carried_failures(conditions, changed(found, *nstat("h2", "TcpRetransSegs"), value=7))) == []
