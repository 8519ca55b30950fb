"""`framegauge examples` and `framegauge docs`: what somebody reads and copies who has only the wheel."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import webbrowser
from pathlib import Path

import pytest
from helpers.support import ROOT

from framegauge.cli import docs as cli_docs, main as cli, simulate
from framegauge.shipped import examples, pages


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """What a command prints, or its error."""
    assert cli.main(list(words)) == code
    out, err = capsys.readouterr()
    return err if code else out


def test_the_help_of_all_names_both() -> None:
    text = cli.parser().format_help()
    assert "framegauge examples pair --copy ." in text
    assert "framegauge docs check" in text


def test_all_examples_are_listed_with_durations(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    lines = printed(capsys, "examples").splitlines()
    (pair,) = [line for line in lines if line.startswith("pair ")]
    assert pair.split()[1:4] == ["study", "3", "min"]
    listed = json.loads(printed(capsys, "examples", "--json"))["examples"]
    assert [entry["name"] for entry in listed] == examples.names()
    by_name = {entry["name"]: entry for entry in listed}
    assert by_name["simulate"]["command"] == "framegauge simulate"
    assert by_name["faults/clean"]["command"] == "framegauge check --testbed"
    assert by_name["faults/clean"]["seconds"] is None
    assert by_name["inventory/hosts"]["command"] == "framegauge hosts"
    assert by_name["rollout/storage"]["command"] == "framegauge rollout plan"


def test_an_example_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "examples/faults/clean.yaml").read_text()
    assert printed(capsys, "examples", "clean") == text
    assert json.loads(printed(capsys, "examples", "clean", "--json"))["examples"][0]["text"] == text
    assert "expected one to print, or --copy" in printed(capsys, "examples", "pair", "rack", code=2)


def test_examples_are_copied_with_what_they_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "new"
    out = printed(capsys, "examples", "ssh-rack", "clean", "--copy", str(folder))
    names = ["ssh-rack.yaml", "inventory/hosts.yaml", "faults/clean.yaml"]
    assert out.splitlines() == [f"wrote {folder / name}" for name in names]
    assert sorted(path for path in folder.rglob("*") if path.is_file()) == sorted(folder / name for name in names)
    assert printed(capsys, "study", str(folder / "ssh-rack.yaml"), "--dry-run")


def test_a_simulation_is_a_preset_without_the_verb_in_its_name_too() -> None:
    path = ROOT / "examples/simulate-incast.yaml"
    assert simulate._preset("incast") == simulate._preset("simulate-incast") == path


def test_all_examples_are_copied_as_they_lie(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    written = json.loads(printed(capsys, "examples", "--copy", str(tmp_path), "--json"))["written"]
    for path in (ROOT / "examples").rglob("*"):
        if path.is_file():
            copy = tmp_path / path.relative_to(ROOT / "examples")
            assert str(copy) in written
            assert copy.read_bytes() == path.read_bytes()


def test_nothing_is_overwritten(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "rack.yaml").write_text("mine")
    error = printed(capsys, "examples", "pair", "rack", "--copy", str(tmp_path), code=2)
    assert error == f"framegauge: --copy: found {tmp_path}/rack.yaml, expected no such file: nothing was copied\n"
    assert (tmp_path / "rack.yaml").read_text() == "mine"
    assert list(tmp_path.iterdir()) == [tmp_path / "rack.yaml"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("examples pear", "examples: found no example 'pear': did you mean 'pair'?"),
        ("examples klean", "examples: found no example 'klean': did you mean 'clean'?"),
        ("examples qqq", "examples: found no example 'qqq', expected one that `framegauge examples` lists"),
        ("docs wach", "docs: found no topic 'wach': did you mean 'watch'?"),
        ("docs qqq", "docs: found no topic 'qqq', expected one that `framegauge docs` lists"),
        ("docs iscsi", "docs: found no topic 'iscsi', expected one that `framegauge docs` lists; with this word: "),
        ("docs --open --html -", "--html: found -, expected a file that --open can show"),
        ("simulate --preset pair", "--preset: found \"pair\", expected one of simulate, simulate-arrivals"),
        ("simulate", "simulate: found neither FILE nor --preset, expected one"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_one_line(words: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, *words.split(), code=2).startswith(f"framegauge: {line}")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("study pair", "pair"), ("study examples/pair.yaml", "pair"), ("plan pair.yaml", "pair"),
        ("simulate simulate", "simulate"), ("hosts examples/inventory/hosts.yaml", "inventory/hosts"),
        ("rack up examples/faults/clean.yaml", "faults/clean"), ("rollout plan storage.yaml", "rollout/storage"),
        ("check --testbed clean", "faults/clean"), ("decide --testbed clean --dry-run", "faults/clean"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_there_but_an_example_says_how_to_get_it(
    words: str, name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"; it is an example: framegauge examples {name} --copy .\n" in printed(capsys, *words.split(), code=2)


def test_a_file_that_is_no_example_says_nothing_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert "example" not in printed(capsys, "study", "none.yaml", code=2)


def test_topics_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "docs")
    assert all(f"\n{entry.name} " in out for entry in pages.topics())
    listed = json.loads(printed(capsys, "docs", "--json"))["topics"]
    assert [entry["page"] for entry in listed] == [entry.page for entry in pages.topics()]
    (topic,) = json.loads(printed(capsys, "docs", "check", "--json"))["topics"]
    assert topic["markdown"] == (ROOT / "docs/how-to/check.md").read_text()


@pytest.mark.thorough
@pytest.mark.parametrize("page", [entry.page for entry in pages.topics()])
def test_a_page_is_readable_and_its_links_are_commands(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "docs", page)
    assert max(map(len, text.splitlines())) <= 120
    assert "\x1b" not in text
    assert "](" not in text
    topic = pages.named(page)
    assert topic is not None
    opened = [
        child
        for token in cli_docs.markdown(topic).parsed
        for child in token.children or ()
        if child.type == "link_open"
    ]
    for link in opened:
        target = str(link.attrs["href"])
        assert "://" in target or pages.named(target.removeprefix("framegauge docs ")), target


def test_a_page_whose_commands_name_examples_says_where_they_come_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "docs", "storage").rstrip().endswith(cli_docs.EXAMPLES)
    assert cli_docs.EXAMPLES not in printed(capsys, "docs", "fidelity")


def test_the_word_of_a_reader_leads_to_the_pages_that_have_it() -> None:
    assert "storage" in pages.with_word("iSCSI")[:3]
    assert pages.with_word("cite") == ["reproduce"]
    assert pages.with_word("qqq") == []


def test_a_page_has_headings_and_tables(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "docs", "networks")
    assert "Networks and queues" in text.splitlines()[0]
    assert "─────" in text
    assert "\nTopology\n" in text


def test_all_pages_are_written_as_one_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert printed(capsys, "docs", "--html", str(tmp_path / "docs.html")) == ""
    assert (tmp_path / "docs.html").read_text().endswith("</html>\n")
    assert printed(capsys, "docs", "--html", "-") == (tmp_path / "docs.html").read_text()


@pytest.mark.parametrize("is_there", [True, False])
def test_the_browser_gets_a_file_that_stays(
    is_there: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or is_there)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cli.main(["docs", "capture", "--open"]) == (0 if is_there else 1)
    (path,) = (tmp_path / "framegauge").iterdir()
    assert opened == [f"{path.as_uri()}#reference-capture"]
    assert ("found no browser" in capsys.readouterr().err) is not is_there


@pytest.mark.parametrize("pager", ["sed s/^/read:/", "no-such-pager"])
def test_on_a_terminal_a_page_is_shown_by_the_pager_of_the_user(pager: str) -> None:
    main, terminal = pty.openpty()
    command = [sys.executable, "-m", "framegauge", "docs", "how-it-works"]
    environment = {**os.environ, "PAGER": pager, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=terminal, env=environment) as process:
        os.close(terminal)
        text = b""
        try:
            while data := os.read(main, 1 << 16):
                text += data
        except OSError:  # how a terminal says that nobody has it open any more
            pass
        os.close(main)
    assert process.returncode == 0
    assert b"\x1b[" in text
    assert (b"read:" in text) is (pager != "no-such-pager")
