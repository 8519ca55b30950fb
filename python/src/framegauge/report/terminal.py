"""The verdicts as a table for people. Reads a summary, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from framegauge import quantities

__all__ = ["show"]

_STYLES = {"better": "bold green", "worse": "bold red", "undecided": "yellow", "suspect": "bold magenta"}
LEAST_COLUMNS = 118  # a narrower terminal wraps; a file or pipe gets this width
FEW_LINES = 5


def show(summary: Mapping[str, Any], console: Console) -> None:
    """Question, one line a verdict, warnings, exclusions, scope."""
    console.print(summary["question"], style="bold", highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("workload", "metric", "baseline", "", "treatment", "", "ratio", "95 % interval", "runs", "verdict"):
        table.add_column(name, justify="left" if name in ("workload", "metric", "verdict") else "right")
    notes: dict[str, int] = {}
    for verdict in summary["verdicts"]:
        marks = [f"[{notes.setdefault(line, len(notes) + 1)}]" for line in verdict["warnings"]]
        table.add_row(*_cells(verdict, " ".join(marks)), style=None)
    console.print(table, highlight=False)
    for line, number in notes.items():
        console.print(f"[{number}] {line}", style="yellow", markup=False, highlight=False)
    _excluded(summary, console)
    faithful = "faithful" if summary["faithful"] else "NOT faithful: this is no evidence"
    console.print(f"scope: {summary['scope']}; {faithful}", highlight=False)


def _cells(verdict: Mapping[str, Any], marks: str) -> list[str]:
    before, after = dict(verdict["baseline"]), dict(verdict["treatment"])
    values = [_quantity(side.pop("estimate"), verdict["unit"]) for side in (before, after)]
    levels = [", ".join(f"{_word(name)} {_level(level)}" for name, level in side.items()) for side in (before, after)]
    if before == after:
        levels[1] += " (A/A)"
    interval = verdict["ci95"]
    style = _STYLES.get(verdict["verdict"], "default")
    return [
        f"{verdict['workload']} {_conditions(verdict['conditions'])}",
        verdict["metric"].replace("_", " "),
        levels[0], values[0], levels[1], values[1],
        "-" if verdict["ratio"] is None else f"{verdict['ratio']:.4f}",
        "-" if interval is None else f"{interval[0]:.4f} to {interval[1]:.4f}",
        str(verdict["runs"]),
        f"[{style}]{verdict['verdict']}[/{style}]" + (" " + marks.replace("[", "\\[") if marks else ""),
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
