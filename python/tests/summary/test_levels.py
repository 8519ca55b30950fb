"""The smallest level that is enough: in summary.json, on the terminal, in Markdown, on the page and as a chart."""

from __future__ import annotations

import json

import jsonschema
import pytest
from helpers import pages

from framegauge.report.markdown import markdown
from framegauge.report.page.html import page
from framegauge.report.pictures.material import gather
from framegauge.results.journal import read
from framegauge.study import file as study_file
from framegauge.summary import document, levels
from framegauge.summary.schema import summary_schema

STUDY = """
question: Which MTU is enough?
testbed: {kind: fake}
factors:
  mtu: {levels: [1500, 4200, 9000], baseline: 1500}
  rtt: [0.2 ms, 1 ms]
workloads: [{stream: {size: 10 MB}}]
blocks: 10
margins: {goodput: 2 %}
"""


@pytest.fixture
def saved(execute, tmp_path):
    execute(study_file.parse(STUDY, "x"))
    return read(tmp_path / "out")


def test_the_summary_and_its_sentences(saved):
    found = json.loads(document.text(document.summarise(saved)))
    jsonschema.Draft202012Validator(summary_schema()).validate(found)
    whole, near, far = found["smallest_levels"]
    assert (whole["all_cells"], near["all_cells"], far["all_cells"]) == (True, False, False)
    assert [each["conditions"].get("rtt_seconds") for each in (whole, near, far)] == [None, 0.0002, 0.001]
    # In the fake network, 4200 lacks 1.2 % of the goodput of 9000 next door, and 2.5 % at 1 ms.
    assert [each["smallest"] for each in (whole, near, far)] == [{"mtu": 9000}, {"mtu": 4200}, {"mtu": 9000}]
    said = list(levels.lines(found))
    assert said[0].startswith("the goodput of MTU 9000 needs MTU 9000: MTU 4200 does not give it (")
    assert said[1].startswith("RTT 200 us: MTU 4200 already gives the goodput of MTU 9000 (within 2 %); MTU 1500 ")
    assert list(levels.lines({**found, "faithful": False})) == []


def test_page_markdown_and_chart(saved):
    summary = document.summarise(saved)
    material = gather(saved, summary)
    (near, far) = material.of("levels")
    assert near.text.endswith("; by arithmetic 4200: +4.0 %; by arithmetic 9000: +5.2 %.")
    assert near.drawn != far.drawn
    told = pages.check(page(material))
    assert "The smallest level that is enough" in [each.text for each in told.all("h2")]
    assert "## The smallest level that is enough" in markdown(material)


def test_two_levels_have_no_order(execute, tmp_path):
    execute(study_file.parse(STUDY.replace("4200, ", ""), "x"))
    found = document.summarise(read(tmp_path / "out"))
    assert found["smallest_levels"] == []
    assert list(levels.lines(found)) == []


def test_an_interval_inside_the_margin_says_that_it_lacks_blocks(execute, tmp_path):
    execute(study_file.parse(STUDY.replace("blocks: 10", "blocks: 5").replace(", 1 ms]", "]"), "x"))
    [said] = levels.lines(document.summarise(read(tmp_path / "out")))
    assert said.startswith(
        "whether MTU 4200 already gives the goodput of MTU 9000 (within 2 %) is open until there are 8 blocks ("
    )
