"""The labelled corpus: books that balance, truths that follow from them, and files that nobody has changed."""

from __future__ import annotations

import itertools
import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from helpers.support import bench

checking, manifest, reasons, splits, truths = (
    bench(f"corpus.{name}") for name in ("checking", "manifest", "reasons", "splits", "truths")
)
ledger, segments, stacks, taps, kernel_trace = (
    bench(f"diagnosis.{name}") for name in ("ledger", "segments", "stacks", "taps", "kernel_trace")
)
OWN, OTHER, ROUTER = b"\x0a\x09\x01\x01", b"\x0a\x09\x02\x01", b"\x0a\x09\x03\x01"
FORTH, BACK = (OWN, 4000, OTHER, 5000), (OTHER, 5000, OWN, 4000)
MILLISECOND = 1_000_000


def entry(at: int, begin: int, payload: int, fate: str, left_at: int = 0, **more: Any) -> Any:
    """A packet on the wire; times in milliseconds."""
    line = ledger.Entry(
        at * MILLISECOND, more.pop("side", 0), more.pop("ends", FORTH), more.pop("flags", 16), begin, 0, begin, payload,
        payload + 52, more.pop("again", False), 1, **more,
    )  # fmt: skip
    line.leave(fate, left_at * MILLISECOND, "DropBytes" if fate == ledger.LOST else "")
    return line


def tcp(ends: tuple[bytes, int, bytes, int], seq: int = 1, payload: bytes = b"", ttl: int = 64) -> Any:
    """A packet of IPv4 with right checksums."""
    source, own, destination, other = ends
    part = struct.pack("!HHIIBBHHH", own, other, seq, 1, 0x50, 16, 1000, 0, 0) + payload
    total = struct.pack("!4s4sHH", source, destination, 6, len(part)) + part + b"\0" * (len(part) % 2)
    part = part[:16] + struct.pack("!H", segments.checksum(total)) + part[18:]
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(part), 7, 0x4000, ttl, 6, 0, source, destination)
    return segments.parse(head[:10] + struct.pack("!H", segments.checksum(head)) + head[12:] + part)


def is_right(packet: Any) -> bool:
    """Both checksums."""
    data = packet.data
    total = data[12:20] + struct.pack("!HH", 6, len(data) - 20) + data[20:] + b"\0" * (len(data) % 2)
    return segments.checksum(data[:20]) == 0 and segments.checksum(total) == 0


def test_the_books_of_a_wire_have_equal_sums() -> None:
    lines = [
        entry(0, 0, 100, ledger.DELIVERED, 5),
        entry(1, 100, 100, ledger.LOST, 1),
        entry(2, 200, 100, ledger.UNDER_WAY),
        entry(3, 300, 0, ledger.DELIVERED, 8, origin=ledger.FORGED),
    ]
    books = ledger.balance(lines)
    assert books["came"] == {"taken_packets": 3, "taken_bytes": 456, "forged_packets": 1, "forged_bytes": 52}
    assert sum(books["came"].values()) == sum(books["went"].values())


def test_a_loss_lasts_from_the_drop_until_all_of_it_has_arrived() -> None:
    lines = [
        entry(0, 0, 100, ledger.DELIVERED, 5),
        entry(1, 100, 200, ledger.LOST, 1),
        entry(2, 300, 100, ledger.DELIVERED, 7),
        entry(20, 100, 100, ledger.DELIVERED, 25, again=True),
        entry(30, 200, 100, ledger.DELIVERED, 35, again=True),
        entry(40, 400, 100, ledger.DELIVERED, 45),
    ]
    (connection,) = truths.connections(lines, {})
    (cause,) = truths.causes(connection, {"fast_retransmit"}, True)
    assert (cause["begin_nanoseconds"], cause["end_nanoseconds"]) == (MILLISECOND, 35 * MILLISECOND)
    (cause,) = truths.causes(connection, {"cwnd_collapse"}, True)
    assert cause["end_nanoseconds"] == 45 * MILLISECOND
    way = connection.way(0)
    assert (way.stream_bytes, way.arrived_bytes, way.resent_packets, way.lost_packets) == (500, 500, 2, 1)


def test_what_the_wire_did_elsewhere_is_no_cause_of_a_connection() -> None:
    spared = (OWN, 4001, OTHER, 5000)
    lines = [entry(0, 0, 100, ledger.LOST), entry(1, 0, 100, ledger.DELIVERED, 5, ends=spared)]
    first, second = truths.connections(lines, {})
    assert truths.causes(first, {"fast_retransmit"}, True)
    assert not truths.causes(second, {"fast_retransmit"}, True)
    assert truths.causes(second, {"zero_window"}, False)


def test_a_repeat_is_needless_if_an_earlier_copy_of_it_arrives_if_only_later() -> None:
    lines = [
        entry(0, 0, 100, ledger.DELIVERED, 50),
        entry(1, 100, 100, ledger.LOST, 1),
        entry(10, 0, 100, ledger.DELIVERED, 15, again=True),
        entry(20, 100, 100, ledger.DELIVERED, 25, again=True),
    ]
    again = [kernel_trace.Again(at * MILLISECOND, "10.9.1.1", 4000, "10.9.2.1", 5000, why) for at, why in
             ((9, "probe"), (19, "timeout"))]  # fmt: skip
    told = truths.retransmissions(truths.connections(lines, {}), again)
    assert [(line["why"], line["needless"]) for line in told] == [("probe", True), ("timeout", False)]


def test_translated_ends_are_one_connection_with_two_names() -> None:
    outer = (ROUTER, 20_000)
    back = (OTHER, 5000, *outer)
    lines = [entry(0, 0, 0, ledger.DELIVERED, 5, flags=2), entry(6, 0, 0, ledger.DELIVERED, 9, side=1, ends=back)]
    (connection,) = truths.connections(lines, {(OWN, 4000): outer})
    assert connection.ends("sender") == ["10.9.1.1:4000", "10.9.2.1:5000"]
    assert connection.ends("receiver") == ["10.9.3.1:20000", "10.9.2.1:5000"]
    assert connection.opened_by == "sender"


def test_the_state_of_a_socket_says_why_it_sends_again() -> None:
    ends = "sport=4000 dport=5000 saddr=10.9.1.1 daddr=10.9.2.1 saddrv6=::ffff:10.9.1.1 daddrv6=::ffff:10.9.2.1"
    again = f"tcp_retransmit_skb: skbaddr=1 skaddr=2 family=AF_INET {ends}"
    lines = [
        "# tracer: nop",
        f"  python-1 [000] ..s1. 10.000001: {again} state=TCP_SYN_SENT err=0",
        f"  python-1 [000] ..s1. 10.100000: {again} state=TCP_ESTABLISHED err=0",
        f"  python-1 [000] ..s1. 10.200000: tcp_cong_state_set: family=AF_INET {ends} cong_state=3",
        f"  python-1 [001] ..s1. 10.200001: {again} state=TCP_ESTABLISHED err=0",
        f"  python-1 [001] ..s1. 10.200002: {again} state=TCP_ESTABLISHED err=-105",
        f"  python-1 [000] ..s1. 10.300000: tcp_cong_state_set: family=AF_INET {ends} cong_state=4",
        f"  python-1 [000] ..s1. 10.300001: {again} state=TCP_CLOSE_WAIT err=0",
    ]
    told = kernel_trace.classed(lines, 5)
    assert [event.why for event in told] == ["syn", "probe", "fast", "timeout"]
    assert told[0] == kernel_trace.Again(10_000_001_005, "10.9.1.1", 4000, "10.9.2.1", 5000, "syn")


@pytest.mark.parametrize("kind", ["global", "zero", "random"])
def test_a_stack_numbers_all_packets_of_a_host_and_leaves_them_whole(kind: str) -> None:
    numbering = stacks.Numbering(stacks.Stack(kind, 2), random.Random(1))
    numbers = []
    for port in (4000, 4001) * 20:
        packet = numbering.number(tcp((OWN, port, OTHER, 5000), payload=b"odd"))
        assert is_right(packet)
        numbers.append(struct.unpack_from("!H", packet.data, 4)[0])
    steps = [(after - before) % 65536 for before, after in itertools.pairwise(numbers)]
    match kind:
        case "global":
            assert set(steps) == {1, 2, 3}
        case "zero":
            assert set(numbers) == {0}
        case _:
            assert len(set(numbers)) > 30


def test_a_router_translates_both_ways_and_keeps_checksums_right() -> None:
    router = stacks.Nat(ROUTER)
    first, second = (router.outward(tcp((OWN, port, OTHER, 5000), payload=b"data", ttl=128)) for port in (4000, 4001))
    assert first.ends == (ROUTER, 20_000, OTHER, 5000)
    assert second.ends[1] != first.ends[1]
    assert is_right(first)
    assert first.data[8] == 127
    answer = router.inward(tcp((OTHER, 5000, ROUTER, 20_000)))
    assert answer.ends == BACK
    assert is_right(answer)
    assert router.translated()[OWN, 4001] == second.ends[:2]


def test_several_taps_in_one_file_show_a_packet_at_each() -> None:
    data = tcp(FORTH).data
    packets = [(time, tap, data, len(data)) for time, tap in ((1, "sender"), (2, "switch"), (3, "receiver"))]
    merged = taps.spoilt(packets, [taps.Merged()], random.Random(1))
    assert {tap: len(some) for tap, some in merged.items()} == {"sender": 2, "switch": 3, "receiver": 2}
    assert [time for time, *_ in merged["switch"]] == [1, 2, 3]


def test_a_display_filter_leaves_what_carries_data_or_opens_and_ends() -> None:
    ends = [tcp(FORTH), tcp(FORTH, payload=b"data"), tcp(BACK)]
    packets = [(number, "sender", packet.data, packet.size) for number, packet in enumerate(ends)]
    kept = taps.spoilt(packets, [taps.Filtered("data")], random.Random(1))
    assert [time for time, *_ in kept["sender"]] == [1]


def test_splits_follow_from_the_number_and_nothing_else() -> None:
    numbers = range(splits.FIRST, splits.FIRST + 100)
    shares = {name: sum(splits.split(number) == name for number in numbers) for name in splits.SPLITS}
    assert shares == {"train": 60, "validation": 20, "test": 20}


def test_a_manifest_tells_what_was_changed_added_and_removed(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "one-loss-10001"
    run.mkdir(parents=True)
    (run / "sender.pcapng.gz").write_bytes(b"packets")
    (tmp_path / "runs" / ".making-one-loss-10002").mkdir()
    (tmp_path / "runs" / ".making-one-loss-10002" / "sender.pcapng.gz").write_bytes(b"half")
    manifest.write(tmp_path)
    assert not list(manifest.problems(tmp_path))
    assert not any(".making" in name for name in json.loads((tmp_path / "manifest.json").read_bytes())["files"])
    (run / "sender.pcapng.gz").write_bytes(b"others")
    (tmp_path / "splits.json").unlink()
    (tmp_path / "more").write_text("")
    problems = " ".join(manifest.problems(tmp_path))
    assert all(
        part in problems for part in ("sender.pcapng.gz: found SHA-256", "splits.json: found no", "more: found a")
    )


def test_books_that_do_not_balance_and_sockets_that_count_otherwise_are_named() -> None:
    way = {"data_packets": 3, "arrived_bytes": 300, "stream_bytes": 300}
    ends = {tap: ["10.9.1.1:4000", "10.9.2.1:5000"] for tap in ("sender", "switch", "receiver")}
    truth = {
        "number": 10_001, "split": "test",
        "conservation": {"came": {"taken_packets": 3}, "went": {"lost_packets": 1, "delivered_packets": 1}},
        "connections": [{"connection": 1, "ends": ends, "sender_to_receiver": way, "receiver_to_sender": way}],
    }  # fmt: skip
    assert [line.split(",")[0] for line in checking.of_books(truth)] == [
        "found the split test", "found 3 packets that came and 2 that went",
    ]  # fmt: skip
    account = {"tcpi_data_segs_out": 4, "tcpi_bytes_acked": 303}
    sockets = [{"own": ["10.9.1.1", 4000], "other": ["10.9.2.1", 5000], "kernel": account}]
    told = list(checking.of_kernels(truth, {"sender": {"sockets": sockets}, "receiver": {"sockets": []}}))
    assert len(told) == 2
    assert "expected 4 or more" in told[0]
    assert "expected 301 or more" in told[1]


def repeat(aggregate: int, why: str | None, needless: bool = False) -> dict[str, Any]:
    return {"connection": 1, "from": "sender", "aggregate": aggregate, "why": why, "needless": needless}


def test_reasons_are_compared_by_segment_of_the_tap_and_what_is_unclear_is_no_claim() -> None:
    ends = {tap: ["10.9.1.1:4000", "10.9.2.1:5000"] for tap in ("sender", "switch", "receiver")}
    truth = {
        "run": "one-loss-10001", "scene": "one loss", "connections": [{"connection": 1, "ends": ends}],
        # Two packets of one aggregate are one segment there.
        "retransmissions": [repeat(7, "fast"), repeat(7, "fast"), repeat(9, "timeout"), repeat(11, "probe", True)],
    }  # fmt: skip

    def tap(*kinds: str, **resends: int) -> dict[str, Any]:
        both = [{"fast": 0, "probe": 0, "timeout": 0, "unclear": 0} | more for more in ({}, resends)]
        connection = {"client": "10.9.2.1:5000", "server": "10.9.1.1:4000", "resends": both}
        return {"connections": [connection], "findings": [{"kind": kind} for kind in kinds]}

    same = reasons.compare([(truth, tap("spurious_retransmit", fast=1, timeout=1, probe=1))])
    assert (same.share, same.differences, same.needless[True, True]) == (1.0, [], 1)
    unclear = reasons.compare([(truth, tap(fast=1, timeout=1, unclear=1))])
    assert (unclear.share, unclear.differences, unclear.unclear) == (1.0, [], 1)
    assert unclear.needless_runs[True, False] == ["one-loss-10001"]
    wrong = reasons.compare([(truth, tap(fast=2, timeout=1))])
    assert wrong.share == pytest.approx(2 / 3)
    assert [difference.wrong for difference in wrong.differences] == [1]
    assert any("kernel fast 1, probe 1, timeout 1, told fast 2, timeout 1" in line for line in reasons.told(wrong))
    none = reasons.compare([(truth, {"connections": [], "findings": []})])
    assert none.differences[0].wrong == 3
