"""The page's tables of a live switch, from readings as runs have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from helpers import pages
from helpers.sealing import seal
from helpers.support import STUDY

from framegauge.cli import commands
from framegauge.report.markdown import markdown
from framegauge.report.page import html, switch
from framegauge.report.pictures import material
from framegauge.report.pictures.material import Material
from framegauge.results.journal import read
from framegauge.study import file as study_file
from framegauge.summary import document as summary


def rates(operations: float, latency: float) -> dict[str, float]:
    return {
        "seconds": 1.0, "operations_per_second": operations, "mean_latency_seconds": latency,
        "packets_per_second": 8 * operations,
    }  # fmt: skip


def client(host: str, switched: bool, after: float, stall: float) -> dict[str, Any]:
    """100 operations a second before; latency in inverse proportion."""
    return {
        "host": host, "switched": switched, "before": rates(100, 0.01), "after": rates(after, 1 / after),
        "usual_gap_seconds": 0.012, "stall_seconds": stall,
    }  # fmt: skip


def gathered(folder: Path, clients: list[dict[str, Any]]) -> Material:
    """What a report is made of: a study on the invented network with this reading in every run."""
    asked = study_file.parse(STUDY.replace("blocks: 6", "blocks: 3"), "study.yaml")
    commands.run_study(asked, folder, False, lambda _: None, lambda _: None)
    told = {"begun_seconds": 1.0, "ended_seconds": 1.1, "clients": clients, "kept": []}
    runs = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    for each in runs:
        each["readings"]["switch"] = told
    (folder / "runs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in runs))
    saved = read(seal(folder))
    return material.gather(saved, summary.summarise(saved))


def page_of(folder: Path, clients: list[dict[str, Any]]) -> tuple[str, str]:
    """The tables, and the whole page."""
    found = gathered(folder, clients)
    return pages.as_read(switch.tables(found)), html.page(found)


def rows_of(text: str) -> list[list[str]]:
    """The cells of every row of the arm MTU 9000, without the comparison."""
    rows = [
        [
            cell.partition(">")[2].partition("<")[0]
            for cell in row.partition("</tr>")[0].replace("<td", "<th").split("<th")[1:]
        ]
        for row in pages.as_read(text).split("<tr>")[1:]
    ]
    return [row[2:] for row in rows if row[1] == "MTU 9000"]


def test_hosts_that_are_not_switched_are_taken_from_those_that_are(tmp_path: Path) -> None:
    """Switched hosts go from 100 to 150, the others to 125 meanwhile: 1.5 / 1.25 = 1.2."""
    text, _ = page_of(tmp_path / "out", [client("h1", True, 150, 0.2), client("h2", False, 125, 0.02)])
    assert rows_of(text) == [
        ["switched", "100", "150", "10 ms", "6.667 ms", "800", "1200", "12 ms", "200 ms", "0"],
        ["not switched", "100", "125", "10 ms", "8 ms", "800", "1000", "12 ms", "20 ms", "0"],
        ["packets per second", "800", "1200", "1.500", "1.200", "1.200 to 1.200", "5 %", "3", "worse"],
        ["mean latency", "10 ms", "6.667 ms", "0.667", "0.833", "0.833 to 0.833", "5 %", "3", "better"],
        ["operations per second", "100", "150", "1.500", "1.200", "1.200 to 1.200", "5 %", "3", "better"],
    ]


def test_without_others_there_is_before_and_after_alone(tmp_path: Path) -> None:
    text, page = page_of(tmp_path / "out", [client("h1", True, 150, 0.2)])
    assert [row[4] for row in rows_of(text)[1:]] == ["-", "-", "-"]
    pages.check(page)


def test_markdown_has_the_same_tables(tmp_path: Path) -> None:
    text = markdown(gathered(tmp_path / "out", [client("h1", True, 150, 0.2), client("h2", False, 125, 0.02)]))
    section = text.partition("## Before and after the switch\n")[2].partition("\n## ")[0]
    lines = [line.split(" | ") for line in section.splitlines() if "MTU 9000" in line]
    assert [line[2:4] for line in lines[:2]] == [["switched", "100"], ["not switched", "100"]]
    assert [line[2] for line in lines[2:]] == ["packets per second", "mean latency", "operations per second"]
    assert lines[2][-1] == "worse |"
