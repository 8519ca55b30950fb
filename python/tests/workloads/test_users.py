"""users: what is drawn for each, what counts by hand, and the response time law on a real one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.outcomes import hosts, outcome, run

from framegauge.files.distributions import Distribution
from framegauge.workloads.users import Users
from framegauge.workloads.work import CLIENT, SERVER, Known

SIZE = Distribution("1 kB", (1000,), (1.0,))
USERS = Users(5, 0.1, SIZE, duration_seconds=2.0, seed=3)


def test_each_thinks_first_and_longer_than_the_duration() -> None:
    assert isinstance(USERS, Known)
    work = USERS.work(hosts(4))
    assert [(flow.client, flow.server) for flow in work.flows] == [
        ("h1", "h4"), ("h2", "h4"), ("h3", "h4"), ("h1", "h4"), ("h2", "h4"),
    ]  # fmt: skip
    assert work.nodelay
    assert not replace(USERS, nagle=True).work(hosts(4)).nodelay
    for flow in work.flows:
        asked, answers = flow.steps[::2], flow.steps[1::2]
        assert {(step.side, step.size_bytes) for step in asked} == {(CLIENT, 200)}
        assert {(step.side, step.size_bytes, step.think_seconds) for step in answers} == {(SERVER, 1000, 0.0)}
        thoughts = np.cumsum([step.think_seconds for step in asked])
        assert thoughts[-1] >= 2.0 > (thoughts[-2] if len(thoughts) > 1 else 0.0)


def test_times_to_think_are_exponential_for_a_seed() -> None:
    thoughts = [step.think_seconds for user in range(200) for step in USERS.steps(user) if step.side == CLIENT]
    assert len(set(thoughts)) == len(thoughts)
    # One more than the mean number of arrivals of each, since the last is beyond the duration.
    assert len(thoughts) == pytest.approx(200 * (20 + 1), rel=0.05)
    assert np.mean(thoughts) == pytest.approx(0.1, rel=0.05)
    assert np.std(thoughts) == pytest.approx(0.1, rel=0.08)
    assert list(USERS.steps(1)) == list(replace(USERS, users=9).steps(1))
    assert list(USERS.steps(1)) != list(replace(USERS, seed=4).steps(1))


def test_what_is_due_in_time_counts() -> None:
    rows = [
        (0, 0, 0, 0.1, 0.5, 0.6, 200, 1), (0, 0, 1, 0.6, 0.6, 0.9, 1000, 1),
        (0, 0, 2, 0.9, 1.9, 2.0, 200, 1), (0, 0, 3, 2.0, 2.0, 2.1, 1000, 1),  # answered after the duration
        (0, 0, 4, 2.1, 2.2, 2.3, 200, 1), (0, 0, 5, 2.3, 2.3, 2.4, 1000, 1),  # due after it
        (1, 0, 0, 0.1, 0.3, 0.4, 200, 1), (1, 0, 1, 0.4, 0.4, 4.0, 500, 0),  # never answered
        (2, 0, 0, 0.1, 1.0, 4.0, 100, 0),  # never asked
    ]  # fmt: skip
    record, tables = USERS.simulated(hosts(3), outcome(rows, 3, 4.0))
    table = tables["transactions"]
    assert table.column("due_seconds").to_pylist() == [0.5, 1.9]
    assert table.column("end_seconds").to_pylist() == [0.9, 2.1]
    assert (record["unfinished"], record["in_time"], record["received_bytes"]) == (2, 1, {"h1": 2000})
    metrics = USERS.metrics(dict(record), tables)
    assert metrics["transactions"] == pytest.approx(0.5)
    assert metrics["latency_p50"] == pytest.approx(0.4)
    assert "latency_p99" not in metrics
    assert record["not_measured"]["latency_p99"] == "a run has 4 requests, but 99.0% needs 100"


@pytest.mark.agent
@pytest.mark.parametrize("count", [5, 60])
def test_the_response_time_law(count: int) -> None:
    done = run(
        "testbed: {kind: simulator, topology: rack, hosts: 6, link: {rate: 100 Mb/s, buffer: 1 MiB}}\n"
        "factors: {mtu: 1500, rtt: 1 ms}\n"
        f"workloads: [{{users: {{count: {count}, think: 50 ms, response: 10 kB, duration: 4 s}}}}]\n"
    )[0]
    assert done.run.excluded == []
    due, end = (np.array(done.column("transactions", name)) for name in ("due_seconds", "end_seconds"))
    response = float((end - due).mean())
    law = count / (0.05 + response)
    # As many standard deviations of a count that varies no more than a Poisson process does.
    assert done.run.metrics["transactions"] == pytest.approx(law, rel=4 / np.sqrt(4 * law))
    assert done.record["workload"]["unfinished"] == 0
    # At 100 Mb/s, 10 kB take 0.85 ms on the server's link: 60 users ask for most of it, five for little.
    assert (response > 0.0025) == (count == 60)
