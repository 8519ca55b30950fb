"""The verdicts as a table for people. Reads a summary, nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from framegauge import quantities

__all__ = ["show"]

_STYLES = {"better": "bold green", "worse": "bold red", "undecided": "yellow", "suspect": "bold magenta"}
_COLUMNS = ("metric", "baseline", "", "treatment", "", "ratio", "95 % interval", "runs", "verdict")
LEAST_COLUMNS = 118  # the width of a file or pipe, for the lines that wrap
FEW_LINES = 5


def show(summary: Mapping[str, Any], console: Console) -> None:
    """Question, one line a verdict grouped by conditions, warnings, exclusions, scope."""
    console.print(summary["question"], style="bold", markup=False, highlight=False)
    notes: dict[str, int] = {}
    rows = [_cells(verdict, notes) for verdict in summary["verdicts"]]
    widths = [max(len(cell) for cell in column) for column in zip(_COLUMNS, *rows, strict=True)]
    _line(console, _COLUMNS, widths, "dim")
    last = None
    for verdict, row in zip(summary["verdicts"], rows, strict=True):
        title = f"{verdict['workload']} {_conditions(verdict['conditions'])}"
        if title != last:
            console.print(title, style="bold", markup=False, highlight=False)
            last = title
        _line(console, row, widths, _STYLES.get(verdict["verdict"], ""))
    console.print()
    for line, number in notes.items():
        console.print(f"[{number}] {line}", style="yellow", markup=False, highlight=False)
    _excluded(summary, console)
    faithful = "faithful" if summary["faithful"] else "NOT faithful: this is no evidence"
    console.print(f"scope: {summary['scope']}; {faithful}", markup=False, highlight=False)


def _line(console: Console, row: Sequence[str], widths: Sequence[int], style: str) -> None:
    """One aligned row: words to the left, numbers to the right; only the verdict is coloured."""
    left = (0, 1, 3, len(row) - 1)
    cells = [
        cell.ljust(width) if index in left else cell.rjust(width)
        for index, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    text = Text("  " + "  ".join(cells[:-1]) + "  ")
    text.append(cells[-1].rstrip(), style=style)
    console.print(text, soft_wrap=True)


def _cells(verdict: Mapping[str, Any], notes: dict[str, int]) -> list[str]:
    """The columns of one verdict; its warnings become numbered notes."""
    marks = " ".join(f"[{notes.setdefault(line, len(notes) + 1)}]" for line in verdict["warnings"])
    before, after = dict(verdict["baseline"]), dict(verdict["treatment"])
    values = [_quantity(side.pop("estimate"), verdict["unit"]) for side in (before, after)]
    levels = [", ".join(f"{_word(name)} {_level(level)}" for name, level in side.items()) for side in (before, after)]
    if before == after:
        levels[1] += " (A/A)"
    interval = verdict["ci95"]
    return [
        verdict["metric"].replace("_", " "),
        levels[0], values[0], levels[1], values[1],
        "-" if verdict["ratio"] is None else f"{verdict['ratio']:.4f}",
        "-" if interval is None else f"{interval[0]:.4f} to {interval[1]:.4f}",
        str(verdict["runs"]),
f"{verdict['verdict']} {marks}".rstrip(),
    ]  # fmt: skip


def _word(name: str) -> str:
    return {"mtu": "MTU", "rtt_seconds": "RTT", "congestion_control": "", "offloads": "offloads"}.get(name, name)


def _level(level: Any) -> str:
    if isinstance(level, Mapping):
        return "/".join(str(mtu) for mtu in level.values())
    if isinstance(level, bool):
        return "on" if level else "off"
    return quantities.print_seconds(level) if isinstance(level, float) else str(level)


def _quantity(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    return quantities.print_seconds(value) if unit == "seconds" else quantities.print_bits_per_second(value)


def _conditions(conditions: Mapping[str, Any]) -> str:
    words = []
    if "size_bytes" in conditions:
        words.append(quantities.print_bytes(conditions["size_bytes"]))
    if "duration_seconds" in conditions:
        words.append(quantities.print_seconds(conditions["duration_seconds"]))
    if conditions.get("flows", 1) != 1:
        words.append(f"x{conditions['flows']}")
    if conditions.get("reverse"):
        words.append("reverse")
    if conditions.get("rtt_seconds"):
        words.append(f"RTT {quantities.print_seconds(conditions['rtt_seconds'])}")
    if conditions.get("offloads"):
        words.append("offloads")
    if conditions.get("congestion_control", "cubic") != "cubic":
        words.append(conditions["congestion_control"])
    if "mtu" in conditions:
        words.append(f"MTU {_level(conditions['mtu'])}")
    return ", ".join(words)


def _excluded(summary: Mapping[str, Any], console: Console) -> None:
    excluded = summary["excluded"]
    if not excluded:
        return
    console.print(f"{len(excluded)} runs excluded:", highlight=False)
    for run in excluded[:FEW_LINES]:
        more = f" (and {len(run['reasons']) - 1} more)" if len(run["reasons"]) > 1 else ""
        line = f"  run {run['run']}, {run['arm']}: {run['reasons'][0]}{more}"
        console.print(line, markup=False, highlight=False)
    if len(excluded) > FEW_LINES:
        console.print(f"  … and {len(excluded) - FEW_LINES} more: see summary.json", highlight=False)
