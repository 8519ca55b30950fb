"""Every page on a phone of 390 pixels: each row of a table is a card, whose cells lie inside the window with their names."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import test_check_page, test_decide_page
from helpers.pages import Opened
from helpers.support import ROOT
from rollout.test_ticket import folder as journal

from framegauge.diagnose import run as diagnosis
from framegauge.diagnose.page import html as diagnose_page
from framegauge.report.check import html as check_page
from framegauge.rollout import ticket

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["journal"]  # a fixture

PHONE, DESK = 390, 1400
CAPTURE = ROOT / "python/tests/recorded/diagnosis/lost-tail-33.pcapng.gz"


def outside(page: Page) -> list[str]:
    """Cells of tables that are cards, and reach beyond the window."""
    cells: list[str] = page.eval_on_selector_all(
        ".cards :is(td, th):not(:empty)",
        """all => all.filter(one => one.checkVisibility() && one.getBoundingClientRect().right > innerWidth)
            .map(one => one.textContent)""",
    )
    return cells


def held(path: Path, opened: Opened) -> Page:
    """A page on a phone, once it is held to fit it."""
    page = opened(path, PHONE, 844)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert outside(page) == []
    assert page.eval_on_selector_all(".cards", "all => all.every(one => one.scrollWidth <= one.clientWidth)")
    assert page.locator(".cards thead:visible").count() == 0
    return page


def test_a_decision_has_its_verdict_on_the_screen(tmp_path: Path, opened: Opened) -> None:
    path = test_decide_page.written(tmp_path, test_decide_page.good())
    verdict = held(path, opened).locator("td[data-label=verdict]").first
    assert verdict.inner_text() == "better"
    assert "verdict" in verdict.evaluate("one => getComputedStyle(one, '::before').content")
    assert opened(path, DESK).locator("thead").first.is_visible()


def test_a_ticket_has_its_commands_on_the_screen(journal: Path, tmp_path: Path, opened: Opened) -> None:
    path = tmp_path / "ticket.html"
    path.write_bytes(ticket.bundle(ticket.read(journal))["ticket.html"])
    page = held(path, opened)
    assert page.locator("td[data-label=undo]").first.is_visible()
    assert page.locator("td[data-label=db2]").first.inner_text().startswith("✓ passes")


def test_a_check_of_many_hosts_scrolls_its_matrix_and_not_the_page(tmp_path: Path, opened: Opened) -> None:
    lab = test_check_page.Lab((6, 6))
    lab.fault(lab.some(lambda one, other: "c" in (one, other)), hops=[("10.1.0.254", "silent")])
    path = tmp_path / "check.html"
    path.write_text(check_page.page(lab.document(), "today"), "utf-8")
    page = held(path, opened)
    assert page.locator("td[data-label='path MTU']").first.inner_text() == "1500"
    assert page.locator(".matrix").first.is_visible()


@pytest.mark.agent
def test_a_diagnosis_fits(tmp_path: Path, opened: Opened) -> None:
    capture = tmp_path / "capture.pcapng"
    capture.write_bytes(gzip.decompress(CAPTURE.read_bytes()))
    path = tmp_path / "page.html"
    path.write_text(diagnose_page.page(diagnosis.diagnose([capture]), {}), "utf-8")
    assert "ms" in held(path, opened).locator("td[data-label=lost]").first.inner_text()
