"""Proof of the largest aggregates, of path MTUs that hosts remember, and of probing: record in, failures out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from framegauge.evidence import proof
from framegauge.evidence.aggregates import aggregate_failures, aggregate_readings, unproved_aggregates
from framegauge.evidence.remembered import first_payload, remembered_failures, unproved_probing
from framegauge.study import file as study_file
from framegauge.testbeds.base import Conditions

BIG = Conditions(
    testbed="kernel", mtu={"h1": 1500, "h2": 1500}, rtt_seconds=0.0, tso=True, lro=True, gro=True, checksum=True,
    congestion_control="cubic", bits_per_second=None, buffer_bytes=65536, port_mtu=9216, moderation_seconds=0.0,
    aggregate_bytes=36864, shaper_factor=0.999, shaper_burst_bytes=70000, family=4, gso_bytes=180_000,
)  # fmt: skip
USUAL = replace(BIG, gso_bytes=65_536)


def reading(size=180_000, ipv4=180_000, exceptions=(), **sysctls):
    sizes = {"gso_bytes": size, "gso_ipv4_bytes": ipv4, "gro_bytes": 65536, "gro_ipv4_bytes": 65536}
    named = {f"net.ipv4.{name}": value for name, value in sysctls.items()}
    return {"aggregates": sizes, "nics": [{}], "sysctls": named, "path_mtu_exceptions": list(exceptions)}


def record(count=5, mean=40_000, transfer=80_000, before=None, sizes=None, counted=True, **changed):
    largest = {"count": count, "largest_bytes": 165_000 if count else None}
    hosts = {name: before or reading() for name in ("h1", "h2")}
    counters = {
        when: {name: {"nstat": {"IpInReceives": packets, "IpExtInOctets": packets * mean}} for name in hosts}
        for when, packets in (("counters_before", 10), ("counters_after", 110))
    }
    return {
        "rack": {"hosts": [{"name": "h1", "address": "10.77.0.1"}, {"name": "h2", "address": "10.77.0.2"}]},
        "before": hosts,
        "after": hosts,
        "wire": {name: {"syns": [], "lost": 0, **({"aggregates": largest} if counted else {})} for name in hosts},
        "workload": {"receivers": ["h2"], "transfer_bytes": transfer, "bytes": 10**8, "sizes": sizes or {}},
        **counters,
        **changed,
    }


def failures(conditions, found):
    return list(aggregate_failures(conditions, found))


def test_sizes_that_read_back_and_aggregates_that_were_seen_are_proof():
    assert failures(BIG, record()) == []
    assert unproved_aggregates(BIG, record()) == []
    assert failures(USUAL, record(0, before=reading(65_536, 65_536))) == []
    assert aggregate_readings(record()) == {
        "big_aggregates": 5, "largest_aggregate_bytes": 165_000, "mean_packet_bytes": 40_000,
    }  # fmt: skip
    assert aggregate_readings(record(counted=False)) == {}


@pytest.mark.parametrize(
    ("conditions", "found", "line"),
    [
        (BIG, record(before=reading(180_000, 65_536)), "gso_size of h1 before the run for IPv4: requested 180000, found 65536"),
        (BIG, record(before=reading(65_536, 180_000)), "gso_size of h1 before the run for IPv6: requested 180000, found 65536"),
        (BIG, record(0), "aggregates above 64 KiB at h2: expected some with a gso_size of 180000, found none (mean packet of 40000"),
        (USUAL, record(7, before=reading(65_536, 65_536)),
         "aggregates above 64 KiB at h1: expected none, found 7 (the first up to 165000 bytes)"),
    ],
)  # fmt: skip
def test_what_contradicts_the_sizes_is_a_line(conditions, found, line):
    assert failures(conditions, found)[0].startswith(line)


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        # Nothing in one piece is larger than 64 KiB: no aggregate can be.
        ({"transfer": 60_000}, "aggregates above 64 KiB: none was seen, and the program moved nothing in one piece"),
        ({"sizes": {"message_bytes": 16_384}}, "aggregates above 64 KiB: none was seen, and the program moved"),
        ({"counted": False}, "aggregates above 64 KiB: not counted (meters.wire is off)"),
    ],
)
def test_what_could_not_be_seen_is_named_and_no_failure(changed, line):
    found = record(0, **changed)
    assert failures(BIG, found) == []
    (said,) = unproved_aggregates(BIG, found)
    assert said.startswith(line)


def test_a_mean_above_64_kib_is_proof_without_a_count():
    assert unproved_aggregates(BIG, record(counted=False, mean=120_000)) == []


OWN = replace(BIG, testbed="hosts", gro_bytes=None)


def on_hosts(sent, count=0, **changed):
    """A record of hosts of one's own, of which h1 sends."""
    found = record(count, **changed)
    found["workload"]["senders"] = ["h1"]
    for host, wire in found["wire"].items():
        many = sent if host == "h1" else 0
        wire["aggregates"] = {**wire["aggregates"], "sent": {"count": many, "largest_bytes": 170_000 if many else None}}
    return found


def test_on_hosts_of_ones_own_the_sender_proves_and_the_receiver_may_merge_less():
    found = on_hosts(9)
    assert failures(OWN, found) == []
    assert unproved_aggregates(OWN, found) == []
    assert aggregate_readings(found)["big_aggregates_sent"] == 9
    line = "aggregates above 64 KiB from h1: expected some with a gso_size of 180000, found none (mean packet of 40000"
    assert failures(OWN, on_hosts(0))[0].startswith(line)
    merging = replace(OWN, gro_bytes=180_000)
    (said,) = unproved_aggregates(merging, on_hosts(9))
    assert said == "aggregates above 64 KiB: sent, and none was merged by a receiver, with a gro_size of 180000"
    assert unproved_aggregates(merging, on_hosts(9, 3)) == []


def test_a_size_that_is_left_as_it_is_says_nothing_of_what_arrives():
    """A host may have had a gro_size above the usual one, and must not send more than was asked for."""
    small = replace(OWN, gso_bytes=65_536)
    before = reading(65_536, 65_536)
    assert failures(small, on_hosts(0, 4, before=before)) == []
    line = "aggregates above 64 KiB from h1: expected none, found 2 (the first up to 170000 bytes)"
    assert failures(small, on_hosts(2, before=before)) == [line]


def test_hosts_with_an_older_kernel_have_one_size_for_both_families():
    old = reading(65_536, None)
    assert failures(USUAL, record(0, before=old)) == []


def test_only_a_path_to_the_studys_own_hosts_counts_on_hosts_of_ones_own():
    other = {"destination": "192.0.2.9", "mtu": 1400}
    near = {"destination": "10.77.0.2", "mtu": 1492}
    found = record(before=reading(exceptions=[other, near]))
    own = replace(BIG, testbed="hosts")
    line = "path MTU that h1 remembered to h2 (10.77.0.2) before the run: expected none, found 1492 (ip route "
    line += "flush cache forgets it)"
    assert next(remembered_failures(own, found)) == line
    assert len(list(remembered_failures(own, found))) == 2  # on both hosts
    assert len(list(remembered_failures(BIG, found))) == 4


def test_hosts_that_probe_from_the_start_are_named():
    assert unproved_probing(record(before=reading(tcp_mtu_probing="1"))) == []
    (line,) = unproved_probing(record(before=reading(tcp_mtu_probing="2", tcp_base_mss="1200")))
    assert line == (
        "the MTU of short flows: h1, h2 probe path MTUs from the start (net.ipv4.tcp_mtu_probing 2), so connections "
        "begin at an MSS of 1200 (net.ipv4.tcp_base_mss) at any MTU"
    )
    (usual,) = unproved_probing(record(before=reading(tcp_mtu_probing="2")))
    assert "MSS of 1024 " in usual


def test_a_study_that_probes_says_so_with_every_run_of_that_level(execute):
    text = """
testbed: {kind: fake}
factors: {mtu: [1500, 9000], mtu_probing: [1, 2]}
workloads: [{stream: {size: 10 MB}}]
blocks: 2
margins: {goodput: 1 %}
"""
    _, runs = execute(study_file.parse(text, "x"))
    for run in runs:
        said = [line for line in run.degraded if line.startswith("not proved: the MTU of short flows: h1, h2 probe")]
        assert len(said) == (run.conditions["mtu_probing"] == 2), run.degraded
        assert run.excluded == []


def test_a_host_that_probes_from_the_start_begins_with_small_segments():
    """1024 bytes less the timestamps (RFC 7323), as Linux has it, or what its setting says."""
    assert first_payload(record(before=reading(tcp_mtu_probing="1")), ["h1"]) is None
    assert first_payload(record(before=reading(tcp_mtu_probing="2")), ["h1"]) == 1012
    assert first_payload(record(before=reading(tcp_mtu_probing="2", tcp_base_mss="1200")), ["h2"]) == 1188
    assert first_payload(record(before=reading(tcp_mtu_probing="2")), ["h9"]) is None


@pytest.mark.parametrize(("sysctls", "is_proof"), [({"tcp_mtu_probing": "2"}, True), ({"tcp_mtu_probing": "1"}, False)])
def test_its_sockets_may_have_sent_nothing_larger(sysctls, is_proof):
    """Where a run ends before a probe is answered, as beside other programs."""
    work = {"mean_segment_payload_bytes": 1024.0, "senders": ["h1"], "receivers": ["h2"], "transfer_bytes": 10**7}
    found = list(proof._own_segments(BIG, record(before=reading(**sysctls), workload=work)))
    assert found == ([] if is_proof else ["mean segment payload: expected 1314 to 1460 bytes, found 1024.0"])


@pytest.mark.parametrize(("connections", "is_proof"), [(7, True), (0, False)])
def test_each_connection_has_a_few_segments_that_are_not_full(connections, is_proof):
    """As seen of Linux 6.18 on veth at MTU 9000: 880 segments for 7 transfers of 1 MB."""
    counts = {"TcpOutSegs": 880, "TcpActiveOpens": connections, "TcpPassiveOpens": 0}
    work = {"bytes": 7 * 10**6, "senders": ["h1"], "receivers": ["h2"], "transfer_bytes": 10**6}
    found = record(
        workload=work, measure={"fabric": None}, counters_before={"h1": {"nstat": {}}},
        counters_after={"h1": {"nstat": counts}},
    )  # fmt: skip
    conditions = replace(BIG, mtu={"h1": 9000, "h2": 9000})
    lines = list(proof._segments(conditions, found))
    assert lines == ([] if is_proof else ["mean segment payload: expected 8064 to 8960 bytes, found 7954.5"])
