"""Which host of a mesh explains whole rows or columns of it.

A row is what a host sends, a column what it receives. A host is suspected if nothing better than its limit is known of
its whole row (or column), and if peers that fail with it do better with others. Both matter: in a mesh in which
everything fails, every row is bad and no host is known to be the reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Cell", "Suspect", "suspects"]

Name = TypeVar("Name", str, tuple[str, int])


@dataclass(frozen=True)
class Cell(Generic[Name]):
    """From one to another, the best that is known to work (-1: nothing), and what the cell stands for."""

    source: Name
    destination: Name
    value: int
    key: tuple[str, str, int]


@dataclass(frozen=True)
class Suspect(Generic[Name]):
    """One that explains these cells: nothing above `limit` works in this direction."""

    name: Name
    direction: str
    limit: int
    cells: tuple[Cell[Name], ...]


def suspects(
    cells: Iterable[Cell[Name]], open_keys: set[tuple[str, str, int]], top: int, minimum: int = 2,
    near: Callable[[Cell[Name]], bool] | None = None, spare: int = 0,
) -> list[Suspect[Name]]:  # fmt: skip
    """The fewest that explain the open cells; the one that explains most comes first.

    `top` is the value of a good cell; `minimum` how many peers that do better elsewhere must testify; `near`
    tells which of them are neighbours, and if it is given at least one neighbour must be among them. Values that
    differ by `spare` at most are one limit.
    """
    rows: dict[tuple[Name, str], list[Cell[Name]]] = defaultdict(list)
    for cell in cells:
        rows[cell.source, "sending"].append(cell)
        rows[cell.destination, "receiving"].append(cell)
    best = {line: max(cell.value for cell in entries) for line, entries in rows.items()}
    candidates: dict[tuple[Name, str], list[Cell[Name]]] = {}
    for line, limit in best.items():
        if limit < top:
            # A row whose cells have smaller values, too, has more than one limit: they are another's.
            candidates[line] = [
                cell
                for cell in rows[line]
                if (cell.value == -1 or cell.value >= limit - spare) and cell.key in open_keys
            ]
    left = set(open_keys)
    entries: list[Suspect[Name]] = []
    while True:
        counted = {line: _witnesses(line, members, best, left) for line, members in candidates.items()}
        able = [
            line for line, seen in counted.items()
            if len({_peer(line, cell) for cell in seen}) >= minimum and (near is None or any(map(near, seen)))
        ]  # fmt: skip
        if not able:
            return entries
        line = min(able, key=lambda candidate: (-len(counted[candidate]), candidate))
        members = candidates.pop(line)
        left -= {cell.key for cell in members}
        entries.append(Suspect(line[0], line[1], best[line], tuple(members)))


def _peer(line: tuple[Name, str], cell: Cell[Name]) -> Name:
    return cell.destination if line[1] == "sending" else cell.source


def _witnesses(
    line: tuple[Name, str], members: list[Cell[Name]], best: dict[tuple[Name, str], int],
    left: set[tuple[str, str, int]],
) -> list[Cell[Name]]:  # fmt: skip
    """Members without a cause so far whose other end does better with others in the same role."""
    role = "receiving" if line[1] == "sending" else "sending"
    return [cell for cell in members if cell.key in left and best[_peer(line, cell), role] > best[line]]
