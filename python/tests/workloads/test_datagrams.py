"""datagrams: what hosts are asked, alone and beside bulk; metrics that lack, with the reasons; every end is closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from helpers.support import ROOT

from framegauge.errors import AgentError, InputError
from framegauge.study import file as study_file
from framegauge.testbeds.base import Host
from framegauge.testbeds.fake.testbed import Answered
from framegauge.workloads.datagrams import Datagrams

SENT = {
    "sent": 4, "bytes": 800, "dropped_by_host": 0, "active_seconds": 0.08, "started_seconds": 50.0, "clock": "one",
    "datagrams": 3,
}  # fmt: skip
CAME = {"received": 3, "bytes": 600, "refused": 0, "clock": "one", "datagrams": 4}


class Answering:
    """An agent that answers by a table, and remembers what it was asked."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.asked = answers, dict[str, Any]()

    def begin(self, method: str, params: Any = None, on_progress: Any = None) -> Any:
        self.asked[method] = None if params is None else dict(params)
        found = self.answers[method.replace(".", "_")]
        return Answered({}, found) if isinstance(found, AgentError) else Answered(found, None)

    def request(self, method: str, params: Any = None, **_rest: Any) -> Any:
        return self.begin(method, params).result()


def pair(ran: Any = SENT, came: dict[str, Any] = CAME) -> list[Host]:
    agents = Answering(datagrams_run=ran), Answering(datagrams_serve={"port": 4000}, datagrams_close=came)
    return [Host(f"h{number}", f"10.0.0.{number}", agent) for number, agent in enumerate(agents, 1)]  # type: ignore[arg-type]


def tables(delays: dict[int, float]) -> dict[str, pa.Table]:
    """Four datagrams of one flow, 20 ms apart, of which these came, with their delays."""
    number = pa.array(range(4), pa.uint32())
    due = [0.02 * each for each in range(4)]
    flow = pa.array([0] * 4, pa.uint32())
    sent = pa.table({"flow": flow, "sequence": number, "due_seconds": due, "sent_seconds": due})
    came = pa.table(
        {
            "flow": pa.array([0] * len(delays), pa.uint32()),
            "sequence": pa.array(list(delays), pa.uint32()),
            "received_seconds": pa.array([50 + 0.02 * each + delay for each, delay in delays.items()], pa.float64()),
        }
    )
    return {"datagrams-sent": sent, "datagrams-received": came}


def test_the_last_host_receives_what_the_first_sends_and_waits_for_the_rest() -> None:
    hosts = pair()
    load = Datagrams(200, 50.0, flows=2, spurt_seconds=1.0, pause_seconds=1.6, duration_seconds=0.08)
    done = load.run(hosts, "ab" * 16)
    client, server = (host.agent.asked for host in hosts)  # type: ignore[attr-defined]
    assert client["datagrams.run"] == {
        "address": "10.0.0.2", "port": 4000, "token": "ab" * 16, "flows": 2, "size_bytes": 200, "rate_per_second": 50.0,
        "spurt_seconds": 1.0, "pause_seconds": 1.6, "duration_seconds": 0.08,
    }  # fmt: skip
    assert server["datagrams.close"] == {"expected": 4, "silence_seconds": 1.0}
    assert [(each.name, each.host, each.number) for each in done.spools] == [
        ("datagrams-sent", "h1", 3), ("datagrams-received", "h2", 4),
    ]  # fmt: skip
    assert (done.record["transport"], done.record["received_bytes"]) == ("udp", {"h2": 600})


def test_the_server_is_closed_at_once_where_the_client_fails() -> None:
    hosts = pair(ran=AgentError(-32004, "send a datagram: no room for it for 10 s", {}))
    with pytest.raises(AgentError, match="no room"):
        Datagrams().run(hosts, "ab" * 16)
    assert hosts[1].agent.asked["datagrams.close"] == {"expected": 0, "silence_seconds": 0.0}  # type: ignore[attr-defined]


def judged(delays: dict[int, float], **rest: Any) -> tuple[dict[str, float], dict[str, Any]]:
    load = Datagrams(200, 50.0, duration_seconds=0.08)
    record = dict(load.run(pair(came={**CAME, **rest}), "ab" * 16).record)
    evidence = load.evidence(record, tables(delays))
    return load.metrics(record, tables(delays)), evidence


def test_metrics_are_those_of_the_datagrams_and_lost_ones_are_slower_than_all() -> None:
    metrics, evidence = judged({0: 0.001, 1: 0.004, 3: 0.002})
    # Of four the second: one is lost, and slower than any that came.
    assert metrics == pytest.approx({"delay_p50": 0.002, "jitter": 0.003, "delivered": 0.75})
    assert evidence["answers"] == {"h1": {"asked": 4, "answered": 3, "what": "datagrams arrived"}}
    assert evidence["not_measured"] == {"delay_p99": "a run has 4 datagrams, but 99% needs 100"}
    assert {name: evidence["datagrams"][name] for name in ("sent", "received", "lost")} == {
        "sent": 4, "received": 3, "lost": 1,
    }  # fmt: skip


def test_without_a_shared_clock_there_is_no_delay_but_its_variation() -> None:
    metrics, evidence = judged({0: 0.001, 1: 0.004, 2: 0.001, 3: 0.002}, clock="another")
    assert set(metrics) == {"jitter", "delivered"}
    why = "h1 and h2 read different clocks, and a one-way delay needs the same"
    assert evidence["not_measured"] == {"delay_p50": why, "delay_p99": why}


def test_where_nothing_came_nothing_is_measured() -> None:
    metrics, evidence = judged({})
    assert metrics == {}
    assert evidence["not_measured"] == {
        "delay_p50": "4 of 4 datagrams of a run did not arrive",
        "delay_p99": "a run has 4 datagrams, but 99% needs 100",
        "jitter": "no two datagrams in succession arrived",
        "delivered": "none of 4 datagrams of a run arrived",
    }
    assert evidence["answers"]["h1"]["answered"] == 0


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("{size: 19 B}", 'size: found "19 B", expected 20 B to 65507 bytes of UDP payload'),
        ("{size: 66 kB}", 'size: found "66 kB", expected 20 B to 65507 bytes of UDP payload'),
        ("{rate: null}", 'rate: found "null", expected datagrams per second above 0'),
        ("{rate: 1000000, duration: 60 s}", 'rate: found "60000000 datagrams in a run", expected at most 20000000'),
        ("{spurt: 1 s}", 'spurt: found "no pause beside it", expected both, or neither'),
        ("{spurt: 1 s, pause: 0 s}", 'pause: found "0 s", expected at least 0.0001 s'),
        ("{flows: 600}", "flows: found 600, expected at most 512"),
        ("{bulk: {hosts: 2}}", 'bulk: found "2 hosts", expected topology: rack with at least 4 hosts'),
    ],
)
def test_what_cannot_be_sent_is_one_line(tmp_path: Path, parameters: str, said: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(f"testbed: {{kind: rack}}\nfactors: {{mtu: [1500, 9000]}}\nworkloads: [datagrams: {parameters}]\n")
    with pytest.raises(InputError) as refused:
        study_file.load(path)
    assert said in str(refused.value)


@pytest.mark.parametrize("factor", ["nagle: [true, false]", "pacing: [off, on]"])
def test_factors_of_tcp_are_refused_where_no_tcp_runs(tmp_path: Path, factor: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        f"testbed: {{kind: rack}}\nfactors: {{mtu: [1500, 9000], {factor}}}\nworkloads: [datagrams: {{}}]\n"
    )
    with pytest.raises(InputError, match="no such factor with workload datagrams"):
        study_file.load(path)


def test_every_run_of_the_invented_rack_is_whole(execute: Any, tmp_path: Path) -> None:
    """Alone and beside bulk, in one packet and in several: all checks of a run hold, and its line says where all went."""
    path = tmp_path / "s.yaml"
    path.write_text(
        "testbed: {kind: fake, topology: rack, hosts: 3}\nfactors: {mtu: [1500, 9000]}\nblocks: 2\nstop: blocks\n"
        "workloads: [datagrams: {size: [172 B, 8 KiB], duration: 1 s}, datagrams: {bulk: {flows: 2}, duration: 1 s}]\n"
    )
    _, runs = execute(study_file.load(path))
    assert [run.excluded for run in runs] == [[]] * len(runs)
    packets = {
        (run.level, run.conditions["size_bytes"]): run.readings["datagrams"]["packets_per_datagram"] for run in runs
    }
    assert packets == {(1500, 172): 1, (9000, 172): 1, (1500, 8192): 6, (9000, 8192): 1, (1500, 200): 1, (9000, 200): 1}
    assert all(run.readings["datagrams"]["lost"] == 0 for run in runs)
    assert {"goodput" in run.metrics for run in runs if "bulk_flows" in run.conditions} == {True}
    small = [run for run in runs if run.conditions["size_bytes"] == 172]
    assert all("MTU on the wire" in " ".join(run.degraded) for run in small)


def test_the_example_asks_what_it_says() -> None:
    study = study_file.load(ROOT / "examples" / "voice-beside-bulk.yaml")
    (conditions,) = study.workloads[0].parameters.conditions()
    assert (conditions["size_bytes"], conditions["flows"], conditions["bulk_flows"]) == (172, 20, 4)
