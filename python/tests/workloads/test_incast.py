"""incast: its flows by plan, its rounds by hand, what hosts are asked, and the two goodputs that are known: near the
ceiling, and collapsed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest
from helpers.outcomes import Done, hosts, outcome, run

from framegauge.errors import AgentError, ProgramFailure
from framegauge.study import file as study_file
from framegauge.testbeds.base import Host
from framegauge.testbeds.fake.testbed import Answered
from framegauge.workloads.base import Runnable
from framegauge.workloads.incast import Incast
from framegauge.workloads.work import CLIENT, SERVER, Known, Step

CEILING = 1e9 * 1448 / 1538


def test_every_server_answers_the_last_host_with_its_stripe() -> None:
    incast = Incast(servers=3, block_bytes=1000, rounds=2)
    assert isinstance(incast, Known)
    assert isinstance(incast, Runnable)
    work = incast.work(hosts(5))
    assert [(flow.client, flow.server) for flow in work.flows] == [("h5", "h1"), ("h5", "h2"), ("h5", "h3")]
    assert [flow.steps for flow in work.flows] == [
        (Step(CLIENT, 100), Step(SERVER, stripe)) for stripe in (334, 333, 333)
    ]
    assert {(flow.rounds, flow.barrier) for flow in work.flows} == {(2, 0)}
    assert work.nodelay
    assert not Incast(servers=3, block_bytes=1000, nagle=True).work(hosts(5)).nodelay
    assert Incast(servers=3, unit_bytes=1000).stripes == [1000] * 3


def test_a_round_is_from_its_requests_to_its_last_answer() -> None:
    incast = Incast(servers=2, unit_bytes=1000, rounds=2)
    rows = [
        (0, 0, 0, 0.0, 0.1, 0.2, 100, 1), (0, 0, 1, 0.2, 0.2, 0.5, 1000, 1),
        (1, 0, 0, 0.0, 0.1, 0.2, 100, 1), (1, 0, 1, 0.2, 0.2, 0.7, 1000, 1),
        (0, 1, 0, 0.7, 0.7, 0.8, 100, 1), (0, 1, 1, 0.8, 0.8, 1.1, 1000, 1),
        (1, 1, 0, 0.7, 0.7, 0.8, 100, 1), (1, 1, 1, 0.8, 0.8, 0.9, 1000, 1),
    ]  # fmt: skip
    record, tables = incast.simulated(hosts(3), outcome(rows[::-1], 2, 1.1))
    assert tables["rounds"].column("start_seconds").to_pylist() == pytest.approx([0.1, 0.7])
    assert tables["rounds"].column("end_seconds").to_pylist() == pytest.approx([0.7, 1.1])
    assert tables["rounds"].column("bytes").to_pylist() == [2000, 2000]
    assert (record["senders"], record["received_bytes"]) == (["h1", "h2"], {"h3": 4000})
    assert record["transfer_bytes"] == 1000
    metrics = incast.metrics(dict(record), tables)
    assert metrics["goodput"] == pytest.approx(8 * 4000 / 1.0)
    assert metrics["completion_time"] == pytest.approx(0.5)
    # h1 needed 0.4 s twice, h2 0.6 s and 0.2 s.
    assert metrics["fairness"] == pytest.approx(1.0)
    assert metrics["smallest_goodput"] == pytest.approx(8 * 2000 / 0.8)


def test_a_round_without_end_is_no_result() -> None:
    rows = [(0, 0, 0, 0.0, 0.1, 0.2, 100, 1), (0, 0, 1, 0.2, 0.2, 9.0, 500, 0)]
    with pytest.raises(ProgramFailure, match="found 1 messages that came whole, expected 2 within 9 s of simulated"):
        Incast(servers=1, unit_bytes=1000, rounds=1).simulated(hosts(2), outcome(rows, 1, 9.0))


class Answering:
    """An agent that answers by a table, and remembers what it was asked."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.asked = answers, dict[str, Any]()

    def begin(self, method: str, params: Any = None, on_progress: Any = None) -> Any:
        self.asked[method] = params
        found = self.answers[method.replace(".", "_")]
        return Answered({}, found) if isinstance(found, AgentError) else Answered(found, None)

    def request(self, method: str, params: Any = None, **_rest: Any) -> Any:
        return self.begin(method, params).result()


def closed(requests: int, size: int, **rest: Any) -> dict[str, Any]:
    """What `rr.close` answers."""
    return {
        "requests": requests, "bytes": size, "connections": 1, "refused": 0, "congestion_control": ["reno"], "nodelay": [True],
        "retransmits": 2, "timeouts": 1, "mean_segment_payload_bytes": 1000.0, **rest,
    }  # fmt: skip


RAN = {
    "bytes": 3006, "active_seconds": 0.5, "started_seconds": 7.0, "handshake_seconds": 0.001, "congestion_control": ["reno"],
    "nodelay": [True], "retransmits": 0, "timeouts": 0, "rounds": 1, "responses": 2,
}  # fmt: skip


def answering(*closes: dict[str, Any], ran: Any = RAN) -> list[Host]:
    """Servers, a host that takes no part, and the client."""
    agents = [Answering(rr_serve={"port": 1000 + place}, rr_close=each) for place, each in enumerate(closes)]
    found = [*agents, Answering(), Answering(incast_run=ran)]
    return [Host(f"h{number}", f"10.0.0.{number}", agent) for number, agent in enumerate(found, 1)]  # type: ignore[arg-type]


def test_the_last_host_asks_the_first_and_every_byte_is_accounted_for() -> None:
    incast = Incast(servers=2, block_bytes=1002, rounds=3)
    told = answering(closed(3, 3 * 601), closed(3, 3 * 601, mean_segment_payload_bytes=500.0))
    done = incast.run(told, "ab" * 16)
    asked = told[-1].agent.asked["incast.run"]  # type: ignore[attr-defined]
    assert asked["servers"] == [
        {"address": "10.0.0.1", "port": 1000, "response_bytes": 501}, {"address": "10.0.0.2", "port": 1001, "response_bytes": 501},
    ]  # fmt: skip
    assert (asked["rounds"], asked["request_bytes"], asked["nodelay"]) == (3, 100, True)
    record = done.record
    assert (record["senders"], record["received_bytes"]) == (["h1", "h2"], {"h4": 3006})
    assert set(record["nodelay"]) == set(record["congestion_control"]) == {"h1", "h2", "h4"}
    assert (record["retransmits"], record["timeouts"], record["transfer_bytes"]) == (4, 2, 501)
    assert record["mean_segment_payload_bytes"] == 750
    assert [(spool.name, spool.host, spool.number) for spool in done.spools] == [
        ("rounds", "h4", 1),
        ("responses", "h4", 2),
    ]
    # A kernel before 6.7 does not count timeouts.
    told = answering(closed(3, 3 * 601), closed(3, 3 * 601, timeouts=None))
    assert incast.run(told, "ab" * 16).record["timeouts"] is None


def test_a_server_that_served_otherwise_and_one_that_is_silent_fail_the_run() -> None:
    incast = Incast(servers=2, block_bytes=1002, rounds=3)
    with pytest.raises(ProgramFailure, match="found 2 requests and 1202 bytes at h2, expected 3 and 1803"):
        incast.run(answering(closed(3, 3 * 601), closed(2, 2 * 601)), "ab" * 16)
    with pytest.raises(ProgramFailure, match="found 3005 bytes at h4, expected 3006"):
        incast.run(answering(closed(3, 3 * 601), closed(3, 3 * 601), ran={**RAN, "bytes": 3005}), "ab" * 16)
    silent = AgentError(-32004, "server 10.0.0.2:1001: 0 of the 501 bytes of round 1, and nothing for 30 s", {})
    told = answering(closed(0, 0), closed(0, 0), ran=silent)
    with pytest.raises(AgentError, match="nothing for 30 s"):
        incast.run(told, "ab" * 16)
    # Both servers were closed all the same.
    assert all("rr.close" in host.agent.asked for host in told[:2])  # type: ignore[attr-defined]


def test_tables_that_are_not_whole_are_no_result() -> None:
    incast = Incast(servers=2, unit_bytes=10, rounds=2)
    spans = {"start_seconds": [0.0, 1.0], "end_seconds": [1.0, 2.0], "bytes": [20, 20]}
    rounds = pa.table({"round": [0, 1], **spans})
    twice = {name: 2 * values for name, values in spans.items()}
    responses = pa.table({"round": [0, 1, 0, 1], "flow": [0, 0, 1, 1], **twice})
    record = {"bytes": 40, "active_seconds": 2.0}
    assert incast.metrics(record, {"rounds": rounds, "responses": responses})["goodput"] == 160
    for broken, said in (
        ({"rounds": rounds.slice(1), "responses": responses}, "found 1 rows in the table rounds, expected 2"),
        ({"rounds": rounds, "responses": responses.slice(1)}, "found 3 rows in the table responses, expected 4"),
        (
            {"rounds": rounds, "responses": responses.set_column(1, "flow", pa.array([0, 0, 1, 2**32 - 1]))},
            "found flow 4294967295 in the table responses, expected 0 to 1",
        ),
    ):
        with pytest.raises(ProgramFailure, match=said):
            incast.metrics(record, broken)


@pytest.mark.agent
def test_the_invented_rack_has_the_record_and_the_tables_of_a_simulation(execute: Any, tmp_path: Path) -> None:
    text = (
        "testbed: {{kind: {kind}, topology: rack, hosts: 4, link: {{rate: 1 Gb/s, buffer: 16 MiB}}}}\n"
        "factors: {{mtu: [1500, 9000], rtt: 0.2 ms, congestion_control: reno, nagle: off}}\n"
        "workloads: [{{incast: {{unit: 500 kB, servers: 3, rounds: 4}}}}]\nblocks: 2\ncontrol: false\n"
    )
    _, runs = execute(study_file.parse(text.format(kind="fake"), "x"))
    assert {line for each in runs for line in each.excluded} == set()
    for each in runs:
        # A round is three stripes on the client's link, and an RTT.
        ceiling = 1e9 * (each.level - 52) / (each.level + 38)
        assert 0.9 * ceiling < each.metrics["goodput"] < ceiling
    made = run(text.format(kind="simulator"))[0]
    folder = tmp_path / "out/runs/1"
    record = json.loads((folder / "record.json").read_text())["workload"]
    assert set(made.record["workload"]) <= set(record)
    for name in ("rounds", "responses"):
        with pa.ipc.open_file(folder / f"{name}.arrow") as file:
            found = file.read_all()
        assert (found.column_names, found.num_rows) == (made.tables[name].column_names, made.tables[name].num_rows)
        for column in ("round", "flow", "bytes"):
            if column in found.column_names:
                assert found.column(column).to_pylist() == made.column(name, column)
    assert (
        set(runs[0].metrics) >= set(made.run.metrics) == {"goodput", "completion_time", "fairness", "smallest_goodput"}
    )


def study(buffer: str, incast: str, rest: str = "") -> Done:
    text = (
        f"testbed: {{kind: simulator, topology: rack, hosts: 20, link: {{rate: 1 Gb/s, buffer: {buffer}}}}}\n"
        f"factors: {{mtu: 1500, rtt: 0.1 ms, congestion_control: reno}}\nworkloads: [{{incast: {incast}}}]\n"
    )
    found = run(f"{text}{rest}")[0]
    assert found.run.excluded == []
    return found


@pytest.mark.agent
def test_without_loss_goodput_is_near_the_ceiling() -> None:
    done = study("16 MiB", "{block: 4 MB, servers: 8, rounds: 5}")
    assert done.record["workload"]["retransmits"] == 0
    assert 0.97 * CEILING < done.run.metrics["goodput"] < CEILING
    # A round is a round trip and the block on the client's link.
    assert 32e6 / CEILING < done.run.metrics["completion_time"] < 32e6 / CEILING + 0.001
    assert done.run.metrics["fairness"] > 0.99
    assert done.record["workload"]["received_bytes"] == {"h20": 20_000_000}


@pytest.mark.agent
def test_where_it_collapses_every_round_waits_for_a_timeout() -> None:
    # As FAST 2008 has it: 64 KB per port, NewReno without SACK, RTO_min 200 ms.
    done = study("64 KiB", "{unit: 32 kB, servers: 16, rounds: 20}", "sysctls: {net.ipv4.tcp_sack: '0'}\n")
    ideal, rto = 8 * 16 * 32_000 / CEILING, 0.2
    assert done.record["workload"]["timeouts"] >= 15
    assert done.run.metrics["completion_time"] == pytest.approx(ideal + rto, rel=0.05)
    assert done.run.metrics["goodput"] == pytest.approx(8 * 16 * 32_000 / (ideal + rto), rel=0.25)
    shorter = study(
        "64 KiB", "{unit: 32 kB, servers: 16, rounds: 20}",
        "sysctls: {net.ipv4.tcp_sack: '0', net.ipv4.tcp_rto_min_us: '20000'}\n",
    )  # fmt: skip
    # A timeout is RTO_min after the smoothed RTT, which has the queue in it.
    assert ideal + 0.02 < shorter.run.metrics["completion_time"] < ideal + 0.04
