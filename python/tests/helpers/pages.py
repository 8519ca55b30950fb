"""What tests know of pages: studies worth one, their elements, and that they are whole, named and offline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from framegauge.results.journal import Journal, Run, Saved, read

Opened = Callable[..., Any]  # opens a page in the browser: a playwright.sync_api.Page
VARIED = """\
question: Does it work?
testbed: {kind: fake}
factors:
  mtu: {levels: [1500, 4000, 9000], baseline: 1500}
  rtt: [0.2 ms, 1.2 ms]
workloads:
  - stream: {size: [1 MB, 10 MB], flows: 4}
  - rr: {duration: 1 s}
blocks: 3
stop: blocks
margins: {goodput: 1 %, completion_time: 2 %, latency_p99: 5 %, fairness: 5 %, receiver_cpu_cost: 5 %}
"""
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&|`*_\x1b[31m\u202e\x00end"
TAGS = "<b>5 % & less</b>"
VOID = {"meta", "br", "hr", "img", "input", "link"}
HEADINGS = ("h1", "h2", "h3", "h4")


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    text: str = ""
    children: list[Element] = field(default_factory=list)


class Page(HTMLParser):
    """Every element of a page, in order; AssertionError where one is closed that was not open. Its texts are as people
    read them, with spaces that are all alike."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()
        assert not self._open, [each.tag for each in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        assert len(element.attributes) == len(attrs), (tag, attrs)
        self.elements.append(element)
        if self._open:
            self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.elements.append(element)
        self._open[-1].children.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}>"
        assert self._open[-1].tag == tag, f"</{tag}> closes {self._open[-1].tag}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += as_read(data)

    def all(self, tag: str) -> list[Element]:
        return [each for each in self.elements if each.tag == tag]


def as_read(text: str) -> str:
    """With spaces that are all alike, as people read them."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def check(text: str) -> Page:
    """A page that is whole, refers to nothing outside itself, and names everything it shows."""
    page = Page(text)
    ids = [each.attributes["id"] for each in page.elements if "id" in each.attributes]
    assert len(ids) == len(set(ids)), [each for each in ids if ids.count(each) > 1]
    for each in page.elements:
        assert not [name for name in each.attributes if name.startswith("on")], each
        assert "src" not in each.attributes
        for name in ("href", "xlink:href"):
            target = each.attributes.get(name)
            assert target is None or (target.startswith("#") and target[1:] in ids), target
        for name in ("aria-labelledby", "aria-describedby"):
            assert each.attributes.get(name) is None or each.attributes[name] in ids, each
    assert page.all("html")[0].attributes["lang"] == "en"
    assert len(page.all("main")) == len(page.all("h1")) == len(page.all("title")) - len(page.all("svg")) == 1
    levels = [HEADINGS.index(each.tag) for each in page.elements if each.tag in HEADINGS]
    assert levels[0] == 0
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels
    for table in page.all("table"):
        assert table.children[0].tag == "caption"
        assert table.children[0].text.strip()
    assert all(each.attributes.get("scope") in ("row", "col") for each in page.all("th"))
    for drawing in page.all("svg"):
        assert drawing.attributes["role"] == "img"
        assert [child.tag for child in drawing.children[:2]] == ["title", "desc"]
        assert all(child.text.strip() for child in drawing.children[:2])
    return page


def samples() -> bytes:
    """Of one connection, as an agent spools them."""
    steps = range(1, 50)
    table = pa.table({
        "time_seconds": [0.01 * step for step in steps], "round": [0] * 49, "flow": [0] * 49,
        "srtt_seconds": [0.001] * 49, "cwnd_segments": [100] * 49, "mss_bytes": [1448] * 49,
        "bytes_acked": [10**6 * step for step in steps],
    })  # fmt: skip
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def hostile(folder: Path) -> Saved:
    """A folder whose every name, reason and reading wants to be more than text."""
    plan = {
        "question": HOSTILE, "scope": HOSTILE, "treatment": "congestion_control", "margins": {"goodput": 0.01, "fairness": 0.1},
        "planned_runs": 36, "framegauge": HOSTILE,
    }  # fmt: skip
    with Journal.create(folder, f"question: {HOSTILE}\nseed: 1\n", plan) as journal:
        number = 0
        for block in range(6):
            for arm, role in (("baseline", "baseline"), ("control", "control"), (HOSTILE, "treatment")):
                for cell, size in enumerate((10**6, 10**7)):
                    number += 1
                    level = HOSTILE if role == "treatment" else f"cubic{HOSTILE}"
                    run = Run(
                        number, block, cell, arm, role, level, 0, HOSTILE, {"size_bytes": size, HOSTILE: f"{HOSTILE}{cell}", "pattern": HOSTILE},
                        {"goodput": 1e9 + block + 1e8 * (role == "treatment")}, [HOSTILE] if block == 5 and cell else [],
                        {"not_measured": {"fairness": HOSTILE}, "ceiling_bits_per_second": 2e9}, [HOSTILE],
                    )  # fmt: skip
                    record = {"workload": {"congestion_control": {HOSTILE: [HOSTILE]}, "bytes": 10**9}}
                    journal.add(run, record, {"samples": samples()})
        journal.environment({"agent": {HOSTILE: HOSTILE}, "python": HOSTILE, "degraded": [
            {"name": HOSTILE, "found": HOSTILE, "needed_for": HOSTILE, "remedy": HOSTILE}]})  # fmt: skip
    return read(folder)
