"""A command at the end of a study: what it is told, and that nothing of it changes how the study ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.support import STUDY

from framegauge.cli import commands, main, notify
from framegauge.errors import FramegaugeError, Interrupted

TELL = 'printf "%s|%s|%s" "$FRAMEGAUGE_RESULTS" "$FRAMEGAUGE_VERDICT" "$FRAMEGAUGE_ANSWER" > told'


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("fake.yaml").write_text(STUDY)
    return tmp_path


def test_it_is_told_the_folder_and_the_verdict(place: Path) -> None:
    assert main.main(["study", "fake.yaml", "--out", "out", "--notify", TELL]) == 0
    folder, verdict, answer = Path("told").read_text().split("|")
    assert (folder, verdict) == (str(place / "out"), "Yes")
    assert answer.startswith("Yes: jumbo frames (MTU 9000) ")


def test_a_study_that_fails_is_told_as_well(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise FramegaugeError("the agent ended")

    monkeypatch.setattr(commands, "run_study", fail)
    assert main.main(["study", "fake.yaml", "--out", "out", "--notify", TELL]) == 1
    assert Path("told").read_text() == f"{place / 'out'}|failed|the agent ended"


def test_whoever_interrupts_it_knows(place: Path) -> None:
    with pytest.raises(Interrupted), notify.at_end(place, TELL):
        raise Interrupted("interrupted after 1 of 9 runs")
    assert not Path("told").exists()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo no such address >&2; exit 67", "found exit code 67 (no such address), expected 0"),
        ("no-such-program", "found exit code 127 (sh: "),
        ("sleep 1000 & wait", "found it running after 0.2 s, and ended it"),
        ("true\0", "found no way to run it (embedded null byte)"),
    ],
)
def test_its_failure_is_one_line_and_no_failure_of_the_study(
    command: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "MOST_SECONDS", 0.2 if "sleep" in command else 100.0)
    assert main.main(["study", "fake.yaml", "--out", "out", "--notify", command]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "--notify" in line]
    assert len(lines) == 1
    assert lines[0].startswith(f"framegauge: --notify: {said}")
    assert lines[0].endswith("; the study is not affected")
