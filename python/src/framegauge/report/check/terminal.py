"""A path MTU check for people at a terminal: the verdict, the matrix, the findings. Reads a document, nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from framegauge import quantities
from framegauge.check.judgement.findings import CATALOGUE, title
from framegauge.printable import printable
from framegauge.report.check.matrix import NOT_PROBED, Matrix, counts, headline, legend, matrices, plan_text

__all__ = ["show"]

MOST_HOSTS = 24
MOST_FINDINGS = 20
WORST_HOSTS = 10
NAME_WIDTH = 20
_STYLES = {
    "carries_target": "green", "too_small": "bold yellow", "black_hole": "bold red", "unreachable": "bold magenta",
    "unknown": "cyan", "fault": "bold red", "could_not_tell": "cyan",
}  # fmt: skip


def show(document: Mapping[str, Any], console: Console) -> None:
    """All of it; a summary instead of the matrix where it would not fit."""
    _print(console, headline(document), _STYLES[document["verdict"]])
    _print(console, "")
    drawn = matrices(document, MOST_HOSTS)
    for each in drawn:
        _matrix(console, each)
    if not drawn or drawn[0].of_subnets:
        _summary(console, document)
    _findings(console, document)
    _print(console, plan_text(document), "dim")
    _print(console, f"It took {quantities.print_seconds(document['seconds'])}.", "dim")


def _print(console: Console, text: str, style: str = "", indent: int = 0) -> None:
    console.print(Padding(Text(printable(text), style=style), (0, 0, 0, indent), expand=False))


def _name(text: str, width: int) -> str:
    text = printable(text)
    if cell_len(text) > max(1, width):
        while text and cell_len(text) >= width:
            text = text[:-1]
        text += "…"
    return text + " " * (width - cell_len(text))


def _matrix(console: Console, matrix: Matrix) -> None:
    """Numbered rows send, columns of the same numbers receive. Signs alone where sizes do not fit."""
    what = "subnet" if matrix.of_subnets else "host"
    # As they are printed: a name may be of nothing but what has no width, or gets one by being made printable.
    named = min(NAME_WIDTH, max((cell_len(printable(name)) for name in matrix.names), default=1))
    is_short, wide = False, 0
    for is_short in (False, True):
        cells = [each.text(is_short) for each in matrix.cells.values()]
        wide = max(map(len, [*cells, str(len(matrix.names))])) + 1
        if named + 4 + wide * len(matrix.names) <= console.width:
            break
    _print(console, f"{matrix.title}: path MTU from the {what} of the row to the {what} of the column", "bold")
    head = "".join(str(number).rjust(wide) for number in range(1, len(matrix.names) + 1))
    console.print(Text(" " * (named + 4) + head, style="dim"), soft_wrap=True)
    for number, source in enumerate(matrix.names, 1):
        line = Text(f"{number:3} {_name(source, named)}")
        for destination in matrix.names:
            cell = matrix.cells.get((source, destination))
            if cell is None:
                line.append((" " if source == destination else NOT_PROBED).rjust(wide), style="dim")
            else:
                line.append(cell.text(is_short).rjust(wide), style=_STYLES[cell.verdict])
        console.print(line, soft_wrap=True)
    _print(console, legend(matrix, is_short), "dim")
    _print(console, "")


def _summary(console: Console, document: Mapping[str, Any]) -> None:
    """Counts, and the hosts that most faults concern."""
    found = counts(document)
    words = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in found.items() if number)
    _print(console, f"{len(document['hosts'])} hosts, {len(document['pairs'])} pairs: {words or 'none'}")
    sending, receiving, all_of = Counter[str](), Counter[str](), Counter[str]()
    for pair in document["pairs"]:
        all_of.update((pair["source"], pair["destination"]))
        if pair["verdict"] not in ("carries_target", "unknown"):
            sending[pair["source"]] += 1
            receiving[pair["destination"]] += 1
    worst = (sending + receiving).most_common(WORST_HOSTS)
    if worst:
        _print(console, "Hosts with most faults (sending, receiving, of its probed pairs):", "bold")
        for name, _ in worst:
            _print(console, f"  {_name(name, NAME_WIDTH)} {sending[name]:5} {receiving[name]:5} {all_of[name]:6}")
    _print(console, "")


def _findings(console: Console, document: Mapping[str, Any]) -> None:
    findings = document["findings"]
    for number, found in enumerate(findings[:MOST_FINDINGS], 1):
        is_fault = found["kind"] not in CATALOGUE or CATALOGUE[found["kind"]].is_fault
        style = "bold red" if is_fault else "bold yellow"
        _print(console, f"{number}. {title(found['kind'])}: {found['where']}", style)
        _print(console, found["evidence"], "", 3)
        _print(console, f"fix: {found['fix']}", "", 3)
        if found["ask"]:
            _print(console, f"ask: {found['ask']}", "", 3)
        _print(console, f"more: docs/reference/mtu-faults.md, {found['kind']}", "dim", 3)
    if len(findings) > MOST_FINDINGS:
        _print(console, f"… and {len(findings) - MOST_FINDINGS} more findings: see --json", "yellow")
    if findings:
        _print(console, "")
