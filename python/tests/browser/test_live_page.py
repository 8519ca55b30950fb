"""The live page in a browser: it follows the runs without a load, then becomes the report; also without JavaScript."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser.test_page import FORBIDDEN, PHONE, overflow
from helpers import followed
from helpers.followed import Recorded
from helpers.support import PATIENCE_SECONDS

from framegauge.live import server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture
def folder(recorded: Recorded, tmp_path: Path) -> Path:
    return recorded.begun(tmp_path / "out", 50)


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    with followed.served(folder) as (socket_, token):
        yield server.address_of(socket_, token)


def visited(browser: Browser, address: str, **options: object) -> Page:
    """The page, which may ask for nothing but itself."""
    page = browser.new_context(**options).new_page()  # type: ignore[arg-type]
    page.set_default_timeout(PATIENCE_SECONDS * 1000)
    page.on("request", lambda asked: None if asked.url.split("#")[0] == address else pytest.fail(asked.url))
    page.goto(address)
    return page


def test_it_follows_the_runs_and_becomes_the_report(
    browser: Browser, address: str, folder: Path, recorded: Recorded
) -> None:
    page = visited(browser, address)
    page.evaluate("window.stays = true")
    assert "before run 51 of 72" in page.locator("#status").inner_text()
    recorded.grow(folder, 60)
    page.get_by_text("before run 61 of 72").wait_for()
    assert page.evaluate("window.stays")  # exchanged, and not loaded again
    assert page.locator("#runs ~ .scroll tbody tr").count() == 60
    (folder / "report.html").write_bytes((recorded.folder / "report.html").read_bytes())
    page.locator("#effects").wait_for()
    page.locator("canvas").first.wait_for()  # its own scripts run
    page.context.close()


def test_without_scripts_it_asks_again_by_itself(
    browser: Browser, address: str, folder: Path, recorded: Recorded
) -> None:
    page = visited(browser, address, java_script_enabled=False)
    recorded.grow(folder, 60)
    page.get_by_text("before run 61 of 72").wait_for()
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_everyone_can_read_it(browser: Browser, address: str, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = visited(browser, address, viewport={"width": PHONE, "height": 740}, color_scheme=scheme)
    assert overflow(page) <= 0
    violations = Axe().run(page).response["violations"]
    assert not [(each["id"], each["nodes"][0]["html"]) for each in violations if each["impact"] in FORBIDDEN]
    page.context.close()
