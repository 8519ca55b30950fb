"""Frames that a port dropped in a row, by the input port that they came by. From a run's drops.arrow and its record.

A frame of the same input port that the port takes in ends the row (`pipe/README.md`, `drops`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framegauge.report import spools
from framegauge.report.spools import dig

__all__ = ["BINS", "COLUMNS", "DropRuns", "bin_of", "is_drop", "lengths", "read"]

# The lengths of runs in a histogram: name, from, to.
BINS: Sequence[tuple[str, int, float]] = (
    ("1", 1, 1), ("2", 2, 2), ("3-4", 3, 4), ("5-8", 5, 8), ("9-16", 9, 16), ("17-32", 17, 32),
    ("33+", 33, float("inf")),
)  # fmt: skip
COLUMNS = ("time_seconds", "port", "input_port", "frame_bytes", "queue_bytes", "run_length")
OTHERS = ("action", "reason")  # older folders know no marks


@dataclass(frozen=True)
class DropRuns:
    """What one port dropped of one input port in one run.

    `frames`: how many came by that input port, dropped ones included; None where that is not on record.
    """

    port: str
    input_port: str
    lengths: Sequence[int]
    dropped_frames: int
    frames: int | None


def bin_of(length: int) -> str:
    """The bin of a run of drops."""
    return next(name for name, low, high in BINS if low <= length <= high)


def lengths(numbers: Iterable[int]) -> list[int]:
    """Of each run of drops, from the `run_length` of every drop of one port and input port, in their order.

    Each drop's number is one above the last as long as the run lasts: a run's length is the number of its last drop.
    """
    found: list[int] = []
    before = 0
    for number in numbers:
        if before and number > before:
            found[-1] = number
        else:
            found.append(number)
        before = number
    return found


def is_drop(row: Mapping[str, Any]) -> bool:
    """Whether a row of the spool tells a drop of the port itself: no mark, and no loss on the link behind it."""
    return row.get("action", "dropped") == "dropped" and row.get("reason") != "loss"


def read(path: Path, record: Mapping[str, Any]) -> list[DropRuns]:
    """Of a run: every port and input port that drops are on record of, in order of their names."""
    found = spools.columns(path, COLUMNS, OTHERS)
    if found is None:
        return []
    numbers: dict[tuple[str, str], list[int]] = {}
    names = [name for name in ("port", "input_port", "run_length", *OTHERS) if name in found]
    for values in zip(*(found[name] for name in names), strict=True):
        row = dict(zip(names, values, strict=True))
        if is_drop(row):
            numbers.setdefault((row["port"], row["input_port"]), []).append(row["run_length"])
    waits = dig(record, "measure", "fabric", "waits") or ()
    left = {(wait["port"], wait["input_port"]): wait["frames"] for wait in waits}
    whole = _whole(record, numbers)
    return [
        DropRuns(
            port, input_port, lengths(each), len(each),
            left.get((port, input_port), 0) + len(each) if left and port in whole else None,
        )
        for (port, input_port), each in sorted(numbers.items())
    ]  # fmt: skip


def _whole(record: Mapping[str, Any], numbers: Mapping[tuple[str, str], Sequence[int]]) -> set[str]:
    """The ports whose every drop is on record: the spool has an end, the counters do not."""
    told: dict[str, int] = {}
    for (port, _), each in numbers.items():
        told[port] = told.get(port, 0) + len(each)
    counted = {port["port"]: port["dropped_frames"] for port in dig(record, "measure", "fabric", "ports") or ()}
    return {port for port, count in told.items() if counted.get(port) == count}
