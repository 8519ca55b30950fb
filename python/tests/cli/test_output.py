"""Files to write, and `-` for standard output."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from helpers.check_lab import Lab

from framegauge.cli import check as cli_check, main as cli, output, rack as cli_rack
from framegauge.errors import InputError


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from helpers.support import STUDY

    folder = tmp_path_factory.mktemp("results")
    (folder / "study.yaml").write_text(STUDY)
    assert cli.main(["study", str(folder / "study.yaml"), "--out", str(folder / "out")]) == 0
    return folder / "out"


@pytest.fixture(autouse=True)
def nothing_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    yield
    assert not Path("-").exists()


@pytest.mark.parametrize(("option", "first"), [("--markdown", "# "), ("--html", "<!doctype html>")])
def test_a_report_to_standard_output_is_all_there(option, first, results, capsys):
    assert cli.main(["report", str(results), option, "-"]) == 0
    printed = capsys.readouterr()
    assert printed.out.lower().startswith(first)
    assert printed.err == ""
    assert cli.main(["report", str(results), option, "file"]) == 0
    assert Path("file").read_text() == printed.out
    assert capsys.readouterr().err == "written: file\n"


def test_a_report_to_a_file_and_to_standard_output(results, capsys):
    assert cli.main(["report", str(results), "--html", "page.html", "--markdown", "-"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("# ")
    assert err == "written: page.html\n"


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--html", "-", "--markdown", "-"], "--html and --markdown"),
        (["--json", "--markdown", "-"], "--json and --markdown"),
    ],
)
def test_two_outputs_on_standard_output_are_an_error(words, options, results, capsys):
    assert cli.main(["report", str(results), *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"framegauge: {options}: found several outputs on standard output, expected one\n"


@pytest.mark.parametrize(("verb", "option"), [("report", "--pictures"), ("study", "--out")])
def test_a_folder_is_no_standard_output(verb, option, results, capsys):
    what = str(results) if verb == "report" else str(results / "study.yaml")
    assert cli.main([verb, what, option, "-"]) == 2
    assert capsys.readouterr().err == f"framegauge: {option}: found -, expected a folder (./- is one of that name)\n"


def test_a_file_of_that_name_can_be_asked_for(results, capsys):
    assert cli.main(["report", str(results), "--markdown", "./-"]) == 0
    assert capsys.readouterr().out
    assert Path("-").read_text().startswith("# ")
    Path("-").unlink()


def test_a_checks_page_on_standard_output(capsys):
    cli_check._write_page(Lab().document(), Path("-"))
    assert capsys.readouterr().out.lower().startswith("<!doctype html>")
    assert cli.main(["check", "local", "netns:a", "--json", "--html", "-"]) == 2
    assert "--json and --html: found several outputs" in capsys.readouterr().err


def test_a_page_that_cannot_be_written_does_not_cost_the_answer(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cli_check, "_checked", lambda *_, **__: Lab((2,)).document())
    monkeypatch.setattr("framegauge.check.open.opened", lambda *_: contextlib.nullcontext(([], [])))
    (tmp_path / "full").symlink_to("/dev/full")
    assert cli.main(["check", "a", "b", "--html", str(tmp_path / "full")]) == 2
    said = capsys.readouterr()
    assert said.out.startswith("All 2 pairs carry packets of 9000 bytes.")
    assert "No space left on device" in said.err


def test_a_capture_on_standard_output(monkeypatch, capfdbinary):
    counted = {"received_frames": 3, "sent_frames": 2, "dropped_frames": 1}
    found = {"packets": 3, "left_out": 0, "port": counted}
    monkeypatch.setattr(cli_rack.hand, "capture", lambda *_: (found, b"pcapng"))
    assert cli.main(["rack", "capture", "switch:h1", "--write", "-"]) == 0
    out, err = capfdbinary.readouterr()
    assert out == b"pcapng"
    assert err == b"framegauge: 3 frames that came to switch>h1, 2 that left, 1 that were dropped\n"
    assert cli.main(["rack", "capture", "switch:h1"]) == 0
    assert Path("switch-h1.pcapng").read_bytes() == b"pcapng"
    assert cli.main(["rack", "capture", "switch:h1"]) == 2


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    place = tmp_path / "page"
    place.write_text("old")
    output.write("--html", place, b"new")
    assert place.read_bytes() == b"new"
    with pytest.raises(InputError, match=r"--html: found no way to write .*page \(File exists\)"):
        output.write("--html", place, b"newer", new=True)
    assert [each.name for each in tmp_path.iterdir()] == ["page"]
    assert place.read_bytes() == b"new"


def test_a_device_is_written_to_and_never_replaced(tmp_path):
    """As root, a rename onto /dev/null would put a file there. A link stands for it here: only the link can be lost."""
    for name in ("null", "full"):
        (tmp_path / name).symlink_to(f"/dev/{name}")
    output.write("--html", tmp_path / "null", b"page")
    with pytest.raises(InputError, match=r"--html: found no way to write .*full \(No space left on device\)"):
        output.write("--html", tmp_path / "full", b"page")
    assert all(each.is_symlink() for each in tmp_path.iterdir())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["full", "null"]


def test_json_is_standard_output_already(results, capsys):
    assert cli.main(["report", str(results), "--json", "--html", "page.html"]) == 0
    assert json.loads(capsys.readouterr().out)["verdicts"]
