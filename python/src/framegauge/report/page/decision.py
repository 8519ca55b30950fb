"""The decision: a page of its own that prints on one sheet, and the last section of a study's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from framegauge import __version__
from framegauge.report.decision.model import Decision, Drawing, Line, Part, split
from framegauge.report.decision.sheet import has_room, shortened
from framegauge.report.page.markup import Cell, answered, asset, items, lines, section, style, table, text
from framegauge.report.pictures.material import Material

__all__ = ["page", "section_of"]

_WIDE = ("verdicts", "next")
_SCOPES: Mapping[str, str] = {
    "measured": "measured on your own hosts", "emulated": "emulated, not your network",
    "simulated": "simulated, not your network",
    "invented": "invented figures, no evidence about any network",
}  # fmt: skip


def page(found: Decision, drawings: Sequence[Drawing] = ()) -> str:
    """The page of its own. Drawings that have no room on the sheet are not printed."""
    short = shortened(found, drawn=bool(drawings))
    drawn = _drawn(drawings, has_room(found))
    looks = "".join(drawing.style for drawing in drawings)
    scope = _SCOPES.get(short.scope, short.scope)
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return "".join([
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        f"<title>Decision: {text(short.goal)}</title>\n",
        f"<style>\n{style()}{asset('decision.css')}{looks}</style>\n",
        '</head>\n<body class="sheet">\n<header>\n',
        f'<p class="soft brand">framegauge · decision · <strong>{text(scope)}</strong></p>\n</header>\n',
        f'<main id="main">\n<h1>{text(short.goal)}</h1>\n',
        _inside(short, "h2", drawn),
        f'</main>\n<footer class="soft"><p>framegauge {text(__version__)}. {text(short.footer)}</p></footer>\n',
        "</body>\n</html>\n",
    ])  # fmt: skip


def section_of(material: Material) -> str:
    """The same as a section, with nothing left out."""
    whole = material.decision
    return section("decision", "Decision", f"<p><strong>{text(whole.goal)}</strong></p>\n{_inside(whole, 'h3')}")


def _drawn(drawings: Sequence[Drawing], is_printed: bool) -> str:
    shown = "".join(
        f'<section aria-labelledby="drawn-{drawing.name}"><h2 id="drawn-{drawing.name}">{text(drawing.title)}</h2>\n'
        f"{drawing.html}</section>\n"
        for drawing in drawings
    )
    return f'<div class="drawings wide{"" if is_printed else " data"}">\n{shown}</div>\n' if shown else ""


def _inside(decision: Decision, heading: str, drawn: str = "") -> str:
    """Everything but the goal."""
    tables = any(part.rows for part in decision.parts if part.name == "competitors")
    wide = (*_WIDE, *(("smallest",) if tables else ()))
    parts = "".join(_part(entry, heading, bool(entry.rows) or entry.name in wide) for entry in decision.parts)
    above = answered(decision.answer) + items(decision.beside, "beside-answer") + drawn
    return f'<div class="decision">\n{above}{parts}</div>\n'


def _part(part: Part, heading: str, is_wide: bool) -> str:
    name = f"decision-{part.name.replace('_', '-')}"
    rows: list[Sequence[Cell]] = [
        [*row[:-1], (row[-1], _look(row[-1]))] if part.name == "verdicts" else list(row) for row in part.rows
    ]
    bullets = "".join(f"<li>{_line(line)}</li>" for line in part.lines)
    return (
        f'<section aria-labelledby="{name}"{" class=wide" if is_wide else ""}>'
        f'<{heading} id="{name}">{text(part.title)}</{heading}>\n'
        + table(part.title, part.head, rows)
        + f"<ul>{bullets}</ul></section>\n"
    )


def _look(verdict: str) -> str:
    """The class of a cell that holds one verdict, of one comparison or of all."""
    return f"v {verdict.partition(' in all ')[0].replace(' ', '-')}" if verdict[:1].isalpha() else "v"


def _line(line: Line) -> str:
    words, command = split(line)
    return f"{text(words)}: <code>{lines(command)}</code>" if command else text(words)
