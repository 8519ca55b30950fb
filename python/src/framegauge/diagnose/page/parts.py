"""The pieces of the page: text, tables, bars of time. Everything from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from framegauge.diagnose.page.groups import GROUPS, group_of
from framegauge.printable import escaped, prose as text
from framegauge.quantities import print_seconds

__all__ = ["bar", "ends", "interval", "legend", "lost", "seconds", "section", "spoken", "text", "to_picture", "whole"]

Json = Mapping[str, Any]


def seconds(value: float) -> str:
    """A time, with three digits."""
    return print_seconds(value, 3)


def interval(found: Json) -> str:
    """When a finding was, in seconds since the capture began."""
    begin, end = found["begin_seconds"], found["end_seconds"]
    return f"{begin:.6f} s" if begin == end else f"{begin:.6f} to {end:.6f} s"


def spoken(words: str) -> str:
    """Words in which what stands between backticks is a command."""
    parts = words.split("`")
    if len(parts) % 2 == 0:  # one of them is nothing but itself
        return text(words)
    return "".join(f"<code>{escaped(part)}</code>" if place % 2 else text(part) for place, part in enumerate(parts))


def whole(words: str) -> str:
    """Words that stay in one line."""
    return f'<span class="whole">{words}</span>'


def lost(found: Json) -> str:
    """The time that a finding cost."""
    return seconds(found["lost_seconds"]) if found["lost_seconds"] else "-"


def ends(connection: Json) -> str:
    """Both ends, kept apart from the direction of the text around them."""
    return f"<bdi>{text(connection['client'])}</bdi> → <bdi>{text(connection['server'])}</bdi>"


def section(name: str, title: str, inside: str) -> str:
    """A section with its heading; empty without content."""
    if not inside:
        return ""
    return f'<section aria-labelledby="{name}"><h2 id="{name}" tabindex="-1">{text(title)}</h2>\n{inside}</section>\n'


def to_picture(found: Json, drawn: Iterable[int], words: str) -> str:
    """A link to what a picture shows of a finding; the words alone where there is none."""
    number = found["connection"]
    if number not in drawn:
        return words
    packets = " ".join(str(packet) for packet in found["packets"])
    return (
        f'<a class="to-picture" href="#picture-{number}" data-connection="{number}" '
        f'data-begin="{found["begin_seconds"]}" data-end="{found["end_seconds"]}" data-packets="{packets}">{words}</a>'
    )


def bar(connection: Json) -> str:
    """A connection's time by cause: a bar, and the same in words."""
    parts = sorted(connection["time"].items(), key=lambda item: -item[1])
    all_of_it = sum(value for _, value in parts)
    if all_of_it <= 0:
        return ""
    drawn, place = [], 0.0
    for kind, value in parts:
        width = 1000 * value / all_of_it
        drawn.append(f'<rect class="g-{group_of(kind)}" x="{place:.2f}" y="0" width="{width:.2f}" height="10"/>')
        place += width
    texts = [
        f"{kind} {seconds(value)} ({100 * value / all_of_it:.0f} %)"
        for kind, value in parts
        if value >= all_of_it / 200
    ]
    words = ", ".join(texts)
    return (
        f'<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img">'
        f"<title>Time by cause, connection {connection['connection']}</title><desc>{text(words)}</desc>"
        f'{"".join(drawn)}</svg><span class="causes">{text(words)}</span>'
    )


def legend() -> str:
    """What the colours of bars and bands mean."""
    items = "".join(
        f'<li><span class="swatch g-{name}" aria-hidden="true"></span>{text(words)}</li>'
        for name, words in GROUPS.items()
    )
    return f'<ul class="legend">{items}</ul>\n'
