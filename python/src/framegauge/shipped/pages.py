"""The pages of the documentation: the topics of its index, and what a link of one page leads to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from posixpath import normpath

from framegauge.shipped import places

__all__ = ["Topic", "linked", "named", "topics", "with_word"]

INDEX = "README.md"
# A short name means the first of these folders that has a page of that name.
ORDER = ("", "how-to", "reference", "why", "measured")
_SECTION = re.compile(
    r"^## (?P<section>.+)$|^- \[(?P<title>[^\]]+)\]\((?P<path>[^)]+)\)(?:: (?P<about>.+(?:\n  .+)*))?", re.MULTILINE
)


@dataclass(frozen=True)
class Topic:
    """A page. `page` is its path in docs/ without the suffix; `name` the shortest that means it."""

    name: str
    page: str
    section: str
    title: str
    about: str

    @property
    def path(self) -> Path:
        """Its file."""
        return places.docs() / f"{self.page}.md"

    @property
    def text(self) -> str:
        """The page, in Markdown."""
        return self.path.read_text("utf-8")


def with_word(word: str) -> list[str]:
    """The names of the pages in which a word stands, those first in which it stands most, and tables of what was
    measured last."""
    whole = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE)
    counts = {topic: count for topic in topics() if (count := len(whole.findall(topic.text)))}
    return [
        topic.name for topic in sorted(counts, key=lambda topic: (_folder(topic.page) == ORDER[-1], -counts[topic]))
    ]


def topics() -> list[Topic]:
    """All pages, in the order of the index."""
    index = (places.docs() / INDEX).read_text("utf-8")
    entries, section = [], ""
    for match in _SECTION.finditer(index):
        if match["section"]:
            section = match["section"]
        else:
            page = match["path"].removesuffix(".md")
            about = " ".join((match["about"] or "").split())
            entries.append(Topic(page, page, section, match["title"], about))
    first: dict[str, str] = {}
    for page in sorted((topic.page for topic in entries), key=lambda page: ORDER.index(_folder(page))):
        first.setdefault(page.rpartition("/")[2], page)
    short = {page: name for name, page in first.items()}
    return [
        Topic(short.get(topic.page, topic.page), topic.page, topic.section, topic.title, topic.about)
        for topic in entries
    ]


def _folder(page: str) -> str:
    return page.rpartition("/")[0]


def named(text: str) -> Topic | None:
    """The topic that a name or a path such as docs/how-to/check.md means; None if there is none."""
    page = text.removesuffix(".md").removeprefix("docs/")
    known = topics()
    return next((topic for topic in known if page == topic.name), None) or next(
        (topic for topic in known if page == topic.page), None
    )


def linked(page: str, target: str) -> tuple[str, str] | None:
    """The page and the heading that a link of a page leads to, empty for none; None if it leads out of docs/."""
    path, _, heading = target.partition("#")
    if "://" in path:
        return None
    if not path:
        return page, heading
    inside = normpath(f"{_folder(page) or '.'}/{path}")
    if not inside.endswith(".md") or inside.startswith("../"):
        return None
    return inside.removesuffix(".md"), heading
