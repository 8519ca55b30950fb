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
