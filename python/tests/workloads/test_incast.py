"""incast: its flows by plan, its rounds by hand, and the two goodputs that are known: near the ceiling, and collapsed."""

from __future__ import annotations

import pytest
from helpers.outcomes import Done, hosts, outcome, run

from framegauge.errors import ProgramFailure
from framegauge.workloads.base import Runnable
from framegauge.workloads.incast import Incast
from framegauge.workloads.work import CLIENT, SERVER, Known, Step

CEILING = 1e9 * 1448 / 1538


def test_every_server_answers_the_last_host_with_its_stripe() -> None:
    incast = Incast(servers=3, block_bytes=1000, rounds=2)
    assert isinstance(incast, Known)
    assert not isinstance(incast, Runnable)
    work = incast.work(hosts(5))
    assert [(flow.client, flow.server) for flow in work.flows] == [("h5", "h1"), ("h5", "h2"), ("h5", "h3")]
    assert [flow.steps for flow in work.flows] == [
        (Step(CLIENT, 100), Step(SERVER, stripe)) for stripe in (334, 333, 333)
    ]
    assert {(flow.rounds, flow.barrier) for flow in work.flows} == {(2, 0)}
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
