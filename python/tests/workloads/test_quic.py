"""quic: what hosts are asked, what its factors become, what studies refuse, and that both ends are closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from helpers.support import ROOT

from framegauge.errors import AgentError, InputError
from framegauge.experiment.planning import runnable_of
from framegauge.study import file as study_file
from framegauge.study.blocks import order
from framegauge.testbeds.base import Host
from framegauge.testbeds.fake.testbed import Answered
from framegauge.workloads.quic import Quic

END = {
    "sizes": [{"payload_bytes": 1200, "count": 4}, {"payload_bytes": 8972, "count": 20}], "calls": 6, "refused_calls": 0, "received": 9, "received_aggregates": 0,
    "settled_bytes": [8972], "probes": 9, "lost_probes": 0, "black_holes": 0, "lost_packets": 0,
    "rtt_seconds": [0.001, 0.003],
}  # fmt: skip
RAN = {
    "rounds": 1, "bytes": 2000, "written_bytes": 2000, "active_seconds": 0.5, "started_seconds": 50.0,
    "congestion_control": ["cubic"], "transfers": 3, **END,
}  # fmt: skip
CLOSED = {"bytes": 2000, "connections": 2, "refused": 0, **END}


class Answering:
    """An agent that answers by a table, and remembers what it was asked."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.asked = answers, dict[str, Any]()

    def request(self, method: str, params: Any = None, **_rest: Any) -> Any:
        self.asked[method] = None if params is None else dict(params)
        found = self.answers[method.replace(".", "_")]
        return Answered({}, found).result() if isinstance(found, AgentError) else found


def pair(ran: Any = RAN) -> list[Host]:
    agents = Answering(quic_run=ran), Answering(quic_serve={"port": 4000, "key": "30aa"}, quic_close=CLOSED)
    return [Host(f"h{number}", f"10.0.0.{number}", agent) for number, agent in enumerate(agents, 1)]  # type: ignore[arg-type]


def transfers() -> dict[str, pa.Table]:
    """Two flows side by side; the second takes twice as long."""
    rows = [
        {"round": 0, "flow": flow, "start_seconds": 0.0, "connected_seconds": 0.001 + flow * 0.001,
         "end_seconds": 0.25 + 0.25 * flow, "bytes": 1000, "counted_seconds": 0.25 + 0.25 * flow, "counted_bytes": 1000}
        for flow in range(2)
    ]  # fmt: skip
    return {"transfers": pa.Table.from_pylist(rows)}


def test_both_ends_have_the_same_settings_and_the_client_knows_the_key() -> None:
    hosts = pair()
    load = Quic(size_bytes=1000, flows=2, repeat_seconds=0.0, congestion_control="reno", gso=True, gro=False)
    done = load.run(hosts, "ab" * 16)
    client, server = (host.agent.asked for host in hosts)  # type: ignore[attr-defined]
    settings = {"plpmtud": True, "congestion_control": "reno", "gso": True, "gro": False}
    assert server["quic.serve"] == {"token": "ab" * 16, "address": "10.0.0.2", "settings": settings}
    assert client["quic.run"] == {
        "address": "10.0.0.2", "port": 4000, "token": "ab" * 16, "key": "30aa", "flows": 2, "size_bytes": 1000,
        "duration_seconds": None, "repeat_seconds": 0.0, "settings": settings,
    }  # fmt: skip
    assert server["quic.close"] is None
    assert [(each.name, each.host, each.number) for each in done.spools] == [("transfers", "h1", 3)]
    # 24 datagrams in 6 calls, of either end.
    assert (done.record["transport"], done.record["batched"]) == ("quic", {"h1": 18, "h2": 18})


def test_the_server_is_closed_where_the_client_fails() -> None:
    hosts = pair(ran=AgentError(-32004, "QUIC connection to 10.0.0.2:4000: timed out", {}))
    with pytest.raises(AgentError, match="timed out"):
        Quic(duration_seconds=1.0).run(hosts, "ab" * 16)
    assert "quic.close" in hosts[1].agent.asked  # type: ignore[attr-defined]


def test_metrics_follow_from_the_transfers() -> None:
    load = Quic(size_bytes=1000, flows=2)
    record: dict[str, Any] = dict(load.run(pair(), "ab" * 16).record)
    record |= load.evidence(record, transfers())
    assert (record["active_seconds"], record["handshake_seconds"]) == (0.5, 0.001)
    (told,) = record["answers"].values()
    assert (told["asked"], told["answered"]) == (2, 2)
    found = load.metrics(record, transfers())
    assert found["goodput"] == pytest.approx(8 * 2000 / 0.5)
    assert found["completion_time"] == pytest.approx(0.375)
    assert found["smallest_goodput"] == pytest.approx(8 * 1000 / 0.5)
    assert found["fairness"] == pytest.approx(0.9)


def asked(folder: Path, workload: str = "quic: {size: 1 MB}", factors: str = "", kind: str = "fake") -> Any:
    path = folder / "study.yaml"
    path.write_text(
        f"testbed: {{kind: {kind}, link: {{rate: 1 Gb/s, port_mtu: 9216}}}}\n"
        f"factors: {{mtu: [1500, 9000]{factors}}}\nworkloads: [{{{workload}}}]\n"
    )
    return study_file.load(path)


def made(given: Any) -> list[Quic]:
    return [each for slot in order(given) if isinstance(each := runnable_of(given, slot), Quic)]


def test_the_factors_become_settings_of_both_ends(tmp_path: Path) -> None:
    on = "tso: on, lro: on, gro: off, checksum: on, shaping: off"
    loads = made(asked(tmp_path, factors=f", plpmtud: [on, off], {on}, congestion_control: reno"))
    assert {each.plpmtud for each in loads} == {True, False}
    assert {(each.gso, each.gro, each.congestion_control) for each in loads} == {(True, False, "reno")}
    usual, *_ = made(asked(tmp_path))
    assert (usual.plpmtud, usual.gso, usual.gro, usual.congestion_control) == (True, False, False, "cubic")


def test_where_a_shaper_charges_by_tcps_sizes_datagrams_are_handed_over_one_by_one(tmp_path: Path) -> None:
    shaped = made(asked(tmp_path, factors=", offloads: on"))
    assert {(each.gso, each.gro) for each in shaped} == {(False, True)}
    kernel = made(asked(tmp_path, factors=", offloads: on", kind="veth"))
    assert {(each.gso, each.gro) for each in kernel} == {(True, True)}


@pytest.mark.parametrize(
    ("workload", "factors", "said"),
    [
        ("quic: {}", "", "expected exactly one of size and duration"),
        ("quic: {size: 1 MB, duration: 1 s}", "", "expected exactly one of size and duration"),
        ("quic: {size: 0 B}", "", "expected more than 0"),
        ("quic: {size: 1 MB, flows: 513}", "", "expected at most 512"),
        ("quic: {size: 1 MB}", ", congestion_control: [cubic, bbr]", "expected cubic or reno with workload quic"),
        ("quic: {size: 1 MB}", ", ecn: [on, off]", "QUIC uses ECN whatever"),
        ("quic: {size: 1 MB}", ", nagle: off", "it has no Nagle setting"),
        ("quic: {size: 1 MB}", ", pacing: on", "no such factor with workload quic"),
        ("quic: {size: 1 MB}", ", mptcp: 2", "no such factor with workload quic"),
        ("stream: {size: 1 MB}", ", plpmtud: off", "only quic looks for path MTUs by probes of its own"),
    ],
)
def test_what_it_cannot_obey_is_refused(tmp_path: Path, workload: str, factors: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        asked(tmp_path, workload, factors)
    assert said in str(refused.value)


def test_nothing_simulates_it(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        asked(tmp_path, kind="simulator")
    assert "expected stream, rr, mixed, incast" in str(refused.value)


def test_the_example_is_read() -> None:
    study_file.load(ROOT / "examples/quic.yaml")
