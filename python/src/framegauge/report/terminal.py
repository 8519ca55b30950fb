"""The verdicts as a table for people. Reads a summary, nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from framegauge import quantities

__all__ = ["show"]

_STYLES = {"better": "bold green", "worse": "bold red", "undecided": "yellow", "suspect": "bold magenta"}
_COLUMNS = ("metric", "baseline", "", "treatment", "", "ratio", "95 % interval", "runs", "verdict")
LEAST_COLUMNS = 118  # the width of a file or pipe, for the lines that wrap
FEW_LINES = 5
USUAL_MODERATION_SECONDS = 50e-6  # stated only where it is another


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
    # Summaries that were written before there was such a thing have no such key.
    for item in summary.get("not_measured", ()):
        line = f"{item['metric'].replace('_', ' ')} was not measured: {item['why']}"
        console.print(line, style="yellow", markup=False, highlight=False)
    _excluded(summary, console)
    if cpu := summary.get("cpu"):
        shares = ", ".join(f"{name} {cpu[name]:.0%}" for name in ("hosts", "fabric", "framegauge", "unattributed"))
        meter = f"{cpu['meter_seconds'] * 1e3:.1f} ms a run"
        line = f"CPU time of the whole system: {shares}; reading the CPU meter took {meter}"
        console.print(line, markup=False, highlight=False)
    for line in summary.get("caveats", ()):
        console.print(line, markup=False, highlight=False)
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


_WORDS = {
    "mtu": "MTU", "rtt_seconds": "RTT", "congestion_control": "", "tso": "TSO", "lro": "LRO", "gro": "GRO",
    "checksum": "checksum offload", "moderation_seconds": "moderation", "nagle": "Nagle",
}  # fmt: skip


def _word(name: str) -> str:
    return _WORDS.get(name, name)


def _level(level: Any) -> str:
    if isinstance(level, Mapping):
        if "default" in level:
            return "/".join(f"{mtu}" if host == "default" else f"{host} {mtu}" for host, mtu in level.items())
        return "/".join(str(mtu) for mtu in level.values())
    if isinstance(level, bool):
        return "on" if level else "off"
    return quantities.print_seconds(level) if isinstance(level, float) else str(level)


def _quantity(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "seconds":
        return quantities.print_seconds(value)
    if unit == "bits_per_second":
        return quantities.print_bits_per_second(value)
    form = {
        "per_second": "{:.4g}/s",
        "core_seconds_per_gigabyte": "{:.3f} s/GB",
        "instructions_per_gigabyte": "{:.3e}/GB",
        "cycles_per_gigabyte": "{:.3e}/GB",
    }
    return form.get(unit, "{:.4g}").format(value)


def _conditions(conditions: Mapping[str, Any]) -> str:
    """What was the same on both sides, as far as it is not the usual: the summary has all of it."""
    return ", ".join(word for part in (_amounts, _shape, _surroundings) for word in part(conditions))


def _amounts(conditions: Mapping[str, Any]) -> Iterator[str]:
    if "size_bytes" in conditions:
        yield quantities.print_bytes(conditions["size_bytes"])
    if "request_bytes" in conditions:
        yield " / ".join(quantities.print_bytes(conditions[f"{name}_bytes"]) for name in ("request", "response"))
    if conditions.get("header_bytes"):
        yield f"header {quantities.print_bytes(conditions['header_bytes'])} apart"
    if "rate_per_second" in conditions:
        rate = conditions["rate_per_second"]
        yield "closed loop" if rate is None else f"{rate:g}/s {conditions['arrivals']}"
    if "duration_seconds" in conditions:
        yield quantities.print_seconds(conditions["duration_seconds"])


def _shape(conditions: Mapping[str, Any]) -> Iterator[str]:
    for name in ("flows", "connections"):
        if conditions.get(name, 1) != 1:
            yield f"x{conditions[name]}"
    if conditions.get("pattern", "one-to-one") != "one-to-one":
        yield conditions["pattern"]
    for name, word in (("reverse", "reverse"), ("bidir", "both ways")):
        if conditions.get(name):
            yield word
    if "bulk_flows" in conditions:
        hosts, rate = conditions["bulk_hosts"], conditions["bulk_bits_per_second"]
        words = [f"bulk x{conditions['bulk_flows']}", f"from {hosts} hosts" if hosts else ""]
        words.append("" if rate is None else f"at {quantities.print_bits_per_second(rate)} each")
        yield " ".join(word for word in words if word)


def _surroundings(conditions: Mapping[str, Any]) -> Iterator[str]:
    if "hosts" in conditions:
        yield f"{conditions['hosts']} hosts"
    if conditions.get("rtt_seconds"):
        yield f"RTT {quantities.print_seconds(conditions['rtt_seconds'])}"
    if conditions.get("offloads"):
        yield "offloads"
    for name in ("tso", "lro", "gro", "checksum", "nagle"):
        if conditions.get(name) is not None:
            yield f"{_word(name)} {_level(conditions[name])}"
    if conditions.get("moderation_seconds", USUAL_MODERATION_SECONDS) != USUAL_MODERATION_SECONDS:
        yield f"moderation {quantities.print_seconds(conditions['moderation_seconds'])}"
    if conditions.get("congestion_control", "cubic") != "cubic":
        yield conditions["congestion_control"]
    if "mtu" in conditions:
        yield f"MTU {_level(conditions['mtu'])}"


def _excluded(summary: Mapping[str, Any], console: Console) -> None:
    excluded = summary["excluded"]
    if not excluded:
        return
    runs = "run" if len(excluded) == 1 else "runs"
    console.print(f"{len(excluded)} {runs} excluded:", highlight=False)
    for run in excluded[:FEW_LINES]:
        more = f" (and {len(run['reasons']) - 1} more)" if len(run["reasons"]) > 1 else ""
        line = f"  run {run['run']}, {run['arm']}: {run['reasons'][0]}{more}"
        console.print(line, markup=False, highlight=False)
    if len(excluded) > FEW_LINES:
        console.print(f"  … and {len(excluded) - FEW_LINES} more: see summary.json", highlight=False)
