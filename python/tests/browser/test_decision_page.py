"""The decision as people meet it: one sheet of paper, no wider than the window, and readable by everyone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser.conftest import Opened
from helpers import decisions, pages
from summary.test_sentence import BETTER, one, summary

from framegauge.report.decision import content
from framegauge.report.page import decision

FORBIDDEN = ("serious", "critical")
# Characters of every text, and items of every list: everything fits, lists are cut, texts are as well.
SIZES = [(30, 2), (150, 4), (1000, 100)]


@pytest.fixture
def nasty(tmp_path: Path) -> Path:
    """Of a study whose names are long and want to be markup."""
    name = pages.HOSTILE * 4
    verdicts = [one(BETTER, workload=f"{name}{number}", conditions={name: name}) for number in range(9)]
    return write(tmp_path, content.decide(summary(*verdicts, question=name, caveats=[name] * 9), Path(name)))


@pytest.fixture
def long(tmp_path: Path) -> Path:
    return write(tmp_path, decisions.longest())


def write(folder: Path, found: decision.Decision) -> Path:
    path = folder / "decision.html"
    path.write_text(decision.page(found), "utf-8")
    return path


def sheets(path: Path, opened: Opened) -> int:
    printed = opened(path).pdf(prefer_css_page_size=True)
    assert re.search(rb"/MediaBox \[0 0 59\d(\.\d+)? 84\d", printed)  # A4
    return len(re.findall(rb"/Type /Page\b", printed))


@pytest.mark.parametrize(("size", "count"), SIZES)
def test_it_prints_on_one_sheet_however_much_there_is_to_say(
    size: int, count: int, tmp_path: Path, opened: Opened
) -> None:
    assert sheets(write(tmp_path, decisions.longest(size, count)), opened) == 1


def test_foreign_names_do_not_make_it_longer(nasty: Path, opened: Opened) -> None:
    assert sheets(nasty, opened) == 1


@pytest.mark.parametrize("name", ["long", "nasty"])
def test_nothing_is_wider_than_the_window(name: str, opened: Opened, request: pytest.FixtureRequest) -> None:
    page = opened(request.getfixturevalue(name), 1280, 740)
    for width in (1280, 768, 360):
        page.set_viewport_size({"width": width, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0, width


def test_axe_finds_nothing_serious(long: Path, opened: Opened) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = opened(long)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = Axe().run(page).response["violations"]
        wrong = [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in FORBIDDEN]
        assert not wrong, scheme
