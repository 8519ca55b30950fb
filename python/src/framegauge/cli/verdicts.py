"""Prints the summary of a study, and demands that it is evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framegauge.cli import output
from framegauge.errors import NothingJudged

if TYPE_CHECKING:
    from framegauge.report.decision.model import Decision

__all__ = ["demand_evidence", "show", "show_decision"]


def show(found: dict[str, object], as_json: bool) -> None:
    """The summary as a table, or as summary.json."""
    from framegauge.cli.console import console
    from framegauge.report import terminal
    from framegauge.summary import document as summary

    if as_json:
        output.show_json_text(summary.text(found))
        return
    terminal.show(found, console(terminal.LEAST_COLUMNS))


def show_decision(found: Decision, as_json: bool) -> None:
    """The decision as text, or as JSON."""
    from framegauge.cli.console import console
    from framegauge.report import terminal
    from framegauge.report.decision import model, terminal as decision_terminal

    if as_json:
        output.show_json(model.document(found), indent=2)
        return
    decision_terminal.show(found, console(terminal.LEAST_COLUMNS))


def demand_evidence(found: dict[str, object]) -> None:
    """NothingJudged if no verdict follows from it."""
    from framegauge.summary import judging

    if not judging.is_evidence(found):
        raise NothingJudged("no evidence: not faithful, or nothing could be judged; the reasons are above")
