"""Frames that a port dropped in a row, by the input port that they came by. From a run's drops and its record.

A frame of the same input port that the port takes in ends the row (`pipe/README.md`, `drops`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framegauge.results import spools
from framegauge.results.spools import dig

__all__ = ["BINS", "DropRuns", "bin_of", "by_input", "drops", "ends", "lengths", "read"]

# The lengths of runs in a histogram: name, from, to.
BINS: Sequence[tuple[str, int, float]] = (
    ("1", 1, 1), ("2", 2, 2), ("3-4", 3, 4), ("5-8", 5, 8), ("9-16", 9, 16), ("17-32", 17, 32),
    ("33+", 33, float("inf")),
)  # fmt: skip
COLUMNS = ("time_seconds", "port", "input_port", "frame_bytes", "queue_bytes", "run_length")


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


def lengths(numbers: Sequence[int] | np.ndarray) -> list[int]:
    """Of each run of drops, from the `run_length` of every drop of one port and input port, in their order.

    Each drop's number is above the last one's while the run lasts: a run's length is the number of its last drop.
    """
    found = np.asarray(numbers, dtype=np.int64)
    return [int(number) for number in found[ends(found)]]


def ends(numbers: np.ndarray) -> np.ndarray:
    """The places at which a run ends, in order."""
    return np.flatnonzero(np.append(numbers[1:] <= numbers[:-1], [True] * (len(numbers) > 0)))


def drops(path: Path) -> pa.Table | None:
    """The rows that tell a drop of a port itself: no mark, and no loss on the link behind it. None without a table."""
    found = spools.table(path)
    if found is None or not set(COLUMNS) <= set(found.column_names):
        return None
    # Older folders know no marks.
    for name, keep in (("action", pc.equal), ("reason", pc.not_equal)):
        if name in found.column_names:
            found = found.filter(keep(found[name], "dropped" if name == "action" else "loss"))
    return found


def read(path: Path, record: Mapping[str, Any]) -> list[DropRuns]:
    """Of a run: every port and input port that drops are on record of, in order of their names."""
    found = drops(path)
    if found is None or not found.num_rows:
        return []
    numbers = {key: rows["run_length"].to_numpy() for key, rows in by_input(found).items()}
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


def by_input(found: pa.Table) -> dict[tuple[str, str], pa.Table]:
    """The rows of each port and input port, in their order."""
    codes = [found[name].combine_chunks().dictionary_encode() for name in ("port", "input_port")]
    first, second = (code.indices.to_numpy() for code in codes)
    both = first.astype(np.int64) * len(codes[1].dictionary) + second
    order = np.argsort(both, kind="stable")
    edges = np.flatnonzero(np.diff(both[order])) + 1
    parts = [found.take(part) for part in np.split(order, edges)]
    return {(part["port"][0].as_py(), part["input_port"][0].as_py()): part for part in parts}


def _whole(record: Mapping[str, Any], numbers: Mapping[tuple[str, str], np.ndarray]) -> set[str]:
    """The ports whose every drop is on record: the spool has an end, the counters do not."""
    told: dict[str, int] = {}
    for (port, _), each in numbers.items():
        told[port] = told.get(port, 0) + len(each)
    counted = {port["port"]: port["dropped_frames"] for port in dig(record, "measure", "fabric", "ports") or ()}
    return {port for port, count in told.items() if counted.get(port) == count}
