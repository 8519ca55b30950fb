"""The page of a check in a browser: drawings are seen, commands can be selected, nothing overflows, all can read it."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser.conftest import Opened
from helpers.check_lab import Lab

from framegauge.report.check import html

FORBIDDEN = ("serious", "critical")
R1, R2 = "10.1.0.254", "10.2.0.254"


@pytest.fixture(scope="session")
def routed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A link between two routers, and a second fault whose link is unknown."""
    lab = Lab((2, 2), (4, 6))
    for family, near, far in ((4, R1, R2), (6, "fd00:1::fe", "fd00:2::fe")):
        lab.fault([("a", "c", family)], bad=8, hops=[(near, "expired"), (far, "silent"), ("", "silent")])
    lab.fault([("c", "d", 4)], 1400)
    return write(tmp_path_factory, lab)


@pytest.fixture(scope="session")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path of many hops between hosts with long names."""
    hops = [*((f"fd00:{index:x}abc:1234:5678:9abc:def0:1234:5678", "expired") for index in range(9)), ("", "silent")]
    lab = Lab((1, 1), (6,)).fault([("a", "b", 6)], hops=hops)
    for host in lab.hosts.values():
        host["name"] = f"{host['name']}-{'storage-host.rack-17.example.net' * 2}"
    for pair in lab.pairs.values():
        pair["source"], pair["destination"] = (lab.hosts[pair[end]]["name"] for end in ("source", "destination"))
    return write(tmp_path_factory, lab)


def write(factory: pytest.TempPathFactory, lab: Lab) -> Path:
    path = factory.mktemp("check") / "page.html"
    path.write_text(html.page(lab.document(), "today"), "utf-8")
    return path


PAGES = ("routed", "long")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [360, 400, 768, 1200])
def test_nothing_is_wider_than_the_window(
    name: str, width: int, opened: Opened, request: pytest.FixtureRequest
) -> None:
    page = opened(request.getfixturevalue(name), width, 740)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    for picture in page.locator(".path svg:visible").all():
        assert picture.evaluate("one => one.getBoundingClientRect().width <= one.parentElement.clientWidth + 1")


@pytest.mark.parametrize("width", [400, 1200])
def test_each_fault_has_one_drawing_whose_texts_are_inside(width: int, routed: Path, opened: Opened) -> None:
    page = opened(routed, width)
    figures = page.locator("figure.drawn")
    assert figures.count() == page.locator(".finding.b").count() == 2
    for figure in figures.all():
        assert figure.locator("svg:visible").count() == 1
        outside = figure.locator("svg:visible").evaluate(
            """picture => {
                const room = picture.getBoundingClientRect();
                return [...picture.querySelectorAll("text")].map(each => [each.textContent, each.getBoundingClientRect()])
                    .filter(([_, box]) => box.left < room.left - 1 || box.right > room.right + 1
                        || box.top < room.top - 1 || box.bottom > room.bottom + 1).map(([text, _]) => text);
            }"""
        )
        assert outside == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(name: str, scheme: str, opened: Opened, request: pytest.FixtureRequest) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = opened(request.getfixturevalue(name), color_scheme=scheme)
    found = Axe().run(page).response["violations"]
    assert not [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in FORBIDDEN]


def test_a_click_selects_the_commands_and_nothing_else(routed: Path, opened: Opened) -> None:
    page = opened(routed)
    block = page.locator("pre.commands").first
    block.click()
    assert page.evaluate("getSelection().toString()").strip() == block.inner_text().strip()
    assert "#" not in block.inner_text()


def test_the_drawing_follows_the_theme(routed: Path, opened: Opened) -> None:
    page = opened(routed, color_scheme="light")
    stroke = "getComputedStyle(document.querySelector('.path line.bad')).stroke"
    light = page.evaluate(stroke)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(stroke) != light
