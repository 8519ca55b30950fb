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
    return list(dict.fromkeys(verdict["metric"] for verdict in found))


def level_of(verdict: Verdict) -> str:
    """The level of the treatment in words."""
    return words.subject(verdict["treatment"])


def claims(chosen: Chosen, of: Sequence[Verdict]) -> list[Claim]:
    """The claims that the chosen verdicts among `of` come to, by metric."""
    cells = words.Cells(of)
    return [
        claim
        for metric in metrics_of(of)
        for claim in _described(chosen, [verdict for verdict in of if verdict["metric"] == metric], cells)
    ]


def _described(chosen: Chosen, verdicts: Sequence[Verdict], cells: words.Cells) -> Iterator[Claim]:
    """The claims on one metric."""
    matching = [verdict for verdict in verdicts if chosen(verdict)]
    if not matching:
        return
    all_levels, metric = _levels(verdicts), matching[0]["metric"]
    exact = _exact(chosen, verdicts)
    if exact is not None:
        levels = _levels(matching) if _TREATMENT in exact else all_levels
        workloads = tuple(map(json.loads, exact.get(_WORKLOAD, ())))
        yield Claim(metric, matching, levels, levels != all_levels, workloads, tuple(_conditions(exact)))
    elif len(all_levels) > 1:
        for level in all_levels:
            for claim in _described(chosen, [verdict for verdict in verdicts if level_of(verdict) == level], cells):
                yield replace(claim, some_levels=True)
    else:
        rest = _exact(lambda verdict: not chosen(verdict), verdicts)
        named = None if rest is None or _WORKLOAD in rest else _with(list(_conditions(rest)))
        yield Claim(metric, matching, all_levels, cells=f" except{named}" if named else _listed(matching, cells))


def _exact(chosen: Chosen, verdicts: Sequence[Verdict]) -> dict[Path, list[str]] | None:
    """The levels of the fewest things that hold for the chosen verdicts and for no other; None if two do not do."""
    matching = [verdict for verdict in verdicts if chosen(verdict)]
    for paths in _choices(verdicts):
        levels = {path: _values(matching, path) for path in paths}
        if all(
            all(_value(verdict, path) in path_values for path, path_values in levels.items()) == chosen(verdict)
            for verdict in verdicts
        ):
            return levels
    return None


def _listed(verdicts: Sequence[Verdict], cells: words.Cells) -> str:
    names = list(dict.fromkeys(f"({cells.name(verdict)})" for verdict in verdicts))
    more = len(names) - MOST_CELLS
    rest = [f"{more} more cell{'' if more == 1 else 's'}"] if more > 0 else []
    return f" in {words.joined([*names[:MOST_CELLS], *rest])}"


def _choices(verdicts: Sequence[Verdict]) -> Iterator[tuple[Path, ...]]:
    """What may describe a part of these verdicts, the simplest first."""
    names = dict.fromkeys(name for verdict in verdicts for name in verdict["conditions"])
    paths = [_TREATMENT, *(("conditions", name) for name in names), _WORKLOAD]
    paths = [path for path in paths if len(_values(verdicts, path)) > 1]
    yield ()
    for count in (1, 2):
        yield from combinations(paths, count)


def _value(verdict: Verdict, path: Path) -> str:
    """What a verdict has at a path, as text that can be compared."""
    if path == _TREATMENT:
        return level_of(verdict)
    value: Any = verdict
    for name in path:
        if name not in value:
            return ""
        value = value[name]
    return json.dumps(value, sort_keys=True)


def _values(verdicts: Sequence[Verdict], path: Path) -> list[str]:
    return list(dict.fromkeys(_value(verdict, path) for verdict in verdicts))


def _levels(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(level_of, verdicts)))


def _conditions(path_levels: Mapping[Path, Sequence[str]]) -> Iterator[str]:
    """Levels of conditions in words: "RTT 200 us or 1.2 ms", "TSO off"."""
    for path, levels in path_levels.items():
        if path not in (_TREATMENT, _WORKLOAD):
            texts = [
                words.condition(path[1], json.loads(level)) if level else f"no {words.factor(path[1])}"
                for level in levels
            ]
            yield words.alternatives(texts)
