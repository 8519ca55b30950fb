"""The document of a comparison as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

from framegauge import quantities
from framegauge.compare.failures import STALLED, may_be_worse
from framegauge.printable import wrapped
from framegauge.report import terminal
from framegauge.statistics.doubts import counted
from framegauge.summary import words
from framegauge.summary.intervals import CORRECTED

__all__ = ["conclusion", "failed_cells", "margins", "say", "show", "show_rest", "title", "whole"]

_COLUMNS = ("metric", "BASE", "NEW", "ratio", CORRECTED, "runs", "verdict")
FEW_LINES = 8
_ANSWERS = ("better", "worse", "no practical difference", "undecided")
_SOURCES = {"argument": "--margin", "base": "declared for BASE", "default": "default"}


def show(document: Mapping[str, Any], console: Console) -> None:
    """Prints both sides, one line per verdict, what is not compared, what else differs, and the conclusion."""
    for name in ("base", "new"):
        whole(console, _side(name.upper(), document[name]), "bold")
    verdicts = document["verdicts"]
    notes: dict[str, int] = {}
    failed = document["failed"]
    rows = [*map(failed_cells, failed), *(_cells(entry, notes) for entry in verdicts)]
    if rows:
        common, titles = title([*failed, *verdicts])
        say(console, common)
        terminal.table(console, _COLUMNS, (0,), titles, rows, _words([*failed, *verdicts]))
    terminal.show_notes(console, notes)
    show_rest(document, console)
    if verdicts:
        say(console, f"margins: {margins(document['margins'])}")
        say(console, f"assumed: {document['assumption']}")
    for what, assumption in sorted({(entry["what"], entry["assumption"]) for entry in failed}):
        say(console, f"assumed of runs that {what}: {assumption}")
    if document["outcome"] != "not_comparable":  # otherwise the command's error message is the conclusion
        say(console, conclusion(document), "bold")


def title(verdicts: Sequence[Mapping[str, Any]]) -> tuple[str, list[str]]:
    """What all rows have in common, and what each has of its own."""
    cells = words.Cells(verdicts)
    levels = [words.levels(verdict["level"] if "level" in verdict else verdict["baseline"]) for verdict in verdicts]
    several = len(set(levels)) > 1
    own = [
        _joined(cells.of(verdict), level if several else "") for verdict, level in zip(verdicts, levels, strict=True)
    ]
    return f"All rows: {_joined(cells.common, '' if several else levels[0])}", own


def show_rest(document: Mapping[str, Any], console: Console, of: str = "") -> None:
    """Prints what is not compared, what does not count, and what else differs; `of` is the name of NEW where there are
    several."""
    prefix = f"{of}, " if of else ""
    _few(console, f"{prefix}not compared:", [_alone(entry) for entry in document["not_compared"]])
    _few(console, f"{prefix}excluded:", [_excluded(entry) for entry in document["excluded"]])
    _few(console, f"{prefix}differs between the sides:", [_difference(entry) for entry in document["differences"]])
    for line in document["notes"]:
        say(console, f"{of}: {line}" if of else line, "yellow")


def conclusion(document: Mapping[str, Any]) -> str:
    """The conclusion in one sentence."""
    verdicts = [*document["failed"], *document["verdicts"]]
    counts = {word: _words(verdicts).count(word) for word in dict.fromkeys(_words(verdicts))}
    verdict_counts = ", ".join(f"{count} {word}" for word, count in counts.items())
    if document["outcome"] == "not_comparable":
        return "cannot be compared: " + (
            f"no comparison has a verdict ({verdict_counts})" if verdict_counts else "nothing in common"
        )
    if document["outcome"] == "worse":
        return f"NEW is worse: {'; '.join([*map(_failure, _worse(document['failed'])), verdict_counts])}"
    if document["outcome"] == "not_all_judged":
        lost = len(verdicts) - sum(counts.get(word, 0) for word in _ANSWERS)
        reasons = [line for entry in document["failed"] if may_be_worse(entry) for line in _cut_off(entry)]
        whole = f"{lost} of {len(verdicts)} comparisons have no verdict, so NEW may be worse: {verdict_counts}"
        return "; ".join([*reasons, whole])
    if counts.get("undecided"):
        return f"nothing is worse as far as decided: {verdict_counts}"
    return f"nothing is worse: {verdict_counts}"


def _words(verdicts: Sequence[Mapping[str, Any]]) -> list[str]:
    return [verdict["verdict"] for verdict in verdicts]


def _worse(failed: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [entry for entry in failed if entry["verdict"] == "worse"]


def _failure(entry: Mapping[str, Any]) -> str:
    """Such as "2 of 16 runs moved nothing, and none in BASE"."""
    base, new = entry["base"], entry["new"]
    base_count = f"{base['failed']} of {base['runs']}" if base["failed"] else "none"
    reason = f" ({entry['why']})" if entry["what"] == STALLED else ""
    return f"{new['failed']} of {new['runs']} runs {entry['what']}{reason}, and {base_count} in BASE"


def _cut_off(entry: Mapping[str, Any]) -> Iterator[str]:
    """Such as "4 of 16 runs left no result and may have moved nothing"."""
    for side, name in (("base", " of BASE"), ("new", "")):
        if count := entry[side]["cut_off"]:
            yield f"{count} of {entry[side]['runs']} runs{name} left no result and may have moved nothing"


def whole(console: Console, line: str, style: str = "") -> None:
    """Prints a line with a path in it as it is, so that the path can be copied."""
    console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def say(console: Console, line: str, style: str = "") -> None:
    """Prints a line, on a terminal broken between words; another program that reads it finds it whole."""
    if not console.is_terminal:
        whole(console, line, style)
        return
    indent = " " * (len(line) - len(line.lstrip()))
    for part in wrapped(line.lstrip(), console.width, indent, indent, hyphens=False):
        whole(console, part, style)


def _side(name: str, side: Mapping[str, Any]) -> str:
    kinds = {"results": "results of a study", "iperf3": "files of iperf3", "flent": "files of flent"}
    began = f", began {side['first_began'][:16].replace('T', ' ')} UTC" if side["first_began"] else ""
    lost = f", {side['excluded']} excluded" if side["excluded"] else ""
    return f"{name:4}  {side['source']}: {kinds[side['kind']]}, {counted(side['runs'], 'run')}{lost}{began}"


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _cells(verdict: Mapping[str, Any], notes: dict[str, int]) -> list[str]:
    runs = verdict["runs_by_side"]
    values = [words.quantity(verdict[side]["estimate"], verdict["unit"]) for side in ("baseline", "treatment")]
    return [
        words.metric(verdict["metric"]),
        *values,
        *terminal.ratio_cells(verdict),
        f"{runs['base']} + {runs['new']}",
        terminal.noted(verdict["verdict"], verdict["warnings"], notes),
    ]


def failed_cells(entry: Mapping[str, Any]) -> list[str]:
    """A row: how many of its runs each side has that moved nothing, or stalled."""
    base, new = (_of(entry[side]) for side in ("base", "new"))
    return [
        f"runs that {entry['what']}",
        base,
        new,
        "-",
        "-",
        f"{entry['base']['runs']} + {entry['new']['runs']}",
        entry["verdict"],
    ]


def _of(counts: Mapping[str, int]) -> str:
    """Such as "2 of 16", or "2 to 5 of 16" where the files of three are cut off."""
    most = f" to {counts['failed'] + counts['cut_off']}" if counts["cut_off"] else ""
    return f"{counts['failed']}{most} of {counts['runs']}"


def _alone(entry: Mapping[str, Any]) -> str:
    what = _joined(words.conditions(entry["conditions"]), words.levels(entry["level"]))
    metrics = ", ".join(map(words.metric, entry["metrics"])) or "no metric"
    where = {"base": "in BASE only", "new": "in NEW only", "both": "in both"}[entry["only_in"]]
    return f"{entry['workload']} {what} ({metrics}), {where}: {entry['why']}"


def _excluded(entry: Mapping[str, Any]) -> str:
    more = f" (and {len(entry['reasons']) - 1} more)" if len(entry["reasons"]) > 1 else ""
    return f"{entry['side'].upper()} {entry['run']}: {entry['reasons'][0]}{more}"


def _difference(entry: Mapping[str, Any]) -> str:
    sides = ["not stated" if entry[side] is None else entry[side] for side in ("base", "new")]
    return f"{entry['what']}: {sides[0]} in BASE, {sides[1]} in NEW"


def margins(found: Mapping[str, Any]) -> str:
    """The margins with where they were declared."""
    return ", ".join(
        f"{words.metric(metric)} {quantities.exact_share(margin['share'])} ({_SOURCES[margin['declared_by']]})"
        for metric, margin in found.items()
    )


def _few(console: Console, title: str, lines: Sequence[str]) -> None:
    if not lines:
        return
    say(console, title)
    for line in lines[:FEW_LINES]:
        say(console, f"  {line}")
    if len(lines) > FEW_LINES:
        say(console, f"  … and {len(lines) - FEW_LINES} more: see --json")
