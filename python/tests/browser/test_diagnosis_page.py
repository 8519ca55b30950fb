"""The page of a diagnosis in a browser: it draws, zooms by all means, tells what lies under the pointer, and fits."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser.conftest import Opened
from helpers import pages
from helpers.captures import ACK, PSH, SYN, pcap, segment, stalled

from framegauge.diagnose import pictures, run as diagnosis, sources
from framegauge.diagnose.page import html

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.agent
FORBIDDEN = ("serious", "critical")
CLIENT, SERVER = "10.0.0.1:40000", "10.0.0.2:80"


def long_capture(segments: int) -> bytes:
    """A transfer of many segments, each acknowledged, of which some are sent again."""
    out = [
        (1.0, segment(CLIENT, SERVER, SYN, 1000, mss=1460)),
        (1.01, segment(SERVER, CLIENT, SYN | ACK, 5000, 1001, mss=1460, window=64240)),
        (1.01, segment(CLIENT, SERVER, ACK, 1001, 5001)),
    ]
    data = bytearray(segment(CLIENT, SERVER, ACK | PSH, 1001, 5001, 1000)[:40])
    heard = bytearray(segment(SERVER, CLIENT, ACK, 5001, 1001))
    for number in range(segments):
        at = 1.02 + number * 2e-4
        struct.pack_into("!H", data, 4, number % 65536)
        struct.pack_into("!I", data, 24, (1001 + 1000 * number) % 2**32)
        out.append((at, bytes(data) + bytes(1000)))
        if number % 500 == 499:
            struct.pack_into("!H", data, 4, (number + 7) % 65536)
            out.append((at + 2e-5, bytes(data) + bytes(1000)))
        struct.pack_into("!H", heard, 4, number % 65536)
        struct.pack_into("!I", heard, 28, (1001 + 1000 * (number + 1)) % 2**32)
        out.append((at + 1e-4, bytes(heard)))
    return pcap(out)


def write(folder: Path, capture: bytes, change: Any = None) -> Path:
    path = folder / "a.pcap"
    path.write_bytes(capture)
    document = diagnosis.diagnose([path])
    if change is not None:
        change(document)
    page = folder / "page.html"
    page.write_text(html.page(document, pictures.draw([path], document, sources.chosen(document), {})), "utf-8")
    return page


@pytest.fixture(scope="session")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One connection that stalls, and a second one that does so for longer."""
    other = stalled("10.0.0.7:50000", "10.0.0.8:443", wait=0.9)
    return write(tmp_path_factory.mktemp("slow"), pcap([*stalled(wait=0.4), *((at + 5, each) for at, each in other)]))


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("large"), long_capture(50_000))


@pytest.fixture(scope="session")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def change(document: dict[str, Any]) -> None:
        for each in document["findings"]:
            each |= {"text": pages.HOSTILE, "remedy": pages.HOSTILE * 3}
        for each in document["connections"]:
            each |= {"client": pages.HOSTILE, "server": f"[{'fd00:1234:5678:9abc:' * 2}1]:65535"}

    return write(tmp_path_factory.mktemp("nasty"), pcap(stalled()), change)


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server answers, too."""
    capture = stalled()
    last = capture[-1][0]
    answer = segment(SERVER, CLIENT, ACK | PSH, 5001, 15001, 900)
    heard = segment(CLIENT, SERVER, ACK, 15001, 5901)
    return write(tmp_path_factory.mktemp("both"), pcap([*capture, (last + 0.01, answer), (last + 0.02, heard)]))


PAGES = ("slow", "nasty")


def ready(page: Page) -> None:
    page.locator("html[data-drawn]").wait_for(state="attached")


def settled(page: Page, index: int = 0) -> dict[str, float]:
    """What a picture shows, after it was drawn again."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found = page.locator(".plot canvas").nth(index).evaluate("one => ({...one.dataset})")
    return {name: float(value) for name, value in found.items()}


def picture(page: Page, index: int = 0) -> str:
    settled(page, index)
    drawn: str = page.locator(".plot canvas").nth(index).evaluate("one => one.toDataURL()")
    return drawn


def spans(page: Page, index: int = 0) -> float:
    shown = settled(page, index)
    return shown["to"] - shown["from"]


def test_every_chosen_connection_is_drawn(slow: Path, opened: Opened) -> None:
    page = opened(slow)
    ready(page)
    assert page.locator(".plot canvas").count() == 2
    assert len({picture(page, index) for index in range(2)}) == 2
    for index in range(2):
        assert settled(page, index)["drawn"] > 50
    assert page.locator(".without-script:visible").count() == 0
    # The one that lost more comes first.
    assert "10.0.0.7:50000" in page.locator(".picture h3").first.inner_text()


def test_all_ways_of_zooming_lead_back_to_the_whole(slow: Path, opened: Opened) -> None:
    page = opened(slow)
    ready(page)
    canvas = page.locator(".plot canvas").first
    canvas.scroll_into_view_if_needed()
    whole, all_of_it = picture(page), spans(page)
    box = canvas.bounding_box()
    assert box is not None
    middle, y = box["x"] + box["width"] / 2, box["y"] + 120

    page.mouse.move(middle - 100, y)
    page.mouse.down()
    page.mouse.move(middle + 100, y, steps=4)
    page.mouse.up()
    assert spans(page) == pytest.approx(all_of_it * 200 / (box["width"] - 66), rel=0.02)
    page.mouse.dblclick(middle, y)
    page.mouse.move(1, 1)
    assert picture(page) == whole

    canvas.focus()
    for key, factor in (("+", 0.5), ("-", 1), ("+", 0.5), ("0", 1)):
        page.keyboard.press(key)
        assert spans(page) == pytest.approx(all_of_it * factor), key
    page.keyboard.press("+")
    before = settled(page)["from"]
    page.keyboard.press("ArrowRight")
    assert settled(page)["from"] > before
    page.keyboard.press("Escape")
    assert picture(page) == whole

    page.mouse.move(middle, y)
    page.mouse.wheel(0, -400)
    assert spans(page) < all_of_it
    page.get_by_role("button", name="Show all").first.click()
    page.mouse.move(1, 1)
    assert picture(page) == whole
    for name in ("Zoom in", "Later", "Earlier", "Zoom out"):
        before_it = picture(page)
        page.get_by_role("button", name=name).first.press("Enter")
        assert picture(page) != before_it, name


def test_the_wheel_scrolls_the_page_until_a_picture_is_chosen(slow: Path, opened: Opened) -> None:
    page = opened(slow)
    ready(page)
    canvas = page.locator(".plot canvas").first
    canvas.scroll_into_view_if_needed()
    box, before = canvas.bounding_box(), spans(page)
    assert box is not None
    page.mouse.move(box["x"] + 200, box["y"] + 100)
    page.evaluate("() => { window.scrolled = new Promise(done => addEventListener('scroll', done, {once: true})); }")
    page.mouse.wheel(0, -150)
    page.evaluate("async () => { await window.scrolled; }")
    assert spans(page) == before


def test_the_pointer_is_told_packet_time_sequence_and_length(slow: Path, opened: Opened) -> None:
    page = opened(slow)
    ready(page)
    page.get_by_role("button", name="Next finding").first.click()
    shown = settled(page)
    canvas = page.locator(".plot canvas").first
    box = canvas.bounding_box()
    assert box is not None
    # The resend that ends the silence is at the end of the finding.
    at = page.evaluate(
        "JSON.parse(document.getElementById('pictures-data').textContent)[2].bands.find(each => each.kind === 'rto_stall').spans[0][1]"
    )
    x = box["x"] + 58 + (at - shown["from"]) / (shown["to"] - shown["from"]) * (box["width"] - 66)
    tip = page.locator(".tip").first
    for share in range(1, 40):
        page.mouse.move(x, box["y"] + 18 + share * 8)
        settled(page)
        if tip.is_visible() and "sent again" in tip.inner_text():
            break
    said = tip.inner_text()
    for word in ("packet 61", "sent again", f"{at:.6f} s", "sequence 10", "length 1", "rto_stall"):
        assert word in said.replace("\u202f", ""), said


def test_a_link_leads_to_the_time_of_its_finding(slow: Path, opened: Opened) -> None:
    page = opened(slow)
    ready(page)
    page.get_by_role("link", name="See it in the picture").nth(1).click()
    page.locator(".plot canvas:focus").wait_for()
    shown = settled(page, 1)
    assert shown["to"] - shown["from"] < 1
    assert page.evaluate("location.hash") == "#picture-1"
    assert page.evaluate("document.activeElement === document.querySelectorAll('.plot canvas')[1]")


def test_layers_and_directions_can_be_chosen(slow: Path, opened: Opened) -> None:
    page = opened(slow)
    ready(page)
    whole = picture(page)
    for button in page.locator(".plot").first.locator(".key").all():
        before = settled(page)["drawn"]
        button.click()
        assert button.get_attribute("aria-pressed") == "false"
        assert settled(page)["drawn"] < before or button.inner_text() == "SACK"
    for button in page.locator(".plot").first.locator(".key").all():
        button.click()
    assert picture(page) == whole


def test_each_direction_has_its_picture(both: Path, opened: Opened) -> None:
    page = opened(both)
    ready(page)
    whole = picture(page)
    buttons = page.locator(".plot .side")
    assert buttons.all_inner_texts() == ["Sent by the client", "Sent by the server"]
    assert buttons.first.get_attribute("aria-pressed") == "true"
    buttons.last.click()
    assert buttons.first.get_attribute("aria-pressed") == "false"
    assert settled(page)["side"] == 1
    assert picture(page) != whole


def test_a_hundred_thousand_marks_are_drawn_as_many_as_there_are_pixels(large: Path, opened: Opened) -> None:
    page = opened(large)
    ready(page)
    canvas = page.locator(".plot canvas").first
    width = canvas.evaluate("one => one.clientWidth")
    whole = settled(page)
    assert whole["marks"] >= 100_000
    assert 1_000 < whole["drawn"] < 20 * width
    canvas.focus()
    last = whole
    for _ in range(24):
        page.keyboard.press("+")
        now = settled(page)
        assert now["drawn"] < 20 * width
        assert now["to"] - now["from"] < last["to"] - last["from"] or now["to"] - now["from"] < 1e-6
        last = now
    # So near that single marks are seen, if any.
    page.keyboard.press("0")
    assert settled(page) == whole
    assert large.stat().st_size < 4_000_000


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [360, 768, 1400])
def test_nothing_is_wider_than_the_window(
    name: str, width: int, opened: Opened, request: pytest.FixtureRequest
) -> None:
    page = opened(request.getfixturevalue(name), width, 740)
    ready(page)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    for canvas in page.locator(".plot canvas").all():
        assert canvas.evaluate("one => one.getBoundingClientRect().width <= one.parentElement.clientWidth + 1")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(name: str, scheme: str, opened: Opened, request: pytest.FixtureRequest) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = opened(request.getfixturevalue(name), color_scheme=scheme)
    ready(page)
    found = Axe().run(page).response["violations"]
    assert not [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in FORBIDDEN]


def test_pictures_follow_the_theme(slow: Path, opened: Opened) -> None:
    page = opened(slow, color_scheme="light")
    ready(page)
    before = picture(page)
    page.emulate_media(color_scheme="dark")
    assert picture(page) != before


def test_a_finger_moves_the_time_and_two_zoom_it(slow: Path, opened: Opened) -> None:
    page = opened(slow, 400, has_touch=True)
    ready(page)
    send = """([type, id, x]) => {
        const canvas = document.querySelector(".plot canvas"), box = canvas.getBoundingClientRect();
        canvas.setPointerCapture = () => {};
        canvas.dispatchEvent(new PointerEvent(type, {pointerId: id, pointerType: "touch", button: 0, bubbles: true,
            clientX: box.left + x, clientY: box.top + 100}));
    }"""
    whole = spans(page)
    for step in (("pointerdown", 1, 150), ("pointerdown", 2, 200), ("pointermove", 2, 300), ("pointerup", 2, 300)):
        page.evaluate(send, step)
    near = settled(page)
    assert near["to"] - near["from"] == pytest.approx(whole / 3, rel=0.01)
    for step in (("pointerup", 1, 150), ("pointerdown", 1, 200), ("pointermove", 1, 150), ("pointerup", 1, 150)):
        page.evaluate(send, step)
    moved = settled(page)
    assert moved["from"] > near["from"]
    assert moved["to"] - moved["from"] == pytest.approx(near["to"] - near["from"])


def test_without_scripts_the_tables_are_there(slow: Path, opened: Opened) -> None:
    page = opened(slow, java_script_enabled=False)
    assert page.get_by_text("The pictures need JavaScript").is_visible()
    assert page.locator("svg.bar").first.is_visible()
    assert page.get_by_role("region", name="Findings").first.is_visible()
    page.get_by_role("link", name="See it in the picture").first.click()
    assert page.evaluate("location.hash") == "#picture-2"


def test_it_prints_its_pictures(slow: Path, opened: Opened) -> None:
    page = opened(slow, color_scheme="dark")
    ready(page)
    assert page.pdf().startswith(b"%PDF")
    page.emulate_media(media="print")
    assert not page.locator(".plot .tools").first.is_visible()
