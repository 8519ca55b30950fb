"""The whole documentation as one offline HTML page: pictures are inside, and links between pages lead within it."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import groupby

from markdown_it import MarkdownIt
from markdown_it.token import Token

from framegauge import __version__
from framegauge.printable import escaped
from framegauge.shipped import pages, places

__all__ = ["anchor", "html", "slug"]

TITLE = "framegauge: documentation"
COPIES = (
    "Commands name files in <code>examples/</code>: <code>framegauge examples --copy examples</code> puts them there."
)
PICTURES = {".svg": "image/svg+xml", ".png": "image/png"}


def html() -> str:
    """The page."""
    topics = pages.topics()
    known = {topic.page: topic for topic in topics}
    style = (resources.files("framegauge.shipped") / "book.css").read_text("utf-8")
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{TITLE}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
    )
    articles = "".join(_article(topic, known) for topic in topics)
    top = f"<header>\n<h1>{TITLE}</h1>\n<p>Of framegauge {escaped(__version__)}. {COPIES}</p>\n</header>\n"
    return f"{head}{top}{_contents(topics)}<main>\n{articles}</main>\n</body>\n</html>\n"


def anchor(page: str, heading: str = "") -> str:
    """The id of a page, or of a heading of it."""
    name = page.replace("/", "-")
    return f"{name}--{heading}" if heading else name


def slug(text: str) -> str:
    """A heading as GitHub has it in links."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def _contents(topics: Sequence[pages.Topic]) -> str:
    parts = []
    for section, members in groupby(topics, key=lambda topic: topic.section):
        links = "".join(f'<li><a href="#{anchor(topic.page)}">{escaped(topic.title)}</a></li>\n' for topic in members)
        parts.append(f"<h2>{escaped(section)}</h2>\n<ul>\n{links}</ul>\n")
    return f'<nav aria-label="Contents">\n{"".join(parts)}</nav>\n'


def _article(topic: pages.Topic, known: Mapping[str, pages.Topic]) -> str:
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(topic.text)
    named = _headings(tokens)
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", anchor(topic.page, named[place]))
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1:]) + 1)}"  # the page itself has the first
        for child in token.children or ():
            if child.type == "link_open":
                _lead(child, topic.page, known)
            elif child.type == "image":
                child.attrSet("src", _inlined(topic, str(child.attrGet("src"))))
    body = reader.renderer.render(tokens, reader.options, {})
    body = body.replace("<table>", '<div class="scroll" tabindex="0"><table>').replace("</table>", "</table></div>")
    body = body.replace("<pre>", '<pre tabindex="0">')  # what scrolls can be scrolled by keys
    return f'<article id="{anchor(topic.page)}">\n{body}</article>\n'


def _headings(tokens: Sequence[Token]) -> dict[int, str]:
    """The name in links of each heading, by the place where it opens; one that comes again has a number."""
    named: dict[int, str] = {}
    seen: Counter[str] = Counter()
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            name = slug("".join(child.content for child in tokens[place + 1].children or ()))
            named[place] = f"{name}-{seen[name]}" if seen[name] else name
            seen[name] += 1
    return named


def _lead(link: Token, page: str, known: Mapping[str, pages.Topic]) -> None:
    """Has a link lead within the page. What it leads to elsewhere in the repository is not in a wheel."""
    target = str(link.attrGet("href"))
    if "://" in target:
        return
    place = pages.linked(page, target)
    if place is not None and place[0] in known:
        link.attrSet("href", f"#{anchor(*place)}")
    else:
        link.attrs.pop("href")


def _inlined(topic: pages.Topic, source: str) -> str:
    """A picture as a URL that holds it."""
    path = (topic.path.parent / source).resolve().relative_to(places.docs().resolve())
    data = (places.docs() / path).read_bytes()
    return f"data:{PICTURES[path.suffix]};base64,{base64.b64encode(data).decode()}"
