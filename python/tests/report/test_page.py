"""The page, the Markdown and the pictures of a results folder: whatever it holds, and without a browser."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import re
import shutil
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import replace
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from altair.utils import schemapi
from helpers import drawing, pages
from helpers.sealing import seal
from helpers.support import STUDY
from hypothesis import example, given, strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from framegauge.cli import commands, documents, main as cli
from framegauge.errors import InputError
from framegauge.plots import axis, draw
from framegauge.printable import printable
from framegauge.report import markdown, method, terminal
from framegauge.report.decision.model import split
from framegauge.report.page import html
from framegauge.report.pictures import material, records, series
from framegauge.results.journal import Journal, Run, Saved, read
from framegauge.study import file as study_file
from framegauge.summary import document as summary
from framegauge.summary.interactions import ALONE
from framegauge.summary.units import unit_scale
from framegauge.testbeds.fake.model import FAULTS


def made(text: str, folder: Path) -> Saved:
    commands.run_study(study_file.parse(text, "study.yaml"), folder, False, lambda _: None, lambda _: None)
    return read(folder)


def gathered(saved: Saved) -> material.Material:
    return material.gather(saved, summary.summarise(saved))


@pytest.fixture(scope="module")
def found(varied: Saved) -> material.Material:
    # Every part of a chart is checked against the schema of Vega-Lite.
    with schemapi.debug_mode(True), drawing.anew():
        return gathered(varied)


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    return made(pages.VARIED, tmp_path_factory.mktemp("varied") / "out")


def test_intervals_that_decide_no_verdict_say_so_wherever_they_are(varied: Saved, found: material.Material) -> None:
    """The same figure has a wider one among the verdicts, which is corrected for all comparisons."""
    file = io.StringIO()
    terminal.show(found.summary, Console(file=file, width=120))
    for text in (file.getvalue(), html.page(found), markdown.markdown(found)):
        assert "what the effect depends on" in text.lower()
        assert ALONE in unescape(text.replace("\N{NO-BREAK SPACE}", " "))


def test_no_number_of_a_paragraph_or_list_is_parted_from_its_unit(found: material.Material) -> None:
    said = re.findall(r"<(p|li|h2|h3)\b[^>]*>(.*?)</\1>", html.page(found), re.DOTALL)
    assert [text for _, text in said if re.search(r"\d (?:%|[kMG]?b/s|[mnuµ]?s\b)", text)] == []
    assert any("95\N{NO-BREAK SPACE}%" in text for _, text in said)


def test_a_study_of_several_workloads_and_levels_has_every_section(varied: Saved, found: material.Material) -> None:
    text = html.page(found)
    page = pages.check(text)
    assert [each.attributes["id"] for each in page.all("h2")] == [
        "sure", "limits", "effects", "levels", "interactions", "maps", "why", "runs", "flows", "ceiling", "time", "cpu", "method", "repeat",
        "decision",
    ]  # fmt: skip
    assert {each.kind for each in found.pictures} == {
        "effects",
        "levels",
        "interactions",
        "maps",
        "runs",
        "flows",
        "ceiling",
        "cpu",
    }
    assert found.answer.text in "".join(each.text for each in page.all("p"))
    assert len(page.all("tr")) > len(found.summary["verdicts"])
    # The study's own page, drawn once more, is the same to the byte.
    assert (varied.folder / "report.html").read_text() == text


def test_the_page_carries_its_data_and_may_run_its_own_scripts_alone(found: material.Material) -> None:
    page = pages.check(html.page(found))
    data, *scripts = page.all("script")
    assert data.attributes["type"] == "application/json"
    cells = json.loads(data.text)
    assert len(cells) == 4  # those of streams; requests have no samples
    for cell in cells:
        assert [each["label"] for each in cell["arms"]] == ["MTU 1500", "MTU 1500 (A/A)", "MTU 4000", "MTU 9000"]
        assert 1 <= len(cell["seconds"]) <= 300
        for chart in cell["charts"]:
            assert all(len(row) == len(cell["seconds"]) for row in chart["rows"])
            assert all(any(value is not None for value in row) for row in chart["rows"])
    policy = next(each.attributes["content"] for each in page.all("meta") if "http-equiv" in each.attributes)
    assert policy is not None
    hashes = [base64.b64encode(hashlib.sha256(each.text.encode()).digest()).decode() for each in scripts]
    named = " ".join(f"'sha256-{each}'" for each in hashes)
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src {named};" in policy


@pytest.mark.thorough
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_goes_wrong_on_the_invented_rack_has_a_page(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gather, drawn = material.gather, []

    def gather_once(saved: Saved, found: dict[str, Any]) -> material.Material:
        drawn.append(gather(saved, found))
        return drawn[-1]

    monkeypatch.setattr(material, "gather", gather_once)
    text = STUDY.replace("{kind: fake}", f"{{kind: fake, fake: {{faults: [{fault}]}}}}").replace(
        "blocks: 6", "blocks: 2"
    )
    saved = made(text.replace("blocks: 2", "blocks: 2\nretries: 0"), tmp_path / "out")
    [found] = drawn
    pages.check((saved.folder / "report.html").read_text())
    assert markdown.markdown(found).startswith("# Does it work?\n\n**")


def test_every_name_from_a_results_folder_is_escaped(tmp_path: Path) -> None:
    found = gathered(pages.hostile(tmp_path / "<i>out"))
    text = html.page(found)
    page = pages.check(text)
    data, *_ = scripts = page.all("script")
    assert len(scripts) == 3
    assert "<script>alert(1)</script>" in json.loads(data.text)[0]["title"]
    assert not page.all("img")
    assert not page.all("i")
    assert not re.search("[\x00\x1b\u202e]", text)
    for place in ("title", "h1", "td", "th", "li", "code", "figcaption", "desc", "caption"):
        assert any("<script>alert(1)</script>" in each.text for each in page.all(place)), place
    for each in found.pictures:
        root = ElementTree.fromstring(draw.standalone(each.drawn, each.name, each.title, each.text))
        assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
            "svg", "title", "desc", "g", "path", "line", "text", "tspan", "rect",
        }  # fmt: skip


def test_markdown_takes_no_name_for_markup(tmp_path: Path) -> None:
    text = markdown.markdown(gathered(pages.hostile(tmp_path / "out")))
    assert not re.search(r"(?<!\\)<", re.sub("```.*?```", "", text, flags=re.DOTALL))
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        columns = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(columns) == 1, table


def test_markdown_of_foreign_names_is_text_wherever_it_is_read(tmp_path: Path) -> None:
    """In a renderer that lets HTML pass, and for those that know fewer escapes than CommonMark."""
    place = tmp_path / "``` <i>out"
    made = gathered(pages.hostile(place))
    text = markdown.markdown(made, "my pictures (2)")
    assert not re.search("<(?!i>out)", text)  # which is in the fenced command, in quotes of the shell
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    found = Counter(re.findall(r"<([a-z0-9]+)", rendered))
    assert set(found) <= {
        "h1", "h2", "h3", "p", "strong", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "pre", "code", "img"
    }  # fmt: skip
    assert found["pre"] == 1 + sum(bool(split(line)[1]) for part in made.decision.parts for line in part.lines) > 1
    assert found["img"] == text.count("](my%20pictures%20%282%29/") > 0
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in rendered
    assert "onerror=alert(2)&gt;" in rendered


@pytest.mark.parametrize("text", ["1. one", "2) two", "- three", "+ four", "=", "---", "# five", "    six", "> seven"])
def test_no_beginning_of_a_line_makes_more_of_it(text: str) -> None:
    rendered = MarkdownIt().render(markdown.escaped(text))
    assert re.fullmatch("<p>.*</p>\n", rendered)
    assert html_of(rendered).strip() == text.strip()


@example("~~a~~")
@given(st.text(st.sampled_from("\\`*_{}[]()#|~<>&!-+=1.) ab:/\"'\x1b"), max_size=12))
def test_any_text_is_read_as_it_is(text: str) -> None:
    """At the beginning of a line, within it, and in a table, by those that know strikethrough as well."""
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    seen, escaped = printable(text).strip(), markdown.escaped(text)
    assert html_of(reader.render(escaped)).strip() == seen
    assert html_of(reader.render(f"x{escaped}x")).strip() == f"x{seen}x"
    rendered = reader.render(markdown.table(("a", text), [(text, "x")]))
    assert [html_of(each) for each in re.findall("<th>(.*?)</th>", rendered)] == ["a", seen]
    assert [html_of(each) for each in re.findall("<td>(.*?)</td>", rendered)] == [seen, "x"]


@pytest.mark.parametrize("text", ["one", "a ``` b", "```` \n```\nc"])
def test_no_text_ends_its_block_of_code(text: str) -> None:
    rendered = MarkdownIt("commonmark").render(f"{markdown._fenced('sh', text)}\n\nafter")
    assert [html_of(each) for each in re.findall("<pre>(.*?)</pre>", rendered, re.DOTALL)] == [f"{text}\n"]
    assert rendered.endswith("<p>after</p>\n")


def html_of(rendered: str) -> str:
    return unescape(re.sub("<[^>]*>", "", rendered))


def test_folders_from_before_and_folders_that_lack_files_have_a_page(
    varied: Saved, found: material.Material, tmp_path: Path
) -> None:
    folder = tmp_path / "old"
    shutil.copytree(varied.folder, folder)
    plan = json.loads((folder / "results.json").read_text())
    for key in ("stop", "planned_blocks", "planned_runs", "framegauge"):
        plan.pop(key, None)
    (folder / "results.json").write_text(json.dumps(plan))
    for name in ("environment.json", "study.yaml"):
        (folder / name).unlink()
    shutil.rmtree(folder / "runs")
    before = read(seal(folder))
    old = gathered(before)
    page = pages.check(html.page(old))
    assert "time" not in [each.attributes["id"] for each in page.all("h2")]
    assert old.answer == found.answer
    for torn in (b"", b"no table", b"ARROW1\0\0"):
        (folder / "runs/1").mkdir(parents=True, exist_ok=True)
        (folder / "runs/1/samples.arrow").write_bytes(torn)
        (folder / "runs/1/record.json").write_bytes(torn)
        assert not list(series.cells(folder, before.runs))
        assert records.read(varied)


def test_a_study_without_a_run_has_a_page(tmp_path: Path) -> None:
    plan = {"question": "?", "scope": "emulated", "treatment": "mtu", "margins": {"goodput": 0.01}}
    Journal.create(tmp_path / "none", STUDY, plan).close()
    found = gathered(read(tmp_path / "none"))
    assert found.answer.text.startswith("No answer: nothing was compared")
    assert not found.pictures
    pages.check(html.page(found))
    assert markdown.markdown(found)


def test_an_excluded_run_is_drawn_and_listed_and_counts_for_nothing(
    varied: Saved, found: material.Material, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    shutil.copytree(varied.folder, folder)
    lines = (folder / "runs.jsonl").read_text().splitlines()
    first = next(run for run in map(json.loads, lines) if not run["excluded"] and "goodput" in run["metrics"])
    again: dict[str, Any] = {**first, "number": len(lines) + 1, "excluded": ["fidelity: the fabric was late"]}
    again["metrics"] = {name: 2 * value for name, value in first["metrics"].items()}
    (folder / "runs.jsonl").write_text("\n".join([*lines, json.dumps(again)]) + "\n")
    after = gathered(read(seal(folder)))
    assert found.numbers == after.numbers
    assert "fidelity: the fabric was late" in html.page(after)
    name = f"runs-{first['cell'] + 1}-goodput"
    before, now = (next(each for each in one.pictures if each.name == name) for one in (found, after))
    assert "excluded" in now.text
    assert now.drawn.count("<path") == before.drawn.count("<path") + 1


def test_a_drawing_knows_the_page_s_colours_and_no_other(found: material.Material) -> None:
    for each in found.pictures:
        inside = draw.for_page(each.drawn, each.name, each.title, each.text)
        assert not re.findall(r'(?:fill|stroke)="(?!var\(--|none)[^"]*"', inside), each.name
        assert set(re.findall(r"var\(--(\w+)\)", inside)) <= set(draw.ROLES)
        assert "http" not in inside.replace("http://www.w3.org/2000/svg", "")
        assert "font-family" not in inside
        assert draw.png(each.drawn).startswith(b"\x89PNG")


@pytest.mark.thorough
def test_the_command_writes_what_is_asked_for(
    varied: Saved, found: material.Material, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = ["--html", "page.html", "--markdown", "page.md", "--pictures", "charts"]
    arguments = [str(tmp_path / word) if not word.startswith("--") else word for word in wanted]
    assert cli.main(["report", str(varied.folder), *arguments]) == 0
    out, err = capsys.readouterr()
    assert " ".join(out.split()).startswith(f"Does it work? {found.answer.text}")
    assert err.splitlines() == [f"written: {tmp_path / name}" for name in ("page.html", "page.md", "charts")]
    text = (tmp_path / "page.md").read_text()
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert links
    assert all((tmp_path / link).exists() for link in links)
    assert sorted({path.suffix for path in (tmp_path / "charts").iterdir()}) == [".png", ".svg"]
    assert (tmp_path / "page.html").read_text() == html.page(found)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (documents.Wanted(html=Path("none/page.html")), "--html: found no folder"),
        (documents.Wanted(markdown=Path("none/page.md")), "--markdown: found no folder"),
        (documents.Wanted(pictures=Path("none/charts")), "--pictures: found no folder"),
        (documents.Wanted(html=Path(".")), "expected a file"),
        (documents.Wanted(pictures=Path("a file")), "expected a folder"),
    ],
)
def test_a_place_that_is_not_there_is_named_before_anything_is_drawn(
    wanted: documents.Wanted, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a file").touch()
    with pytest.raises(InputError, match=message):
        wanted.check()


@pytest.mark.parametrize(
    ("low", "high"), [(0.99, 1.01), (0.84, 1.22), (0.5, 2.0), (0.05, 1.1), (0.9999, 1.0001), (0.2, 40), (0.76, 16.2)]
)
def test_an_axis_of_ratios_has_few_ticks_and_1_among_them(low: float, high: float) -> None:
    ticks = axis.ratio_ticks(low, high)
    assert 1 in ticks
    assert len(ticks) <= axis.MOST_TICKS
    assert all(low <= tick <= high for tick in ticks)
    assert all(math.log(after / before) >= 0.08 * math.log(high / low) for before, after in pairwise(ticks))
    # A character of a label takes about a fiftieth of a chart on a phone.
    places = [(math.log(tick / low) / math.log(high / low), len(axis.label(tick)) / 2 / 50) for tick in ticks]
    assert all(right - half > left + before for (left, before), (right, half) in pairwise(places))


def test_an_interval_beyond_measure_does_not_flatten_the_axis() -> None:
    low, high = axis.ratio_domain([1.05], [[1e-300, 1e300]], 0.01)
    assert low > 0.1
    assert high < 10


def test_the_command_to_repeat_it_says_nothing_of_the_machine(found: material.Material) -> None:
    for folder, said in (
        ("/tmp/somebody/out", "out/study.yaml"), ("results/my pair", "'results/my pair/study.yaml'"), (".", "study.yaml"),
    ):  # fmt: skip
        moved = replace(found, saved=replace(found.saved, folder=Path(folder)))
        assert method.repeat(moved) == f"framegauge study {said} --seed 1"


def test_units_are_scaled_to_what_is_read_easily() -> None:
    assert unit_scale("bits_per_second", 9.4e8) == (1e6, "Mb/s")
    assert unit_scale("seconds", 2e-7) == (1e-6, "us")
    assert unit_scale("share", 1.0) == (1, "")


def test_the_representative_run_is_the_one_nearest_to_the_median() -> None:
    from framegauge.report.pictures.series import representative

    run = Run(1, 0, 0, "a", "baseline", 1500, 0, "stream", {}, {"goodput": 1.0}, [])
    runs = [
        replace(run, number=number, metrics={"goodput": value}) for number, value in enumerate((1.0, 5.0, 6.0, 90.0))
    ]
    chosen = representative([*runs, replace(run, number=9, metrics={"goodput": 5.5}, excluded=["late"])])
    assert chosen is not None
    assert chosen.number == 1
    assert representative([replace(run, excluded=["late"])]) is None
