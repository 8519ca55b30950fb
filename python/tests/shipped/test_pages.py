"""Every page of the documentation is a topic, and all pages in one file hold together."""

from __future__ import annotations

import re

import pytest
from helpers.support import ROOT

from framegauge import __version__
from framegauge.shipped import book, pages

TOPICS = pages.topics()


def test_every_page_is_in_the_index_and_once() -> None:
    listed = [topic.page for topic in TOPICS]
    docs = ROOT / "docs"
    assert sorted(listed) == sorted(
        path.relative_to(docs).with_suffix("").as_posix() for path in docs.rglob("*.md") if path != docs / "README.md"
    )
    assert len({topic.name for topic in TOPICS}) == len(TOPICS)
    assert {topic.section for topic in TOPICS} == {"How to", "Reference", "Why", "Measured"}


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("check", "how-to/check"), ("how-to/check", "how-to/check"), ("docs/how-to/check.md", "how-to/check"),
        ("capture", "reference/capture"), ("measured/capture", "measured/capture"), ("storage", "storage"),
        ("measured/storage", "measured/storage"), ("README", None), ("", None), ("none", None),
    ],
)  # fmt: skip
def test_a_topic_is_found_by_its_short_name_and_by_its_path(text: str, page: str | None) -> None:
    topic = pages.named(text)
    assert (None if topic is None else topic.page) == page


@pytest.mark.parametrize(
    ("page", "target", "place"),
    [
        ("how-to/check", "hosts.md", ("how-to/hosts", "")),
        ("how-to/check", "../why/fidelity.md#proof", ("why/fidelity", "proof")),
        ("storage", "measured/storage.md", ("measured/storage", "")),
        ("storage", "#nfs", ("storage", "nfs")),
        ("storage", "../examples/nfs.yaml", None),
        ("how-to/check", "../../pipe/README.md", None),
        ("storage", "https://example.org/a.md", None),
    ],
)
def test_a_link_leads_to_a_page(page: str, target: str, place: tuple[str, str] | None) -> None:
    assert pages.linked(page, target) == place


def test_the_file_of_all_pages_needs_no_other_and_its_links_lead_somewhere() -> None:
    text = book.html()
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(set(ids)) == len(ids)
    targets = re.findall(r'<a href="([^"]+)"', text)
    inner = {target[1:] for target in targets if target.startswith("#")}
    assert inner <= set(ids), inner - set(ids)
    assert {book.anchor(topic.page) for topic in TOPICS} <= inner
    assert all(target.startswith(("#", "https://", "http://")) for target in targets)
    sources = re.findall(r' src="([^"]+)"', text)
    assert len(sources) >= 5
    assert all(source.startswith("data:image/") for source in sources)
    assert "<script" not in text
    assert f"Of framegauge {__version__}. " in text
    assert not re.search(r"<pre>|<div class=.scroll.>", text)  # keys can scroll them
    assert not re.search(r"<link|@import|url\(", text)
