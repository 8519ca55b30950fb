"""The page of a diagnosis: complete, escaped, offline, and with the marks that the capture has."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import zlib
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from helpers import pages
from helpers.captures import pcap, pcapng, stalled

from framegauge.cli.main import main
from framegauge.diagnose import pictures, run as diagnosis, sources
from framegauge.diagnose.kinds import KINDS
from framegauge.diagnose.page import groups, html, parts
from framegauge.plots.draw import ROLES

pytestmark = pytest.mark.agent
ASSETS = Path(html.__file__).with_name("assets")

LASTED = {"begin_seconds": 0.0, "end_seconds": 1.0}


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    path = tmp_path / "slow.pcap"
    path.write_bytes(pcap(stalled(wait=0.4)))
    return path


def made(*files: Path) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    document = diagnosis.diagnose(files)
    return document, pictures.draw(files, document, sources.chosen(document), {})


def embedded(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="pictures-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    for each in data.values():
        each["marks"] = json.loads(zlib.decompress(base64.b64decode(each["marks"])))
    return data


def finding(kind: str, lost_seconds: float) -> dict[str, Any]:
    return {"kind": kind, "lost_seconds": lost_seconds}


@pytest.mark.parametrize(
    ("worth", "said"),
    [
        ([finding("tail_loss", 0.445), finding("zero_window", 0.23)],
         "The last segments of a burst were lost; 2 findings worth fixing in 1 TCP connection; 675 ms lost, 445 ms of it by this."),
        ([finding("reset", 0.0)],
         "A connection was cut off by a reset; 1 finding worth fixing in 1 TCP connection."),
        ([], "Nothing worth fixing was found in 1 TCP connection."),
    ],
)  # fmt: skip
def test_the_headline_names_what_cost_most(worth: list[dict[str, Any]], said: str) -> None:
    assert html._answer({"connections": [LASTED]}, worth) == said


def test_what_several_places_saw_of_a_connection_is_one() -> None:
    seen = [{"tap": tap, "connection": tap} for tap in (1, 2, 3)]
    document = {"connections": [LASTED] * 4, "joined": {"connections": [{"seen": seen}]}}
    assert html._answer(document, []) == "Nothing worth fixing was found in 2 TCP connections."


def test_what_stands_in_backticks_is_a_command() -> None:
    assert parts.spoken("Set x=1. `framegauge check <h>` finds it.") == (
        "Set x=1. <code>framegauge check &lt;h&gt;</code> finds it."
    )
    assert parts.spoken("a ` alone") == "a ` alone"


def test_the_page_says_all_of_it_without_scripts(slow: Path, tmp_path: Path) -> None:
    out = tmp_path / "slow.html"
    assert main(["diagnose", str(slow), "--html", str(out)]) == 1
    page = pages.check(out.read_text("utf-8"))
    assert (
        page.all("title")[0].text
        == "Why is TCP slow here? The sender fell silent until its retransmission timer ran out; "
        "1 finding worth fixing in 1 TCP connection; 400 ms lost, all of it by this."
    )
    (card,) = (each for each in page.all("article"))
    for said in (
        "1. rto_stall, 400 ms lost",
        "10.0.0.1:40000 → 10.0.0.2:80",
        "Do: ",
        "packets 26, 27",
        "fell silent once",
    ):
        assert said in card.text, said
    assert [each.attributes["id"] for each in page.all("h2")][:3] == ["first", "pictures", "findings"]
    captions = [each.text for each in page.all("caption")]
    count = len(diagnosis.diagnose([slow])["findings"])
    assert captions == [f"Findings, {count} of {count}", "Connections, 1 of 1", "What was read"]
    rows = page.all("tr")
    assert any("rto_stall" in row.text and "26, 27" in row.text and "400 ms" in row.text for row in rows)
    assert any("rto_stall 400 ms (" in row.text for row in rows)
    assert not list(tmp_path.glob("*.new"))


def test_what_is_drawn_is_what_was_captured(slow: Path) -> None:
    document, drawn = made(slow)
    (data,) = embedded(html.page(document, drawn)).values()
    client, server = data["marks"]
    numbers = list(accumulate(client["segments"]["number"]))
    again = [
        number for number, flags in zip(numbers, accumulate(client["segments"]["flags"]), strict=True) if flags & 1
    ]
    assert again == [27, 29, 31]
    assert sum(accumulate(client["segments"]["bytes"])) == 17_000
    assert len(server["segments"]["time"]) == 1  # its SYN
    (band,) = (each for each in data["bands"] if each["kind"] == "rto_stall")
    ((begin, end),) = band["spans"]
    assert end - begin == pytest.approx(0.4)
    (finding,) = diagnosis.worth_fixing(document)
    assert [begin, end] == pytest.approx([finding["begin_seconds"], finding["end_seconds"]])


def test_connections_of_several_files_keep_their_pictures(slow: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pcap"
    other.write_bytes(pcap(stalled("10.0.0.7:1", "10.0.0.8:2", wait=0.9)))
    third = tmp_path / "third.pcap"
    third.write_bytes(pcap(stalled("10.0.0.9:1", "10.0.0.8:2")))
    document, drawn = made(slow, other, third)
    assert [each["capture"] for each in document["connections"]] == [1, 2, 3]
    assert list(drawn) == [2, 1, 3]
    for number, picture in drawn.items():
        assert picture["client"] == document["connections"][number - 1]["client"]
    assert sources.chosen(document) == [2, 1, 3]
    assert sources.chosen(document, 1) == [2]


def test_each_interface_of_a_capture_has_its_own_pictures(slow: Path, tmp_path: Path) -> None:
    path = tmp_path / "both.pcapng"
    taps = [(at + 0.001 * tap, tap, packet) for at, packet in stalled(wait=0.4) for tap in (0, 1)]
    other = [(at + 9, 1, packet) for at, packet in stalled("10.0.0.7:1", "10.0.0.8:2", wait=0.9)]
    path.write_bytes(pcapng([*sorted(taps), *other], ["eth0", "eth1"]))
    document, drawn = made(slow, path)
    ends = [(each["capture"], each["client"]) for each in document["connections"]]
    assert ends == [(1, "10.0.0.1:40000"), (2, "10.0.0.1:40000"), (3, "10.0.0.1:40000"), (3, "10.0.0.7:1")]
    found = {
        number: (each["client"], next(iter(each["directions"][0]["segments"]["number"])))
        for number, each in drawn.items()
    }
    assert found == {
        1: ("10.0.0.1:40000", 1), 2: ("10.0.0.1:40000", 1), 3: ("10.0.0.1:40000", 2), 4: ("10.0.0.7:1", len(taps) + 1),
    }  # fmt: skip
    assert next(iter(drawn)) == 4


def test_healthy_captures_show_their_busiest_connection(tmp_path: Path) -> None:
    path = tmp_path / "fine.pcap"
    path.write_bytes(pcap(stalled()[:22]))
    document, drawn = made(path)
    page = html.page(document, drawn)
    assert list(drawn) == [1]
    assert "Nothing worth fixing was found in 1 TCP connection." in pages.check(page).all("p")[1].text


def test_words_from_outside_stay_words(slow: Path) -> None:
    document, drawn = made(slow)
    for each in document["captures"]:
        each |= {"file": pages.HOSTILE, "interface": pages.HOSTILE, "broken": pages.HOSTILE}
    for each in document["connections"]:
        each |= {"client": pages.HOSTILE, "server": pages.HOSTILE}
        each["time"][pages.HOSTILE] = 1.0
    for each in document["findings"]:
        each |= {"text": pages.HOSTILE, "remedy": pages.HOSTILE}
    written = html.page(document, drawn, [pages.HOSTILE])
    page = pages.check(written)
    assert "alert(1)</script>" not in written.replace("\\u003c", "<").split('id="pictures-data">')[0]
    assert "<img" not in written
    assert [each.attributes.get("type") for each in page.all("script")] == ["application/json", None, None, None, None]
    assert next(iter(embedded(written).values()))["ends"] == [pages.HOSTILE, pages.HOSTILE]
    (policy,) = (each.attributes["content"] for each in page.all("meta") if "http-equiv" in each.attributes)
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert policy.count("'sha256-") == 4


def test_a_pipe_is_read_once_and_that_is_said(slow: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "framegauge", "diagnose", "-", "--html", str(tmp_path / "page.html")]
    done = subprocess.run(command, stdin=slow.open("rb"), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert (
        done.stderr
        == "framegauge: --html: What was read from - can be read once only, so its connections have no pictures.\n"
    )
    page = pages.check((tmp_path / "page.html").read_text("utf-8"))
    assert any("can be read once only" in each.text for each in page.all("p"))
    assert page.all("script") == []
    assert "rto_stall" in page.all("article")[0].text


@pytest.mark.parametrize("option", ["--html", "--pcapng"])
def test_a_place_that_cannot_be_is_one_line_before_anything_is_read(
    option: str, slow: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = slow.read_bytes()
    (tmp_path / "taken.new").mkdir()
    draft = tmp_path / "x.new"
    slow.rename(draft)
    assert main(["diagnose", str(draft), option, str(tmp_path / "x")]) == 2
    assert "which is a capture to read" in capsys.readouterr().err
    draft.rename(slow)
    for place, said in (
        (tmp_path / "missing" / "x", f"found no folder {tmp_path / 'missing'}, expected one"),
        (tmp_path, f"found {tmp_path}, expected a file"),
        (slow, f"found {slow}, which is a capture to read, expected another file"),
        # Here the draft cannot be written, as in a folder without permission, which root always has.
        (tmp_path / "taken", f"found no way to write {tmp_path / 'taken'} (Is a directory), expected a place to"),
    ):
        assert main(["diagnose", str(slow), option, str(place)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line == f"framegauge: {option}: {said}"
    assert slow.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["slow.pcap", "taken.new"]


def test_two_outputs_need_two_files(slow: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert main(["diagnose", str(slow), "--html", out, "--pcapng", out]) == 2
    assert f"--html and --pcapng: found {out} for both, expected two files" in capsys.readouterr().err


def test_one_output_only_goes_to_standard_output(slow: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(slow), "--html", "-"]) == 1
    assert pages.check(capsys.readouterr().out)
    assert main(["diagnose", str(slow), "--html", "-", "--json"]) == 2
    assert "found several outputs on standard output" in capsys.readouterr().err


def test_every_kind_has_a_group_and_every_group_a_colour() -> None:
    assert {kind.group for kind in KINDS.values()} <= set(groups.GROUPS)
    assert groups.group_of("handshake") in groups.GROUPS
    assert groups.group_of("of another version") == groups.OTHER
    style = (ASSETS / "colours.css").read_text()
    for name in groups.GROUPS:
        # On white paper and in the dark.
        assert style.count(f"--g-{name}: #") == 2, name


def test_the_page_has_the_colours_of_other_pages() -> None:
    style = (ASSETS / "colours.css").read_text()
    for name in ("page", "text", "soft", "line", "band", "better", "worse", "undecided"):
        assert f"--{name}: {ROLES[name]};" in style


@pytest.mark.parametrize(
    ("announced", "largest", "told"),
    [
        ([1460, 1440], [1448, 0], [1460, 1440]),
        ([None, None], [100, 1448], ["at least 1448", "at least 100"]),
        ([None, None], [0, 1448], ["at least 1448", None]),
    ],
)
def test_an_mss_that_no_syn_tells_is_at_least_the_largest_segment(
    announced: list[int | None], largest: list[int], told: list[int | str | None]
) -> None:
    assert html._mss({"mss": announced, "largest_segment_bytes": largest}) == told
