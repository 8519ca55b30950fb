"""The page of reproduced figures, and the same as Markdown: each figure beside what came out here. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from framegauge import __version__
from framegauge.printable import prose as text
from framegauge.report import markdown as marked
from framegauge.report.page import tables as html
from framegauge.report.page.markup import hash_of, items, section, slug, style
from framegauge.reproduce import tables
from framegauge.reproduce.documents import Loaded
from framegauge.reproduce.outcomes import ENGINES, Outcome, Reproduced, Row, Status

__all__ = ["document", "markdown", "page"]

SCHEMA = 1
TITLE = "Published figures, run again"
WIDTH, HEIGHT = 240, 26
LEAST_DECADES = 0.02  # of an axis
_LOOKS = {
    Status.AGREES: "better", Status.ANSWERED: "better", Status.EXPLAINED: "undecided", Status.PARTLY: "undecided",
    Status.UNEXPLAINED: "worse",
}  # fmt: skip
_STYLE = """\
.scroll { max-height: none; }
.strip { display: block; width: 15rem; max-width: 100%; height: 1.6rem; margin-top: .3rem; }
.strip .band { fill: var(--band); stroke: var(--soft); } .strip .same { stroke: var(--soft); stroke-dasharray: 2 2; }
.strip .ours { stroke: var(--first); stroke-width: 4; } .strip circle { fill: var(--first); stroke: var(--page); }
.strip .other { stroke: var(--second); stroke-width: 4; } .strip circle.other { fill: var(--second); stroke-width: 1; }
"""


def page(found: Sequence[Reproduced], command: str) -> str:
    """The page as HTML, which needs no network and no script."""
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {hash_of('')}; base-uri 'none'"
    inside = "".join(map(_document, found))
    rows = [row for reproduced in found for row in reproduced.rows]
    return "".join([
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        f"<title>{TITLE}</title>\n<style>\n{style()}{_STYLE}</style>\n</head>\n<body>\n",
        '<header><p class="soft brand">framegauge reproduce</p></header>\n<main>\n',
        f'<h1>{TITLE}</h1>\n<p class="answer soft-box"><span>{text(tables.counts(rows))}</span></p>\n',
        items([*tables.key([reproduced.loaded for reproduced in found]), *_PICTURE]),
        inside,
        f'</main>\n<footer class="soft"><p>framegauge {text(__version__)}, <code>{text(command)}</code></p></footer>\n',
        "</body>\n</html>\n",
    ])  # fmt: skip


_PICTURE = (
    "In a row's picture the grey box is what was published, on a logarithmic axis, the dashed line no effect; a bar is "
    "our 95 % interval: the upper one of the rack, the lower one of the simulator.",
)


def _document(reproduced: Reproduced) -> str:
    loaded, rows, about = reproduced.loaded, reproduced.rows, reproduced.loaded.document
    figure_rows = [_html_row(loaded, number, row) for number, row in enumerate(rows)]
    arms = [[text(cell) for cell in row] for row in tables.arm_rows(rows)]
    return section(
        slug(loaded.name),
        about.title,
        f"<p>{text(about.source)}</p>\n<p>{text(about.set_up)}</p>\n"
        f"<p><strong>{text(tables.counts(rows))}.</strong></p>\n"
        + "".join(f'<p class="soft">{text(line)}.</p>\n' for line in reproduced.ran)
        + html.table(f"Figures of {loaded.name}", tables.HEAD, figure_rows)
        + ("<h3>What may explain the differences</h3>\n" if arms else "")
        + html.table(f"Arms of {loaded.name}", tables.ARMS_HEAD, arms)
        + ("<h3>What was not the same</h3>\n" if about.not_same else "")
        + items(about.not_same)
        + ("<h3>What follows</h3>\n" if about.conclusion else "")
        + items(about.conclusion),
    )


def _html_row(loaded: Loaded, number: int, row: Row) -> list[html.Html]:
    first, *rest = tables.cells(row)
    drawn: list[html.Html] = [text(cell) for cell in rest]
    drawn[1] = f"{text(rest[1])}{_strip(loaded, f'{slug(first)}-{number}', row)}"
    drawn[4] = (text(rest[4]), _LOOKS.get(row.outcome.status, "soft-box"))
    return [text(first), *drawn]


def _strip(loaded: Loaded, name: str, row: Row) -> str:
    """The picture of a figure: what was published as a box, ours as bars, on one logarithmic axis."""
    ours = [
        (look, y, outcome.found.estimate)
        for look, engine, y in (("ours", "rack", 8), ("other", "simulator", 18))
        if (outcome := row.outcomes.get(engine)) and outcome.found and outcome.found.estimate
    ]
    if not ours or row.figure.value is not None or row.figure.is_open:
        return ""
    low, high = loaded.published(row.figure)
    ends = [1.0, *(end for _, _, estimate in ours for end in estimate.interval), low, high]
    places = [math.log10(end) for end in ends if end > 0 and math.isfinite(end)]
    least, most = min(places), max(places)
    wide = max(most - least, LEAST_DECADES) * 1.15
    middle = (least + most) / 2

    def at(number: float) -> float:
        place = -math.inf if number <= 0 else math.log10(number) if math.isfinite(number) else math.inf
        return WIDTH * max(0.0, min(1.0, 0.5 + (place - middle) / wide))

    description = "; ".join(f"{engine}: {cell}" for engine, cell in zip(ENGINES, tables.cells(row)[3:5], strict=True))
    return "".join([
        f'<svg class="strip" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{name}t" ',
        f'aria-describedby="{name}d"><title id="{name}t">{text(f"published: {row.figure.published}")}</title>',
        f'<desc id="{name}d">{text(description)}</desc><rect class="band" x="{at(low):.1f}" ',
        f'width="{max(at(high) - at(low), 2):.1f}" y="1" height="{HEIGHT - 2}"/>',
        f'<line class="same" x1="{at(1):.1f}" x2="{at(1):.1f}" y1="0" y2="{HEIGHT}"/>',
        *(
            f'<line class="{look}" x1="{at(estimate.low):.1f}" x2="{at(estimate.high):.1f}" y1="{y}" y2="{y}"/>'
            f'<circle class="{look}" cx="{at(estimate.number):.1f}" cy="{y}" r="4"/>'
            for look, y, estimate in ours
        ),
        "</svg>\n",
    ])  # fmt: skip


def markdown(found: Sequence[Reproduced], command: str, machine: str) -> str:
    """The same as Markdown, for docs and drafts."""
    rows = [row for reproduced in found for row in reproduced.rows]
    lines = [f"# {TITLE}", "", f"Written by `{command}`", f"on {machine}.", "", f"**{tables.counts(rows)}.**", ""]
    lines += [f"- {line}" for line in tables.key([reproduced.loaded for reproduced in found])]
    for reproduced in found:
        lines += ["", *_markdown_document(reproduced)]
    return "\n".join(lines).rstrip() + "\n"


def _markdown_document(reproduced: Reproduced) -> Iterator[str]:
    about, rows = reproduced.loaded.document, reproduced.rows
    title, source, set_up = map(marked.escaped, (about.title, about.source, about.set_up))
    yield from (f"## {title}", "", source, "", set_up, "", f"**{tables.counts(rows)}.**", "")
    yield from (f"{line[0].upper()}{line[1:]}.\n" for line in reproduced.ran)
    yield marked.table(tables.HEAD, map(tables.cells, rows))
    if arms := list(tables.arm_rows(rows)):
        yield from ("", "### What may explain the differences", "", marked.table(tables.ARMS_HEAD, arms))
    for title, texts in (("What was not the same", about.not_same), ("What follows", about.conclusion)):
        if texts:
            yield from ("", f"### {title}", "", *(f"- {marked.escaped(line)}" for line in texts))


def document(found: Sequence[Reproduced]) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "schema": SCHEMA,
        "documents": [
            {
                "document": reproduced.loaded.name,
                "title": reproduced.loaded.document.title,
                "figures": [_figure(row) for row in reproduced.rows],
            }
            for reproduced in found
        ],
    }


def _figure(row: Row) -> dict[str, Any]:
    figure = row.figure
    return {
        "id": figure.id, "place": figure.place, "case": figure.case, "quantity": figure.quantity,
        "published": figure.published, "status": row.outcome.status, "testbed": row.engine,
        "outcomes": {engine: _outcome(outcome) for engine, outcome in row.outcomes.items()},
    }  # fmt: skip


def _outcome(outcome: Outcome) -> dict[str, Any]:
    value = outcome.found
    value_document = None if value is None or value.estimate is None else {
        "number": value.estimate.number, "ci95": value.estimate.interval, "text": value.text,
        "verdict": value.verdict or None, "runs": value.runs,
    }  # fmt: skip
    arms = [
        {"arm": arm.arm.name, "study": arm.arm.study, "text": arm.value.text, "moved": arm.moved.number,
         "moved_ci95": arm.moved.interval, "explains": arm.explains, "helps": arm.helps}
        for arm in outcome.arms
    ]  # fmt: skip
    return {"status": outcome.status, "found": value_document, "why": outcome.why or None, "arms": arms}
