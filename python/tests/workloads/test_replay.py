"""replay: where recorded flows go, and what must be true of any of them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.outcomes import Done, hosts, outcome, run
from hypothesis import given, strategies as st

from framegauge.agents.simulator import Progress, Simulated
from framegauge.experiment.simulated import engines, plan, pool
from framegauge.files.recordings import Recorded, Recording
from framegauge.study.sweep import Source, points
from framegauge.workloads.replay import Replay, places
from framegauge.workloads.work import CLIENT, SERVER, Known, Step

LINK = "link: {rate: 1 Gb/s, buffer: 1 MiB}"


def made(*flows: Recorded) -> Recording:
    return Recording(flows)


def test_ends_are_put_on_hosts_by_name_and_else_in_turn() -> None:
    names = ("h1", "h2", "h3")
    clients, servers = places(made(Recorded("web", "h2", 0, 1), Recorded("db", "web", 0, 1)), names)
    assert (clients.tolist(), servers.tolist()) == ([0, 2], [1, 0])
    # On two hosts, the third end shares the first one's host; where both ends are there, one gives way.
    clients, servers = places(made(Recorded("a", "b", 0, 1), Recorded("c", "a", 0, 1)), ("h1", "h2"))
    assert (clients.tolist(), servers.tolist()) == ([0, 0], [1, 1])


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), min_size=1), st.integers(2, 9))
def test_no_flow_has_both_ends_on_a_host_and_an_end_stays_where_it_is(ends: list[tuple[int, int]], count: int) -> None:
    flows = [Recorded(f"e{one}", f"e{one + more}", 0, 1) for one, more in ends]
    clients, servers = places(made(*flows), tuple(f"h{each}" for each in range(1, count + 1)))
    assert (clients != servers).all()
    for each in (clients, servers):
        assert ((each >= 0) & (each < count)).all()
    where = dict(zip((flow.client for flow in flows), clients.tolist(), strict=True))
    assert all(where[flow.client] == place for flow, place in zip(flows, clients.tolist(), strict=True))


def test_each_copy_has_a_group_of_hosts_and_waits_for_its_own_flows() -> None:
    recording = made(Recorded("a", "b", 0, 10), Recorded("b", "a", 0.5, 0, 20), Recorded("a", "b", 1, 1, 2, None, (0,)))
    replay = Replay(recording, "f", copies=3, speed=2.0, shift_seconds=0.1, seed=7)
    assert isinstance(replay, Known)
    flows = replay.work(hosts(7)).flows
    assert [(flow.client, flow.server) for flow in flows] == [
        ("h1", "h2"), ("h2", "h1"), ("h1", "h2"), ("h3", "h4"), ("h4", "h3"), ("h3", "h4"),
        ("h5", "h6"), ("h6", "h5"), ("h5", "h6"),
    ]  # fmt: skip
    assert [flow.steps for flow in flows[:3]] == [
        (Step(CLIENT, 10),), (Step(SERVER, 20),), (Step(CLIENT, 1), Step(SERVER, 2)),
    ]  # fmt: skip
    assert [flow.after for flow in flows] == [(), (), (0,), (), (), (3,), (), (), (6,)]
    begins = np.array([flow.begin_seconds for flow in flows]).reshape(3, 3)
    assert begins[0].tolist() == [0.0, 0.25, 0.5]
    assert np.allclose(begins - begins[:, :1], [0.0, 0.25, 0.5])
    assert ((begins[1:, 0] > 0) & (begins[1:, 0] < 0.1)).all()
    assert begins[1, 0] != begins[2, 0]
    assert Replay(recording, "f", copies=3, speed=2.0, shift_seconds=0.1, seed=7).work(hosts(7)) == replay.work(
        hosts(7)
    )


def test_flows_of_a_connection_go_over_that_of_the_one_before() -> None:
    flows = [Recorded("a", "b", 0, 1, 2, None, (), name) for name in ("x", "", "x", "y", "", "x")]
    found = Replay(made(*flows), "f", copies=2).work(hosts(4)).flows
    assert [flow.over for flow in found] == [None, None, 0, None, None, 2, None, None, 6, None, None, 8]
    assert [flow.as_json().get("over") for flow in found[:3]] == [None, None, 0]


def test_figures_are_those_of_the_flows() -> None:
    replay = Replay(made(Recorded("h1", "h2", 0, 100, 1000, 0.5), Recorded("h3", "h1", 1, 0, 500)), "f")
    rows = [(0, 0, 0, 0.0, 0.1, 0.2, 100, 1), (0, 0, 1, 0.2, 0.1, 1.0, 1000, 1), (1, 0, 0, 1.0, 1.1, 4.0, 500, 1)]
    record, tables = replay.simulated(hosts(3), outcome(rows, 2, 4.0))
    assert record["received_bytes"] == {"h1": 1000, "h2": 100, "h3": 500}
    assert record["senders"] == ["h1", "h2"]
    assert tables["replayed"].column("slowdown").to_pylist() == [pytest.approx(2.0), None]
    assert dict(record)["slowdown_median"] == pytest.approx(2.0)
    metrics = replay.metrics(dict(record), tables)
    assert metrics == {"goodput": pytest.approx(8 * 1600 / 4.0), "completion_time": pytest.approx((1.0 + 3.0) / 2)}


def text(workload: str, bed: str) -> str:
    return f"testbed: {{kind: simulator, {bed}, {LINK}}}\nfactors: {{mtu: 1500}}\nworkloads: [{{{workload}}}]\n"


def simulated(workload: str, bed: str) -> Done:
    done = run(text(workload, bed))[0]
    assert done.run.excluded == []
    return done


def without_greeting(workload: str, bed: str) -> float:
    """The completion time of a stream whose greeting is not written by itself, and so takes no segment of its own."""
    planned = plan.blocks(points(Source(text(workload, bed), "s.yaml"), []))[0][0]
    with engines.opened("local") as engine:

        def simulate(scenario: Mapping[str, Any], progress: Progress) -> Simulated:
            steps = [step for flow in scenario["flows"] for step in flow["steps"]]
            assert [step.pop("first_write_bytes", 0) for step in steps] == [48, 0]
            return engine.simulate(scenario, progress)

        return pool.simulated(planned, simulate, lambda _: None)[0].metrics["completion_time"]


@pytest.mark.agent
def test_one_transfer_is_a_stream(tmp_path: Path) -> None:
    # What a stream says at its beginning and its end (docs/reference/results.md) is part of the recording.
    (tmp_path / "one.csv").write_text("client,server,start_seconds,bytes,reverse_bytes\nh1,h2,3,1000048,8\n")
    stream, bed = "stream: {size: 1 MB, repeat: 0 s}", "topology: pair"
    found = simulated(f"replay: {{flows: {tmp_path / 'one.csv'}}}", bed).run.metrics["completion_time"]
    assert found == without_greeting(stream, bed)
    # The greeting's segment shifts those after it by a frame or two: 12 us each at 1 Gb/s.
    assert found == pytest.approx(simulated(stream, bed).run.metrics["completion_time"], abs=3 * 12.3e-6)


@pytest.mark.agent
def test_a_simulated_run_is_the_same_when_it_is_replayed(tmp_path: Path) -> None:
    flows = ["a,b,0,200000,1", "c,b,0,300000,5", "d,b,0.001,0,100000", "a,c,0.002,100,50000", "b,d,0.002,400000,0"]
    head = "client,server,start_seconds,bytes,reverse_bytes"
    (tmp_path / "first.csv").write_text("\n".join([head, *flows]) + "\n")
    bed = "topology: rack, hosts: 4"
    first = simulated(f"replay: {{flows: {tmp_path / 'first.csv'}, ends: spread}}", bed)
    columns = ("client", "server", "start_seconds", "bytes", "reverse_bytes", "end_seconds")
    told = zip(*(first.column("replayed", name) for name in columns), strict=True)
    with (tmp_path / "second.csv").open("w", newline="") as file:
        csv.writer(file).writerows([columns, *told])
    second = simulated(f"replay: {{flows: {tmp_path / 'second.csv'}, ends: as-recorded}}", bed)
    # The same network, flows and seed: nothing differs but the last digit of a start that was written as text.
    assert second.column("replayed", "slowdown") == pytest.approx([1.0] * 5, rel=1e-6)
    assert second.record["workload"]["bytes"] == 200001 + 300005 + 100000 + 50100 + 400000
    assert second.column("replayed", "bytes") == first.column("replayed", "bytes")


@pytest.mark.agent
def test_a_connection_that_is_open_needs_no_round_trip_more(tmp_path: Path) -> None:
    head = "id,client,server,start_seconds,bytes,reverse_bytes,connection"
    rows = [f"{each},h1,h2,{each * 0.01},100,100,{{name}}" for each in range(4)]
    for name in ("", "x"):
        (tmp_path / f"f{name}.csv").write_text("\n".join([head, *rows]).format(name=name) + "\n")
    alone, over = (
        simulated(f"replay: {{flows: {tmp_path / f'f{name}.csv'}}}", "topology: pair").column("flows", "active_seconds")
        for name in ("", "x")
    )
    trips = [one - other for one, other in zip(alone, over, strict=True)]
    assert trips[0] == pytest.approx(0.0, abs=1e-4)
    # The usual RTT is 0.2 ms; each end of it may wait for an interrupt, for 50 us on average.
    assert all(2e-4 <= each <= 4e-4 for each in trips[1:]), trips


@pytest.mark.agent
def test_a_flow_begins_when_those_before_it_have_ended(tmp_path: Path) -> None:
    text = "id,client,server,start_seconds,bytes,after\n1,a,b,0,500000,\n2,b,c,0,500000,1\n3,c,a,0,500000,2 1\n"
    (tmp_path / "f.csv").write_text(text)
    done = simulated(f"replay: {{flows: {tmp_path / 'f.csv'}, copies: 2, shift: 1 ms}}", "topology: rack, hosts: 6")
    starts, ends = (np.array(done.column("replayed", f"{name}_seconds")).reshape(2, 3) for name in ("start", "end"))
    assert all(np.allclose(ends[:, one], starts[:, other]) for one, other in pairwise(range(3)))
    assert done.record["workload"]["received_bytes"] == dict.fromkeys((f"h{each}" for each in range(1, 7)), 500000)
