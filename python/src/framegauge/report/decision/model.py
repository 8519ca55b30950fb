"""A decision: the goal, the answer and its sections; and the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.summary.sentence import Answer

__all__ = ["SCHEMA", "Decision", "Line", "Part", "Risks", "document", "split"]

SCHEMA = 1

Line = str | tuple[str, str]  # text, or text and a command to copy


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
    """`beside` is what must be read together with the answer."""

    goal: str
    scope: str
    faithful: bool
    answer: Answer
    beside: Sequence[str]
    parts: Sequence[Part]


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
        "sections": [
            {
                "name": each.name,
                "title": each.title,
                "head": list(each.head),
                "rows": [list(row) for row in each.rows],
                "lines": [{"text": text, "command": command or None} for text, command in map(split, each.lines)],
            }
            for each in found.parts
        ],
    }
