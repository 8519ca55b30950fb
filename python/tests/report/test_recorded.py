"""A run's transfers, written as CSV and replayed: the same bytes in the same time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from framegauge.errors import InputError
from framegauge.files.recordings import read
from framegauge.report.recorded import recorded
from framegauge.results import journal
from framegauge.results.spools import columns

HEAD = """\
question: How long does it take?
testbed: {{kind: simulator, topology: pair, link: {{rate: 1 Gb/s}}}}
factors: {{mtu: {{levels: [1500, 9000], baseline: 1500}}, rtt: 1 ms}}
workloads:
  - {workload}
blocks: 2
stop: blocks
"""
# The generator's greeting is a segment of its own, of one that is replayed it is not; and hosts' jitter is drawn anew,
# which moves a few interrupts of 50 us.
MOST_SECONDS = 3 * 1538 * 8 / 1e9 + 2 * 50e-6


def framegauge(*words: str | Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "framegauge", *map(str, words)], capture_output=True, text=True, check=False
    )
    assert ran.returncode in (0, 3), ran.stderr


@pytest.mark.agent
def test_the_transfers_of_a_run_are_replayed_in_the_same_time(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(HEAD.format(workload="stream: {size: 1 MB, repeat: 40 ms}"))
    framegauge("simulate", tmp_path / "study.yaml", "--out", tmp_path / "first")
    framegauge("report", tmp_path / "first", "--flows", tmp_path / "flows.csv", "--run", "1")
    recording = read(tmp_path / "flows.csv")
    assert len(recording.flows) > 1
    assert [flow.after for flow in recording.flows[1:]] == [(place,) for place in range(len(recording.flows) - 1)]
    (tmp_path / "again.yaml").write_text(HEAD.format(workload="replay: {flows: flows.csv}"))
    framegauge("simulate", tmp_path / "again.yaml", "--out", tmp_path / "second")
    # The order of arms is drawn: the run with the same MTU.
    level = next(run.level for run in journal.read(tmp_path / "first").runs if run.number == 1)
    number = next(run.number for run in journal.read(tmp_path / "second").runs if run.level == level)
    replayed = columns(tmp_path / f"second/runs/{number}/replayed.arrow", ("bytes", "slowdown"))
    assert replayed is not None
    assert replayed["bytes"] == [1_000_048] * len(recording.flows)
    shortest = min(flow.end_seconds - flow.start_seconds for flow in recording.flows if flow.end_seconds)
    assert replayed["slowdown"] == pytest.approx([1.0] * len(recording.flows), abs=MOST_SECONDS / shortest)


def test_a_run_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no run 7, expected one of those in"):
        recorded(tmp_path, 7)
    (tmp_path / "runs/7").mkdir(parents=True)
    with pytest.raises(InputError, match="run 7: found no transfers, expected those of a run of stream"):
        recorded(tmp_path, 7)
