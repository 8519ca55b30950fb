"""Where a verdict holds, in the fewest words that are exact: everywhere; at levels of the treatment, or of one
condition, or of two of these; for each level of the treatment by itself; and else in a list of cells."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from framegauge.summary import words

__all__ = ["Claim", "claims", "level_of", "metrics_of"]

MOST_CELLS = 3  # named in a list

Verdict = Mapping[str, Any]  # an entry of the summary's `verdicts`
Chosen = Callable[[Verdict], bool]
Path = tuple[str, ...]  # to what a verdict may depend on
_TREATMENT: Path = ("treatment",)
_WORKLOAD: Path = ("workload",)


@dataclass(frozen=True)
class Claim:
    """Verdicts of one kind on one metric: all those at these levels of the treatment, workloads and conditions.

    `levels` are all of the treatment unless `some_levels`; `workloads` are empty if all are meant; `conditions` are in
    words ("RTT 1.2 ms"), and so are `cells`, where levels do not describe them (" in (1 MB, RTT 1.2 ms)").
    """

    metric: str
    found: Sequence[Verdict]
    levels: tuple[str, ...]
    some_levels: bool = False
    workloads: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    cells: str = ""

    @property
    def place(self) -> str:
        """The conditions and cells: " with RTT 1.2 ms", "" for everywhere."""
        return _with(self.conditions) + self.cells

    @property
    def at(self) -> str:
        """The same, with the workloads."""
        return self._for + self.place

    @property
    def where(self) -> str:
        """The same, with the levels of the treatment if there are others."""
        levels = (words.alternatives(self.levels),) if self.some_levels else ()
        return self._for + _with([*levels, *self.conditions]) + self.cells

    @property
    def _for(self) -> str:
        return f" for {words.joined(self.workloads, 'or')}" if self.workloads else ""


def _with(names: Sequence[str]) -> str:
    return f" with {words.joined(names)}" if names else ""


def metrics_of(found: Sequence[Verdict]) -> list[str]:
    """The metrics of verdicts, in order."""
    return list(dict.fromkeys(each["metric"] for each in found))


def level_of(verdict: Verdict) -> str:
    """The level of the treatment in words."""
    return words.subject(verdict["treatment"])


def claims(chosen: Chosen, of: Sequence[Verdict]) -> list[Claim]:
    """The claims that the chosen verdicts among `of` come to, by metric."""
    cells = words.Cells(of)
    return [
        claim
        for metric in metrics_of(of)
        for claim in _described(chosen, [each for each in of if each["metric"] == metric], cells)
    ]


def _described(chosen: Chosen, of: Sequence[Verdict], cells: words.Cells) -> Iterator[Claim]:
    """The claims on one metric."""
    found = [each for each in of if chosen(each)]
    if not found:
        return
    every, metric = _levels(of), found[0]["metric"]
    exact = _exact(chosen, of)
    if exact is not None:
        levels = _levels(found) if _TREATMENT in exact else every
        workloads = tuple(map(json.loads, exact.get(_WORKLOAD, ())))
        yield Claim(metric, found, levels, levels != every, workloads, tuple(_conditions(exact)))
    elif len(every) > 1:
        for level in every:
            for claim in _described(chosen, [each for each in of if level_of(each) == level], cells):
                yield replace(claim, some_levels=True)
    else:
        rest = _exact(lambda each: not chosen(each), of)
        named = None if rest is None or _WORKLOAD in rest else _with(list(_conditions(rest)))
        yield Claim(metric, found, every, cells=f" except{named}" if named else _listed(found, cells))


def _exact(chosen: Chosen, of: Sequence[Verdict]) -> dict[Path, list[str]] | None:
    """The levels of the fewest things that hold for the chosen verdicts and for no other; None if two do not do."""
    found = [each for each in of if chosen(each)]
    for paths in _choices(of):
        levels = {path: _values(found, path) for path in paths}
        if all(all(_value(each, path) in some for path, some in levels.items()) == chosen(each) for each in of):
            return levels
    return None


def _listed(found: Sequence[Verdict], cells: words.Cells) -> str:
    named = list(dict.fromkeys(f"({cells.name(each)})" for each in found))
    more = len(named) - MOST_CELLS
    rest = [f"{more} more cell{'' if more == 1 else 's'}"] if more > 0 else []
    return f" in {words.joined([*named[:MOST_CELLS], *rest])}"


def _choices(of: Sequence[Verdict]) -> Iterator[tuple[Path, ...]]:
    """What may describe a part of these verdicts, the simplest first."""
    names = dict.fromkeys(name for each in of for name in each["conditions"])
    paths = [_TREATMENT, *(("conditions", name) for name in names), _WORKLOAD]
    paths = [path for path in paths if len(_values(of, path)) > 1]
    yield ()
    for count in (1, 2):
        yield from combinations(paths, count)


def _value(verdict: Verdict, path: Path) -> str:
    """What a verdict has at a path, as text that can be compared."""
    if path == _TREATMENT:
        return level_of(verdict)
    found: Any = verdict
    for name in path:
        if name not in found:
            return ""
        found = found[name]
    return json.dumps(found, sort_keys=True)


def _values(found: Sequence[Verdict], path: Path) -> list[str]:
    return list(dict.fromkeys(_value(each, path) for each in found))


def _levels(found: Sequence[Verdict]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(level_of, found)))


def _conditions(chosen: Mapping[Path, Sequence[str]]) -> Iterator[str]:
    """Levels of conditions in words: "RTT 200 us or 1.2 ms", "TSO off"."""
    for path, levels in chosen.items():
        if path not in (_TREATMENT, _WORKLOAD):
            said = [
                words.condition(path[1], json.loads(each)) if each else f"no {words.factor(path[1])}" for each in levels
            ]
            yield words.alternatives(said)
