"""The page's section on a web site, from records as the workload writes them."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from helpers import pages
from helpers.sealing import seal
from helpers.support import STUDY

from framegauge.cli import commands
from framegauge.errors import CorruptResults
from framegauge.report.page import html, web
from framegauge.report.pictures import material
from framegauge.results.journal import Saved, read
from framegauge.study import file as study_file
from framegauge.summary import document as summary

TIMES = {"count": 5, "mean_seconds": 0.02, "p50_seconds": 0.02, "p90_seconds": 0.04}
WEB: dict[str, Any] = {
    "cpu": {"web-1": {"mean": 0.25, "most": 0.5, "least": 0.125, "seconds": 4}},
    "flows": {
        "driver": {"connections": 4, "bytes": [100, 2000, 3000]},
        "web-1": {"connections": 2, "bytes": []},
        "<b>": {"connections": 0, "bytes": []},
    },
    "by_operation": {"home": TIMES},
    "parts": {"thumbnail": TIMES},
}


def with_web(folder: Path, found: dict[str, Any]) -> Saved:
    """A study on the invented network, to whose records the results of a site are added."""
    asked = study_file.parse(STUDY.replace("blocks: 6", "blocks: 2"), "study.yaml")
    commands.run_study(asked, folder, False, lambda _: None, lambda _: None)
    for path in (folder / "runs").glob("*/record.json"):
        record = json.loads(path.read_text())
        record["workload"]["web"] = found
        path.write_text(json.dumps(record))
    return read(seal(folder))


def test_components_and_times_have_a_row_for_each_arm(tmp_path: Path) -> None:
    saved = with_web(tmp_path / "out", WEB)
    found = material.gather(saved, summary.summarise(saved))
    text = pages.as_read(web.section_of(found))
    pages.check(html.page(found))
    assert "<b>" not in text
    rows = [
        [
            cell.partition(">")[2].partition("<")[0]
            for cell in row.partition("</tr>")[0].replace("<td", "<th").split("<th")[1:]
        ]
        for row in unescape(text.replace("&lt;b&gt;", "strange")).split("<tr>")[1:]
    ]
    mine = [[row[1], *row[3:]] for row in rows if row[2] == "MTU 9000"]
    assert mine == [
        ["driver", "-", "-", "-", "4", "2 kB", "3 kB"],
        ["web-1", "25.0 %", "50.0 %", "12.5 %", "2", "-", "-"],
        ["strange", "-", "-", "-", "0", "-", "-"],
        ["home", "10", "20 ms", "40 ms"],
        ["part: thumbnail", "10", "20 ms", "40 ms"],
    ]


def test_the_sizes_of_connections_are_a_chart_with_a_line_for_each_arm(tmp_path: Path) -> None:
    saved = with_web(tmp_path / "out", WEB)
    found = material.gather(saved, summary.summarise(saved))
    (chart,) = found.of("web")
    assert chart.text == "driver: median 2 kB / 2 kB / 2 kB."
    text = pages.as_read(web.section_of(found))
    assert text.count("<svg") == 1
    drawn = text.partition("<svg")[2].partition("</svg>")[0]
    for words in (">driver<", ">MTU 1500<", ">MTU 1500 (A/A)<", ">MTU 9000<", ">100 B<", ">1 kB<", ">10 kB<"):
        assert words in drawn, words
    assert not re.search(r"#[0-9a-f]{6}", drawn)  # all colours are those of the page's theme
    assert ">web-1<" not in drawn  # none of its connections has a size


def test_the_steps_until_saturation_have_a_row_for_each_number_of_users(tmp_path: Path) -> None:
    def step(users: int, seconds: float) -> dict[str, Any]:
        judged = {
            "home": {"found_seconds": seconds, "limit_seconds": 1.0},
            "event": {"found_seconds": 0.1, "limit_seconds": 2.0},
        }
        beyond = [] if seconds <= 1 else ["home: found 2 s at 90 %, expected at most 1 s"]
        return {"users": users, "operations_per_second": users / 5, "judged": judged, "beyond": beyond}

    saved = with_web(tmp_path / "out", {**WEB, "steps": [step(50, 0.25), step(100, 2.0)]})
    text = pages.as_read(web.section_of(material.gather(saved, summary.summarise(saved))))
    rows = text.partition("Steps until the site was saturated</caption>")[2].partition("</table>")[0].split("<tr>")[2:]
    cells = [re.findall(r"<t[hd][^>]*>([^<]*)<", row) for row in rows]
    assert [[row[1], *row[3:]] for row in cells if row[2] == "MTU 9000"] == [
        ["50", "2", "10", "home: 250 ms of 1 s", "2 of 2"],
        ["100", "2", "20", "home: 2 s of 1 s", "0 of 2"],
    ]


def test_a_record_that_is_no_site_is_named(tmp_path: Path) -> None:
    saved = with_web(tmp_path / "out", {**WEB, "cpu": {"web-1": {"mean": "much"}}})
    with pytest.raises(CorruptResults, match=r"workload\.web\.cpu\.web-1\.mean: found \"much\""):
        material.gather(saved, summary.summarise(saved))
