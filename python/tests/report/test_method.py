"""What the report says of how a study was made, and of how sure it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.support import STUDY

from framegauge.cli import commands
from framegauge.report import evidence, method
from framegauge.report.pictures import material
from framegauge.results.journal import Saved, read
from framegauge.study import file as study_file
from framegauge.summary import document as summary


def made(folder: Path, bed: str = "{kind: fake}") -> Saved:
    text = STUDY.replace("{kind: fake}", bed).replace("blocks: 6", "blocks: 2\nretries: 0")
    commands.run_study(study_file.parse(text, "study.yaml"), folder, False, lambda _: None, lambda _: None)
    return read(folder)


@pytest.mark.parametrize(("fault", "told"), [("host_cpu", True), ("held", False)])
def test_a_study_without_time_for_its_programs_says_what_to_do(fault: str, told: bool, tmp_path: Path) -> None:
    saved = made(tmp_path / "out", f"{{kind: fake, fake: {{faults: [{fault}]}}}}")
    lines = evidence.how_sure(summary.summarise(saved))
    assert any(line.startswith("The CPUs had no time left: ") and "lower link.rate" in line for line in lines) == told


def test_hosts_that_are_not_fresh_are_not_called_so(tmp_path: Path) -> None:
    saved = made(tmp_path / "out")
    kept = [replace(run, readings={**run.readings, "lasting_runs": run.number - 1}) for run in saved.runs]
    for runs, words in ((saved.runs, "each on fresh hosts"), (kept, "some on hosts that earlier runs had used")):
        again = replace(saved, runs=runs)
        lines = method.design(material.gather(again, summary.summarise(again)))
        assert sum(words in line for line in lines) == 1


def test_the_settings_of_each_tuning_are_listed(tmp_path: Path) -> None:
    text = (
        STUDY.replace("blocks: 6", "blocks: 2\nretries: 0").replace("factors:\n", "factors:\n  tuning: [as-is, old]\n")
        + "\ntunings: {old: {initial_window: 3, sysctls: {net.ipv4.tcp_rmem: 4096 87380 4194304}}}\n"
    )
    commands.run_study(study_file.parse(text, "study.yaml"), tmp_path / "out", False, lambda _: None, lambda _: None)
    saved = read(tmp_path / "out")
    found = summary.summarise(saved)
    lines = [line for line in method.design(material.gather(saved, found)) if line.startswith("Tuning")]
    assert lines == ["Tuning old: initial window of 3 segments, net.ipv4.tcp_rmem 4096 87380 4194304"]
    assert {each["conditions"]["tuning"] for each in found["verdicts"]} == {"as-is", "old"}
    assert {tuple(each["level"].items()) for each in found["competitors"]} == {(("tuning", "old"),)}
    # A study file in other hands.
    for broken in ([], {"old": 3}, {"old": {"sysctls": 3}}):
        shown = replace(material.gather(saved, found), settings={"tunings": broken})
        assert not any("3" in line for line in method.design(shown) if line.startswith("Tuning"))
