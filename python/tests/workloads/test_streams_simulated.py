"""Streams and requests as a simulation does them: flows by plan, and what transfers come to, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.outcomes import hosts, outcome

from framegauge.errors import ProgramFailure
from framegauge.workloads.mixed import Mixed
from framegauge.workloads.rr import RequestResponse
from framegauge.workloads.stream import Stream
from framegauge.workloads.work import CLIENT, SERVER, Known, Step

HOSTS = hosts(3)


def test_a_stream_of_a_size_is_a_greeting_the_data_and_a_confirmation() -> None:
    stream = Stream(size_bytes=1000, pattern="many-to-one", repeat_seconds=0.1)
    assert isinstance(stream, Known)
    work = stream.work(HOSTS)
    assert [(flow.client, flow.server) for flow in work.flows] == [("h1", "h3"), ("h2", "h3")]
    assert work.flows[0].steps == (Step(CLIENT, 1048, 48, closes=True), Step(SERVER, 8))
    assert work.flows[0].as_json() == {
        "client": "h1",
        "server": "h3",
        "steps": [
            {"from": "client", "bytes": 1048, "first_write_bytes": 48, "closes": True},
            {"from": "server", "bytes": 8},
        ],
        "repeat": {"new_until_seconds": 0.1},
    }


def test_parallel_flows_of_a_client_begin_their_rounds_together() -> None:
    work = Stream(size_bytes=1000, flows=2, pattern="many-to-one", repeat_seconds=0.1).work(HOSTS)
    assert [(flow.client, flow.barrier) for flow in work.flows] == [("h1", 0), ("h1", 0), ("h2", 2), ("h2", 2)]
    assert work.flows[3].as_json()["barrier"] == 2
    assert [flow.barrier for flow in Stream(duration_seconds=1.0, flows=2).work(HOSTS[:2]).flows] == [None, None]


def test_its_rounds_become_transfers() -> None:
    stream = Stream(size_bytes=1000, repeat_seconds=0.1)
    rows = [(0, 0, 0, 0.0, 0.001, 0.010, 1048, 1), (0, 0, 1, 0.010, 0.010, 0.011, 8, 1),
            (0, 1, 0, 0.011, 0.012, 0.030, 1048, 1), (0, 1, 1, 0.030, 0.030, 0.031, 8, 1, 2, 1)]  # fmt: skip
    record, tables = stream.simulated(HOSTS[:2], outcome(rows, 1, 0.04))
    assert tables["transfers"].column("start_seconds").to_pylist() == [0.0, 0.011]
    assert tables["transfers"].column("end_seconds").to_pylist() == [0.011, 0.031]
    assert tables["transfers"].column("bytes").to_pylist() == [1000, 1000]
    assert tables["transfers"].column("retransmits").to_pylist() == [0, 2]
    assert (record["senders"], record["receivers"], record["bytes"]) == (["h1"], ["h2"], 2000)
    assert record["retransmits"] == 2
    assert record["mean_segment_payload_bytes"] == pytest.approx(2112 / 10)
    found = {**record, **stream.evidence(dict(record), tables)}
    metrics = stream.metrics(found, tables)
    assert metrics["completion_time"] == pytest.approx(0.0155)
    assert metrics["goodput"] == pytest.approx(8 * 2000 / 0.031)


def test_several_senders_to_one_are_done_when_the_slowest_is() -> None:
    stream = Stream(size_bytes=1000, pattern="many-to-one", repeat_seconds=0.0)
    rows = [(0, 0, 0, 0.0, 0.001, 0.010, 1048, 1), (0, 0, 1, 0.010, 0.010, 0.011, 8, 1),
            (1, 0, 0, 0.0, 0.001, 0.210, 1048, 1), (1, 0, 1, 0.210, 0.210, 0.211, 8, 1)]  # fmt: skip
    record, tables = stream.simulated(HOSTS, outcome(rows, 2, 0.3))
    metrics = stream.metrics({**record, **stream.evidence(dict(record), tables)}, tables)
    assert metrics["completion_time"] == pytest.approx(0.211)


def test_a_transfer_without_end_is_no_result() -> None:
    rows = [(0, 0, 0, 0.0, 0.001, 0.04, 500, 0)]
    with pytest.raises(ProgramFailure, match="h1 to h2: found a transfer without end, expected 1000 bytes"):
        Stream(size_bytes=1000).simulated(HOSTS[:2], outcome(rows, 1, 0.04))


def test_a_duration_counts_what_had_come_at_its_end() -> None:
    stream = Stream(duration_seconds=2.0, flows=2)
    work = stream.work(HOSTS[:2])
    assert (len(work.flows), work.end_seconds, work.flows[0].steps) == (2, 2.0, (Step(CLIENT, None, 48),))
    # The second flow was never connected.
    done = outcome([(0, 0, 0, 0.0, 0.001, 2.0, 5048, 0)], 2, 2.0, [(1.0, 0, 3048, 0, 10, 4.0, 0.002)])
    record, tables = stream.simulated(HOSTS[:2], done)
    assert tables["transfers"].column("counted_bytes").to_pylist() == [5000, 0]
    assert tables["samples"].column("bytes_acked").to_pylist() == [3000]
    assert tables["samples"].column("mss_bytes").to_pylist() == [1448]
    assert record["srtt_median_seconds"] == pytest.approx(0.002)
    metrics = stream.metrics({**record, **stream.evidence(dict(record), tables)}, tables)
    assert metrics["smallest_goodput"] == 0.0
    assert metrics["fairness"] == pytest.approx(0.5)


def test_in_reverse_the_server_sends_after_the_greeting() -> None:
    stream = Stream(duration_seconds=1.0, bidir=True)
    forward, back = stream.work(HOSTS[:2]).flows
    assert forward.steps == (Step(CLIENT, None, 48),)
    assert back.steps == (Step(CLIENT, 48), Step(SERVER, None))
    rows = [
        (0, 0, 0, 0.0, 0.001, 1.0, 1048, 0),
        (1, 0, 0, 0.0, 0.001, 0.002, 48, 1),
        (1, 0, 1, 0.002, 0.002, 1.0, 700, 0),
    ]
    record, _ = stream.simulated(HOSTS[:2], outcome(rows, 2, 1.0))
    assert record["received_bytes"] == {"h2": 1000, "h1": 700}
    assert record["senders"] == ["h1", "h2"]


def test_an_offered_rate_is_that_of_each_flow() -> None:
    work = Stream(duration_seconds=1.0, flows=4, offered_bits_per_second=8_000_000).work(HOSTS[:2])
    assert [flow.pacing_bits_per_second for flow in work.flows] == [2_000_000] * 4


def test_requests_are_due_when_the_connection_is_open_and_then_at_once() -> None:
    rr = RequestResponse(duration_seconds=1.0, connections=2)
    assert isinstance(rr, Known)
    work = rr.work(HOSTS[:2])
    assert work.nodelay
    assert [flow.until_seconds for flow in work.flows] == [1.0, 1.0]
    rows = [(0, 0, 0, 0.0, 0.1, 0.2, 100, 1), (0, 0, 1, 0.2, 0.2, 0.4, 1000, 1), (0, 1, 0, 0.4, 0.4, 0.5, 100, 1),
            (0, 1, 1, 0.5, 0.5, 0.6, 1000, 1), (1, 0, 0, 0.0, 0.1, 0.9, 100, 0)]  # fmt: skip
    record, tables = rr.simulated(HOSTS[:2], outcome(rows, 2, 1.2))
    table = tables["transactions"]
    assert table.column("due_seconds").to_pylist() == [0.1, 0.4]
    assert table.column("end_seconds").to_pylist() == [0.4, 0.6]
    assert record["nodelay"] == {"h1": [True], "h2": [True]}
    assert rr.metrics(dict(record), tables)["transactions"] == pytest.approx(2.0)


def test_requests_at_a_rate_are_due_by_the_schedule_of_their_client() -> None:
    rr = RequestResponse(100, 1000, 150, 2, 50.0, "poisson", pattern="many-to-one", seed=7)
    work = rr.work(HOSTS)
    assert [(flow.client, flow.requests, flow.until_seconds) for flow in work.flows] == [
        ("h1", 0, None), ("h1", 0, None), ("h2", 1, None), ("h2", 1, None)
    ]  # fmt: skip
    assert work.flows[0].steps == (Step(CLIENT, 100), Step(SERVER, 1000, 150))
    assert [requests.as_json() for requests in work.requests] == [
        {"rate_per_second": 50.0, "arrivals": "poisson", "seed": seed, "duration_seconds": 1.0} for seed in (7, 8)
    ]
    # Due at 0.02, sent at 0.05 of the client's time, which began at 0.1.
    rows = [(0, 0, 0, 0.12, 0.15, 0.2, 100, 1), (0, 0, 1, 0.2, 0.2, 0.4, 1000, 1), (1, 0, 0, 0.5, 0.5, 0.9, 100, 0)]
    one = replace(rr, pattern="one-to-one")
    told = {"started_seconds": 0.1, "late": 1, "unfinished": 1}
    record, tables = one.simulated(HOSTS[:2], replace(outcome(rows, 2, 1.2), requests=[told]))
    assert tables["transactions"].to_pylist() == [
        {
            "connection": 0,
            "due_seconds": pytest.approx(0.02),
            "sent_seconds": pytest.approx(0.05),
            "end_seconds": pytest.approx(0.3),
        }
    ]
    answer = record["clients"][0]["result"]
    assert (answer["started_seconds"], answer["late_requests"], answer["unfinished_requests"]) == (0.1, 1, 1)
    unopened = replace(outcome([], 2, 1.2), requests=[told | {"started_seconds": None}])
    with pytest.raises(ProgramFailure, match=r"found connections that were not open after 1\.2 s, expected 2"):
        one.simulated(HOSTS[:2], unopened)


def test_mixed_is_requests_beside_bulk_that_lasts_longer() -> None:
    mixed = Mixed(duration_seconds=1.0)
    assert isinstance(mixed, Known)
    work = mixed.work(HOSTS)
    assert [(flow.client, flow.server, len(flow.steps)) for flow in work.flows] == [("h1", "h3", 2), ("h2", "h3", 1)]
    assert work.end_seconds == pytest.approx(1.7)
    rows = [(0, 0, 0, 0.0, 0.001, 0.6, 100, 1), (0, 0, 1, 0.6, 0.6, 0.9, 1000, 1), (0, 1, 0, 0.9, 0.9, 1.0, 100, 1),
            (0, 1, 1, 1.0, 1.0, 1.1, 1000, 1), (1, 0, 0, 0.0, 0.001, 1.7, 1_000_048, 0)]  # fmt: skip
    record, tables = mixed.simulated(HOSTS, outcome(rows, 2, 1.7))
    metrics = mixed.metrics(dict(record), tables)
    assert metrics["goodput"] == pytest.approx(8e6 / 1.7)
    assert record["window_seconds"] == pytest.approx([0.5, 1.5])
