"""arrivals: the offered load and the gaps of draws, the slowdown by its formula, and one link that is nearly empty."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.outcomes import Done, hosts, outcome, run

from framegauge.errors import ProgramFailure
from framegauge.files.distributions import Distribution, parse
from framegauge.workloads.arrivals import Arrivals, Drawn, flows_per_second
from framegauge.workloads.work import CLIENT, Known, Step

SIZE = Distribution("1 MB", (1_000_000,), (1.0,))
ARRIVALS = Arrivals(SIZE, load=0.5, bits_per_second=10**9, rtt_seconds=0.001, seed=3)


def test_the_offered_load_is_that_of_a_hosts_link() -> None:
    # 0.5 Gb/s is 62.5 MB per second.
    for pattern, links in (("any-to-any", 10), ("many-to-one", 1), ("half-to-half", 5)):
        assert flows_per_second(0.5, 10**9, 1e6, pattern, 10) == pytest.approx(62.5 * links)


@pytest.mark.parametrize("pattern", ["any-to-any", "many-to-one", "half-to-half"])
def test_draws_offer_the_load_to_those_hosts(pattern: str) -> None:
    duration = 400.0
    found = replace(ARRIVALS, pattern=pattern, duration_seconds=duration).drawn(10)
    assert not (found.sources == found.targets).any()
    each = 0.5e9 / 8 * duration
    sent, received = (
        np.bincount(side, found.bytes, minlength=10) / each for side in (found.sources, found.targets)
    )  # fmt: skip
    wanted = {
        "any-to-any": ([1] * 10, [1] * 10),
        "many-to-one": ([1 / 9] * 9 + [0], [0] * 9 + [1]),
        "half-to-half": ([1] * 5 + [0] * 5, [0] * 5 + [1] * 5),
    }[pattern]
    assert sent == pytest.approx(np.array(wanted[0]), abs=0.05)
    assert received == pytest.approx(np.array(wanted[1]), abs=0.05)


def test_gaps_are_exponential_for_a_seed() -> None:
    found = replace(ARRIVALS, duration_seconds=100.0).drawn(10)
    gaps = np.diff(found.begin_seconds, prepend=0.0)
    count, mean = len(gaps), 1 / 625
    assert (gaps > 0).all()
    assert found.begin_seconds[-1] < 100
    assert gaps.mean() == pytest.approx(mean, rel=4 / math.sqrt(count))
    assert gaps.std() == pytest.approx(mean, rel=0.05)
    # Kolmogorov's distance from 1 - exp(-x/mean): at most 1.95/sqrt(n) in 999 of 1000 cases.
    ordered = np.sort(gaps)
    distance = np.abs(1 - np.exp(-ordered / mean) - np.arange(1, count + 1) / count).max()
    assert distance < 1.95 / math.sqrt(count)
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 4 / math.sqrt(count)


def test_draws_come_from_the_seed_alone() -> None:
    one, same, other = ARRIVALS.drawn(8), ARRIVALS.drawn(8), replace(ARRIVALS, seed=4).drawn(8)
    for name in ("begin_seconds", "bytes", "sources", "targets"):
        assert (getattr(one, name) == getattr(same, name)).all()
    assert one.begin_seconds[0] != other.begin_seconds[0]
    # A longer time begins with the same flows, and other sizes are between the same hosts.
    longer = replace(ARRIVALS, duration_seconds=1.0).drawn(8)
    assert (longer.begin_seconds[: len(one.bytes)] == one.begin_seconds).all()
    assert (longer.sources[: len(one.bytes)] == one.sources).all()


def test_every_flow_is_a_connection_from_when_it_arrives() -> None:
    assert isinstance(ARRIVALS, Known)
    drawn, work = ARRIVALS.drawn(4), ARRIVALS.work(hosts(4))
    assert len(work.flows) == len(drawn.bytes) > 10
    for place, flow in enumerate(work.flows):
        assert (flow.client, flow.server) == (f"h{drawn.sources[place] + 1}", f"h{drawn.targets[place] + 1}")
        assert flow.steps == (Step(CLIENT, 1_000_000),)
        assert flow.begin_seconds == drawn.begin_seconds[place]
    assert work.end_seconds == pytest.approx(10.1)


def ended(arrivals: Arrivals, count: int, took: list[float], unfinished: int = 0) -> tuple[Any, Any]:
    drawn = arrivals.drawn(count)
    rows = [
        (flow, 0, 0, begin, begin, begin + took[flow % len(took)], 1_000_000, 1)
        for flow, begin in enumerate(drawn.begin_seconds.tolist())
    ]
    late = [(*row[:5], 10.1, 7, 0) for row in rows[:unfinished]]
    return arrivals.simulated(hosts(count), outcome(late + rows[unfinished:], len(rows), 10.1))


def test_the_slowdown_is_over_the_ideal_time() -> None:
    # 1.5 RTT and 8 ms on the wire are 9.5 ms.
    record, tables = ended(ARRIVALS, 8, [0.0095, 0.019, 0.0285])
    assert set(tables["arrivals"].column("ideal_seconds").to_pylist()) == {0.0095}
    metrics = ARRIVALS.metrics(record, tables)
    assert metrics["slowdown_p50"] == pytest.approx(2.0, abs=1.0)
    count = record["flows"]
    times = [(0.0095, 0.019, 0.0285)[flow % 3] for flow in range(count)]
    assert metrics["completion_time"] == pytest.approx(np.mean(times))
    ordered = sorted(time / 0.0095 for time in times)
    assert metrics["slowdown_p50"] == pytest.approx(ordered[math.ceil(0.5 * count) - 1])
    # It has too few flows for 99 %.
    assert count < 100
    assert "slowdown_p99" not in metrics
    assert record["not_measured"] == {"slowdown_p99": f"a run has {count} flows, but 99% needs 100"}
    assert record["by_size"]["medium"]["flows"] == count
    assert record["by_size"]["small"] == {"flows": 0, "unfinished": 0}
    assert record["bytes"] == 1_000_000 * count


@pytest.mark.parametrize(
    ("topology", "count", "pairs", "shares"),
    [
        ({"kind": "rack"}, 4, [(0, 1), (3, 0)], [1, 1]),
        ({"kind": "rack", "nics": 2}, 4, [(0, 1), (3, 0)], [1, 1]),
        ({"kind": "rack", "nics": 4, "bond": "layer3+4"}, 4, [(0, 1), (3, 0)], [1, 1]),
        ({"kind": "dumbbell", "left": 2}, 4, [(0, 1), (0, 2), (3, 1)], [2 / 3, 1, 1]),
        ({"kind": "leaf-spine", "leaves": 2, "spines": 3}, 4, [(0, 1), (1, 2)], [1 / 2, 1]),
        # On one edge switch, in one pod, and in two pods.
        ({"kind": "fat-tree", "k": 4}, 16, [(0, 1), (0, 2), (0, 4), (15, 3)], [2 / 6, 4 / 6, 1, 1]),
        (
            {"kind": "custom", "links": [["a", "h1"], ["a", "b"], ["h2", "b"], ["b", "c"], ["h3", "c"]]},
            3, [(0, 1), (0, 2), (1, 2)], [3 / 4, 1, 3 / 4],
        ),
    ],
)  # fmt: skip
def test_nearer_hosts_have_a_shorter_ideal_time(
    topology: dict[str, object], count: int, pairs: list[tuple[int, int]], shares: list[float]
) -> None:
    sources, targets = (np.array(column) for column in zip(*pairs, strict=True))
    drawn = Drawn(np.zeros(len(pairs)), np.full(len(pairs), 1_000_000), sources, targets)
    ideal = replace(ARRIVALS, topology=topology).ideal_seconds([host.name for host in hosts(count)], drawn)
    assert ideal == pytest.approx([0.008 + 0.0015 * share for share in shares])


def test_flows_that_do_not_end_are_counted_and_too_many_are_no_result() -> None:
    longer = replace(ARRIVALS, duration_seconds=0.5)
    record, tables = ended(longer, 8, [0.0095], unfinished=2)
    assert record["flows"] > 200
    assert record["unfinished"] == 2
    metrics = longer.metrics(record, tables)
    assert metrics["slowdown_p99"] == pytest.approx(1.0)
    assert "completion_time" not in metrics
    assert record["not_measured"] == {"completion_time": f"2 of {record['flows']} flows of a run had not ended"}
    assert tables["arrivals"].column("end_seconds").null_count == 2
    with pytest.raises(ProgramFailure, match=r"found 9 of \d+ flows that had not ended 10 s after .* at most 1 %"):
        ended(longer, 8, [0.0095], unfinished=9)
    with pytest.raises(ProgramFailure, match="found no flow in 1 us, expected one or more"):
        ended(replace(ARRIVALS, duration_seconds=1e-6), 8, [0.0095])


def study(arrivals: str, bed: str, rest: str = "mtu: 9000, rtt: 0.1 ms") -> list[Done]:
    text = f"testbed: {{kind: simulator, {bed}}}\nfactors: {{{rest}}}\nworkloads: [{{arrivals: {{{arrivals}}}}}]\n"
    found = run(text)
    assert [done.run.excluded for done in found] == [[]] * len(found)
    return found


@pytest.mark.agent
def test_on_a_link_with_next_to_no_load_the_slowdown_is_about_one() -> None:
    bed = "link: {rate: 1 Gb/s, buffer: 1 MiB}"
    (done, control) = study("sizes: 1 MB, load: 0.02, duration: 50 s, pattern: many-to-one, sample: 0 s", bed)
    assert done.record["workload"]["flows"] > 100
    assert done.run.metrics == control.run.metrics
    # What is left: headers (1.0 %), slow start, and the share of flows that meet another (2 %).
    assert 1.0 < done.run.metrics["slowdown_p50"] < 1.08
    assert min(done.column("arrivals", "slowdown")) > 1.0
    assert done.run.metrics["completion_time"] == pytest.approx(0.00815, rel=0.1)


@pytest.mark.agent
def test_all_arms_of_a_block_have_the_same_flows() -> None:
    bed = "topology: {leaf-spine: {leaves: 2, spines: 2}}, hosts: 8, link: {rate: 1 Gb/s, buffer: 512 KiB}"
    small, large = study("sizes: web-search, load: 0.3, duration: 300 ms", bed, "mtu: [1500, 9000], rtt: 0.1 ms")
    for name in ("from", "to", "bytes", "class", "start_seconds", "ideal_seconds"):
        assert small.column("arrivals", name) == large.column("arrivals", name)
    assert small.column("arrivals", "end_seconds") != large.column("arrivals", "end_seconds")
    told = small.record["workload"]
    assert told["bytes"] == sum(small.column("arrivals", "bytes"))
    assert sum(each["flows"] for each in told["by_size"].values()) == told["flows"]
    # Nothing is faster than its bytes on the wire, and what is alone is not much slower.
    assert min(small.column("arrivals", "slowdown")) > 0.95
    assert parse("web-search", None).mean > 1e6


def test_long_streams_come_beside_the_same_flows() -> None:
    beside = replace(ARRIVALS, streams=5)
    alone, both = ARRIVALS.work(hosts(4)).flows, beside.work(hosts(4)).flows
    assert both[: len(alone)] == alone
    streams = both[len(alone) :]
    assert [(flow.client, flow.server) for flow in streams] == [
        ("h1", "h3"), ("h2", "h4"), ("h3", "h1"), ("h4", "h2"), ("h1", "h3"),
    ]  # fmt: skip
    # What 1 Gb/s carries in 0.1 s, from the beginning on.
    assert {(flow.begin_seconds, flow.steps) for flow in streams} == {(0.0, (Step(CLIENT, 12_500_000),))}
    ends = {
        pattern: replace(beside, pattern=pattern, streams=4).lasting(4) for pattern in ("many-to-one", "half-to-half")
    }
    assert ends["many-to-one"] == [(0, 3), (1, 3), (2, 3), (0, 3)]
    assert ends["half-to-half"] == [(0, 2), (1, 3), (0, 2), (1, 3)]


BESIDE = """\
testbed: {kind: simulator, topology: rack, hosts: 3, link: {rate: 100 Mb/s, buffer: 128 KiB}}
factors: {mtu: [1500, 9000], rtt: 0.2 ms}
workloads: [{arrivals: {sizes: 20 kB, load: 0.3, duration: 2 s, pattern: many-to-one, streams: [0, 2]}}]
"""


@pytest.mark.agent
def test_a_link_is_full_of_streams_and_of_what_arrives() -> None:
    """What the streams get is what the flows that arrive leave of the link: its ceiling less their payload."""
    for one in (done.run for done in run(BESIDE)):
        assert one.excluded == []
        assert one.metrics["slowdown_p50"] > 1.0
        streams = one.metrics.get("goodput")
        if one.conditions["streams"] == 0:
            assert streams is None
            continue
        mtu = int(one.level)
        assert streams == pytest.approx(1e8 * (mtu - 52) / (mtu + 38) - 0.3e8, rel=0.08)
        assert 0.5 <= one.metrics["fairness"] <= 1.0
