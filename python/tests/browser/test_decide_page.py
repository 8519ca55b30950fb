"""The page of a decision without a study, and with one: one sheet, no wider than the window, readable by everyone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser.conftest import Opened
from browser.test_decision_page import FORBIDDEN, sheets
from decide.test_judge import entry, facts
from helpers.check_lab import Lab
from helpers.pages import HOSTILE, as_read
from summary.test_sentence import BETTER, INSIDE, one, summary

from framegauge.decide import judge, page
from framegauge.decide.steps import Found
from framegauge.report.drawings import drawings
from framegauge.report.page import decision as decision_page


def found(hosts: int, lab: Lab, study: dict[str, Any] | None, left_out: dict[str, str]) -> Found:
    read = facts(*[9710] * hosts)
    for host in read["hosts"]:
        host["interfaces"][0] |= {"bits_per_second": 10**10}
    return Found(read, None, Lab((2,)).document(), lab.document(), study is not None, None, study, left_out)


def written(folder: Path, of: Found, place: str = "results/decide") -> Path:
    asked = page.Situation("Should these hosts run jumbo frames (MTU 9000)?", "measured", 9000, Path(place), False)
    shown = page.decision(asked, of, judge.conclude(of.paths(9000), of.benefit(9000)))
    drawn = drawings(of.target, of.summary)
    path = folder / "decision.html"
    path.write_text(decision_page.page(shown, drawn), "utf-8")
    return path


def many() -> Found:
    lab = Lab((6, 6))
    lab.fault(lab.some(lambda one, other: "c" in (one, other) or "h" in (one, other)), hops=[("10.1.0.254", "silent")])
    return found(12, lab, None, {"study": HOSTILE * 20, "check-raised": "the hosts have that MTU"})


def good() -> Found:
    levels = [entry("goodput", 4200) | {"margin": 0.01, "largest": {"mtu": 9000}, "steps": [
        {"mtu": 4200, "enough": "enough", "ratio": 1.0, "interval": [0.999, 1.001]},
        {"mtu": 1500, "enough": "not enough", "ratio": 0.95, "interval": [0.949, 0.951]},
    ], "settled": True}]  # fmt: skip
    study = summary(one(BETTER), one(INSIDE, "latency_p50"), scope="measured", smallest_levels=levels)
    return found(3, Lab((3,)), study, {})


@pytest.mark.parametrize("make", [many, good])
def test_it_prints_on_one_sheet_and_is_no_wider_than_the_window(make: Any, tmp_path: Path, opened: Opened) -> None:
    path = written(tmp_path, make(), HOSTILE.replace("/", "") if make is many else "results/decide")
    assert sheets(path, opened) == 1
    shown = opened(path, 1280, 740)
    for width in (1280, 360):
        shown.set_viewport_size({"width": width, "height": 740})
        assert shown.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0, width


def test_it_has_the_matrix_of_the_paths_and_one_chart_of_the_effect(tmp_path: Path, opened: Opened) -> None:
    shown = opened(written(tmp_path, good()))
    assert shown.locator(".matrix td.c").count() == 6
    assert shown.get_by_role("heading", name="Which paths carry 9000 bytes").is_visible()
    assert shown.locator(".drawings svg.chart").count() == 1
    below, above = (shown.locator(name).bounding_box() for name in ("#decision-verdicts", ".drawings"))
    assert above["y"] < below["y"]
    shown.emulate_media(media="print")
    assert shown.locator(".drawings").is_visible()
    cut_off = shown.locator(".drawings").evaluate("one => one.scrollHeight - one.clientHeight")
    assert cut_off <= 0
    larger = tmp_path / "many"
    larger.mkdir()
    many_hosts = opened(written(larger, many()))
    assert many_hosts.locator(".matrix td.b").count() == 42
    many_hosts.emulate_media(media="print")
    assert many_hosts.locator(".drawings").evaluate("one => one.scrollHeight - one.clientHeight") <= 0


def test_axe_finds_nothing_serious_and_the_answer_is_marked(tmp_path: Path, opened: Opened) -> None:
    from axe_playwright_python.sync_playwright import Axe

    shown = opened(written(tmp_path, good()))
    wrong = [each["id"] for each in Axe().run(shown).response["violations"] if each["impact"] in FORBIDDEN]
    assert not wrong
    assert shown.locator(".answer.better").inner_text().endswith("all 6 pairs carry packets of 9000 bytes.")
    assert "Do it: " in shown.locator(".answer").inner_text()
    assert "MTU 4200 is enough" in as_read(shown.locator(".beside-answer").inner_text())
