"""The site's pages as HTML. Each names its parts (style, script, images), which a browser then fetches."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from framegauge.apps.web.content import IMAGES

__all__ = ["END", "event", "home", "page", "person", "search"]

END = "</body></html>\n"  # by which a whole page is told from a part of one


def page(title: str, body: str) -> str:
    """A whole page."""
    return (
        f"<!doctype html><html><head><title>{html.escape(title)}</title>"
        '<link rel="stylesheet" href="/static/site.css"><script src="/static/site.js"></script></head>'
        f"<body><h1>{html.escape(title)}</h1>{body}{END}"
    )


def _image(kind: str, number: int) -> str:
    return f'<img src="/image/{kind}/{number % IMAGES}">'


def _events(events: Iterable[Mapping[str, Any]]) -> str:
    """A list of events, each with a thumbnail."""
    items = (
        f'<li>{_image("thumbnail", row["id"])}<a href="/event/{row["id"]}">{html.escape(row["title"])}</a>'
        f" day {row['day']}, {html.escape(row['place'])}: {html.escape(row['about'][:120])}</li>"
        for row in events
    )
    return f"<ul>{''.join(items)}</ul>"


def home(events: Sequence[Mapping[str, Any]]) -> str:
    """The first page: the next events."""
    return page("What is on", _events(events))


def search(tag: str, events: Sequence[Mapping[str, Any]]) -> str:
    """The events with a tag."""
    return page(f"Events with {tag}", _events(events))


def event(
    one: Mapping[str, Any],
    tags: Sequence[str],
    guests: Sequence[Mapping[str, Any]],
    comments: Sequence[Mapping[str, Any]],
) -> str:
    """An event with its poster, its guests and what they say."""
    guest_html = "".join(
        f"<li>{_image('thumbnail', item['id']) if index < 2 else ''}"
        f'<a href="/person/{item["id"]}">{html.escape(item["name"])}</a></li>'
        for index, item in enumerate(guests)
    )
    comment_html = "".join(
        f"<p><b>{html.escape(item['name'])}</b>: {html.escape(item['words'])}</p>" for item in comments
    )
    links = " ".join(f'<a href="/tag/{html.escape(item)}">{html.escape(item)}</a>' for item in tags)
    description = (
        f"<p>day {one['day']}, {html.escape(one['place'])}</p><p>{html.escape(one['about'])}</p><p>{links}</p>"
    )
    return page(one["title"], f"{_image('poster', one['id'])}{description}<ul>{guest_html}</ul>{comment_html}")


def person(one: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> str:
    """A person, and the events that they go to."""
    description = f"{_image('thumbnail', one['id'])}<p>{html.escape(one['about'])}</p>"
    links = "".join(f'<li><a href="/event/{row["id"]}">{html.escape(row["title"])}</a></li>' for row in events)
    return page(one["name"], f"{description}<ul>{links}</ul>")
