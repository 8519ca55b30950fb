"""Estimates of invented hosts, whose answers are known in closed form."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from bench.truth.estimates import interval
from helpers.schemas import conforms
from hypothesis import given, strategies as st

from framegauge.estimate import gains, schema, terminal
from framegauge.estimate.document import estimate
from framegauge.estimate.gains import Side, connection_gain, most_rounds, rounds_by_size
from framegauge.estimate.load import loads

Json = dict[str, Any]
OLD, NEW = 1448, 8948  # payload of full segments at MTU 1500 and 9000
LINK, HEADERS = 38, 52
SECONDS = 10.0
GIGABIT = 1e9
LOCAL, REMOTE = "192.0.2.1:5201", "192.0.2.2:40000"
# The goodput ceilings of docs/measured and the glossary: 941.5 and 990.0 Mb/s at 1 Gb/s.
CEILINGS = 990.04 / 941.48
ROUNDS = 7  # of windows of segments: so many times fewer at most, ceil(8948 / 1448)


def way(
    messages: dict[tuple[int, int], int] | None = None,
    acknowledgements: int = 0,
    left: Sequence[tuple[int, int, int]] = (),
) -> Json:
    """One direction of sampled connections. `left`: for each target what is left of all acknowledgements."""
    known = messages or {}
    return {
        "full": sum(full * count for (full, _), count in known.items()),
        "small": sum(count for (_, end), count in known.items() if end),
        "small_bytes": sum(end * count for (_, end), count in known.items()),
        "acknowledgements": acknowledgements,
        "acknowledgements_known": acknowledgements if left else 0,
        "acknowledgements_left": [dict(zip(("likely", "least", "most"), each, strict=True)) for each in left],
        "messages": [{"full": full, "end_bytes": end, "count": count} for (full, end), count in known.items()],
        "more_messages": 0,
    }


def total(found: Json, full_bytes: int, merged: int) -> Json:
    packets = found["full"] + found["small"] + found["acknowledgements"]
    payload = found["full"] * full_bytes + found["small_bytes"]
    aggregates = -(-packets // merged)
    return {
        "aggregates": aggregates, "aggregate_bytes": payload + HEADERS * aggregates, "packets": packets,
        "bytes": payload + HEADERS * packets, "tcp_packets": packets, "tcp_header_bytes": HEADERS * packets, "others": 0,
    }  # fmt: skip


def carried(found: Json, full_bytes: int, targets: tuple[int, ...]) -> Json:
    known = [(each["full"], each["end_bytes"], each["count"]) for each in found["messages"]]
    sizes = [full_bytes + target - 1500 for target in targets]
    after = [
        sum(count * (-(-(full * full_bytes + end) // size) if full else 1) for full, end, count in known)
        for size in sizes
    ]
    between = [
        sum(count for full, end, count in known if full and end and full * full_bytes + end <= size) for size in sizes
    ]
    messages = sum(count for *_, count in known)
    return {"segments": found["full"] + found["small"], "messages": messages, "after": after, "between": between}


def host(
    sent: Json,
    received: Json,
    *,
    busy: float = 0.0,
    full_bytes: int = OLD,
    targets: tuple[int, ...] = (4200, 9000),
    speed: float | None = GIGABIT,
    merged: int = 1,
    resent: int = 0,
    delayed: int = 0,
    nodelay: bool | None = True,
    sampled: bool = True,
    nic: Json | None = None,
    cpu: Json | None = None,
    ends: tuple[str, str] = (LOCAL, REMOTE),
    maximum_mtu: int | None = 9000,
) -> Json:
    """The readings of a host with one connection, all of whose packets were sampled."""
    totals = total(sent, full_bytes, merged), total(received, full_bytes, merged)
    payload = [each["full"] * full_bytes + each["small_bytes"] for each in (sent, received)]
    states = {
        "user": 0.0,
        "nice": 0.0,
        "system": 0.0,
        "idle": SECONDS,
        "iowait": 0.0,
        "irq": 0.0,
        "softirq": 0.0,
        "steal": 0.0,
    }
    local, remote = ends
    sample = {
        "windows": 10, "full_windows": 0, "window_seconds": SECONDS, "cpu_seconds": 0.01,
        "interfaces": [
            {
                "interface": "eth0", "sent": totals[0], "received": totals[1],
                "ways": [{"full_bytes": full_bytes, "sent": sent, "received": received}], "foreign": [],
                "connections": [
                    {
                        "local": local, "remote": remote, "full_bytes": full_bytes,
                        "sent": carried(sent, full_bytes, targets), "received": carried(received, full_bytes, targets),
                        "open": True, "process": 7, "program": "server", "nodelay": nodelay,
                    }
                ],
                "more_connections": 0,
            }
        ],
    }  # fmt: skip
    counted = [
        {"packets": each["aggregates"], "bytes": each["aggregate_bytes"] + 14 * each["aggregates"]} for each in totals
    ]
    return {
        "seconds": SECONDS, "link_bytes": LINK,
        "interfaces": [
            {
                "interface": "eth0", "mtu": 1500, "mtu_after": 1500, "maximum_mtu": maximum_mtu, "driver": "mlx5_core",
                "bits_per_second": speed, "offloads": None, "sent": counted[0], "received": counted[1],
                "nic": nic, "nic_error": None if nic else "the driver has no histogram of frame sizes (RMON)",
            }
        ],
        "cpu": {
            "elapsed_seconds": SECONDS, "cpus": [{"cpu": 0, **states, **(cpu or {})}],
            "receive_softirqs": 10, "transmit_softirqs": 10,
        },
        "counters": {"TcpExtDelayedACKs": delayed} if delayed else {}, "loopback_packets": 0,
        "connections": [
            {
                "local": local, "remote": remote, "throughout": True, "mss_bytes": full_bytes, "path_mtu": 1500,
                "srtt_seconds": 0.0001, "busy_seconds": busy, "receiver_limited_seconds": 0.0,
                "buffer_limited_seconds": 0.0, "sent_bytes": payload[0] + resent, "retransmitted_bytes": resent,
                "received_bytes": payload[1], "segments_sent": totals[0]["packets"],
                "segments_received": totals[1]["packets"], "data_segments_sent": sent["full"] + sent["small"],
                "data_segments_received": received["full"] + received["small"],
            }
        ],
        "more_connections": 0,
        "sample": sample if sampled else None,
        "sample_error": None if sampled else "reading headers needs CAP_NET_RAW: found user 1000 without it",
        "unread": [], "tunnels": [],
    }  # fmt: skip


def estimated(readings: Json, target: int = 9000, **more: Any) -> tuple[Json, Json]:
    """The document of one host, and its figures for an MTU."""
    document = estimate({"h1": readings}, (4200, 9000), **more)
    conforms(document, schema.json_schema())
    assert list(terminal.lines(document))
    (found,) = [each for each in document["hosts"][0]["targets"] if each["mtu"] == target]
    return document, found


# What a gigabit carries in the interval, in full segments.
SEGMENTS = round(GIGABIT * SECONDS / 8 / 1538)
STREAM = way({(SEGMENTS, 0): 1})


def test_of_a_link_that_is_full_the_gain_is_that_of_the_ceilings() -> None:
    document, found = estimated(host(STREAM, way(), busy=SECONDS))
    assert found["packets"]["ratio"]["estimate"] == pytest.approx(NEW / OLD, rel=1e-4)
    assert found["packets"]["before_per_second"] == pytest.approx(SEGMENTS / SECONDS, rel=0.001)
    assert found["goodput"]["at_most"] == pytest.approx(CEILINGS - 1, rel=0.001)
    assert found["goodput"]["frames_at_most"] == pytest.approx(CEILINGS - 1, rel=0.001)
    saved = SEGMENTS / SECONDS * (1 - OLD / NEW) * (HEADERS + LINK)
    assert found["header_bytes_saved_per_second"]["estimate"] == pytest.approx(saved, rel=0.001)
    assert found["answer"] == "worth a study"
    assert document["hosts"][0]["interfaces"][0]["full_share"] == {"kind": "measurement", "value": 1.0}


def test_a_target_in_between_has_its_own_ceiling() -> None:
    _, found = estimated(host(STREAM, way(), busy=SECONDS), 4200)
    assert found["goodput"]["at_most"] == pytest.approx((4148 / 4238) / (OLD / 1538) - 1, rel=0.001)


@pytest.mark.parametrize("share", [0.001, 0.01, 0.2, 0.5])
def test_time_in_which_programs_send_nothing_is_not_gained(share: float) -> None:
    """A connection that is as fast as the link while it is busy gains at most the headers of that time."""
    part = way({(round(SEGMENTS * share), 0): 1})
    document, found = estimated(host(part, way(), busy=SECONDS * share))
    expected = 1 / (1 - share + share / CEILINGS) - 1
    assert found["goodput"]["by"] == "time"
    assert found["goodput"]["at_most"] == pytest.approx(expected, rel=0.01)
    assert document["hosts"][0]["limits"]["application_share"] == pytest.approx(1 - share)


@pytest.mark.parametrize(("full", "headers"), [(OLD, 52), (OLD - 12, 64), (1348, 52)])
def test_full_segments_that_something_elsewhere_makes_smaller_are_told(full: int, headers: int) -> None:
    """Where all that is raised together, they have 9000 less the same headers."""
    document, found = estimated(host(way({(1000, 0): 1}), way(), full_bytes=full))
    words = "full segments have 1348 bytes, where its MTU permits 1448: a smaller MTU or MSS elsewhere is the limit"
    assert any(words in note for note in document["hosts"][0]["notes"]) is (full + headers < 1500)
    then = math.ceil(1000 * full / (9000 - headers)) / SECONDS
    assert found["packets"]["after_per_second"]["estimate"] == pytest.approx(then)


def test_with_nearly_idle_connections_the_answer_is_do_not() -> None:
    part = way({(round(SEGMENTS * 0.001), 0): 1})
    _, found = estimated(host(part, way(), busy=SECONDS * 0.004))
    assert found["goodput"]["at_most"] < 0.004
    assert found["answer"] == "do not"


def test_without_a_speed_the_number_of_rounds_is_the_bound() -> None:
    document, found = estimated(host(STREAM, way(), busy=SECONDS, speed=None))
    assert found["goodput"]["at_most"] == pytest.approx(ROUNDS - 1)
    assert any("its speed is not known" in note for note in document["hosts"][0]["notes"])


def test_a_speed_that_cannot_be_true_is_none() -> None:
    document, found = estimated(host(STREAM, way(), busy=SECONDS, speed=1e7))
    assert found["goodput"]["at_most"] == pytest.approx(ROUNDS - 1)
    assert any("carried more than the speed that it says" in note for note in document["hosts"][0]["notes"])
    _, told = estimated(host(STREAM, way(), busy=SECONDS, speed=1e7), bits_per_second=GIGABIT)
    assert told["goodput"]["at_most"] == pytest.approx(CEILINGS - 1, rel=0.001)


def test_what_losses_cost_is_bounded_by_the_link_alone() -> None:
    half = way({(SEGMENTS // 2, 0): 1})
    _, free = estimated(host(half, way(), busy=SECONDS, resent=OLD, speed=None))
    assert free["goodput"]["at_most"] is None
    assert free["answer"] == "worth a study"
    _, bound = estimated(host(half, way(), busy=SECONDS, resent=OLD))
    assert bound["goodput"]["at_most"] == pytest.approx(2 * CEILINGS - 1, rel=0.001)


def test_small_messages_gain_nothing() -> None:
    document, found = estimated(host(way({(0, 100): 5000}), way({(0, 200): 5000}), busy=SECONDS / 2))
    assert found["packets"]["ratio"] == {"estimate": 1.0, "least": 1.0, "most": 1.0}
    assert (found["goodput"]["at_most"], found["goodput"]["frames_at_most"], found["cpu"]["at_most"]) == (0, 0, 0)
    assert found["answer"] == "do not"
    assert document["total"][1]["answer"] == "do not"


def test_the_order_of_packets_is_the_estimate_and_counts_are_its_bounds() -> None:
    """64 KiB and a header, each answered by a small one: 46 segments become 8."""
    request = {(45, 65_536 + 370 - 45 * OLD): 100}
    document, found = estimated(host(way(request), way({(0, 200): 100}, acknowledgements=2300), busy=SECONDS))
    ratio = found["packets"]["ratio"]
    assert ratio["least"] < ratio["estimate"] < ratio["most"]
    assert found["packets"]["after_per_second"]["estimate"] == pytest.approx(
        (800 + 100 + 8 / 46 * 2300) / 10, rel=0.001
    )
    # As was published: four times fewer, and not six.
    assert 3.5 < ratio["estimate"] < 5.5
    assert document["hosts"][0]["source"] == "sample"


def test_acknowledgements_of_which_it_is_known_what_they_answered_are_those_that_are_left() -> None:
    """200 blocks of 8 KiB: at 9000 each is acknowledged with the next request, and at 4200 by itself."""
    asked = way({(0, 48): 200}, acknowledgements=600, left=[(200, 200, 200), (0, 0, 200)])
    readings = host(asked, way({(5, 1000): 200}))
    for target, after in ((4200, 200 + 400 + 200), (9000, 200 + 200)):
        document, found = estimated(readings, target)
        assert document["hosts"][0]["source"] == "sample"
        assert found["packets"]["after_per_second"]["estimate"] == pytest.approx(after / SECONDS)


@pytest.mark.parametrize(
    ("known", "left", "named"),
    [
        (601, [(0, 0, 0)] * 2, "acknowledgements_known: found 601 of 600"),
        (600, [(0, 0, 0)], "acknowledgements_left: found figures for other than 2 MTUs"),
        (600, [(0, 0, 0), (1, 2, 3)], "acknowledgements_left: found a likely number beyond its bounds"),
    ],
)
def test_acknowledgements_that_cannot_be_are_refused(
    known: int, left: Sequence[tuple[int, int, int]], named: str
) -> None:
    asked = {**way({(0, 48): 200}, acknowledgements=600, left=left), "acknowledgements_known": known}
    document = estimate({"h1": host(asked, way({(5, 1000): 200}))}, (4200, 9000))
    assert not document["hosts"]
    assert named in document["lost"][0]["why"]


def test_what_the_other_end_does_is_known_if_it_is_asked() -> None:
    """The other end sends all the time: its host tells that it was busy for a tenth of it."""
    part = way({(SEGMENTS // 10, 0): 1})
    here = host(way(), part, speed=None)
    _, alone = estimated(here)
    assert alone["goodput"]["at_most"] == pytest.approx(ROUNDS - 1)
    there = host(part, way(), busy=SECONDS / 10, speed=None, ends=(REMOTE, LOCAL))
    together = estimate({"h1": here, "h2": there}, (4200, 9000))
    conforms(together, schema.json_schema())
    expected = 1 / (1 - 0.1 + 0.1 / ROUNDS) - 1
    assert together["total"][1]["goodput"]["at_most"] == pytest.approx(expected, rel=0.001)
    assert [each["targets"][1]["goodput"]["at_most"] for each in together["hosts"]] == [
        pytest.approx(expected, rel=0.001)
    ] * 2


@pytest.mark.parametrize("speed", [GIGABIT, None])
def test_of_connections_without_a_socket_here_the_link_alone_is_the_bound(speed: float | None) -> None:
    """Those of containers and virtual machines, and what the host forwards: a tenth of a gigabit."""
    part = way({(SEGMENTS // 10, 0): 1})
    readings = host(part, way(), busy=SECONDS / 100, speed=speed)
    readings["connections"] = []
    document, found = estimated(readings)
    assert found["goodput"]["at_most"] == (pytest.approx(10 * CEILINGS - 1, rel=0.001) if speed else None)
    assert found["answer"] == "worth a study"
    assert [note for note in document["hosts"][0]["notes"] if "without a socket here" in note and "100%" in note]
    # What stays as it is gains nothing, wherever it ends.
    small = host(way({(0, 100): 5000}), way({(0, 200): 5000}), speed=speed)
    small["connections"] = []
    assert estimated(small)[1]["goodput"]["at_most"] == 0


@given(st.integers(1, 2000), st.integers(1, 2000))
def test_connections_with_and_without_a_socket_here_count_by_their_segments(known: int, strange: int) -> None:
    readings = host(way({(SEGMENTS // 20, 0): 1}), way(), busy=SECONDS / 10)
    sample = readings["sample"]["interfaces"][0]
    (own,) = sample["connections"]
    links = gains.links_gain(loads(readings, (4200, 9000)), {"eth0": GIGABIT}, SECONDS, 9000, LINK)
    assert links is not None

    def carried_(count: int, end: str) -> Json:
        return {**own, "local": end, "sent": {**own["sent"], "segments": 70 * count, "after": [30 * count, 10 * count]}}

    sample["connections"] = [carried_(known, LOCAL)]
    time = estimated(readings)[1]["goodput"]["at_most"]
    assert time < links / 2
    sample["connections"].append(carried_(strange, "192.0.2.9:1"))
    free = strange / (known + strange)
    expected = (1 - free) * time + free * links if free >= 0.01 else time
    assert estimated(readings)[1]["goodput"]["at_most"] == pytest.approx(expected)


def test_of_a_full_cpu_the_link_alone_is_the_bound() -> None:
    """Connections wait there for the packets of others, which may be saved."""
    part, full = way({(SEGMENTS // 10, 0): 1}), {"user": 99.0, "idle": 1.0}
    document, found = estimated(host(part, way(), busy=SECONDS / 10, speed=None, cpu=full))
    assert found["goodput"]["at_most"] is None
    assert any(note.startswith("a CPU was full: ") for note in document["hosts"][0]["notes"])
    _, known = estimated(host(part, way(), busy=SECONDS / 10, cpu=full))
    assert known["goodput"]["at_most"] == pytest.approx(10 * CEILINGS - 1, rel=0.001)
    # Where no packet can be saved, none is waited for less.
    _, small = estimated(host(way({(0, 100): 5000}), way({(0, 200): 5000}), busy=SECONDS, cpu=full))
    assert small["goodput"]["at_most"] == 0
    # Nor where the sample and the counters differ by a packet.
    readings = host(way({(0, 100): 5000}), way({(0, 200): 5000}), busy=SECONDS, cpu=full)
    readings["interfaces"][0]["sent"]["packets"] += 200
    _, off = estimated(readings)
    assert (off["goodput"]["at_most"], off["cpu"]["at_most"], off["packets"]["ratio"]["most"]) == (0, 0, 1)


def both(here: Json, there: Json) -> Json:
    """The goodput of two ends, together and of each, for MTU 9000."""
    document = estimate({"h1": here, "h2": there}, (4200, 9000))
    conforms(document, schema.json_schema())
    each = [host["targets"][1]["goodput"]["at_most"] for host in document["hosts"]]
    return {"total": document["total"][1]["goodput"]["at_most"], "each": each, "hosts": document["hosts"]}


@pytest.mark.parametrize("delayed", [0, 10, 40])
def test_time_that_a_sender_waits_for_delayed_acknowledgements_may_vanish(delayed: int) -> None:
    """Messages of a full segment and an end, which Nagle's algorithm holds back until the first one is acknowledged."""
    requests, answers = way({(1, 500): 100}), way({(0, 100): 100})
    here = host(requests, answers, busy=SECONDS, speed=None)
    there = host(answers, requests, busy=0.0, speed=None, delayed=delayed, ends=(REMOTE, LOCAL))
    found = both(here, there)
    expected = SECONDS / ((SECONDS - 0.2 * delayed) / 2) - 1
    assert found["each"] == [pytest.approx(expected)] * 2
    assert any("acknowledgements were delayed" in note for note in found["hosts"][1]["notes"]) == bool(delayed)
    # Without a segment that could be saved, the wait stays as it is.
    small = way({(0, 1400): 100})
    waits = host(small, answers, busy=SECONDS), host(answers, small, delayed=delayed, ends=(REMOTE, LOCAL))
    assert both(*waits)["total"] == 0


def test_the_time_in_which_both_ends_send_is_that_of_the_end_that_may_save_more() -> None:
    large, small = way({(SEGMENTS // 100, 0): 1}), way({(0, 100): 5000})
    asks = host(small, large, busy=SECONDS, speed=None)
    serves = host(large, small, busy=SECONDS, speed=None, ends=(REMOTE, LOCAL))
    assert both(asks, serves)["each"] == [pytest.approx(ROUNDS - 1)] * 2


@pytest.mark.parametrize("used", [0.5, 1.0])
def test_a_short_connection_both_of_whose_ends_were_busy_gains_what_the_link_does(used: float) -> None:
    """As of NFS: requests of one segment are always on the way, and so are the answers, which fill the link."""
    large, small = way({(round(SEGMENTS * used), 0): 1}), way({(0, 100): 5000})
    ends = [
        host(small, large, busy=SECONDS * used),
        host(large, small, busy=SECONDS * used, ends=(REMOTE, LOCAL)),
    ]
    for each in ends:
        each["connections"][0]["throughout"] = False
    assert both(*ends)["each"] == [pytest.approx(CEILINGS - 1, rel=0.001)] * 2


@pytest.mark.parametrize("throughout", [True, False])
@pytest.mark.parametrize("over", [0.9, 1.0, 1.01, 1.05])
def test_a_full_link_saves_headers_however_much_seems_to_have_come(throughout: bool, over: float) -> None:
    """What was under way when an interval began comes on top of what the link carries in it."""
    seconds, segments = 10.0, 100_000
    before, after = (1448 * segments + count * (52 + 38) for count in (segments, segments / 6))
    rate = 8 * before / (over * seconds)
    full = Side(seconds, 1448 * segments, segments / 6, 7, False, segments=segments)
    found = connection_gain(seconds, throughout, (full, Side(0.0, 0, 0, 1, False)), 38, rate)
    headers = before / after - 1
    assert found.at_most == pytest.approx(headers if over >= 1 else before / (over * after) - 1)


def test_of_the_time_in_which_both_ends_send_the_least_is_left_that_any_division_leaves() -> None:
    """Beside a search of all divisions, with ends that are as fast as the link, stalled, or neither."""
    random, sizes = Random(7), range(1001)
    for _ in range(50):
        ends = [
            Side(random.uniform(0, 10), 10**random.randint(3, 9), 1, random.randint(1, 7), random.random() < 0.2,
                 random.choice([0.0, random.uniform(0, 8)]))
            for _ in range(2)
        ]  # fmt: skip
        mine, other = ends[0].busy_seconds or 0.0, ends[1].busy_seconds or 0.0
        wires = [8 * (each.payload_bytes + HEADERS + LINK) / GIGABIT for each in ends]
        idle, both = max(0.0, 10 - mine - other), max(0.0, mine + other - 10)
        left = min(
            idle + ends[0].shortest(mine - both * part / 1000, wires[0])
            + ends[1].shortest(other - both * (1 - part / 1000), wires[1])
            for part in sizes
        )  # fmt: skip
        found = connection_gain(10, True, (ends[0], ends[1]), LINK, GIGABIT)
        expected = max(0.0, 10 / left - 1) if left > 0 else math.inf
        assert found.at_most == pytest.approx(expected, rel=0.01, abs=1e-6)


def test_of_messages_that_shrink_unequally_any_may_have_taken_the_time() -> None:
    """A thousand small ones that wait for nothing, and one whose rounds take all of it."""
    mixed = way({(0, 100): 1000, (20, 500): 1})
    _, found = estimated(host(mixed, way(), busy=SECONDS, speed=None))
    assert found["packets"]["ratio"]["most"] < 1.02
    assert found["goodput"]["at_most"] == pytest.approx(-(-21 // 4) - 1)


def test_a_connection_may_have_had_full_segments_of_another_size_when_its_messages_were_large() -> None:
    sizes = [(OLD, way({(19, 7): 5}), way()), (1348, way(), way({(2, 7): 5}))]
    ways = [{"full_bytes": size, "sent": sent, "received": received} for size, sent, received in sizes]
    totals = {name: {"tcp_packets": 0, "tcp_header_bytes": 0} for name in ("sent", "received")}
    sample = {"interfaces": [{"interface": "eth0", "ways": ways, **totals}]}
    readings = {"interfaces": [{"interface": "eth0", "mtu": 1500}], "sample": sample}
    assert rounds_by_size(readings, 9000)[1348] == {"sent": 5, "received": 3}


def test_a_bound_is_compared_with_the_interval_of_a_gain() -> None:
    """Of responses of one segment: the same packets at both MTUs, and runs that differ by chance."""
    centre, low, high = interval([0.6, -0.7, -0.2], 0.05)
    assert low < 0 < high
    assert centre == pytest.approx(-0.1, abs=0.01)
    # Student's t of two degrees of freedom, 4.303, in logarithms.
    logs = [math.log1p(each / 100) for each in (5.2, 5.3, 5.6)]
    half = 4.303 * statistics.stdev(logs) / math.sqrt(3)
    assert interval([5.2, 5.3, 5.6], 0.05)[1] == pytest.approx(100 * math.expm1(statistics.mean(logs) - half), rel=1e-3)
    assert interval([5.2], 0.05)[1:] == (-100, math.inf)


def rounds(segments: int, window: int, grows: bool) -> int:
    """How often a sender waits for acknowledgements: for each window, which may double (RFC 5681)."""
    count = 0
    while segments > 0:
        segments, count = segments - window, count + 1
        window *= 2 if grows else 1
    return count


@given(st.integers(1, 3_000_000), st.integers(1, 200), st.booleans(), st.sampled_from([1600, 2000, 4200, 9000]))
def test_a_message_takes_no_fewer_rounds_than_the_bound_says(size: int, window: int, grows: bool, target: int) -> None:
    larger = OLD + target - 1500
    saved = most_rounds(way({divmod(size, OLD): 1}), OLD, larger)
    before, then = (rounds(-(-size // each), window, grows) for each in (OLD, larger))
    assert before <= saved * then
    assert (saved == 1) == (-(-size // OLD) == -(-size // larger))


def test_cpu_time_of_softirqs_shrinks_with_packets_and_the_rest_of_the_kernels_with_aggregates() -> None:
    cpu = {"user": 2.0, "system": 3.0, "softirq": 1.0, "idle": 4.0}
    _, one_by_one = estimated(host(STREAM, way(), busy=SECONDS, cpu=cpu))
    assert one_by_one["cpu"]["at_most"] == pytest.approx((1 + 3) * (1 - OLD / NEW) / 6, rel=0.001)
    # With aggregates of 16 segments, there are fewer of these than of larger packets.
    document, merged = estimated(host(STREAM, way(), busy=SECONDS, cpu=cpu, merged=16))
    assert merged["cpu"]["at_most"] == pytest.approx((1 - OLD / NEW) / 6, rel=0.001)
    assert document["hosts"][0]["merged"]["sent_ratio"] == pytest.approx(16, rel=0.001)
    said = " ".join(" ".join(terminal.lines(document)).split())
    assert "packets/s, aggregates counted as its driver does (reading)" in said


def test_the_histogram_of_a_nic_has_the_same_answer() -> None:
    ends = [(0, 64), (65, 127), (128, 255), (256, 511), (512, 1023), (1024, 1518), (1519, 9216)]
    nothing = [{"least_bytes": least, "most_bytes": most, "frames": 0} for least, most in ends]
    ranges = [{**each, "frames": SEGMENTS * (each["most_bytes"] == 1518)} for each in nothing]
    nic = {"sent": ranges, "received": nothing, "sent_frames": None, "received_frames": None}
    readings = host(STREAM, way(), busy=SECONDS, sampled=False, nic=nic)
    document, found = estimated(readings)
    assert document["hosts"][0]["source"] == "nic"
    assert document["hosts"][0]["interfaces"][0]["full_share"]["kind"] == "reading"
    assert found["packets"]["ratio"]["estimate"] == pytest.approx(NEW / OLD, rel=0.001)
    assert found["goodput"]["at_most"] == pytest.approx(CEILINGS - 1, rel=0.001)


def test_without_a_sample_and_a_histogram_the_counts_of_connections_tell_and_it_says_so() -> None:
    document, found = estimated(host(STREAM, way(acknowledgements=50), busy=SECONDS, sampled=False))
    one = document["hosts"][0]
    assert one["source"] == "connections"
    assert found["packets"]["ratio"]["estimate"] == pytest.approx(NEW / OLD, rel=0.01)
    assert found["goodput"]["at_most"] == pytest.approx(CEILINGS - 1, rel=0.001)
    assert [note for note in one["notes"] if "CAP_NET_RAW" in note]
    assert [note for note in one["notes"] if note == "eth0: the driver has no histogram of frame sizes (RMON)"]
    assert not one["nagle"][1]["is_known"]


@pytest.mark.parametrize("own", [0, 1, 2000])
def test_without_a_sample_what_no_connection_carried_is_unknown(own: int) -> None:
    """Ten thousand packets of 1500 bytes, of a tunnel or forwarded, beside connections of the host itself."""
    readings = host(way({(own, 0): 1} if own else {}), way(), sampled=False)
    for key, more in (("packets", 10_000), ("bytes", 15_140_000)):
        readings["interfaces"][0]["sent"][key] += more
    document, found = estimated(readings)
    assert (found["answer"], found["goodput"]["at_most"], found["cpu"]["at_most"]) == ("cannot tell", None, None)
    ratio = found["packets"]["ratio"]
    assert ratio["least"] >= 1
    assert ratio["most"] == pytest.approx(6, rel=0.05)
    [kind] = document["hosts"][0]["opaque"]
    assert (kind["class"], kind["share"]) == ("unread", pytest.approx(10_000 / (10_000 + own), rel=0.01))
    assert [note for note in document["hosts"][0]["notes"] if "of no connection of this host" in note]


def test_an_idle_host_without_a_sample_has_no_traffic() -> None:
    """What controls it is no load."""
    readings = host(way(), way(), sampled=False)
    readings["interfaces"][0]["received"] = {"packets": 300, "bytes": 60_000}
    assert estimated(readings)[1]["answer"] == "no traffic"


def test_how_many_segments_of_a_connection_are_full_is_between_two_bounds() -> None:
    """4,000 bytes are two full segments and an end, or three that are not full, for all that counts tell."""
    readings = host(way({(2, 1104): 100}), way(acknowledgements=100), sampled=False)
    _, found = estimated(readings)
    ratio = found["packets"]["ratio"]
    assert ratio["least"] == 1
    # All of them full: one segment of 8948 bytes for 4,000.
    assert ratio["least"] < 2.5 < ratio["most"]
    assert found["packets"]["after_per_second"]["estimate"] < found["packets"]["before_per_second"]


def test_what_an_mtu_cannot_be_and_what_it_is_already_is_told() -> None:
    _, found = estimated(host(STREAM, way(), busy=SECONDS, maximum_mtu=4074))
    assert found["answer"] == "not possible"
    jumbo = host(way({(1000, 0): 1}), way(), full_bytes=NEW)
    jumbo["interfaces"][0]["mtu"] = jumbo["interfaces"][0]["mtu_after"] = 9000
    _, same = estimated(jumbo)
    assert (same["answer"], same["packets"]["ratio"]["most"], same["goodput"]["at_most"]) == ("already", 1.0, 0)
    idle = host(way(), way())
    _, nothing = estimated(idle)
    assert nothing["answer"] == "no traffic"


@pytest.mark.parametrize(("nodelay", "exposed", "unread"), [(False, 1, 0), (True, 0, 0), (None, 0, 1)])
def test_sockets_with_nagles_algorithm_and_messages_between_two_segments_are_named(
    nodelay: bool | None, exposed: int, unread: int
) -> None:
    """3,000 bytes are three segments now; of 9000 bytes, one."""
    sent = way({(2, 104): 40, (69, 88): 2})
    document, _ = estimated(host(sent, way({(0, 20): 40}), busy=1.0, nodelay=nodelay))
    found = document["hosts"][0]["nagle"][1]
    assert (len(found["sockets"]), found["unread_sockets"], found["is_known"]) == (exposed, unread, True)
    for each in found["sockets"]:
        assert (each["program"], each["process"], each["messages"], each["of_messages"]) == ("server", 7, 40, 42)


def test_words_of_hosts_are_one_line() -> None:
    readings = host(way({(2, 104): 40}), way(), busy=SECONDS, nodelay=None)
    readings["unread"] = [{"program": "evil\x1b[2J\nmake: done", "why": "no"}]
    readings["interfaces"][0]["driver"] = "bad\ndriver"
    document, _ = estimated(readings)
    assert any("evil" in line for line in terminal.lines(document))
    for line in terminal.lines(document):
        assert "\n" not in line
        assert "\x1b" not in line


def numbers(found: Any, place: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The places of all whole numbers in a document."""
    if isinstance(found, dict):
        return [each for key, value in found.items() for each in numbers(value, (*place, key))]
    if isinstance(found, list):
        return [each for index, value in enumerate(found) for each in numbers(value, (*place, index))]
    return [place] if isinstance(found, int) and not isinstance(found, bool) else []


@given(st.data(), st.booleans())
def test_a_host_in_other_hands_spoils_its_own_estimate_alone(data: st.DataObject, sampled: bool) -> None:
    """Each number is one that the pipe allows; the other host's figures stay as they are."""
    request = {(45, 416): 100, (0, 7): 3}
    evil = host(way(request), way({(0, 200): 100}, acknowledgements=50), busy=3.0, sampled=sampled)
    for _ in range(data.draw(st.integers(1, 3))):
        *there, last = data.draw(st.sampled_from(numbers(evil)))
        part: Any = evil
        for key in there:
            part = part[key]
        part[last] = data.draw(st.sampled_from([0, 1, 2, 67, 1448, 1500, 9000, 2**32, 2**63 - 1]))
    honest = host(STREAM, way(), busy=SECONDS, ends=("192.0.2.3:1", "192.0.2.4:2"))
    document = estimate({"evil": evil, "h1": honest}, (4200, 9000))
    conforms(document, schema.json_schema())
    assert list(terminal.lines(document))
    alone, _ = estimated(honest)
    assert document["hosts"][-1] == alone["hosts"][0]
    assert [each["host"] for each in document["lost"]] + [each["host"] for each in document["hosts"]] in (
        ["evil", "h1"],
    )


MESSAGES = st.dictionaries(
    st.tuples(st.integers(0, 60), st.integers(0, OLD - 1)).filter(any), st.integers(1, 50), max_size=6
)


@given(
    MESSAGES, MESSAGES, st.integers(0, 500), st.floats(0, 1), st.one_of(st.none(), st.floats(1e6, 1e11)), st.booleans()
)
def test_whatever_a_host_carries_the_figures_are_in_order(
    there: dict[tuple[int, int], int],
    back: dict[tuple[int, int], int],
    acknowledgements: int,
    busy: float,
    speed: float | None,
    sampled: bool,
) -> None:
    readings = host(way(there), way(back, acknowledgements), busy=busy * SECONDS, speed=speed, sampled=sampled)
    document, found = estimated(readings)
    smaller = document["hosts"][0]["targets"][0]
    ratio = found["packets"]["ratio"]
    assert 0.999 <= ratio["least"] <= ratio["estimate"] + 1e-9
    assert ratio["estimate"] <= ratio["most"] + 1e-9
    assert found["header_bytes_saved_per_second"]["estimate"] >= -1e-6
    at_most = found["goodput"]["at_most"]
    assert at_most is not None
    assert at_most >= 0
    # More can come of larger frames only.
    assert smaller["packets"]["ratio"]["most"] <= ratio["most"] + 1e-9
    assert smaller["goodput"]["frames_at_most"] <= found["goodput"]["frames_at_most"] + 1e-9
    # What really is left of these messages, their acknowledgements apart.
    came = sum(count * (-(-(full * OLD + end) // NEW) or 1) for (full, end), count in [*there.items(), *back.items()])
    if not acknowledgements and all(end for _, end in [*there, *back]):
        then = found["packets"]["after_per_second"]
        assert then["least"] - 1e-6 <= came / SECONDS <= then["most"] + 1e-6


def stranger(
    name: str, port: int | None, sent: tuple[int, int], received: tuple[int, int] = (0, 96), **more: Any
) -> Json:
    """Packets without TCP, as the agent counts them on an interface with 1500: (packets, bytes of each) by direction."""
    found: Json = {"class": name, "family": 4, "port": port, "longest_bytes": sent[1], "layer": None, "inner_mtu": None}
    for way_, (count, size) in (("sent", sent), ("received", received)):
        octets = count * size
        found[way_] = {"packets": count, "bytes": octets, "large_bytes": octets if size > 750 else 0}
    return found | more


def with_strangers(*kinds: Json, tunnels: Sequence[Json] = ()) -> Json:
    """A host with a little TCP, and packets without it."""
    found = host(way({(10, 0): 5}), way(acknowledgements=50))
    found["tunnels"] = list(tunnels)
    sample = found["sample"]["interfaces"][0]
    sample["foreign"] = list(kinds)
    for kind in kinds:
        for name in ("sent", "received"):
            count, octets = kind[name]["packets"], kind[name]["bytes"]
            sample[name]["others"] += count
            for key, more in (
                ("packets", count),
                ("aggregates", count),
                ("bytes", octets),
                ("aggregate_bytes", octets),
            ):
                sample[name][key] += more
            counted = found["interfaces"][0][name]
            counted["packets"] += count
            counted["bytes"] += octets + 14 * count
    return found


def opaque(packets: int, size: int, answers: int = 0) -> Json:
    """Datagrams of that size, and answers of 96 bytes."""
    return with_strangers(stranger("datagram", 9999, (packets, size), (answers, 96)))


WIREGUARD = {"layer": "wireguard", "inner_mtu": 1440}


def test_a_tunnel_that_encrypts_is_unknown_and_no_bound() -> None:
    """WireGuard: 1500 bytes each, as many answers. Measured, such a tunnel had 6.1 times fewer packets at 9000."""
    tunnel = stranger("wireguard", 51_820, (10_000, 1500), (5000, 96), **WIREGUARD)
    ends = [{"interface": "wg0", "kind": "wireguard", "mtu": 1440}, {"interface": "tun3", "kind": "tun", "mtu": 1400}]
    document = estimate({"a": with_strangers(tunnel, tunnels=ends)}, [4200, 9000])
    conforms(document, schema.json_schema())
    [_, target] = document["hosts"][0]["targets"]
    assert (target["answer"], target["goodput"]["at_most"]) == ("cannot tell", None)
    # wireguard-go took 122 ticks of a CPU for 60 MB at MTU 1500 and 59 at 9000: time that is no softirq's.
    assert target["cpu"]["at_most"] is None
    assert target["packets"]["ratio"]["least"] < 1.1
    assert target["packets"]["ratio"]["most"] > 6
    assert document["total"][1]["answer"] == "cannot tell"
    [note] = [line for line in document["hosts"][0]["notes"] if "no TCP that can be read" in line]
    assert note == (
        "eth0: 100% of the bytes are in packets that fill the MTU and have no TCP that can be read (100% WireGuard on UDP "
        "port 51820, which fits wireguard over IPv4: outer 1500 = inner 1440 + 60, the MTU of wg0, which ends here): what "
        "a larger MTU brings to them is not known; estimate at wg0, whose MTU has to be raised as well, or measure it by "
        "a study"
    )
    said = " ".join(" ".join(terminal.lines(document)).split())
    assert re.search(r"MTU 9000: 1\.0 to \d\.\d times fewer packets \(bound, from a measurement of sampled", said)
    assert "+0.0 %" not in said
    [kind] = document["hosts"][0]["opaque"]
    assert (kind["inner_mtu"], kind["tunnel_interfaces"]) == (1440, ["wg0"])


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (
            stranger("wireguard", 41_641, (900, 1500), **WIREGUARD),
            "Tailscale (WireGuard) on UDP port 41641, which fits",
        ),
        (stranger("quic", 443, (900, 1350)), "QUIC on UDP port 443)"),
        (
            stranger("esp in udp", 4500, (900, 1500), layer="esp-tunnel:nat-t", inner_mtu=1438),
            "ESP in UDP (IPsec) on UDP port 4500, which fits esp-tunnel:nat-t over IPv4: outer 1500 = inner 1438 + 62)",
        ),
        (stranger("datagram", 7000, (900, 1400)), "UDP on port 7000)"),
        (stranger("fragment", None, (900, 1500), family=None), "fragments of datagrams)"),
    ],
)
def test_opaque_traffic_is_named(kind: Json, words: str) -> None:
    """With a tenth of its bytes in packets of DNS, which a larger MTU leaves as they are."""
    small = stranger("datagram", 53, (1000, 120))
    document = estimate({"a": with_strangers(kind, small)}, [4200, 9000])
    assert document["total"][1]["answer"] == "cannot tell"
    [note] = [line for line in document["hosts"][0]["notes"] if "no TCP that can be read" in line]
    assert words in note
    assert "port 53" not in note


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (stranger("quic", 443, (900, 1350)), "is not known; measure it by a study"),
        (stranger("datagram", 4791, (900, 1084)), "framegauge wire --rdma)): what a larger MTU brings to them is not"),
        (stranger("datagram", 1701, (900, 1500)), "estimate at the interface of the tunnel, if it is one, or measure"),
    ],
)
def test_no_interface_of_a_tunnel_is_named_that_is_none(kind: Json, words: str) -> None:
    document = estimate({"a": with_strangers(kind)}, [4200, 9000])
    [note] = [line for line in document["hosts"][0]["notes"] if "no TCP that can be read" in line]
    assert words in note
    assert "the tunnel's own" not in note


@pytest.mark.parametrize(("data", "answer"), [(0, "cannot tell"), (1000, "do not")])
def test_acknowledgements_of_data_that_passes_elsewhere_are_unknown(data: int, answer: str) -> None:
    """Data leaves by one interface, and is acknowledged at another: as many, or one for every second larger segment."""
    sent = way({(0, 500): data} if data else {})
    document, found = estimated(host(sent, way(acknowledgements=1000), full_bytes=0))
    assert found["answer"] == answer
    ratio = found["packets"]["ratio"]
    assert (ratio["least"], ratio["most"]) == pytest.approx((1, 2 * 6 if data == 0 else 1))
    notes = [note for note in document["hosts"][0]["notes"] if "did not pass here" in note]
    assert bool(notes) == (data == 0)
    assert (found["goodput"]["at_most"] is None) == (data == 0)


def test_a_tunnel_among_many_small_packets_is_not_overlooked() -> None:
    """In the mean all packets without TCP are small; those of the tunnel are a third of the bytes."""
    tunnel = stranger("wireguard", 51_820, (200, 1500), **WIREGUARD)
    found = estimate({"a": with_strangers(tunnel, stranger("datagram", 53, (8000, 90)))}, [4200, 9000])
    assert found["total"][1]["answer"] == "cannot tell"
    assert found["hosts"][0]["opaque"][0]["share"] == pytest.approx(0.28, abs=0.02)


def test_small_packets_without_tcp_stay_as_they_are() -> None:
    """Such as those of DNS, and of voice."""
    [_, target] = estimate({"a": opaque(10_000, 220)}, [4200, 9000])["hosts"][0]["targets"]
    assert target["answer"] != "cannot tell"
    assert target["packets"]["ratio"]["most"] < 1.1
