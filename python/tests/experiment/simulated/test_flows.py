"""The tables of flows and of what they completed: by hand, and against the counters of the ports."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from helpers.outcomes import outcome, run

from framegauge.experiment.simulated.flows import completions, flows
from framegauge.workloads.work import CLIENT, SERVER, Flow, Step, Work

NETWORK = {"ports": [{"from": "h1", "to": "s"}, {"from": "s", "to": "h2"}, {"from": "h3", "to": "s"}]}


def test_rounds_and_flows_of_known_messages() -> None:
    two = (Step(CLIENT, 100), Step(SERVER, 900))
    work = Work([Flow("h1", "h2", two), Flow("h3", "h2", two), Flow("h3", "h1", two)], 10.0)
    # flow, round, step, start, connected, end, bytes, complete; what client and server sent again
    rows = [
        (0, 0, 0, 0.0, 0.1, 0.2, 100, 1, 1, 0), (0, 0, 1, 0.2, 0.2, 1.0, 900, 1, 1, 2),
        (0, 1, 0, 3.0, 3.0, 3.5, 100, 1), (0, 1, 1, 3.5, 3.5, 4.0, 900, 1),
        (1, 0, 0, 2.0, 2.5, 10.0, 60, 0),
    ]  # fmt: skip
    done = outcome(rows, 3, 10.0)
    rounds = completions(done)
    assert rounds.to_pydict() == {
        "flow": [0, 0, 1], "round": [0, 1, 0], "start_seconds": [0.0, 3.0, 2.0], "connected_seconds": [0.1, 3.0, 2.5],
        "end_seconds": [1.0, 4.0, 10.0], "bytes": [1000, 1000, 60], "retransmits": [3, 0, 0],
        "complete": [True, True, False],
    }  # fmt: skip
    found = flows(work, done, rounds, NETWORK).to_pydict()
    assert found["client"] == ["h1", "h3", "h3"]
    assert found["server"] == ["h2", "h2", "h1"]
    assert found["hops"] == [2, 2, 2]
    assert found["rounds"] == [2, 0, 0]
    assert found["start_seconds"] == [0.0, 2.0, None]
    assert found["end_seconds"] == [4.0, 10.0, None]
    assert found["active_seconds"] == [2.0, 8.0, 0.0]  # the pause of 2 s is not the first flow's
    assert found["bytes"] == [2000, 60, 0]
    assert found["goodput_bits_per_second"] == [8000.0, 60.0, None]
    assert found["retransmits"] == [2, 2, 2]  # the counters', as invented


def test_without_messages_there_are_no_rows() -> None:
    assert completions(outcome([], 0, 1.0)).num_rows == 0


TEXT = """\
testbed: {kind: simulator, topology: rack, hosts: 5, link: {rate: 100 Mb/s, buffer: 64 KiB}}
factors: {mtu: [1500, 9000], queue: {step: {threshold: 16 KiB}}, congestion_control: dctcp}
workloads: [{stream: {size: 200 kB, pattern: many-to-one, repeat: 0 s, sample: 1 ms}}]
"""


@pytest.mark.agent
def test_they_agree_with_the_counters_of_ports() -> None:
    dropped = marked = 0
    for done in run(TEXT):
        found, rounds = done.tables["flows"].to_pydict(), done.tables["completions"].to_pydict()
        greeting, confirmation = 48, 8
        assert found["bytes"] == [200_000 + greeting + confirmation] * 4 == rounds["bytes"]
        assert sum(found["retransmits"]) == done.record["workload"]["retransmits"] == sum(rounds["retransmits"])
        assert found["end_seconds"] == rounds["end_seconds"]
        ports = {each["port"]: each for each in done.record["measure"]["fabric"]["ports"]}
        # All segments of both ends went into the network: every frame is one.
        sent = sum(ports[f"h{number}>switch"]["received_frames"] for number in range(1, 6))
        assert sent == done.record["simulation"]["segments"]
        told = _counted(done.tables["drops"])
        for name, port in ports.items():
            assert told[name, "dropped"] == port["dropped_frames"]
            assert told[name, "marked"] == port["marked_frames"]
        _agree(done.tables["queues"], ports)
        dropped += sum(port["dropped_frames"] for port in ports.values())
        marked += sum(port["marked_frames"] for port in ports.values())
    assert dropped > 0
    assert marked > 0


def _counted(drops: pa.Table) -> Counter[tuple[str, str]]:
    """The rows by port and action; a run of drops grows by one with each of its input port."""
    last: dict[tuple[str, str], int] = {}
    rows = drops.to_pylist()
    for row in rows:
        if row["action"] == "dropped":
            key = row["port"], row["input_port"]
            assert row["reason"]
            assert row["run_length"] in (1, last.get(key, 0) + 1)
            last[key] = row["run_length"]
    return Counter((row["port"], row["action"]) for row in rows)


def _agree(queues: pa.Table, ports: dict[str, dict[str, int]]) -> None:
    """All samples of a port together have what it counted."""
    for name, port in ports.items():
        rows = [row for row in queues.to_pylist() if row["port"] == name]
        for key in ("sent_bytes", "dropped_frames", "marked_frames"):
            assert sum(row[key] for row in rows) == port[key]
        assert max(row["peak_queue_bytes"] for row in rows) == port["peak_queue_bytes"]
    # Far closer to each other than the workload's own samples, though not so close that there are too many.
    assert len(set(queues["time_seconds"].to_pylist())) > 200
    assert queues.num_rows <= 20_000
