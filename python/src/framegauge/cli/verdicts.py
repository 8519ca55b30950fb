"""Prints the summary of a study, and demands that it is evidence."""

from __future__ import annotations

import sys

from framegauge.errors import NothingJudged

__all__ = ["demand_evidence", "show"]


def show(found: dict[str, object], as_json: bool) -> None:
    """The summary as a table, or as summary.json."""
    from rich.console import Console

    from framegauge.report import terminal
    from framegauge.summary import document as summary

    if as_json:
        sys.stdout.write(summary.text(found))
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, terminal.LEAST_COLUMNS))
    terminal.show(found, console)


def demand_evidence(found: dict[str, object]) -> None:
    """NothingJudged if no verdict follows from it."""
    from framegauge.summary import judging

    if not judging.is_evidence(found):
        raise NothingJudged("no evidence: not faithful, or nothing could be judged; the reasons are above")
