"""What a study says of few flows beside many: simulated, since what becomes of them is known there."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from altair.utils import schemapi
from helpers import pages
from helpers.schemas import conforms
from helpers.support import ROOT
from rich.console import Console

from framegauge.cli.main import main
from framegauge.report import markdown, terminal
from framegauge.report.page import html
from framegauge.report.pictures import material
from framegauge.results import spools
from framegauge.results.journal import Saved, read
from framegauge.summary import few
from framegauge.summary.document import summarise
from framegauge.summary.schema import summary_schema


def in_short(text: str) -> str:
    """The example with two queues, at less than half a second, in one cell."""
    for old, new in (
        ("duration: 2 s", "duration: 0.45 s"), ("[taildrop, red, sfq]", "[taildrop, sfq]"), ("blocks: 10", "blocks: 8"),
        ("[0 ppm, 5000 ppm]", "0 ppm"), ("[on, off]", "on"),
    ):  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    folder = tmp_path_factory.mktemp("few")
    study = folder / "study.yaml"
    study.write_text(in_short((ROOT / "examples/port-contention.yaml").read_text()))
    assert main(["simulate", str(study), "--out", str(folder / "out")]) == 0
    return read(folder / "out")


@pytest.mark.agent
def test_one_starves_beside_twelve_with_taildrop_and_not_with_sfq(saved: Saved) -> None:
    found = summarise(saved)
    conforms(found, summary_schema())
    told = {each["levels"]["queue"]["kind"] if isinstance(each["levels"]["queue"], dict) else each["levels"]["queue"]: each
            for each in found["few"]}  # fmt: skip
    assert {name: each["verdict"] for name, each in told.items()} == {"taildrop": "less", "sfq": "fair"}
    assert told["taildrop"]["few"] == {"senders": ["h13"], "flows": 1}
    assert told["taildrop"]["many"] == {"flows": 12}
    assert told["taildrop"]["ci95"][1] < 0.5
    assert 0.8 <= told["sfq"]["ci95"][0] <= told["sfq"]["share"] <= told["sfq"]["ci95"][1] <= 1.25
    assert all(each["runs"] == 8 and each["lost_blocks"] == 0 for each in told.values())
    (verdict,) = (each for each in found["verdicts"] if each["metric"] == "share_of_few")
    assert verdict["verdict"] == "better"
    assert verdict["treatment"]["estimate"] == pytest.approx(told["sfq"]["share"])


@pytest.mark.agent
def test_it_is_told_in_words(saved: Saved) -> None:
    one, other = few.lines(summarise(saved))
    assert re.fullmatch(
        r"queue taildrop: h13 gets \S+ % \(\S+ % to \S+ %\) of what each of 12 flows gets: less.*", one
    ), one
    assert other.endswith("of what each of 12 flows gets: fair within a factor of 1.25")
    console = Console(file=io.StringIO(), width=200)
    terminal.show(summarise(saved), console)
    assert isinstance(console.file, io.StringIO)
    assert "few flows beside many:" in console.file.getvalue()


@pytest.mark.agent
def test_the_page_shows_shares_and_their_course(saved: Saved) -> None:
    with schemapi.debug_mode(True):
        found = material.gather(saved, summarise(saved))
    page = pages.check(html.page(found))
    assert "few" in {each.attributes["id"] for each in page.all("h2")}
    shares, *courses = found.of("few")
    assert shares.text.startswith("Band: the same within a factor of 1.25.")
    assert [each.title for each in courses] == [
        f"Goodput per flow over time, queue {queue}, stream" for queue in ("taildrop", "sfq")
    ]
    assert "## Few flows beside many" in markdown.markdown(found)
    for run in saved.runs:
        table = spools.table(saved.folder / "runs" / str(run.number) / "few.parquet")
        assert table is not None
        assert table.num_rows == 13 * 2  # flows and windows of 0.2 s
        assert sum(name == "few" for name in table["group"].to_pylist()) == 2
        link = sum(table["goodput_bits_per_second"].to_pylist()) / 2
        assert link == pytest.approx(run.metrics["goodput"], rel=0.25)  # slow start is in it


def test_words_for_any_share_and_anybody() -> None:
    assert [few.share(value) for value in (0.0784, 1.874, 0.00001, 29.0)] == [
        "7.84 %",
        "187 %",
        "under 0.01 %",
        "2,900 %",
    ]
    assert few.who({"few": {"senders": ["h1"], "flows": 1}}) == "h1"
    assert few.who({"few": {"senders": ["h1", "h2"], "flows": 2}}) == "h1 and h2 (2 flows)"
    assert few.who({"few": {"senders": [f"h{number}" for number in range(5)], "flows": 5}}) == "5 hosts (5 flows)"


@pytest.mark.agent
def test_a_study_without_few_says_nothing(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(
        "testbed: {kind: simulator, topology: rack, hosts: 3, link: {rate: 10 Mb/s}}\nfactors: {mtu: [1500, 9000]}\n"
        "workloads: [{stream: {duration: 0.2 s, pattern: many-to-one}}]\nblocks: 2\n"
    )
    assert main(["simulate", str(study), "--out", str(tmp_path / "out")]) == 0
    found = summarise(read(tmp_path / "out"))
    assert found["few"] == []
    assert list(few.lines(found)) == []
