"""The page of a study as people meet it: it draws, stays offline, fits, obeys keys, and can be read by everyone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers import pages
from helpers.pages import Opened, as_read
from helpers.support import by_length

from framegauge.cli import commands
from framegauge.report.page import html
from framegauge.report.pictures import material
from framegauge.study import file as study_file
from framegauge.summary import document as summary

if TYPE_CHECKING:
    from playwright.sync_api import Page

PHONE = 360
FORBIDDEN = ("serious", "critical")


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the preset `quick`, with invented figures."""
    study = study_file.load_preset("quick")
    study = study.model_copy(update={"testbed": study.testbed.model_copy(update={"kind": "fake"})})
    folder = tmp_path_factory.mktemp("quick") / "out"
    return commands.run_study(study, folder, False, lambda _: None, lambda _: None).page


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the preset `demo`: two sizes at two RTTs, with invented figures."""
    study = study_file.load_preset("demo")
    study = study.model_copy(update={"testbed": study.testbed.model_copy(update={"kind": "fake"})})
    folder = tmp_path_factory.mktemp("demo") / "out"
    return commands.run_study(study, folder, False, lambda _: None, lambda _: None).page


@pytest.fixture(scope="session")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a study with several workloads, levels and conditions, so that courses are folded."""
    study = study_file.parse(pages.VARIED.replace("[1 MB, 10 MB]", "[1 MB, 10 MB, 20 MB]"), "study.yaml")
    folder = tmp_path_factory.mktemp("varied") / "out"
    return commands.run_study(study, folder, False, lambda _: None, lambda _: None).page


@pytest.fixture(scope="session")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a folder whose names are long and want to be markup."""
    folder = tmp_path_factory.mktemp("nasty")
    saved = pages.hostile(folder / "out")
    path = folder / "page.html"
    path.write_text(html.page(material.gather(saved, summary.summarise(saved))), "utf-8")
    return path


PAGES = ("quick", "varied", "nasty")


def overflow(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def pictures(page: Page) -> list[str]:
    # A change of theme is told, and drawn, with the next picture that the browser makes.
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found: list[str] = page.eval_on_selector_all("canvas", "all => all.map(one => one.toDataURL())")
    return found


def test_it_draws_everything_without_a_network(quick: Path, opened: Opened) -> None:
    page = opened(quick)
    assert page.locator("h1").inner_text() == "Do jumbo frames help a bulk transfer on this pair?"
    told = as_read(page.locator(".answer").first.inner_text()).replace("\n", " ")
    assert told.startswith("✓ Yes: jumbo frames (MTU 9000) raise the goodput")
    assert page.locator(".numbers > div").count() == 3
    assert page.locator("svg.chart").count() == 6
    assert page.locator("canvas").count() == 3
    drawn = pictures(page)
    assert len(set(drawn)) == 3
    sizes = page.eval_on_selector_all("svg.chart", "all => all.map(one => one.getBoundingClientRect().height)")
    assert min(sizes) > 50


@pytest.mark.parametrize("width", [PHONE, 768, 1280])
def test_charts_over_time_stay_in_their_panels(quick: Path, opened: Opened, width: int) -> None:
    page = opened(quick, width=width)
    page.locator(".u-wrap").last.wait_for()
    sizes = page.eval_on_selector_all(
        ".panel", "all => all.map(one => [one.clientWidth, one.querySelector('.u-wrap').getBoundingClientRect().width])"
    )
    assert len(sizes) == 3
    assert all(abs(room - chart) <= 1 for room, chart in sizes), sizes


def test_it_is_small_and_opens_at_once(quick: Path, opened: Opened) -> None:
    size = quick.stat().st_size
    assert size < 1_000_000
    page = opened(quick)
    page.locator("svg.chart").first.wait_for()
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
    seconds: Any = page.evaluate(
        "[performance.getEntriesByName('first-contentful-paint')[0].startTime,"
        " performance.getEntriesByType('navigation')[0].loadEventEnd].map(each => each / 1000)"
    )
    # A figure for the reader, no bound on a machine that others use, too.
    print(
        f"page of {size / 1e3:.0f} kB: first paint, with all static charts, {seconds[0]:.3f} s; loaded {seconds[1]:.3f} s"
    )
    assert seconds[0] < 30


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [PHONE, 768, 1280])
def test_nothing_is_wider_than_the_window(
    name: str, width: int, opened: Opened, request: pytest.FixtureRequest
) -> None:
    page = opened(request.getfixturevalue(name), width, 740)
    assert overflow(page) <= 0
    for fold in page.locator("details").all():
        fold.evaluate("one => { one.open = true }")
    assert overflow(page) <= 0


# The long page has nothing in the dark that the others have not.
BOTH = [(name, scheme) for name in PAGES for scheme in ("light", "dark")]


@pytest.mark.soak(1)
@pytest.mark.parametrize(("name", "scheme"), [each for each in BOTH if by_length(each != ("varied", "dark"), True)])
def test_axe_finds_nothing_serious(name: str, scheme: str, opened: Opened, request: pytest.FixtureRequest) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = opened(request.getfixturevalue(name), color_scheme=scheme)
    for fold in page.locator("details").all():
        fold.evaluate("one => { one.open = true }")
    found = Axe().run(page).response["violations"]
    assert not [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in FORBIDDEN]


def test_arms_can_be_hidden_and_time_zoomed_by_keys_alone(quick: Path, opened: Opened) -> None:
    page = opened(quick)
    whole = pictures(page)
    button = page.locator(".arms button").last
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"
    assert all(before != after for before, after in zip(whole, pictures(page), strict=True))
    page.keyboard.press("Space")
    assert button.get_attribute("aria-pressed") == "true"
    assert pictures(page) == whole
    for name in ("Zoom in", "Later", "Earlier", "Zoom out"):
        before = pictures(page)
        page.get_by_role("button", name=name).press("Enter")
        assert pictures(page) != before, name
    page.get_by_role("button", name="Show all").press("Enter")
    assert pictures(page) == whole


def test_a_drag_zooms_all_charts_of_a_cell(quick: Path, opened: Opened) -> None:
    page = opened(quick)
    whole = pictures(page)
    over = page.locator(".u-over").first
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.3, y)
    assert "MTU 9000" in page.locator(".readout").first.inner_text()
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=4)
    page.mouse.up()
    assert all(before != after for before, after in zip(whole, pictures(page), strict=True))
    page.mouse.dblclick(box["x"] + box["width"] / 2, y)
    assert pictures(page) == whole


def test_folded_courses_are_drawn_when_they_are_opened(varied: Path, opened: Opened) -> None:
    page = opened(varied)
    assert page.locator("canvas").count() == 0
    fold = page.locator("#time ~ details").first
    fold.locator("summary").press("Enter")
    fold.locator("canvas").first.wait_for()
    assert page.locator("canvas").count() == 3


def test_the_theme_is_followed_also_by_charts_that_are_drawn(quick: Path, opened: Opened) -> None:
    page = opened(quick, color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light, drawn = page.evaluate(background), pictures(page)
    stroke = "getComputedStyle(document.querySelector('svg.chart text')).fill"
    ink = page.evaluate(stroke)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(background) != light
    assert page.evaluate(stroke) != ink
    assert all(before != after for before, after in zip(drawn, pictures(page), strict=True))


def test_keys_reach_the_answer_first_and_links_lead_to_their_sections(quick: Path, opened: Opened) -> None:
    page = opened(quick)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the answer"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    links = page.locator("nav a")
    assert links.count() == page.locator("h2").count() - 2  # the first two are on the first screen
    for link in links.all():
        target = str(link.get_attribute("href"))
        link.click()
        assert page.evaluate("location.hash") == target
        top = page.evaluate("id => document.querySelector(id).getBoundingClientRect().top", target)
        assert -1 <= top < 900


def test_it_prints_on_few_sheets_and_its_yaml_on_none(demo: Path, opened: Opened) -> None:
    page = opened(demo)
    printed = page.pdf(prefer_css_page_size=True)
    assert re.search(rb"/MediaBox \[0 0 59\d(\.\d+)? 84\d", printed)  # A4
    assert len(re.findall(rb"/Type /Page\b", printed)) <= 8
    page.emulate_media(media="print")
    assert page.get_by_text("The whole study.yaml").count() == 1
    assert not page.locator("#repeat ~ details").is_visible()
    # What is printed as a heading stays with what follows it, and charts stay whole.
    kept = page.eval_on_selector_all(
        "h2, h3, figcaption, caption", "all => all.map(one => getComputedStyle(one).breakAfter)"
    )
    assert set(kept) == {"avoid"}
    whole = page.eval_on_selector_all("figure, .panels, tr", "all => all.map(one => getComputedStyle(one).breakInside)")
    assert set(whole) == {"avoid"}


def test_it_prints_whole(varied: Path, opened: Opened) -> None:
    page = opened(varied, color_scheme="dark")
    assert page.pdf().startswith(b"%PDF")
    assert page.locator("details:not([open])").count() == 0
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_without_scripts_the_tables_are_there(quick: Path, opened: Opened) -> None:
    page = opened(quick, java_script_enabled=False)
    assert page.get_by_text("The charts of this section need JavaScript").is_visible()
    assert page.get_by_role("region", name="Medians over time").first.is_visible()
