"""`framegauge reproduce`: published figures listed, run again in the simulator, read again, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import pages

from framegauge.cli.main import main

agent = pytest.mark.agent
DOCUMENT = """\
document: mine
title: A paper of mine
source: nowhere
set_up: two hosts
studies: {pair: {testbeds: [simulator]}}
figures:
  - id: mine-1
    place: pair
    case: 10 MB
    quantity: goodput
    published: about +5 %
    ratio: [1.03, 1.07]
    read: {study: pair, level: 9000}
  - id: mine-2
    place: pair
    case: 10 MB
    quantity: goodput
    published: twice as fast
    ratio: [1.9, 2.1]
    read: {study: pair, level: 9000}
  - id: mine-3
    place: tunnel
    case: underlay 9000
    quantity: inner MTU
    published: "8950"
    value: [8950, 8950]
    wire: {value: inner_mtu, mtu: 9000, encapsulations: [vxlan]}
  - id: mine-4
    place: pair
    case: CPU
    quantity: share of a CPU
    published: 10 %
    not_carried: a CPU of long ago
"""
PAIR = """\
question: Does it?
testbed: {kind: simulator, topology: pair, link: {rate: 1 Gb/s}}
factors:
  mtu: {levels: [1500, 9000], baseline: 1500}
workloads:
  - stream: {size: 10 MB}
blocks: 2
stop: blocks
control: false
margins: {goodput: 1 %}
"""


def paper(folder: Path) -> str:
    """A document of one's own with its study; its path."""
    (folder / "pair.yaml").write_text(PAIR)
    path = folder / "document.yaml"
    path.write_text(DOCUMENT)
    return str(path)


def statuses(text: str) -> dict[str, str]:
    """What became of each figure, by the JSON that was printed."""
    found: dict[str, Any] = json.loads(text)
    return {each["id"]: each["status"] for one in found["documents"] for each in one["figures"]}


@agent
def test_figures_of_a_paper_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, html, markdown = tmp_path / "out", tmp_path / "page.html", tmp_path / "page.md"
    words = ["reproduce", "--document", paper(tmp_path), "--seeds", "2", "--out", str(out)]
    assert main([*words, "--json", "--html", str(html), "--markdown", str(markdown)]) == 0
    found = statuses(capsys.readouterr().out)
    assert found == {
        "mine-1": "agrees", "mine-2": "differs, unexplained", "mine-3": "agrees", "mine-4": "not carried here",
    }  # fmt: skip
    assert html.read_text() == (out / "report.html").read_text()
    pages.check(html.read_text())
    assert "| mine-1 | pair: 10 MB; goodput | about +5 % |" in markdown.read_text()
    # Read again: nothing is left to run, and the same is said.
    runs = (out / "simulator/mine-pair/runs.jsonl").read_bytes()
    assert main(["reproduce", "--resume", "--out", str(out), "--dry-run"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["reproduce", "--resume", "--out", str(out), "--json"]) == 0
    assert statuses(capsys.readouterr().out) == found
    assert (out / "simulator/mine-pair/runs.jsonl").read_bytes() == runs


@agent
def test_figures_that_are_named_one_by_one_run_their_studies_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["reproduce", "vxlan-2017-09", "server-2000-08", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "vxlan-2017: 1 figure: 1 agrees" in printed
    assert "server-2000: 1 figure: 1 agrees" in printed
    assert sorted(path.name for path in out.iterdir()) == ["report.html", "reproduction.json"]


@agent
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("figure", "status"), [("outcast-dissertation-10", "agrees"), ("jumbo-2013-28", "differs, explained in part")]
)
def test_the_short_form_of_a_document_is_simulated(
    figure: str, status: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", figure, "--testbed", "simulator", "--seeds", "2", "--out", str(tmp_path / "out"), "--json"]
    assert main(words) == 0
    assert statuses(capsys.readouterr().out) == {figure: status}


@agent
def test_what_was_interrupted_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    words = ["reproduce", "--document", paper(tmp_path), "--seeds", "2", "--out", str(out)]
    assert main(words) == 0
    # As if it had ended before the study was over: its results are there, and are not made again.
    file = out / "reproduction.json"
    state = json.loads(file.read_text())
    assert state["over"] == ["simulator/mine/pair"]
    file.write_text(json.dumps({**state, "over": []}))
    assert main(["reproduce", "--resume", "--out", str(out)]) == 0
    assert json.loads(file.read_text())["over"] == ["simulator/mine/pair"]
    assert "3 not" not in capsys.readouterr().out


def test_the_documents_and_the_figures_of_one_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in ("jumbo-2013", "outcast-2014", "vxlan-2017", "server-2000", "ceph-2022"))
    assert main(["reproduce", "--list", "--document", "vxlan-2017"]) == 0
    assert "vxlan-2017-09" in capsys.readouterr().out
    assert main(["reproduce", "--list", "--json"]) == 0
    assert sum(len(each["figures"]) for each in json.loads(capsys.readouterr().out)["documents"]) > 130


def test_a_dry_run_says_what_runs_where_and_what_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--document", "jumbo-2013", "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "studies on the rack, at most" in printed
    assert "left out: terasort: Hadoop on thirteen hosts" in printed
    assert main(["reproduce", "jumbo-2013-32", "--dry-run"]) == 0
    assert "left out" not in capsys.readouterr().out
    assert main(["reproduce", "jumbo-2013-08", "--testbed", "simulator", "--seeds", "2", "--dry-run"]) == 0
    assert capsys.readouterr().out == "jumbo-2013: 1 study in the simulator, 24 runs\n"
    # A study may have more seeds than others, unless as many are asked for.
    assert main(["reproduce", "outcast-dissertation-22", "--testbed", "simulator", "--dry-run"]) == 0
    assert capsys.readouterr().out == "outcast-2014: 1 study in the simulator, 1200 runs\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "found no FIGURE, --document or --all, expected one"),
        (["jumbo-2013-8"], "found no figure 'jumbo-2013-8': did you mean"),
        (["--document", "jumbo"], "--document: found 'jumbo', expected \"jumbo-2013\""),
        (["jumbo-2013-08", "--seeds", "0"], "--seeds: found 0, expected a whole number from 1"),
        (["--resume"], "--resume: found no --out"),
        (["--resume", "--all", "--out", "."], "--resume: found --all beside it"),
        (["--resume", "--out", "."], "reproduction.json: found no readable file"),
        (["--all", "--out", "-"], "--out: found -, expected a folder"),
    ],
)
def test_what_is_refused(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *words]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "damage", ['{"schema_version": 1}', "[]", "{", '{"schema_version": 1, "documents": {"vxlan-2017": ["none"]}}']
)
def test_a_damaged_folder_is_named(tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "reproduction.json").write_text(damage)
    assert main(["reproduce", "--resume", "--out", str(tmp_path)]) == 2
    assert f"{tmp_path}/reproduction.json: " in capsys.readouterr().err


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("")
    assert main(["reproduce", "vxlan-2017-09", "--out", str(tmp_path)]) == 2
    assert "which is not empty, expected a new folder, or --resume" in capsys.readouterr().err
