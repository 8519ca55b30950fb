"""Words from outside on the terminal: they neither steer it nor look like lines of ours, in any encoding."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.evil import ESCAPES
from helpers.sealing import seal
from helpers.support import STUDY
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from framegauge.cli import main as cli, output
from framegauge.cli.console import PrintableConsole
from framegauge.cli.screen import Screen
from framegauge.errors import FramegaugeError
from framegauge.files import inventory
from framegauge.report import narrow


def steers(text: str) -> bool:
    """Whether a text holds what a terminal obeys, other than colours and line ends."""
    return not all(each.isprintable() or each == "\n" for each in text)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a study, into which somebody has written escape sequences."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "study.yaml").write_text(STUDY)
    assert cli.main(["study", str(folder / "study.yaml"), "--out", str(folder / "out")]) == 0
    path = folder / "out/runs.jsonl"
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    runs[3]["excluded"] = [f"error: {ESCAPES}"]
    for run in runs:
        run["degraded"] = [f"not proved: {ESCAPES}"]
    path.write_text("".join(json.dumps(run, ensure_ascii=False) + "\n" for run in runs))
    return seal(folder / "out")


@pytest.mark.parametrize("verb", ["report", "compare"])
def test_results_do_not_steer_the_terminal(verb, results, capsys, tmp_path):
    shutil.copytree(results, tmp_path / "again")
    cli.main([verb, str(results), *([str(tmp_path / "again")] if verb == "compare" else [])])
    out, err = capsys.readouterr()
    assert "pwned" in out
    assert not steers(out + err)
    assert "\nframegauge: forged" not in out + err


def test_json_of_results_is_the_same_document_without_what_steers(results, capsys):
    cli.main(["report", str(results), "--json"])
    out, _ = capsys.readouterr()
    assert not steers(out)
    assert [ESCAPES in reason for run in json.loads(out)["excluded"] for reason in run["reasons"]] == [True]


def test_colours_of_ours_are_all_that_a_console_adds():
    shown = io.StringIO()
    ours = {"force_terminal": True, "color_system": "standard", "no_color": False, "legacy_windows": False}
    console = PrintableConsole(file=shown, width=60, **ours)
    table = Table(ESCAPES)
    table.add_row(Text(ESCAPES, style="bold"))
    for each in (ESCAPES, Text(ESCAPES, style="red"), table):
        console.print(each, markup=False, highlight=False)
    with Progress(BarColumn(10), TextColumn("{task.description}", markup=False), console=console) as bar:
        bar.add_task(ESCAPES, total=None)
    found = shown.getvalue()
    assert "\x1b[31m" in found
    for bad in ("\x1b]", "\x07", "\x9b", "\u202e", "\x1b[2J"):
        assert bad not in found
    assert "\nframegauge: forged" not in found.split("┏")[0]


def test_a_screen_shows_lines_and_nothing_else():
    shown = io.StringIO()
    with Screen(shown, "xterm") as screen:
        screen.show([ESCAPES])
    assert not steers(shown.getvalue())
    assert shown.getvalue().count("\n") == 1


def test_lines_that_are_printed_are_lines(capsys):
    output.show(ESCAPES, ESCAPES)
    output.say("one\ntwo \x1b[2J")
    out, err = capsys.readouterr()
    assert not steers(out + err)
    assert (out.count("\n"), err) == (2, "framegauge: one\ntwo \N{REPLACEMENT CHARACTER}[2J\n")


@pytest.mark.parametrize("name", ["a\x1b[31mb", "a\nb", "a\u202eb", "a\x9bb", "a\x7f"])
@pytest.mark.parametrize("form", ["{}", '{{"name": {}}}'])
def test_names_of_hosts_are_printable(name, form, tmp_path):
    path = tmp_path / "hosts.yaml"
    path.write_text(f"hosts: [{form.format(json.dumps(name))}]\n")
    with pytest.raises(FramegaugeError, match=r"found .*, expected the name of a host") as error:
        inventory.load(path)
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    "words", [["st\x1b[2Judy\nframegauge: forged"], ["check", "--fo\x1b[2J"], ["report", "\x1b[2J"]]
)
def test_mistakes_in_words_do_not_steer_the_terminal(words, capsys):
    try:
        cli.main(words)
    except SystemExit:
        pass
    out, err = capsys.readouterr()
    assert err
    assert not steers(out + err)
    assert "\nframegauge: forged" not in err


def test_every_encoding_will_do(results):
    command = [sys.executable, "-m", "framegauge", "report", str(results)]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert b"Traceback" not in done.stderr
    assert b"Does it work?" in done.stdout
    done = subprocess.run([*command, "--json"], env=environment, capture_output=True, check=False)
    assert json.loads(done.stdout.decode("ascii"))["question"] == "Does it work?"


def test_no_line_is_wider_than_a_narrow_terminal(results, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    cli.main(["report", str(results)])
    out, _ = capsys.readouterr()
    assert max(map(len, out.splitlines())) <= 40
    rows = [["alpha", "eth0 over bond0 (-4 B)", "virtio_net", "10 Gb/s", "1500 of 9000", "tso gso gro", "Linux 6.1"]]
    head = ["host", "interface", "driver", "speed", "MTU", "offloads on", "rest"]
    lines = list(narrow.aligned(head, rows, 40))
    assert lines[0] == "alpha"
    assert "  MTU: 1500 of 9000" in lines
    assert max(map(len, lines)) <= 40
    (_, row) = narrow.aligned(head, rows, 10_000)
    assert row.split("  ") == rows[0]
