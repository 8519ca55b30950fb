"""A decision cut to one sheet of paper: what is left out is counted, and said where to find.

Nobody who prints the page can scroll, so its height is estimated, in lines of print, with a font that is wider than
most. Of several sets of limits, from wide to narrow, the first that fits is taken; the last fits whatever is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from framegauge.printable import sentence
from framegauge.report.decision.model import Decision, Line, Part, split
from framegauge.summary.sentence import Answer

__all__ = ["LIMITS", "has_room", "shortened"]

HALVES = ("risks", "not_measured")  # side by side
LINES = 74  # on a sheet
DRAWN = 17  # of which drawings take so many, side by side (decision.css)
# Characters in a line: of a section, of one beside another, of a table, of the answer, of the title.
FULL, HALF, TABLE, ANSWER, TITLE = 103, 47, 112, 76, 60


@dataclass(frozen=True)
class Limits:
    """Characters of a text, a cell and the answer; rows of tables and lines of parts, by the names of parts."""

    text: int
    cell: int
    answer: int
    rows: Mapping[str, int]
    lines: Mapping[str, int]


def _limits(text: int, cell: int, answer: int, rows: tuple[int, int], lines: Sequence[int]) -> Limits:
    names = ("verdicts", "smallest", "competitors", "risks", "not_measured", "next")
    tables = {"verdicts": rows[0], "competitors": rows[1]}
    return Limits(text, cell, answer, tables, dict(zip(names, lines, strict=True)))


LIMITS = (
    _limits(240, 60, 560, (8, 6), (4, 5, 3, 6, 6, 7)),
    _limits(180, 50, 400, (6, 4), (3, 3, 2, 5, 5, 6)),
    _limits(170, 50, 360, (6, 3), (3, 2, 2, 3, 4, 4)),
    _limits(120, 45, 300, (5, 3), (3, 2, 2, 3, 4, 4)),
    _limits(90, 40, 240, (4, 3), (2, 2, 1, 2, 3, 3)),
)


def shortened(found: Decision, drawn: bool = False) -> Decision:
    """The same, cut to what fits on a sheet, beside drawings if there is room for them."""
    room = LINES - (DRAWN if drawn and has_room(found) else 0)
    cut = (_cut_to(found, limits) for limits in LIMITS)
    return next((decision for decision in cut if _height(decision) <= room), _cut_to(found, LIMITS[-1]))


def has_room(found: Decision) -> bool:
    """Whether drawings fit on the sheet, too."""
    return _height(_cut_to(found, LIMITS[-1])) <= LINES - DRAWN


def _cut_to(decision: Decision, limits: Limits) -> Decision:
    return replace(
        decision,
        goal=_cut(decision.goal, limits.text),
        answer=Answer(decision.answer.kind, _clauses(decision.answer.text, limits.answer, decision.whole)),
        beside=[_cut(line, limits.text) for line in decision.beside],
        parts=[_short(part, limits, decision.whole) for part in decision.parts],
    )


def _short(part: Part, limits: Limits, whole: str) -> Part:
    rows = [[_cut(cell, limits.cell) for cell in row] for row in part.rows[: limits.rows.get(part.name, 0)]]
    lines = [_short_line(line, limits) for line in part.lines[: limits.lines[part.name]]]
    left = [(len(part.rows) - len(rows), "row"), (len(part.lines) - len(lines), "line")]
    if rest := " and ".join(f"{count} more {what}{'' if count == 1 else 's'}" for count, what in left if count):
        holder = "The check" if part.name == "risks" else sentence(whole)
        lines.append(f"{holder} has {rest}")
    return replace(part, rows=rows, lines=lines)


def _short_line(line: Line, limits: Limits) -> Line:
    text, command = split(line)
    # A command is whole or not there: half of one may do something else.
    shown = command if len(command) <= limits.text else ""
    return (_cut(text, limits.text), shown) if shown else _cut(text, limits.text)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _clauses(text: str, most: int, whole: str) -> str:
    """As many clauses of a sentence as fit, and the number of the others."""
    if len(text) <= most:
        return text
    clauses = text.rstrip(".").split("; ")
    shown = list(_fitting(clauses, most))
    left = clauses[len(shown) :]
    if not shown:
        return _cut(text, most)
    worse = ", also on what is worse" if any(clause.startswith("but ") for clause in left) else ""
    return f"{'; '.join(shown)}; {len(left)} more clause{'' if len(left) == 1 else 's'} in {whole}{worse}."


def _fitting(clauses: Sequence[str], most: int) -> Iterator[str]:
    size = 0
    for clause in clauses:
        size += len(clause) + 2
        if size > most:
            return
        yield clause


def _height(decision: Decision) -> float:
    """In lines: the parts below each other, but for the two halves."""
    halves = [_part_height(part, HALF) for part in decision.parts if part.name in HALVES]
    others = [_part_height(part, FULL) for part in decision.parts if part.name not in HALVES]
    head = 1.5 + 1.6 * _wrapped(decision.goal, TITLE) + 1.3 * _wrapped(decision.answer.text, ANSWER) + 2
    return head + sum(_wrapped(line, FULL) for line in decision.beside) + max(halves, default=0.0) + sum(others) + 2


def _part_height(part: Part, width: int) -> float:
    lines = sum(_wrapped(f"{text}{command}", width) for text, command in map(split, part.lines))
    return 2.3 + lines + sum(0.95 * _row_lines(row) + 0.3 for row in ([part.head, *part.rows] if part.rows else ()))


def _row_lines(row: Sequence[str]) -> int:
    """Columns may be as wide as each other, or as wide as they need to be."""
    if sum(map(len, row)) + 3 * len(row) <= TABLE:
        return 1
    return max(_wrapped(cell, TABLE // len(row)) for cell in row)


def _wrapped(text: str, width: int) -> int:
    return max(1, math.ceil(len(text) / width))
