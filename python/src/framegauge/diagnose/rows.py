"""The rows of a diagnosis: connections and findings, read from the agent's output when they are asked for.

Memory holds where they are, not what they say: a capture may have millions.
"""

from __future__ import annotations

import io
import json
import os
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import IO, Any, overload

__all__ = ["CONNECTION", "FINDING", "Rows", "Tap", "nothing", "read"]

CONNECTION, FINDING = "connection", "finding"
# So few rows are simply a list.
FEW = 10_000
Json = dict[str, Any]


@dataclass
class _Places:
    """Where rows are in a file: each begins at a place and ends before the next one that is listed."""

    begins: array[int] = field(default_factory=lambda: array("Q"))
    ends: array[int] = field(default_factory=lambda: array("Q"))


@dataclass
class Tap:
    """What the agent says of one tap of a capture: its own words, those of the file, and where its rows are."""

    words: Json
    file: IO[bytes]
    of: dict[str, _Places] = field(default_factory=lambda: {CONNECTION: _Places(), FINDING: _Places()})

    def count(self, label: str) -> int:
        """How many rows there are of this kind."""
        return len(self.of[label].begins)

    def row(self, label: str, place: int) -> Json:
        """One of them, as the agent says it."""
        places = self.of[label]
        begin, end = places.begins[place], places.ends[place]
        row: Json = json.loads(os.pread(self.file.fileno(), end - begin, begin))[label]
        return row


def read(file: IO[bytes]) -> tuple[Json, list[Tap]]:
    """What `framegauge-agent diagnose --rows FILE` said: the words of the capture, and its taps."""
    file.seek(0)
    capture: Json = {}
    taps: list[Tap] = []
    offset = 0
    for line in file:
        end = offset + len(line)
        # The label of a row is at its begin, so that rows need not be parsed to be counted.
        label = next((name for name in (CONNECTION, FINDING) if line.startswith(f'{{"{name}":'.encode())), None)
        if label is not None:
            taps[-1].of[label].begins.append(offset)
            taps[-1].of[label].ends.append(end)
        else:
            words = json.loads(line)
            if "tap" in words:
                taps.append(Tap(words["tap"], file))
            else:
                capture = words.get("capture", words)
        offset = end
    return capture, taps


def nothing() -> Tap:
    """The tap of a capture without TCP."""
    words = {"interface": None, "begin_seconds": None, "segments": 0, "seconds": 0.0}
    return Tap(words, io.BytesIO())


class Rows(Sequence[Json]):
    """Rows of one kind of several taps. Each says its capture, and the number of its connection in all of them."""

    def __init__(self, label: str, taps: Sequence[Tap], order: Sequence[tuple[int, int]] | None = None) -> None:
        """`order` has the tap and the place there of each row; without it, all of them come tap by tap."""
        self._label, self._taps, self._order = label, taps, order
        counts = [tap.count(CONNECTION) for tap in taps]
        self._before = [sum(counts[:place]) for place in range(len(taps))]
        row_counts = [tap.count(label) for tap in taps]
        self._starts = [sum(row_counts[:place]) for place in range(len(taps) + 1)]

    def __len__(self) -> int:
        """How many there are."""
        return self._starts[-1] if self._order is None else len(self._order)

    @overload
    def __getitem__(self, place: int) -> Json: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Json]: ...
    def __getitem__(self, place: int | slice) -> Json | Sequence[Json]:
        """One of them, or a list of some; each time anew."""
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        if self._order is not None:
            return self._row(*self._order[place])
        tap = next(tap for tap, (begin, end) in enumerate(pairwise(self._starts)) if begin <= place < end)
        return self._row(tap, place - self._starts[tap])

    def __iter__(self) -> Iterator[Json]:
        """One after the other."""
        if self._order is not None:
            yield from (self._row(*position) for position in self._order)
        else:
            for place, tap in enumerate(self._taps):
                yield from (self._row(place, row) for row in range(tap.count(self._label)))

    def _row(self, tap: int, place: int) -> Json:
        row = self._taps[tap].row(self._label, place)
        number = row["connection"]
        return {"capture": tap + 1, **row, "connection": None if number is None else number + self._before[tap]}

    def kept(self) -> Sequence[Json]:
        """Itself, or a list of few."""
        return self if len(self) > FEW else list(self)
