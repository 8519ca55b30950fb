"""What the live page knows of a study, from a results folder that grows."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict
from pathlib import Path

import pytest
from helpers.followed import Recorded

from framegauge.live import folder as files
from framegauge.live.state import Reader
from framegauge.results import lock
from framegauge.results.journal import Journal


def test_it_says_the_words_of_the_terminal_before_every_run(recorded: Recorded, tmp_path: Path) -> None:
    folder, reader = recorded.begun(tmp_path / "out", 0), Reader(tmp_path / "out")
    for runs in range(0, len(recorded.runs), 5):
        recorded.grow(folder, runs, torn='{"number": 9')
        # Times of runs that the fake testbed makes up are those of this machine, which the journal has, too.
        assert reader.read().progress == recorded.said[runs]


def test_intervals_are_those_of_whole_blocks_and_narrow(recorded: Recorded, tmp_path: Path) -> None:
    folder, block = recorded.begun(tmp_path / "out", 0), len(recorded.runs) // 3
    reader = Reader(folder)
    assert not reader.read().verdicts
    recorded.grow(folder, 2 * block - 1)
    assert (state := reader.read()).blocks == 1
    assert not state.before
    recorded.grow(folder, 3 * block - 1)
    state = reader.read()
    assert state.blocks == 2
    assert {each["runs"] for each in state.verdicts if each["metric"] == "goodput"} == {
        4,
        6,
    }  # with those of the control
    recorded.grow(folder, 3 * block)
    after = reader.read()
    assert after.before == state.verdicts
    widths = [
        [math.log(high / low) for low, high in (each["ci95"] for each in found if each["metric"] == "goodput")]
        for found in (after.before, after.verdicts)
    ]
    assert sum(widths[1]) < sum(widths[0])
    assert after.share == pytest.approx(1 - 1 / len(recorded.runs))


def test_an_excluded_run_is_named_and_its_slot_is_next(recorded: Recorded, tmp_path: Path) -> None:
    folder = recorded.begun(tmp_path / "out", 1)
    first = asdict(recorded.runs[0]) | {"excluded": ["fidelity: late"], "metrics": {}}
    (folder / "runs.jsonl").write_text(json.dumps(first) + "\n")
    state = Reader(folder).read()
    assert "(1 excluded: CPU busy)" in state.progress
    assert state.progress.split(": ")[-1] == recorded.said[0].split(": ")[-1]


def test_a_study_has_ended_when_its_report_is_of_all_runs(recorded: Recorded, tmp_path: Path) -> None:
    assert files.has_ended(recorded.folder)
    folder = recorded.begun(tmp_path / "out", 5)
    assert not files.has_ended(folder)
    before = files.stamps(folder)
    (folder / "report.html").write_text("<p>old</p>")
    os.utime(folder / "report.html", ns=(10**18, 10**18))
    assert not files.has_ended(folder)  # the study went on after that
    for name in files.BEGINS:
        os.utime(folder / name, ns=(10**18, 10**18))
    assert files.has_ended(folder)
    assert files.stamps(folder) != before


def test_the_lock_of_a_folder_is_read_and_not_tried(recorded: Recorded, tmp_path: Path) -> None:
    folder = recorded.begun(tmp_path / "out", 5)
    assert not lock.is_held(folder)
    with Journal.resume(folder):
        assert lock.is_held(folder)
        assert Reader(folder).read().is_running
    assert not lock.is_held(folder)
    assert not lock.is_held(tmp_path / "nothing")


def test_a_folder_whose_locks_cannot_be_read_is_held_by_nobody(recorded: Recorded, tmp_path: Path) -> None:
    assert not lock.is_held(recorded.folder, tmp_path / "no locks")
