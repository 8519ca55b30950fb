"""Where a verdict holds, in the fewest words that are exact: everywhere; at levels of the treatment, or of one
condition, or of two of these; for each level of the treatment by itself; and else in a list of cells."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from framegauge.summary import words

__all__ = ["Claim", "claims", "level_of", "metrics_of"]

MOST_CELLS = 3  # named in a list

Verdict = Mapping[str, Any]  # an entry of the summary's `verdicts`
Path = tuple[str, ...]  # to what a verdict may depend on
_TREATMENT: Path = ("treatment",)
_WORKLOAD: Path = ("workload",)


@dataclass(frozen=True)
class Claim:
    """All verdicts of one kind on one metric for these levels of the treatment, at a place: "", " with RTT 1.2 ms".

    `workloads` are empty if all are meant. `everywhere`: the metric was compared for no other level of the treatment.
    """

    metric: str
    levels: tuple[str, ...]
    everywhere: bool
    workloads: tuple[str, ...]
    place: str
    found: Sequence[Verdict]

    @property
    def at(self) -> str:
        """The place, with the workloads."""
        return (f" for {words.joined(self.workloads, 'or')}" if self.workloads else "") + self.place

    @property
    def where(self) -> str:
        """The place, with the workloads, and the levels if there are others."""
        if self.everywhere:
            return self.at
        named = words.alternatives(self.levels)
        if self.at.startswith(" with "):
            return f" with {named} and{self.at.removeprefix(' with')}"
        return f" with {named}{self.at}"


def metrics_of(found: Sequence[Verdict]) -> list[str]:
    """The metrics of verdicts, in order."""
    return list(dict.fromkeys(each["metric"] for each in found))


def level_of(verdict: Verdict) -> str:
    """The level of the treatment in words."""
    return words.subject(verdict["treatment"])


def claims(kind: str, of: Sequence[Verdict]) -> list[Claim]:
    """The claims that all verdicts of this kind among `of` come to, by metric."""
    cells = words.Cells(of)
    return [
        claim
        for metric in metrics_of(of)
        for claim in _described(kind, [each for each in of if each["metric"] == metric], cells)
    ]


def _described(kind: str, of: Sequence[Verdict], cells: words.Cells) -> Iterator[Claim]:
    """The claims on one metric."""
    found = [each for each in of if each["verdict"] == kind]
    if not found:
        return
    every = _levels(of)
    for paths in _choices(of):
        levels = [_values(found, path) for path in paths]
        inside = [all(_value(each, path) in some for path, some in zip(paths, levels, strict=True)) for each in of]
        if inside == [each["verdict"] == kind for each in of]:
            chosen = dict(zip(paths, levels, strict=True))
            mine = _levels(found) if _TREATMENT in chosen else every
            workloads = tuple(map(json.loads, chosen.get(_WORKLOAD, ())))
            yield Claim(found[0]["metric"], mine, mine == every, workloads, _place(chosen), found)
            return
    if len(every) > 1:
        for level in every:
            for claim in _described(kind, [each for each in of if level_of(each) == level], cells):
                yield replace(claim, everywhere=False)
        return
    named = list(dict.fromkeys(f"({cells.name(each)})" for each in found))
    rest = f" and {len(named) - MOST_CELLS} more cells" if len(named) > MOST_CELLS else ""
    place = ", ".join(named[:MOST_CELLS]) + rest if rest else words.joined(named)
    yield Claim(found[0]["metric"], every, True, (), f" in {place}", found)


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


def _place(chosen: Mapping[Path, Sequence[str]]) -> str:
    """Levels of conditions in words: " with RTT 200 us or 1.2 ms and TSO off"."""
    given = [
        words.alternatives([words.condition(path[1], json.loads(each)) if each else f"no {path[1]}" for each in levels])
        for path, levels in chosen.items()
        if path not in (_TREATMENT, _WORKLOAD)
    ]
    return f" with {' and '.join(given)}" if given else ""
