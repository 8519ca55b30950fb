"""The trial of a study from the command line's side: what is said, run, kept and resumed. On an invented rack."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.pages import as_read
from helpers.schemas import conforms
from helpers.support import ROOT

from framegauge.cli import commands, main as cli
from framegauge.errors import InputError, TooBusy
from framegauge.results.journal import read
from framegauge.study import file as study_file
from framegauge.study.model import Study
from framegauge.summary.schema import summary_schema
from framegauge.testbeds.fake.testbed import FakeModel, FakeTestbed, Fault

Carries = Callable[[int], None]


@pytest.fixture
def carries(monkeypatch: pytest.MonkeyPatch) -> Carries:
    """Puts an invented rack in the place of a real one, whose fabric is late at higher rates than that."""

    def machine(most: int) -> None:
        late = Fault("late", lambda up, _: up["link"]["bits_per_second"] > most)
        monkeypatch.setattr(
            commands, "_open", lambda _kind, study, _say: FakeTestbed(FakeModel(study.seed, faults=[late]))
        )

    return machine


def preset(blocks: int = 2) -> Study:
    quick = study_file.load_preset("quick")
    return quick.model_copy(update={"blocks": blocks, "stop": "blocks"})


def run(folder: Path, may_adapt: bool = False) -> tuple[commands.Finished, list[str]]:
    said: list[str] = []
    done = commands.run_study(preset(), folder, False, lambda _: None, said.append, may_adapt=may_adapt)
    return done, said


def test_a_preset_runs_at_the_rate_that_is_carried_and_every_report_begins_with_that(
    tmp_path: Path, carries: Carries, capsys: pytest.CaptureFixture[str]
) -> None:
    carries(200_000_000)
    done, said = run(tmp_path / "out", may_adapt=True)
    assert said[0].startswith("trial: this machine does not carry 1 Gb/s at the moment (lateness")
    assert "so the study runs at 200 Mb/s. What headers take of a frame is the same at any rate" in said[0]
    runs = read(tmp_path / "out").runs
    assert {run.conditions["bits_per_second"] for run in runs} == {200_000_000}
    assert {run.conditions["size_bytes"] for run in runs} == {2_000_000}
    assert (len(runs), any(run.excluded for run in runs)) == (6, False)
    tried = done.summary["trial"]
    assert (tried["asked_bits_per_second"], tried["bits_per_second"]) == (10**9, 200_000_000)
    assert [each["bits_per_second"] // 10**6 for each in tried["attempts"]] == [1000, 1000, 500, 200]
    conforms(done.summary, summary_schema())
    assert cli.main(["report", str(tmp_path / "out"), "--markdown", str(tmp_path / "report.md")]) == 0
    beside = "Run at 200 Mb/s instead of 1 Gb/s, which this machine did not carry at the time (lateness"
    for text in (capsys.readouterr().out, (tmp_path / "report.md").read_text(), done.page.read_text()):
        before, found, after = " ".join(text.split()).partition(beside)
        assert found
        assert "How sure" not in before.split("<body>")[-1]
        assert "MTUs compare as they would at 1 Gb/s in long transfers" in after
    assert cli.main(["report", str(tmp_path / "out"), "--decision"]) == 0
    sheet = as_read((tmp_path / "out/decision.html").read_text())
    assert "Run at 200 Mb/s instead of 1 Gb/s, which this machine did not carry" in sheet
    for text in ((tmp_path / "report.md").read_text(), as_read(done.page.read_text())):
        assert "A trial before the first run found what this machine carries: 1 Gb/s not carried (" in text


def test_what_is_carried_as_it_is_changes_no_word_of_the_answer(tmp_path: Path, carries: Carries) -> None:
    carries(10**9)
    done, said = run(tmp_path / "out", may_adapt=True)
    assert said == ["trial: this machine carries 1 Gb/s"]
    assert done.summary["trial"]["bits_per_second"] == 10**9
    page = as_read(done.page.read_text())
    assert "instead of 1 Gb/s" not in page
    assert "A trial before the first run found what this machine carries: 1 Gb/s carried in" in page
    assert study_file.load(tmp_path / "out/study.yaml") == preset()


def test_a_study_that_states_its_rate_keeps_it(tmp_path: Path, carries: Carries) -> None:
    carries(500_000_000)
    _, said = run(tmp_path / "out")
    assert "but 500 Mb/s. The study keeps its rate and may lose runs" in said[0]
    assert {run.conditions["bits_per_second"] for run in read(tmp_path / "out").runs} == {10**9}


def test_it_ends_where_nothing_is_carried_and_leaves_no_folder(tmp_path: Path, carries: Carries) -> None:
    carries(0)
    with pytest.raises(TooBusy, match="too busy: neither 1 Gb/s nor 100 Mb/s is carried at the moment"):
        run(tmp_path / "out", may_adapt=True)
    assert list(tmp_path.iterdir()) == []


def test_a_resumed_preset_keeps_the_rate_at_which_it_began(tmp_path: Path, carries: Carries) -> None:
    folder, said = tmp_path / "out", []

    def stop(event: Any) -> None:
        if event.number == 3:
            raise KeyboardInterrupt

    def go(resumes: bool, most: int, on_event: Callable[[Any], None] = lambda _: None) -> commands.Finished:
        study = commands.resumed_study(folder, preset(), may_adapt=True) if resumes else preset()
        carries(most)
        return commands.run_study(study, folder, resumes, on_event, said.append, may_adapt=True)

    assert go(False, 200_000_000, stop).outcome.interrupted
    begun = (folder / "study.yaml").read_bytes()
    done = go(True, 10**9)  # more would be carried now
    assert said[-1] == "trial: this machine carries 200 Mb/s"
    assert done.outcome.runs == 6
    assert {run.conditions["bits_per_second"] for run in read(folder).runs} == {200_000_000}
    assert (folder / "study.yaml").read_bytes() == begun
    assert done.summary["trial"]["asked_bits_per_second"] == 10**9
    before = len(said)
    go(True, 0)  # nothing is left to run, so nothing is tried
    assert len(said) == before


def test_a_resumed_preset_warns_where_less_is_carried_than_when_it_began(tmp_path: Path, carries: Carries) -> None:
    carries(200_000_000)
    _, said = run(tmp_path / "out", may_adapt=True)
    study = commands.resumed_study(tmp_path / "out", preset(), may_adapt=True)
    carries(100_000_000)
    commands.run_study(study, tmp_path / "out", True, lambda _: None, said.append, more_blocks=1, may_adapt=True)
    assert "does not carry 200 Mb/s at the moment" in said[1]
    assert "The study keeps its rate" in said[1]
    saved = read(tmp_path / "out")
    assert {run.conditions["bits_per_second"] for run in saved.runs} == {200_000_000}
    assert study_file.load(tmp_path / "out/study.yaml").testbed.link.rate == 200_000_000
    assert saved.plan["trial"]["asked_bits_per_second"] == 10**9


def test_what_ran_is_kept_where_nothing_is_carried_any_more(tmp_path: Path, carries: Carries) -> None:
    carries(10**9)
    run(tmp_path / "out")
    study = commands.resumed_study(tmp_path / "out", None)
    carries(0)
    with pytest.raises(TooBusy):
        commands.run_study(study, tmp_path / "out", True, lambda _: None, lambda _: None, more_blocks=1)
    assert len(read(tmp_path / "out").runs) == 6


def test_a_rack_on_another_machine_is_not_tried(tmp_path: Path) -> None:
    @contextlib.contextmanager
    def elsewhere(study: Study, _: commands.Say) -> Iterator[FakeTestbed]:
        yield FakeTestbed(FakeModel(study.seed, faults=[Fault("late")]))

    said: list[str] = []
    done = commands.run_study(preset(), tmp_path / "out", False, lambda _: None, said.append, elsewhere)
    assert done.summary["trial"] is None
    assert [line for line in said if "trial" in line] == []


def test_interrupted_in_its_trial_a_study_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(FakeTestbed):
        def end(self) -> Any:
            raise KeyboardInterrupt

    monkeypatch.setattr(commands, "_open", lambda *_: Interrupted())
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_only_a_preset_may_have_changed_its_rate(tmp_path: Path, carries: Carries) -> None:
    carries(200_000_000)
    run(tmp_path / "out", may_adapt=True)
    with pytest.raises(InputError, match="found another study"):
        commands.resumed_study(tmp_path / "out", preset())
    other = preset().model_copy(update={"seed": 9})
    with pytest.raises(InputError, match="found another study"):
        commands.resumed_study(tmp_path / "out", other, may_adapt=True)


def test_a_dry_run_and_a_plan_mention_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for words in (["study", "--preset", "demo", "--dry-run"], ["plan", "--preset", "demo"]):
        assert cli.main(words) == 0
        assert "If not, the study runs at 500 Mb/s, 200 Mb/s or 100 Mb/s instead" in capsys.readouterr().out
    for words in (["study", "examples/pair.yaml", "--dry-run"], ["plan", "examples/pair.yaml"]):
        assert cli.main(words) == 0
        assert "If not, it says so, and what helps; it ends if nothing is carried" in capsys.readouterr().out
    assert cli.main(["plan", "--preset", "demo", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trial"] == {
        "bits_per_second": [10**9, 500_000_000, 200_000_000, 100_000_000], "adapts": True,
    }  # fmt: skip
