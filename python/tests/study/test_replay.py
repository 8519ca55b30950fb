"""The parameters of `replay`: paths, the study that results keep, and one line per fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from framegauge.errors import StudyError
from framegauge.experiment.planning import stated_conditions, workload_of
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.study.model import Study, cells
from framegauge.study.sweep import Source, points
from framegauge.workloads.replay import Replay

FLOWS = "client,server,start_seconds,bytes\nh1,web,0,1000\nweb,h1,1,2000\n"


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    (tmp_path / "f.csv").write_text(FLOWS)
    return tmp_path


def text(parameters: str, bed: str = "kind: simulator, topology: rack, hosts: 4") -> str:
    return f"testbed: {{{bed}}}\nfactors: {{mtu: [1500, 9000]}}\nworkloads: [{{replay: {{{parameters}}}}}]\n"


def parse(folder: Path, parameters: str, bed: str = "kind: simulator, topology: rack, hosts: 4") -> Study:
    return study_file.parse(text(parameters, bed), str(folder / "s.yaml"))


def test_a_path_is_relative_to_the_file(folder: Path) -> None:
    (folder / "s.yaml").write_text(text("flows: f.csv"))
    study = study_file.load(folder / "s.yaml")
    assert points(Source(text("flows: f.csv"), str(folder / "s.yaml")), [])[0].study == study
    made = workload_of(study, block_order(study, 0)[0])
    assert isinstance(made, Replay)
    assert len(made.flows.flows) == 2


def test_lists_are_conditions_and_results_state_them(folder: Path) -> None:
    study = parse(folder, "flows: f.csv, copies: [1, 2], speed: [1, 2.5]")
    assert [(each.parameters["copies"], each.parameters["speed"]) for each in cells(study)] == [
        (1, 1.0), (1, 2.5), (2, 1.0), (2, 2.5),
    ]  # fmt: skip
    stated = stated_conditions(study, block_order(study, 0)[0])
    assert (stated["recording"], stated["ends"]) == ("f", "spread")
    assert set(study.margin()) == {"completion_time"}


def test_a_resolved_study_needs_no_file_and_refuses_another(folder: Path) -> None:
    study = parse(folder, "flows: f.csv")
    kept = study_file.dump(study)
    (folder / "f.csv").write_text(FLOWS.replace("2000", "2001"))
    assert study_file.parse(kept, "again") == study
    with pytest.raises(StudyError, match="found other flows than before, expected sha256"):
        workload_of(study, block_order(study, 0)[0])
    (folder / "f.csv").unlink()
    assert study_file.parse(kept, "again") == study
    with pytest.raises(StudyError, match="found no readable file"):
        workload_of(study, block_order(study, 0)[0])


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("flows: none.csv", "none.csv: found no readable file"),
        ("speed: 2", "flows: found nothing"),
        ("flows: f.csv, speed: 0", "speed: found 0, expected at least 0.001"),
        ("flows: f.csv, copies: 0", "copies: found 0, expected at least 1"),
        ("flows: f.csv, copies: 3", "copies: found 4 hosts, expected topology: rack with at least 6 hosts"),
        ("flows: f.csv, shift: 1 ms", "shift: found 0.001 s, expected 0 s without copies"),
        ("flows: f.csv, copies: 2, ends: as-recorded", "ends: found as-recorded, expected spread with copies"),
        ("flows: f.csv, ends: as-recorded", "ends: found web, expected hosts of the study (h1 to h4)"),
    ],
)
def test_what_is_wrong_is_one_line(folder: Path, parameters: str, said: str) -> None:
    with pytest.raises(StudyError) as failed:
        parse(folder, parameters)
    assert len(failed.value.problems) == 1
    assert said in failed.value.problems[0].replace('"', "")


def test_other_testbeds_refuse_it(folder: Path) -> None:
    with pytest.raises(StudyError, match=r'found "?rack"?, expected simulator for replay, which is only simulated'):
        parse(folder, "flows: f.csv", "kind: rack, topology: rack, hosts: 4")


def test_too_many_flows_are_refused(folder: Path) -> None:
    head, *rows = FLOWS.splitlines()
    (folder / "f.csv").write_text("\n".join([head, *rows * 251]) + "\n")
    with pytest.raises(StudyError, match=r'copies: found "?1004000 flows"?, expected at most 1000000 in all copies'):
        parse(folder, "flows: f.csv, copies: 2000", "kind: simulator, topology: rack, hosts: 4000")
