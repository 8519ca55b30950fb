"""Simulations side by side: written in their order whatever ends first, kept when interrupted, and filled in later."""

from __future__ import annotations

import io
import json
import math
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from helpers.support import PATIENCE_SECONDS

from framegauge.agents.simulator import Progress, Simulated
from framegauge.errors import AgentFailure
from framegauge.experiment.progress import Event, line
from framegauge.experiment.simulated import plan as planning
from framegauge.experiment.simulated.pool import Pool
from framegauge.results.journal import Journal, Run, read
from framegauge.study import file as study_file
from framegauge.study.sweep import Source, axes, points

FILE = """\
testbed: {kind: simulator}
factors: {mtu: [1500, 9000]}
workloads: [{stream: {duration: 1 s}}]
blocks: 3
"""
SOURCE = Source(FILE, "s.yaml")
PLAN = {"question": "?", "scope": "simulated", "treatment": "mtu", "margins": {"goodput": 0.01}}
NAMES = (
    "flow", "round", "step", "start_seconds", "connected_seconds", "end_seconds", "bytes", "client_retransmits",
    "server_retransmits", "complete",
)  # fmt: skip


def arrow(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def invented(scenario: Mapping[str, Any], _: Progress = lambda _: None) -> Simulated:
    """What a simulation of one flow comes to, without one: its goodput follows from MTU and seed."""
    mtu = scenario["hosts"][0]["mtu"]
    amount = 100_000_000 + mtu + scenario["seed"] % 97
    ceiling = {"mtu": mtu, "inner_mtu": mtu, "frame_bytes": mtu + 18, "goodput_bits_per_second": 9.9e8}
    counts = {"connections": 1, "segments": 9, "retransmits": 0, "timeouts": 0}
    result = {
        "end_seconds": 1.0, "segments": 10, "under_way": 0, "flows": [counts], "requests": [], "ports": [],
        "drops_left_out": 0, "ceilings": [ceiling], "network": {"ports": []},
    }  # fmt: skip
    transfers = pa.table(
        {name: [value] for name, value in zip(NAMES, (0, 0, 0, 0.0, 0.0, 1.0, amount, 0, 0, 0), strict=True)}
    )
    sampled = (
        "time_seconds",
        "flow",
        "server_bytes",
        "client_bytes",
        "cwnd_segments",
        "in_flight_segments",
        "srtt_seconds",
    )
    samples = pa.table({name: pa.array([], pa.float64()) for name in sampled})
    drops = pa.table({name: pa.array([], pa.float64()) for name in ("time_seconds", "port", "frame_bytes", "reason")})
    return Simulated(
        result,
        {"transfers": arrow(transfers), "samples": arrow(samples), "drops": arrow(drops), "queues": arrow(drops)},
    )


def run(
    folder: Path,
    simulate: Any = invented,
    jobs: int = 2,
    sweep: Sequence[str] = (),
    resume: bool = False,
    **options: Any,
) -> tuple[Any, list[Run]]:
    found = points(SOURCE, axes(sweep))
    blocks = planning.blocks(found)
    journal = Journal.resume(folder) if resume else Journal.create(folder, study_file.dump(found[0].study), PLAN)
    with journal:
        outcome = Pool(blocks, journal, simulate, jobs, **options).run(may_settle=False)
        return outcome, list(journal.runs)


def test_every_point_of_a_sweep_has_its_cells_and_conditions(tmp_path: Path) -> None:
    outcome, runs = run(tmp_path / "a", sweep=["testbed.link.buffer=64KiB,1MiB", "factors.rtt=1ms,2ms"])
    assert (outcome.runs, outcome.planned, outcome.interrupted) == (24, 24, False)
    assert [each.number for each in runs] == list(range(1, 25))
    assert [each.block for each in runs] == sorted(each.block for each in runs)
    told = {(each.cell, each.conditions["buffer_bytes"], each.conditions["rtt_seconds"]) for each in runs}
    assert told == {(0, 65536, 0.001), (1, 65536, 0.002), (2, 1048576, 0.001), (3, 1048576, 0.002)}
    # The factor tells its cells apart itself.
    assert not any("factors.rtt" in each.conditions for each in runs)
    assert [run.key for run in read(tmp_path / "a").runs] == [run.key for run in runs]


def test_a_key_that_nothing_else_tells_is_a_condition(tmp_path: Path) -> None:
    _, runs = run(tmp_path / "a", sweep=["testbed.nic.aggregate=16KiB,36KiB"])
    assert {each.conditions["testbed.nic.aggregate"] for each in runs} == {"16KiB", "36KiB"}


def test_nothing_depends_on_what_ends_first(tmp_path: Path) -> None:
    run(tmp_path / "one", jobs=1)
    first = threading.Event()
    begun: list[int] = []

    def reversed_order(scenario: Mapping[str, Any], progress: Progress) -> Simulated:
        begun.append(1)
        if len(begun) == 1:
            assert first.wait(PATIENCE_SECONDS)  # the first ends after the second
        else:
            first.set()
        return invented(scenario, progress)

    run(tmp_path / "two", reversed_order, jobs=2)
    for name in ("runs.jsonl", "runs/1/record.json", "runs/6/record.json", "runs/3/transfers.arrow"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_what_has_finished_is_kept_and_the_rest_filled_in_later(tmp_path: Path) -> None:
    run(tmp_path / "whole")
    stopped, others = threading.Event(), threading.Semaphore(0)
    slow = planning.blocks(points(SOURCE, []))[0][0]
    is_first = iter([True])

    def stuck(scenario: Mapping[str, Any], progress: Progress) -> Simulated:
        if next(is_first, False):
            assert stopped.wait(PATIENCE_SECONDS)
            raise AgentFailure("stopped")
        others.release()
        return invented(scenario, progress)

    def interrupt(event: Event) -> None:
        # All others have come to their end, while the first has not.
        if event.number == event.total:
            raise KeyboardInterrupt

    outcome, runs = run(tmp_path / "part", stuck, stop=stopped.set, on_event=interrupt)
    assert outcome.interrupted
    assert slow.key not in [each.key for each in runs]
    assert len(runs) == 5
    outcome, runs = run(tmp_path / "part", resume=True)
    assert (outcome.runs, outcome.interrupted) == (6, False)
    assert (tmp_path / "part/runs.jsonl").read_bytes() == (tmp_path / "whole/runs.jsonl").read_bytes()


def test_the_first_error_ends_it_and_says_what_is_wrong(tmp_path: Path) -> None:
    def broken(*_: Any) -> Simulated:
        raise AgentFailure("no good")

    stops: list[int] = []
    with pytest.raises(AgentFailure, match="no good"):
        run(tmp_path / "a", broken, stop=lambda: stops.append(1))
    assert stops == [1]


def test_the_time_left_is_told_once_it_is_known(tmp_path: Path) -> None:
    events: list[Event] = []
    run(tmp_path / "a", on_event=events.append, jobs=1)
    assert events
    assert all(event.total == 6 and 1 <= event.number <= 6 for event in events)
    assert all(math.isnan(event.seconds_left) or event.seconds_left >= 0 for event in events)


def test_it_is_not_told_before(tmp_path: Path) -> None:
    events: list[Event] = []
    is_told = threading.Event()

    def waits(scenario: Mapping[str, Any], progress: Progress) -> Simulated:
        assert is_told.wait(PATIENCE_SECONDS)
        return invented(scenario, progress)

    def told(event: Event) -> None:
        events.append(event)
        is_told.set()

    run(tmp_path / "a", waits, on_event=told)
    assert math.isnan(events[0].seconds_left)
    assert line(events[0]).startswith("run 1 of 6: stream, ")
    assert line(events[-1]).startswith(f"run {events[-1].number} of 6")


def test_no_line_of_a_run_has_the_time_of_day(tmp_path: Path) -> None:
    run(tmp_path / "a")
    for written in map(json.loads, (tmp_path / "a/runs.jsonl").read_text().splitlines()):
        assert (written["began"], written["seconds"], written["attempt"]) == ("", 1.0, 0)
