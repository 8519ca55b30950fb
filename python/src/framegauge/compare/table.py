"""Several results against the first as text for a terminal: one table, and a line for each result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from framegauge.compare import terminal
from framegauge.report import terminal as tables
from framegauge.summary import words
from framegauge.summary.intervals import CORRECTED

__all__ = ["lines", "show"]

_COLUMNS = ("metric", "BASE", "result", "its value", "ratio", CORRECTED, "verdict")
Verdict = Mapping[str, Any]


def show(document: Mapping[str, Any], console: Console) -> None:
    """Prints the table, what each result lacks, and how all of it comes out."""
    terminal.whole(console, f"BASE  {document['base']}", "bold")
    rows, notes = _in_order(document), dict[str, int]()
    if rows:
        verdicts = [verdict for _, verdict in rows]
        common, titles = terminal.title(verdicts)
        terminal.say(console, common)
        texts = [_cells(name, verdict, notes) for name, verdict in rows]
        tables.table(console, _COLUMNS, (0, 2), titles, texts, [item["verdict"] for item in verdicts])
    tables.show_notes(console, notes)
    for name, item in zip(document["new"], document["comparisons"], strict=True):
        terminal.show_rest(item, console, name)
    if rows:
        declared = {name: margin for item in document["comparisons"] for name, margin in item["margins"].items()}
        first = document["comparisons"][0]
        terminal.say(
            console,
            f"margins: {terminal.margins(declared)}",
        )
        terminal.say(console, f"assumed: {first['assumption']}")
        terminal.say(
            console,
            f"all {document['family']['comparisons']} comparisons with BASE mislead with at most 5 % together (Holm)",
        )
    for line in lines(document):
        terminal.say(console, line, "bold")


def lines(document: Mapping[str, Any]) -> list[str]:
    """The conclusion on each result."""
    named = zip(document["new"], document["comparisons"], strict=True)
    return [
        f"{name}: {terminal.conclusion(comparison).replace('NEW is', 'it is').replace('NEW', 'it')}"
        for name, comparison in named
    ]


def _in_order(document: Mapping[str, Any]) -> list[tuple[str, Verdict]]:
    """The verdicts with the names of their results: those on the same figure of BASE stand together."""
    places: dict[str, list[tuple[str, Verdict]]] = {}
    for name, comparison in zip(document["new"], document["comparisons"], strict=True):
        for verdict in [*comparison["failed"], *comparison["verdicts"]]:
            level = {name: value for name, value in verdict.get("baseline", {}).items() if name != "estimate"}
            what = [level or verdict.get("level"), verdict.get("metric")]
            key = json.dumps([verdict["workload"], verdict["conditions"], *what], sort_keys=True)
            places.setdefault(key, []).append((name, verdict))
    return [row for rows in places.values() for row in rows]


def _cells(name: str, verdict: Verdict, notes: dict[str, int]) -> Sequence[str]:
    if "metric" not in verdict:  # how many runs moved nothing
        title, before, now, *rest, _, outcome = terminal.failed_cells(verdict)
        return [title, before, name, now, *rest, outcome]
    base, new = (words.quantity(verdict[side]["estimate"], verdict["unit"]) for side in ("baseline", "treatment"))
    marked = tables.noted(verdict["verdict"], verdict["warnings"], notes)
    return [words.metric(verdict["metric"]), base, name, new, *tables.ratio_cells(verdict), marked]
