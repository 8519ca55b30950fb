"""The pieces of an offline HTML page: text, tables with captions, charts. Everything from outside is escaped."""

from __future__ import annotations

import base64
import enum
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

from framegauge.plots import draw
from framegauge.printable import escaped, prose as text
from framegauge.report.decision.model import Choice
from framegauge.report.page import tables
from framegauge.report.pictures.charts import Picture
from framegauge.summary.sentence import Answer, Kind

__all__ = [
    "Cell", "answered", "asset", "colours", "figure", "hash_of", "items", "lines", "section", "slug", "style",
    "table", "text",
]  # fmt: skip

Cell = str | tuple[str, str]  # text, or text and the class of its cell
# The class of each kind, and the sign before the sentence.
_LOOKS: Mapping[enum.StrEnum, tuple[str, str]] = {
    Kind.YES: ("better", "✓"), Kind.NO: ("worse", "✗"), Kind.NO_DIFFERENCE: ("soft-box", "="),
    Kind.DEPENDS: ("undecided", "±"), Kind.UNDECIDED: ("undecided", "?"), Kind.SUSPECT: ("worse", "!"),
    Kind.NO_ANSWER: ("worse", "!"),
    Choice.DO_IT: ("better", "✓"), Choice.SUBNET_ONLY: ("better", "✓"), Choice.DO_NOT: ("worse", "✗"),
    Choice.CANNOT_TELL: ("undecided", "?"),
}  # fmt: skip


def asset(name: str) -> str:
    """The text of a file that pages carry."""
    return files("framegauge.report.page").joinpath("assets", name).read_text(encoding="utf-8")


def style() -> str:
    """What every page of a study has: its colours, and the style of text, tables and charts."""
    return colours() + asset("study_page.css") + tables.style()


def colours() -> str:
    """The colours of charts on white paper, as variables; those of the dark theme are in the style sheet."""
    return ":root { " + " ".join(f"--{role}: {value};" for role, value in draw.ROLES.items()) + " }\n"


def hash_of(script: str) -> str:
    """By which a page's policy names a script that it carries."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def answered(answer: Answer) -> str:
    """The answer in its box."""
    look, sign = _LOOKS[answer.kind]
    return (
        f'<p class="answer {look}"><span class="sign" aria-hidden="true">{sign}</span>'
        f"<span>{text(answer.text)}</span></p>\n"
    )


def lines(value: str) -> str:
    """The text to be copied as it is, escaped, with its line ends."""
    return "\n".join(map(escaped, value.splitlines()))


def slug(value: str) -> str:
    """A name turned into a valid id."""
    return "".join(character if character.isascii() and character.isalnum() else "-" for character in value)


def items(found: Iterable[str], look: str = "") -> str:
    """A list, each item escaped; empty without items."""
    inside = "".join(f"<li>{text(item)}</li>" for item in found)
    return f'<ul class="{look}">{inside}</ul>\n' if inside else ""


def section(name: str, title: str, inside: str) -> str:
    """A section with its heading; empty without content."""
    if not inside:
        return ""
    return f'<section aria-labelledby="{name}"><h2 id="{name}" tabindex="-1">{text(title)}</h2>\n{inside}</section>\n'


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A table of text; empty without rows."""
    escaped = ([(text(cell[0]), cell[1]) if isinstance(cell, tuple) else text(cell) for cell in row] for row in rows)
    return tables.table(caption, head, escaped)


def figure(picture: Picture) -> str:
    """A chart with its title as a caption."""
    name = f"chart-{slug(picture.name)}"
    drawn = draw.for_page(picture.drawn, name, picture.title, picture.text)
    return f'<figure id="{name}"><figcaption>{text(picture.title)}</figcaption>\n{drawn}</figure>\n'
