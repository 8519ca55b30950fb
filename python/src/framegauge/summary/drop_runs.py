"""Runs of drops: frames of one input port that a port dropped in a row, from a run's drops and its record.

The run ends when the port takes in a frame of the same input port (`pipe/README.md`, `drops`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framegauge.results import seals, spools
from framegauge.results.spools import dig

__all__ = ["BINS", "DropRuns", "by_input", "drops", "ends", "lengths", "read", "shares"]

# The bins of a histogram of run lengths: name, from, to.
BINS: Sequence[tuple[str, int, float]] = (
    ("1", 1, 1), ("2", 2, 2), ("3-4", 3, 4), ("5-8", 5, 8), ("9-16", 9, 16), ("17-32", 17, 32),
    ("33+", 33, float("inf")),
)  # fmt: skip
_NAMES = ("port", "input_port", "action", "reason")
COLUMNS = ("time_seconds", "port", "input_port", "frame_bytes", "queue_bytes", "run_length")


@dataclass(frozen=True)
class DropRuns:
    """The frames of one input port that one port dropped in one run.

    `frames`: the number that came by that input port, dropped ones included; None if it is not on record.
    """

    port: str
    input_port: str
    lengths: Sequence[int]
    dropped_frames: int
    frames: int | None


def shares(found: Sequence[int]) -> dict[str, float]:
    """By bin, the share of all dropped frames that were part of a run of such a length; of one run at least."""
    run_lengths = np.asarray(found, dtype=np.int64)
    return {
        name: int(run_lengths[(run_lengths >= low) & (run_lengths <= high)].sum()) / int(run_lengths.sum())
        for name, low, high in BINS
    }


def lengths(numbers: Sequence[int] | np.ndarray) -> list[int]:
    """The length of each run, from the `run_length` of every drop of one port and input port, in their order.

    Within a run the numbers of drops increase; the number of the last drop is the length of the run.
    """
    drop_numbers = np.asarray(numbers, dtype=np.int64)
    run_lengths: list[int] = drop_numbers[ends(drop_numbers)].tolist()
    return run_lengths


def ends(numbers: np.ndarray) -> np.ndarray:
    """The indices of the last drop of each run, in order."""
    return np.flatnonzero(np.append(numbers[1:] <= numbers[:-1], [True] * (len(numbers) > 0)))


def drops(path: Path, wanted: Collection[str] | None = None, files: Mapping[str, str] = seals.NONE) -> pa.Table | None:
    """The rows about drops by a port itself, without marks and without losses on its link: all columns, or at least the
    `wanted` ones, which takes less time. None without a table that has them."""
    table = spools.table(path, None if wanted is None else {*wanted, *_NAMES}, _NAMES, files)
    if table is None or not set(COLUMNS if wanted is None else wanted) <= set(table.column_names):
        return None
    # Older folders lack marks, and these columns.
    for name, predicate in (("action", pc.equal), ("reason", pc.not_equal)):
        if name in table.column_names:
            table = table.filter(predicate(table[name], "dropped" if name == "action" else "loss"))
    return table


def read(path: Path, record: Mapping[str, Any], files: Mapping[str, str] = seals.NONE) -> list[DropRuns]:
    """The drops of a run for every port and input port that has any on record, in order of their names."""
    table = drops(path, ("port", "input_port", "run_length"), files)
    if table is None or not table.num_rows:
        return []
    column = table["run_length"].to_numpy()
    numbers = {key: column[rows] for key, rows in _rows(table).items()}
    waits = dig(record, "measure", "fabric", "waits") or ()
    forwarded = {(wait["port"], wait["input_port"]): wait.get("frames", 0) for wait in waits}
    complete_ports = _whole(record, numbers)
    return [
        DropRuns(
            port, input_port, lengths(drop_numbers), len(drop_numbers),
            forwarded.get((port, input_port), 0) + len(drop_numbers) if forwarded and port in complete_ports else None,
        )
        for (port, input_port), drop_numbers in sorted(numbers.items())
    ]  # fmt: skip


def by_input(found: pa.Table) -> dict[tuple[str, str], pa.Table]:
    """The rows of each port and input port, in their order."""
    return {key: found.take(rows) for key, rows in _rows(found).items()}


def _rows(table: pa.Table) -> dict[tuple[str, str], np.ndarray]:
    """The indices of the rows of each port and input port, in their order."""
    codes = [table[name].combine_chunks().dictionary_encode() for name in ("port", "input_port")]
    first, second = (code.indices.to_numpy() for code in codes)
    combined = first.astype(np.int64) * len(codes[1].dictionary) + second
    # Numbers of 16 bits, which almost all are, take a tenth of the time to sort.
    combined = combined.astype(np.min_scalar_type(int(combined.max())))
    order = np.argsort(combined, kind="stable")
    edges = np.flatnonzero(np.diff(combined[order])) + 1
    return {
        (codes[0][int(part[0])].as_py(), codes[1][int(part[0])].as_py()): part for part in np.split(order, edges)
    }  # fmt: skip


def _whole(record: Mapping[str, Any], numbers: Mapping[tuple[str, str], np.ndarray]) -> set[str]:
    """The ports with all drops on record, as their counters show: the spool is limited in size."""
    recorded: dict[str, int] = {}
    for (port, _), drop_numbers in numbers.items():
        recorded[port] = recorded.get(port, 0) + len(drop_numbers)
    counted = {port["port"]: port.get("dropped_frames") for port in dig(record, "measure", "fabric", "ports") or ()}
    return {port for port, count in recorded.items() if counted.get(port) == count}
