"""A study that goes on beyond its planned end: what is planned, saved, said and refused."""

import json

import pytest
from helpers.pages import as_read
from helpers.sealing import seal
from helpers.support import STUDY

from framegauge.cli import main as cli
from framegauge.results import journal as results
from framegauge.statistics.sequential import StoppingRule

FIXED = STUDY.replace("blocks: 6", "blocks: 6\nstop: blocks")


@pytest.fixture
def extended(tmp_path, capsys):
    """A function that runs a study in tmp_path/out, and extends it; what the extension printed on stderr."""

    def run(text, *extensions):
        (tmp_path / "study.yaml").write_text(text)
        assert cli.main(["study", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "out")]) == 0
        capsys.readouterr()
        for more in extensions:
            assert cli.main(["study", "--resume", "--out", str(tmp_path / "out"), "--blocks", str(more)]) == 0
        return capsys.readouterr().err

    return run


def test_it_runs_more_blocks_and_says_what_they_cost(extended, tmp_path):
    said = extended(FIXED, 4)
    # Two comparisons of treatments, each at 2.5 % before.
    error = 2 * StoppingRule(None, (6, 10)).error(0.025)
    assert f"extended from 6 to 10 blocks: at most {100 * error:.2g} % of such studies have a wrong verdict" in said
    saved = results.read(tmp_path / "out")
    assert (saved.plan["planned_blocks"], saved.plan["extended_from"]) == (10, [6])
    assert sorted({run.block for run in saved.runs}) == list(range(10))
    assert len(saved.runs) == 30
    found = json.loads((tmp_path / "out/summary.json").read_text())
    assert found["family"]["error"] == pytest.approx(error)
    assert found["stopping"]["extended_from"] == [6]
    assert found["stopping"]["confidence"] == pytest.approx(1 - StoppingRule(None, (6, 10)).error(0.05))
    page = as_read((tmp_path / "out/report.html").read_text())
    assert "Planned for 6 blocks, and extended to 10 after its verdicts were seen" in page
    assert f"At most {100 * error:.2g} % of such studies" in page
    assert "as fixed beforehand" not in page
    assert f"{100 * found['stopping']['confidence']:.3g} %, corrected" in page


def test_an_extension_goes_on_where_it_was_interrupted_and_can_be_repeated(extended, tmp_path, capsys):
    extended(FIXED, 2, 3)
    saved = results.read(tmp_path / "out")
    assert (saved.plan["planned_blocks"], saved.plan["extended_from"]) == (11, [6, 8])
    # As if it had been killed after its plan was saved: the folder goes on with the plan that it has.
    lines = (tmp_path / "out/runs.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "out/runs.jsonl").write_text("".join(lines[:20]))
    seal(tmp_path / "out")
    assert cli.main(["study", "--resume", "--out", str(tmp_path / "out")]) == 0
    assert "extended from" not in capsys.readouterr().err
    assert len(results.read(tmp_path / "out").runs) == 33
    # The study's file is that of the beginning, and so is the one given.
    assert "blocks: 6" in (tmp_path / "out/study.yaml").read_text()
    assert cli.main(["study", str(tmp_path / "study.yaml"), "--resume", "--out", str(tmp_path / "out")]) == 0


def test_a_study_that_decided_everything_is_not_extended(extended, tmp_path, capsys):
    extended(STUDY.replace("{kind: fake}", "{kind: fake, fake: {noise: 0.01 %}}").replace("blocks: 6", "blocks: 40"))
    before = results.read(tmp_path / "out")
    assert len(before.runs) < 120
    assert cli.main(["study", "--resume", "--out", str(tmp_path / "out"), "--blocks", "4"]) == 2
    assert "found a study that has decided everything" in capsys.readouterr().err
    assert results.read(tmp_path / "out") == before


def test_dry_run_shows_the_longer_study_and_saves_nothing(extended, tmp_path, capsys):
    extended(FIXED)
    before = results.read(tmp_path / "out")
    assert cli.main(["study", "--resume", "--out", str(tmp_path / "out"), "--blocks", "4", "--dry-run"]) == 0
    assert "10 blocks of 1 x 3 runs: 30 runs" in capsys.readouterr().out
    assert results.read(tmp_path / "out") == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["study.yaml", "--blocks", "4"], "--blocks: found no --resume"),
        (["--resume", "--out", "x", "--blocks", "0"], "--blocks: found 0, expected a whole number from 1"),
    ],
)
def test_more_blocks_need_a_study_to_extend(arguments, message, capsys):
    assert cli.main(["study", *arguments]) == 2
    assert message in capsys.readouterr().err
