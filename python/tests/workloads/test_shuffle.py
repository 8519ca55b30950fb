"""shuffle: who fetches from whom and when, and what must be true of any of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from helpers.outcomes import hosts, outcome, run

from framegauge.workloads.shuffle import Shuffle
from framegauge.workloads.work import CLIENT, SERVER, Known, Step

CEILING = 1e9 * 1448 / 1538


@pytest.mark.parametrize("at_once", [1, 2, 4, 9])
def test_each_fetches_from_each_a_few_at_a_time(at_once: int) -> None:
    shuffle = Shuffle(size_bytes=1000, at_once=at_once)
    assert isinstance(shuffle, Known)
    flows = shuffle.work(hosts(5)).flows
    assert Counter((flow.client, flow.server) for flow in flows) == Counter(
        (f"h{one}", f"h{other}") for one in range(1, 6) for other in range(1, 6) if one != other
    )
    assert {flow.steps for flow in flows} == {(Step(CLIENT, 100), Step(SERVER, 1000))}
    # Those that wait for nothing begin together: so many of each host, and no host is asked by more.
    first = [flow for flow in flows if not flow.after]
    assert set(Counter(flow.client for flow in first).values()) == {min(at_once, 4)}
    assert max(Counter(flow.server for flow in first).values()) == min(at_once, 4)
    # The others each wait for one of the same host that nobody else waits for.
    waits = {place: flow.after for place, flow in enumerate(flows) if flow.after}
    assert all(len(after) == 1 and flows[after[0]].client == flows[place].client for place, after in waits.items())
    assert len(set(waits.values())) == len(waits)


def test_some_hosts_fetch_from_all_in_an_order_of_their_own() -> None:
    turn, drawn, again, other = (
        Shuffle(size_bytes=1000, at_once=2, reduces=2, order=order, seed=seed).work(hosts(9)).flows
        for order, seed in (("turn", 1), ("random", 1), ("random", 1), ("random", 2))
    )
    assert [flow.server for flow in turn] == [f"h{number}" for number in (*range(5, 10), 1, 2, 3, *range(1, 9))]
    assert drawn == again
    assert [flow.server for flow in drawn] != [flow.server for flow in other]
    for flows in (turn, drawn, other):
        assert [flow.client for flow in flows] == ["h4"] * 8 + ["h9"] * 8
        for client in ("h4", "h9"):
            servers = {flow.server for flow in flows if flow.client == client}
            assert servers == {f"h{number}" for number in range(1, 10)} - {client}
    # Each fetcher of a host takes its next when it has the one before.
    assert [flow.after for flow in drawn[8:]] == [(), (), *((place,) for place in range(8, 14))]
    orders = [[flow.server for flow in drawn if flow.client == client] for client in ("h4", "h9")]
    assert [name for name in orders[0] if name != "h9"] != [name for name in orders[1] if name != "h4"]
    spread = Shuffle(size_bytes=1000, reduces=4).work(hosts(16)).flows
    assert list(dict.fromkeys(flow.client for flow in spread)) == ["h4", "h8", "h12", "h16"]
    some = Shuffle(size_bytes=1000, at_once=2, reduces=1, workers=["h7", "h2", "h4", "h9"]).work(hosts(9)).flows
    assert [(flow.client, flow.server, flow.after) for flow in some] == [
        ("h9", "h2", ()), ("h9", "h4", ()), ("h9", "h7", (0,)),
    ]  # fmt: skip


def test_it_ends_with_the_last_host() -> None:
    shuffle = Shuffle(size_bytes=1000, at_once=1)
    rows = []
    for flow, (start, end) in enumerate([(0.0, 1.0), (1.0, 2.0), (0.0, 2.0), (2.0, 3.0), (0.0, 2.0), (2.0, 4.0)]):
        rows += [(flow, 0, 0, start, start, start, 100, 1), (flow, 0, 1, start, start, end, 1000, 1)]
    record, tables = shuffle.simulated(hosts(3), outcome(rows, 6, 4.0))
    assert tables["fetches"].column("to").to_pylist() == [1, 1, 2, 2, 3, 3]
    assert tables["fetches"].column("from").to_pylist() == [2, 3, 3, 1, 1, 2]
    assert record["received_bytes"] == {"h1": 2000, "h2": 2000, "h3": 2000}
    metrics = shuffle.metrics(dict(record), tables)
    assert metrics["completion_time"] == pytest.approx(4.0)
    assert metrics["goodput"] == pytest.approx(8 * 6000 / 4.0)
    rates = np.array([2000 / 2, 2000 / 3, 2000 / 4])
    assert metrics["fairness"] == pytest.approx(rates.sum() ** 2 / (3 * (rates**2).sum()))
    assert metrics["smallest_goodput"] == pytest.approx(8 * 500)


@pytest.mark.agent
@pytest.mark.parametrize("at_once", [1, 3])
def test_a_real_one_obeys_its_limits(at_once: int) -> None:
    done = run(
        "testbed: {kind: simulator, topology: rack, hosts: 6, link: {rate: 1 Gb/s, buffer: 1 MiB}}\n"
        f"factors: {{mtu: 1500}}\nworkloads: [{{shuffle: {{size: 500 kB, at_once: {at_once}}}}}]\n"
    )[0]
    assert done.run.excluded == []
    assert done.record["workload"]["received_bytes"] == {f"h{number}": 2_500_000 for number in range(1, 7)}
    # No host receives faster than its link carries.
    assert done.run.metrics["completion_time"] > 8 * 2_500_000 / CEILING
    assert done.run.metrics["completion_time"] < 4 * 8 * 2_500_000 / CEILING
    to, start, end = (np.array(done.column("fetches", name)) for name in ("to", "start_seconds", "end_seconds"))
    for host in range(1, 7):
        mine = to == host
        assert max(((start[mine] <= time) & (time < end[mine])).sum() for time in start[mine]) <= at_once


@pytest.mark.agent
def test_one_reducer_on_a_fat_tree_has_one_near_fetch_beside_twelve_far_ones() -> None:
    done = run(
        "testbed: {kind: simulator, topology: {fat-tree: {k: 4}}, link: {rate: 1 Gb/s, buffer: 64 KiB}}\n"
        "factors: {mtu: 1500}\nworkloads: [{shuffle: {size: 500 kB, reduces: 1, order: random}}]\n"
    )[0]
    assert done.run.excluded == []
    told = done.record["workload"]
    assert [(each["links"], each["fetches"]) for each in told["fetches_by_links"]] == [(2, 1), (4, 2), (6, 12)]
    assert sum(each["bytes"] for each in told["fetches_by_links"]) == 15 * 500_000
    assert done.run.readings["few"] == {"senders": ["h15"], "flows": 1, "many": 12, "floored": False}
    near, _, far = (each["goodput_bits_per_second"] for each in told["fetches_by_links"])
    assert done.run.metrics["share_of_few"] == pytest.approx(near / far)
    assert done.run.metrics["completion_time"] > 8 * 15 * 500_000 / CEILING
