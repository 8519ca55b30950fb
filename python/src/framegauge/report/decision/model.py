"""A decision: the goal, the answer and its sections; and the same as JSON."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.summary.sentence import Answer

__all__ = ["SCHEMA", "Choice", "Decision", "Drawing", "Line", "Part", "Risks", "document", "sections", "split"]

SCHEMA = 1

Line = str | tuple[str, str]  # text, or text and a command to copy


class Choice(enum.StrEnum):
    """What to do about a change; its value is how the answer begins."""

    DO_IT = "Do it"
    SUBNET_ONLY = "Do it for this subnet only"
    DO_NOT = "Don't"
    CANNOT_TELL = "Can't tell"


@dataclass(frozen=True)
class Part:
    """A section: a table, if there is one, and lines below it."""

    name: str
    title: str
    lines: Sequence[Line]
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Risks:
    """What a check of paths found: the verdict in a sentence, its findings and limits, and what to do."""

    headline: str
    found: Sequence[str]
    limits: Sequence[str]
    target_mtu: int
    is_clear: bool  # every path carries the target
    then: Sequence[Line] = ()


@dataclass(frozen=True)
class Decision:
    """`beside` is what must be read together with the answer; `whole` has what does not fit on a sheet, and `footer`
    names the files."""

    goal: str
    scope: str
    faithful: bool
    answer: Answer
    beside: Sequence[str]
    parts: Sequence[Part]
    whole: str = "the full report"
    footer: str = "The full report is report.html in the study's folder, and all figures are in its summary.json."


@dataclass(frozen=True)
class Drawing:
    """A picture or a matrix beside the words, as HTML with the style that it needs."""

    name: str
    title: str
    html: str
    style: str = ""


def split(line: Line) -> tuple[str, str]:
    """The text of a line and its command, "" if it has none."""
    return (line, "") if isinstance(line, str) else line


def document(found: Decision) -> dict[str, Any]:
    """The decision as JSON, with nothing left out."""
    return {
        "schema": SCHEMA,
        "question": found.goal,
        "scope": found.scope,
        "faithful": found.faithful,
        "answer": {"kind": str(found.answer.kind), "text": found.answer.text},
        "beside": list(found.beside),
        "sections": sections(found.parts),
    }


def sections(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """The sections as JSON."""
    return [
        {
            "name": part.name,
            "title": part.title,
            "head": list(part.head),
            "rows": [list(row) for row in part.rows],
            "lines": [{"text": text, "command": command or None} for text, command in map(split, part.lines)],
        }
        for part in parts
    ]
