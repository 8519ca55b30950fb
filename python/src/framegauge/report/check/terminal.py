"""A path MTU check at a terminal: the verdict, the matrix, the findings. Reads a document, nothing else.

What it says fits one screen: the worst finding with what to do, and of each other one what it is and its first command.
With details it is all that the document has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from framegauge import quantities
from framegauge.check import tunnels
from framegauge.check.judgement.findings import title
from framegauge.printable import printable
from framegauge.report.check import drawing, findings
from framegauge.report.check.matrix import (
    NOT_PROBED,
    Matrix,
    caption_of,
    counts,
    headline,
    legend,
    matrices,
    plan_text,
    was_probed,
)

__all__ = ["show"]

MOST_HOSTS = 24
MOST_PEER_LINES = 32
MOST_FINDINGS = 20  # with details
MOST_BRIEF = 6  # behind the worst
MOST_COMMANDS = 6  # of the worst finding, where it has no details
WORST_HOSTS = 10
INDENT = 3
_ASCII = {ord(sign): plain for sign, plain in zip("✓×°▪–…’", ("ok", "x", "o", "#", "-", "...", "'"), strict=True)}
NAME_WIDTH = 20
_STYLES = {
    "carries_target": "green", "too_small": "bold yellow", "black_hole": "bold red", "unreachable": "bold magenta",
    "unknown": "cyan", "fault": "bold red", "could_not_tell": "cyan",
}  # fmt: skip


def show(document: Mapping[str, Any], console: Console, details: bool = False) -> None:
    """What fits a screen, or all of it; a summary instead of the matrix where it would not fit."""
    _print(console, headline(document), _STYLES[document["verdict"]])
    console.print()
    drawn = matrices(document, MOST_HOSTS)
    for matrix in drawn:
        _matrix(console, matrix)
    if not drawn or drawn[0].of_subnets:
        _summary(console, document)
    if (encapsulation := document.get("encapsulation")) is not None:
        _peers(console, encapsulation)
    if details:
        _findings(console, document)
    else:
        _briefly(console, document)
    _print(console, plan_text(document), "dim")
    if was_probed(document):
        _print(console, f"It took {quantities.print_seconds(document['seconds'])}.", "dim")


def _peers(console: Console, encapsulation: Mapping[str, Any]) -> None:
    """What was proved through a tunnel, a line for each peer, as many as fit."""
    lines = list(tunnels.lines(encapsulation))
    for line in lines[:MOST_PEER_LINES]:
        _print(console, line)
    if len(lines) > MOST_PEER_LINES:
        _print(console, f"and {len(lines) - MOST_PEER_LINES} lines more (--json)")
    console.print()


def _print(console: Console, text: str, style: str = "", indent: int = 0) -> None:
    """A paragraph; all of its lines begin where the first does, and none ends with blanks."""
    text = _fit(console, text)
    indent += len(text) - len(text.lstrip(" "))
    for line in Text(text.lstrip(" "), style=style).wrap(console, max(1, console.width - indent)):
        line.rstrip()
        console.print(Text(" " * indent).append_text(line), soft_wrap=True)


def _is_unicode(console: Console) -> bool:
    return console.encoding.lower().replace("-", "").startswith("utf")


def _fit(console: Console, text: str) -> str:
    """Printable, and in an alphabet that the terminal has."""
    text = printable(text)
    return text if _is_unicode(console) else text.translate(_ASCII).encode("ascii", "replace").decode()


def _name(console: Console, text: str, width: int) -> str:
    text = _fit(console, text)
    if cell_len(text) > max(1, width):
        while text and cell_len(text) >= width:
            text = text[:-1]
        text += "…" if _is_unicode(console) else "~"
    return text + " " * (width - cell_len(text))


def _matrix(console: Console, matrix: Matrix) -> None:
    """Numbered rows send, columns of the same numbers receive. Signs alone where sizes do not fit."""
    # As they are printed: a name may be of nothing but what has no width, or gets one by being made printable.
    name_width = min(NAME_WIDTH, max((cell_len(printable(name)) for name in matrix.names), default=1))
    is_short, wide = False, 0
    for is_short in (False, True):
        cells = [entry.text(is_short) for entry in matrix.cells.values()]
        wide = max(map(len, [*cells, str(len(matrix.names))])) + 1
        if name_width + 4 + wide * len(matrix.names) <= console.width:
            break
    _print(console, caption_of(matrix), "bold")
    head = "".join(str(number).rjust(wide) for number in range(1, len(matrix.names) + 1))
    console.print(Text(" " * (name_width + 4) + head, style="dim"), soft_wrap=True)
    for number, source in enumerate(matrix.names, 1):
        line = Text(f"{number:3} {_name(console, source, name_width)}")
        for destination in matrix.names:
            cell = matrix.cells.get((source, destination))
            if cell is None:
                line.append(_fit(console, " " if source == destination else NOT_PROBED).rjust(wide), style="dim")
            else:
                line.append(_fit(console, cell.text(is_short)).rjust(wide), style=_STYLES[cell.verdict])
        line.rstrip()
        console.print(line, soft_wrap=True)
    _print(console, legend(matrix, is_short), "dim")
    console.print()


def _summary(console: Console, document: Mapping[str, Any]) -> None:
    """Counts, and the hosts that most faults concern."""
    tally = counts(document)
    words = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in tally.items() if number)
    _print(console, f"{len(document['hosts'])} hosts, {len(document['pairs'])} pairs: {words or 'none'}")
    sending, receiving, all_of = Counter[str](), Counter[str](), Counter[str]()
    for pair in document["pairs"]:
        all_of.update((pair["source"], pair["destination"]))
        if pair["verdict"] not in ("carries_target", "unknown"):
            sending[pair["source"]] += 1
            receiving[pair["destination"]] += 1
    worst = (sending + receiving).most_common(WORST_HOSTS)
    if worst:
        _print(console, "Hosts with the most faults (sending, receiving, of all their probed pairs):", "bold")
        for name, _ in worst:
            _print(
                console, f"  {_name(console, name, NAME_WIDTH)} {sending[name]:5} {receiving[name]:5} {all_of[name]:6}"
            )
    console.print()


def _findings(console: Console, document: Mapping[str, Any]) -> None:
    all_findings = document["findings"]
    for number, finding in enumerate(all_findings[:MOST_FINDINGS], 1):
        _finding(console, finding, number)
    if len(all_findings) > MOST_FINDINGS:
        _print(console, f"… and {len(all_findings) - MOST_FINDINGS} more findings: see --json", "yellow")
        console.print()


def _briefly(console: Console, document: Mapping[str, Any]) -> None:
    all_findings = document["findings"]
    if not all_findings:
        return
    _heading(console, all_findings[0], 1)
    _print(console, all_findings[0].get("summary") or all_findings[0]["evidence"], "", INDENT)
    if all_findings[0].get("path") is not None:
        _unbroken(console, drawing.line(all_findings[0]["path"], console.width - INDENT, _is_unicode(console)), "bold")
    _remedy(console, all_findings[0], MOST_COMMANDS)
    if all_findings[0]["ask"]:
        _print(console, f"Ask the network team: {all_findings[0]['ask']}", "", INDENT)
    console.print()
    for number, finding in enumerate(all_findings[1 : MOST_BRIEF + 1], 2):
        _heading(console, finding, number)
        first = next(iter(finding.get("commands") or ()), None)
        if first is not None:
            _unbroken(console, f"{first['run']}  # on {first['on']}", "cyan")
    if len(all_findings) > MOST_BRIEF + 1:
        _print(console, f"… and {len(all_findings) - MOST_BRIEF - 1} more findings", "yellow")
    kinds = ", ".join(dict.fromkeys(finding["kind"] for finding in all_findings))
    _print(console, f"More: --details, --html FILE, framegauge docs mtu-faults ({kinds})", "dim")
    console.print()


def _heading(console: Console, finding: Mapping[str, Any], number: int) -> None:
    """What it is, and where."""
    _print(console, f"{number}. {title(finding['kind'])}", "bold red" if findings.is_fault(finding) else "bold yellow")
    if where := (str(finding["where"]) if number > 1 else findings.place(finding)):
        _print(console, where, "bold" if number == 1 else "", INDENT)


def _finding(console: Console, finding: Mapping[str, Any], number: int) -> None:
    """A paragraph, the path in one line, the evidence as a table, and commands that are never broken."""
    _print(console, f"{number}. {title(finding['kind'])}", "bold red" if findings.is_fault(finding) else "bold yellow")
    if where := findings.place(finding):
        _print(console, where, "bold", INDENT)
    console.print()
    _print(console, finding.get("summary") or finding["evidence"], "", INDENT)
    path = finding.get("path")
    if path is not None:
        drawn = drawing.line(path, console.width - INDENT, _is_unicode(console))
        console.print()
        _unbroken(console, drawn, "bold")
        _print(console, drawing.words(path), "dim", INDENT)
    _evidence(console, finding)
    _remedy(console, finding)
    if finding["ask"]:
        console.print()
        _print(console, f"Ask the network team: {finding['ask']}", "", INDENT)
    _print(console, f"More: framegauge docs mtu-faults, {finding['kind']}", "dim", INDENT)
    console.print()


def _evidence(console: Console, finding: Mapping[str, Any]) -> None:
    """IPv4 and IPv6 side by side."""
    shown = findings.columns(finding)
    if not shown:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("", *(name for _, name in shown)):
        table.add_column(name, overflow="fold")
    for row in finding["evidence_table"]:
        cells = [_fit(console, "–" if row[key] is None else row[key]) for key, _ in shown]
        table.add_row(Text(_fit(console, row["name"]), style="dim"), *map(Text, cells))
    console.print()
    console.print(Padding(table, (0, 0, 0, INDENT), expand=False))


def _remedy(console: Console, finding: Mapping[str, Any], most: int | None = None) -> None:
    """What to do; where that is more than so many lines, the first of them."""
    groups = findings.grouped(finding)
    advice = finding.get("advice") or ""
    if not groups and not advice:
        groups = [("On Linux:", str(finding["fix"]).split("\n"))]
    if advice:
        if most is None:
            console.print()
        _print(console, f"What to do: {advice}", "", INDENT)
    left = sum(len(lines) for _, lines in groups) if most is None else most
    for heading, lines in groups:
        if left < 1:
            return
        if most is None:
            console.print()
        _print(console, heading, "", INDENT)
        for line in lines[:left]:
            _unbroken(console, f"  {line}", "cyan")
        left -= len(lines)


def _unbroken(console: Console, text: str, style: str) -> None:
    """A line that no terminal's width may break: it is meant to be copied."""
    shown = Text(" " * INDENT + _fit(console, text), style=style)
    console.print(shown, soft_wrap=True, no_wrap=True, overflow="ignore", crop=False)
