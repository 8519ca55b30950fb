"""Why goodput changed, in lines and rows from a summary: the parts of each ratio, and the CPU cost due to frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framegauge.summary import intervals, words

__all__ = ["PARTS", "head", "lines", "rows"]

# The names in the summary.
PARTS = ("header overhead", "window growth", "CPU", "unexplained")


def lines(summary: Mapping[str, Any]) -> list[str]:
    """One line per comparison: the change, its parts, and the evidence on the unexplained part."""
    names = _names(summary)
    return [f"{', '.join(filter(None, name)) or 'goodput'}: {_line(entry)}" for name, entry in names]


def _names(summary: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], Mapping[str, Any]]]:
    """What tells each comparison from the others: its cell, and its level of the treatment, if there are several."""
    entries = summary.get("why", ())
    cells, levels = words.Cells(summary.get("verdicts", ())), [words.levels(entry["treatment"]) for entry in entries]
    for entry, level in zip(entries, levels, strict=True):
        yield (cells.of(entry), level if len(set(levels)) > 1 else ""), entry


def _line(entry: Mapping[str, Any]) -> str:
    parts = {part["name"]: part for part in entry["parts"]}
    shown = [name for name in PARTS if name in parts and (name != "window growth" or _said(parts[name]) != _said({}))]
    named = [f"{name} {_said(parts[name])}" for name in shown]
    share = entry.get("cpu_share_of_frames")
    frames = "" if share is None else f"; {100 * share:.0f} % of the CPU cost is due to the number of frames"
    rest = parts.get("unexplained")
    doubt = f" ({rest['evidence']})" if rest else ""
    return f"{_said(entry)} = {', '.join(named)}{doubt}{frames}"


def _said(part: Mapping[str, Any]) -> str:
    """The change with one decimal, so that the parts in one line visibly add up."""
    percent = round(100 * (float(part.get("ratio", 1)) - 1), 1)
    return f"{percent:+.1f} %".replace("-", "\u2212") if percent else "0.0 %"


def head(summary: Mapping[str, Any]) -> list[str]:
    """The head of the table of `rows`."""
    rest = f"unexplained, {intervals.label(summary)}"
    return ["comparison", "goodput", *PARTS, rest, "frames per GB", "CPU cost due to frames"]


def rows(summary: Mapping[str, Any]) -> Iterator[list[str]]:
    """The same figures as rows of a table."""
    for (cell, level), entry in _names(summary):
        parts = {part["name"]: part for part in entry["parts"]}
        share = entry.get("cpu_share_of_frames")
        frames = [entry["measured"][side]["frames_per_gigabyte"] for side in ("baseline", "treatment")]
        yield [
            ", ".join(filter(None, (cell, level))) or "goodput",
            _said(entry),
            *(_said(parts[name]) if name in parts else "-" for name in PARTS),
            words.change_interval(parts["unexplained"]["ci95"]) if "unexplained" in parts else "-",
            "-" if None in frames else " → ".join(words.figure(float(f"{count:.3g}")) for count in frames),
            "-" if share is None else f"{100 * share:.0f} %",
        ]
