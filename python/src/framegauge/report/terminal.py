"""A summary as text for a terminal: the answer, the table of verdicts, and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from framegauge.printable import wrapped
from framegauge.report import causes, evidence, narrow
from framegauge.summary import beside, big_tcp, contention, few, levels, lost_time, switch, unread, words
from framegauge.summary.interactions import ALONE, sentences
from framegauge.summary.intervals import CORRECTED, shown
from framegauge.summary.sentence import answer

__all__ = ["noted", "ratio_cells", "show", "show_notes", "table"]

_STYLES = {
    "better": "bold green", "worse": "bold red", "undecided": "yellow", "suspect": "bold magenta",
    "does not work": "bold red",
}  # fmt: skip
LEAST_COLUMNS = 118  # the width at which lines wrap in a file or pipe
FEW_LINES = 5
MOST_NOTES = 24


def show(summary: Mapping[str, Any], console: Console) -> None:
    """Prints question, answer, one line per verdict grouped by conditions, warnings, exclusions and scope."""
    console.print(summary["question"], style="bold", markup=False, highlight=False)
    for line in (answer(summary).text, *beside.lines(summary)):
        _say(console, line)
    console.print()
    notes: dict[str, int] = {}
    cells, verdicts = words.Cells(summary["verdicts"]), summary["verdicts"]
    arms = words.arms(verdicts)
    level = ["treatment", ""] if any(arms) else ["treatment"]
    columns = ["metric", "baseline", *level, "ratio", CORRECTED, "runs", "verdict"]
    if common := words.of_all(verdicts):
        _say(console, common)
    rows = [_cells(verdict, arm, notes) for verdict, arm in zip(verdicts, arms, strict=True)]
    left, titles = (0, 2) if any(arms) else (0,), [cells.of(entry) for entry in verdicts]
    table(console, columns, left, titles, rows, [words.verdict(entry) for entry in verdicts])
    show_notes(console, notes)
    _few(console, "the smallest level that is enough:", list(levels.lines(summary)))
    _few(console, "what larger aggregates give:", list(big_tcp.lines(summary)))
    if summary["faithful"]:
        _few(console, f"what the effect depends on ({ALONE}):", list(sentences(summary.get("interactions", ()))))
        _few(console, "why:", causes.lines(summary))
        _few(console, "where the time of connections went:", list(lost_time.lines(summary)))
    _few(console, "what the switch changed:", list(switch.lines(summary)))
    _few(console, "few flows beside many:", list(few.lines(summary)))
    _few(console, "flows to one host:", list(contention.lines(summary)))
    _few(console, "how sure:", evidence.how_sure(summary))
    for line in unread.lines(summary):
        _say(console, line, "yellow")
    _excluded(summary, console)
    if cpu := summary.get("cpu"):
        shares = ", ".join(f"{name} {cpu[name]:.0%}" for name in ("hosts", "fabric", "framegauge", "unattributed"))
        meter = f"{cpu['meter_seconds'] * 1e3:.1f} ms per run"
        line = f"CPU time of the whole system: {shares}; reading the CPU meter took {meter}"
        _say(console, line)
    for line in summary.get("caveats", ()):
        _say(console, line)
    faithful = "faithful" if summary["faithful"] else "NOT faithful: this is not evidence"
    _say(console, f"scope: {summary['scope']}; {faithful}")


def _say(console: Console, line: str, style: str = "") -> None:
    """Prints a line, which is broken between no number and its unit."""
    for piece in wrapped(line, console.width):
        console.print(piece, style=style, markup=False, highlight=False)


def table(
    console: Console,
    columns: Sequence[str],
    left: Sequence[int],
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    verdicts: Sequence[str],
) -> None:
    """Prints aligned rows under their titles, where they have one. Columns in `left` are left-aligned, numbers
    right-aligned; the last column is the verdict. Long heads of columns take several lines if the rows fit then."""
    heads: Sequence[Sequence[str]] = [columns]
    if not _fits(console, [columns, *rows]):
        heads = _folded(columns, rows)
    widths = _widths([*heads, *rows])
    fits = _fits(console, [*heads, *rows])
    for head in heads if fits else ():
        _line(console, head, widths, left, "dim")
    last = None
    for title, row, verdict in zip(titles, rows, verdicts, strict=True):
        if title not in ("", last):
            console.print(title, style="bold", markup=False, highlight=False, soft_wrap=True)
            last = title
        if fits:
            _line(console, row, widths, left, _STYLES.get(verdict, ""))
            continue
        for line in narrow.stacked(columns, row, console.width):
            _say(console, line)
    console.print()


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _fits(console: Console, rows: Sequence[Sequence[str]]) -> bool:
    widths = _widths(rows)
    return sum(widths) + 2 * len(widths) <= console.width


def _folded(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The heads in lines that are no wider than the cells below, or than their longest word; the last line is full."""
    least = [max(map(len, cells)) for cells in zip(*rows, strict=True)] if rows else [0] * len(columns)
    parts = [
        wrapped(head, max(width, *map(len, head.split() or [""]))) or [""]
        for head, width in zip(columns, least, strict=True)
    ]
    height = max(map(len, parts))
    return [[([""] * (height - len(part)) + part)[line] for part in parts] for line in range(height)]


def _line(console: Console, row: Sequence[str], widths: Sequence[int], left: Sequence[int], style: str) -> None:
    """Prints one row; only the verdict is coloured."""
    cells = [
        cell.ljust(width) if index in left or index == len(row) - 1 else cell.rjust(width)
        for index, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    text = Text("  " + "  ".join(cells[:-1]) + "  ")
    text.append(cells[-1].rstrip(), style=style)
    console.print(text, soft_wrap=True)


def noted(verdict: str, warnings: Sequence[str], notes: dict[str, int]) -> str:
    """The verdict with the numbers of its warnings, in order, which are added to the notes."""
    marks = " ".join(f"[{number}]" for number in sorted({notes.setdefault(line, len(notes) + 1) for line in warnings}))
    return f"{verdict} {marks}".rstrip()


def show_notes(console: Console, notes: Mapping[str, int]) -> None:
    """Prints the notes that the numbers behind the verdicts refer to."""
    for line, number in list(notes.items())[:MOST_NOTES]:
        _say(console, f"[{number}] {line}", "yellow")
    if len(notes) > MOST_NOTES:
        rest = f"[{MOST_NOTES + 1}] to [{len(notes)}]: see the report"
        _say(console, rest, "yellow")


def ratio_cells(verdict: Mapping[str, Any]) -> list[str]:
    """The ratio and its interval."""
    interval = shown(verdict)
    return [
        "-" if verdict["ratio"] is None else f"{verdict['ratio']:.4f}",
        "-" if interval is None else f"{interval[0]:.4f} to {interval[1]:.4f}",
    ]


def _cells(verdict: Mapping[str, Any], arm: str, notes: dict[str, int]) -> list[str]:
    """The columns of one verdict; its warnings become numbered notes."""
    values = [words.quantity(verdict[side]["estimate"], verdict["unit"]) for side in ("baseline", "treatment")]
    return [
        words.metric(verdict["metric"]),
        values[0], *([arm] if arm else []), values[1],
        *ratio_cells(verdict),
        str(verdict["runs"]),
        noted(words.verdict(verdict), words.notes(verdict), notes),
    ]  # fmt: skip


def _few(console: Console, title: str, lines: Sequence[str]) -> None:
    """Prints a title and the first of the lines; nothing if there are none."""
    if not lines:
        return
    console.print(title, style="bold", markup=False, highlight=False)
    for line in lines[:FEW_LINES]:
        for piece in wrapped(line, console.width - 2, "  ", "    "):
            console.print(piece, markup=False, highlight=False)
    if len(lines) > FEW_LINES:
        console.print(f"  … and {len(lines) - FEW_LINES} more: see the report", highlight=False)


def _excluded(summary: Mapping[str, Any], console: Console) -> None:
    excluded = summary["excluded"]
    if not excluded:
        return
    runs = "run" if len(excluded) == 1 else "runs"
    console.print(f"{len(excluded)} {runs} excluded:", highlight=False)
    for run in excluded[:FEW_LINES]:
        more = f" (and {len(run['reasons']) - 1} more)" if len(run["reasons"]) > 1 else ""
        line = f"  run {run['run']}, {run['arm']}: {run['reasons'][0]}{more}"
        _say(console, line)
    if len(excluded) > FEW_LINES:
        console.print(f"  … and {len(excluded) - FEW_LINES} more: see summary.json", highlight=False)
