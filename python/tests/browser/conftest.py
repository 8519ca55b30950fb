"""Tests in a real browser: Debian's Chromium. Outside CI, what cannot run is listed with its reason; with CI=true it fails."""

from __future__ import annotations

import functools
import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.pages import Opened
from helpers.support import NotRun

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

HERE = Path(__file__).parent
not_run = NotRun()


@functools.cache
def reason_not_to_run() -> str | None:
    """Why there is no browser here; None if there is one."""
    if shutil.which("chromium") is None:
        return "needs chromium: apt-get install chromium"
    lacking = [name for name in ("playwright", "axe_playwright_python") if importlib.util.find_spec(name) is None]
    return f"needs {', '.join(lacking)}: pip install -e '.[test]'" if lacking else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and (reason := reason_not_to_run()):
            not_run.count(reason)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if HERE in item.path.parents and (reason := reason_not_to_run()):
        not_run.stop(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    not_run.tell(terminalreporter)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for the session. It is not confined: it sees nothing but pages that the tests made."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Opens a file in a browser without a network; what the page complains of, or asks for, fails the test."""
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def open_page(path: Path, width: int = 1280, height: int = 900, **options: object) -> Page:
        context = browser.new_context(offline=True, viewport={"width": width, "height": height}, **options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda asked: wrong.append(asked.url) if asked.url != path.as_uri() else None)
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong
