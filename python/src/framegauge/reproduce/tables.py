"""What the page, Markdown and terminal say of reproduced figures: the same words and rows everywhere. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from framegauge.reproduce.documents import Figure, Loaded
from framegauge.reproduce.outcomes import Outcome, Row, Status

__all__ = ["ARMS_HEAD", "HEAD", "arm_rows", "cells", "counts", "key", "ours", "title"]

HEAD = ("figure", "what", "published", "rack", "simulator", "verdict", "why")
ARMS_HEAD = ("figure", "on", "arm", "with it", "moves it by a factor of", "explains")
_ORDER = tuple(Status)


def title(figure: Figure) -> str:
    """What a figure is of."""
    return f"{figure.place}: {figure.case}; {figure.quantity}"


def counts(rows: Sequence[Row]) -> str:
    """How many figures have which status, in one line."""
    by_status = Counter(row.outcome.status for row in rows)
    texts = ", ".join(
        f"{by_status[status]} {_words(status, by_status[status])}" for status in _ORDER if by_status[status]
    )
    return f"{len(rows)} figure{'s' * (len(rows) != 1)}: {texts}"


def _words(status: Status, count: int) -> str:
    return status if count == 1 else status.replace("agrees", "agree").replace("differs", "differ")


def cells(row: Row) -> list[str]:
    """A row of the table, without its picture."""
    sums = row.outcomes.get("arithmetic")
    rack, simulator = (_found(row.outcomes.get(name)) for name in ("rack", "simulator"))
    if sums is not None:
        rack = simulator = f"by arithmetic: {sums.found.text}" if sums.found else ""
    return [row.figure.id, title(row.figure), row.figure.published, rack, simulator, _status(row), _why(row)]


def ours(row: Row) -> str:
    """What came out here, on the testbed that counts."""
    value, status = row.outcome.found, row.outcome.status
    if value is not None and value.text:
        return value.text
    return row.outcome.why if status is Status.CANNOT_TELL else ""


def _found(outcome: Outcome | None) -> str:
    if outcome is None:
        return "–"
    if outcome.found is None or not outcome.found.text:
        return {Status.NOT_RUN: "not run", Status.NOT_CARRIED: "–"}.get(outcome.status, "no number")
    verdict = f"{outcome.found.verdict}: " if outcome.found.verdict else ""
    return f"{verdict}{outcome.found.text}; {outcome.found.runs} runs"


def _status(row: Row) -> str:
    """The status; with its testbed where two answer, and they do not say the same."""
    statuses = {outcome.status for outcome in row.outcomes.values()} - {Status.NOT_RUN}
    return row.outcome.status if len(statuses) <= 1 else f"{row.outcome.status} ({row.engine})"


def _why(row: Row) -> str:
    return "; ".join(filter(None, (row.outcome.why, row.figure.note)))


def arm_rows(rows: Iterable[Row]) -> Iterator[list[str]]:
    """What may explain the figures that differ, by figure and testbed."""
    for row in rows:
        for engine, outcome in row.outcomes.items():
            for arm in outcome.arms:
                explains = "yes" if arm.explains else "in part" if arm.helps else "no"
                moved = f"{arm.moved.number:.3g} ({arm.moved.low:.3g} to {arm.moved.high:.3g})"
                yield [row.figure.id, engine, f"{arm.arm.name} ({arm.arm.study})", arm.value.text, moved, explains]


def key(loaded: Sequence[Loaded]) -> list[str]:
    """What the words of the table mean."""
    lines = [
        "A figure agrees if the 95 % interval of ours overlaps what was published with its rounding.",
        'An interval that also contains "no effect" cannot tell, nor can one that reaches beyond 20 % where the '
        "published figures are equal.",
        "A difference is explained only by an arm that changes one thing and moves our figure by more than chance into "
        "the published range; in part, if it moves it towards that.",
    ]
    lines += [
        f"{source.name} does not state how much its runs differed: its ratios are taken as "
        f"{100 * source.document.spread:g} % wider than their rounding, at both ends."
        for source in loaded
        if source.document.spread
    ]
    if any(figure.share for source in loaded for figure in source.document.figures):
        lines.append("The share of the few is what a flow of the few gets beside one of the many: less, fair or more.")
    return lines
