"""The pieces of an offline HTML page: text, tables with captions, charts. Everything from outside is escaped."""

from __future__ import annotations

import base64
import enum
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

from framegauge.plots import draw
from framegauge.printable import escaped as text
from framegauge.report.decision.model import Choice
from framegauge.report.pictures.charts import Picture
from framegauge.summary.sentence import Answer, Kind

__all__ = [
    "Cell", "answered", "asset", "colours", "figure", "hash_of", "items", "lines", "section", "slug", "table", "text",
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
    """The text, escaped, with its line ends."""
    return "\n".join(map(text, value.splitlines()))


def slug(value: str) -> str:
    """A name turned into a valid id."""
    return "".join(character if character.isascii() and character.isalnum() else "-" for character in value)


def items(found: Iterable[str], look: str = "") -> str:
    """A list, each item escaped; empty without items."""
    inside = "".join(f"<li>{text(each)}</li>" for each in found)
    return f'<ul class="{look}">{inside}</ul>\n' if inside else ""


def section(name: str, title: str, inside: str) -> str:
    """A section with its heading; empty without content."""
    if not inside:
        return ""
    return f'<section aria-labelledby="{name}"><h2 id="{name}" tabindex="-1">{text(title)}</h2>\n{inside}</section>\n'


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A table whose first column names the row, in a region that the keyboard can scroll; empty without rows."""
    body = "".join(f"<tr>{_row(row)}</tr>\n" for row in rows)
    if not body:
        return ""
    named = "".join(f'<th scope="col">{text(name)}</th>' for name in head)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text(caption)}"><table>'
        f"<caption>{text(caption)}</caption>\n<thead><tr>{named}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )


def _row(row: Sequence[Cell]) -> str:
    cells = [(cell, "") if isinstance(cell, str) else cell for cell in row]
    looks = [f' class="{look}"' if look else "" for _, look in cells]
    first, *rest = [text(value) for value, _ in cells]
    return f'<th scope="row"{looks[0]}>{first}</th>' + "".join(
        f"<td{look}>{value}</td>" for value, look in zip(rest, looks[1:], strict=True)
    )


def figure(picture: Picture) -> str:
    """A chart with its title as a caption."""
    name = f"chart-{slug(picture.name)}"
    drawn = draw.for_page(picture.drawn, name, picture.title, picture.text)
    return f'<figure id="{name}"><figcaption>{text(picture.title)}</figcaption>\n{drawn}</figure>\n'
