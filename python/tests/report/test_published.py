"""The page of the published study: which of Hadoop's figures are on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helpers.support import STUDY, bench

from framegauge.cli import commands
from framegauge.results.journal import Saved, read
from framegauge.study import file as study_file
from framegauge.summary import document as summary

reproduction, published_hadoop = bench("reproduction"), bench("published_hadoop")


def measured(folder: Path) -> tuple[Saved, dict[str, Any]]:
    """A study on the invented network, and its summary."""
    asked = study_file.parse(STUDY, "study.yaml")
    commands.run_study(asked, folder, False, lambda _: None, lambda _: None)
    saved = read(folder)
    return saved, summary.summarise(saved)


def test_hadoop_has_rows_for_what_was_measured_and_none_otherwise(tmp_path: Path) -> None:
    saved, found = measured(tmp_path / "out")
    page = reproduction.page([saved], [found], "here")
    assert "terasort" not in page
    assert "Hadoop is not included, and " in page
    assert page.splitlines()[-1].startswith("Hadoop's study (`--hadoop`) takes ten hours")
    # As if the time had been that of a sort.
    first = next(each for each in found["verdicts"] if each["treatment"].get("mtu") == 9000)
    for nagle in (False, True):
        conditions = {**first["conditions"], "job": "terasort", "nagle": nagle}
        found["verdicts"].append({**first, "workload": "mapreduce", "metric": "job_time", "conditions": conditions})
    page = reproduction.page([saved], [found], "here")
    rows = [line for line in page.splitlines() if line.startswith("| mapreduce")]
    assert [("Nagle off" in row, "Nagle on" in row) for row in rows] == [(True, False), (False, True)]
    assert all(", job time, MTU 9000 | completion about 4 % longer at 1500 | " in row for row in rows)
    assert "Hadoop sorts 1 GB instead of 100, and " in page
    assert "--hadoop" not in page


def test_what_hadoop_is_compared_with_is_what_was_published() -> None:
    ranges = {
        (each["conditions"]["job"], each["metric"]): (each["low"], each["high"]) for each in published_hadoop.figures()
    }
    for key, ratio in (
        (("terasort", "job_time"), 1 / 1.04),
        (("terasort", "shuffle_time"), 421 / 440),
        (("terasort", "task_cpu_time"), 3.192 / 3.221),
        (("grep", "receiver_cycles"), 2.658 / 2.660),
    ):
        assert ranges[key][0] < ratio < ranges[key][1]
    assert all(Path(__file__).parents[3].joinpath(study).is_file() for study in published_hadoop.STUDIES.values())
