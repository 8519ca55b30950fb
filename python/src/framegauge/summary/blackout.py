"""The longest run of drops of one input port in a run: the queue at that time, and the frames of other input ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framegauge.results import spools
from framegauge.results.journal import Run
from framegauge.results.spools import dig
from framegauge.summary import drop_runs, input_ports as came_by

__all__ = ["AROUND_FRAMES", "Blackout", "find"]

AROUND_FRAMES = 10  # frame times that are shown before and after
LEAST_LENGTH = 2  # a single drop is not a run of drops
_EVENTS = ("time_seconds", "port", "kind", "input_port", "flow", "frame_bytes", "queue_bytes")

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Blackout:
    """`length` frames in a row, the first dropped at `begin_seconds` of the run and the last at `end_seconds`.

    `whole`: every frame at the port is on record, and not only the dropped ones; `taken` is then the number of frames
    of each other input port that were taken in between, else None. The times of `held`, `arrived` and `dropped` count
    from `begin_seconds`, in order; `held` is in bytes.
    """

    run: Run
    port: str
    input_port: str
    length: int
    begin_seconds: float
    end_seconds: float
    around_seconds: float
    whole: bool
    held: Sequence[tuple[float, int]]
    arrived: Mapping[str, Sequence[float]]
    dropped: Mapping[str, Sequence[float]]
    taken: Mapping[str, int] | None
    lost: Mapping[str, int]  # frames of each other input port that were dropped in between


@dataclass(frozen=True)
class _Longest:
    """A run of drops, with those of its rows that are on record."""

    length: int
    rows: pa.Table

    def time(self, row: int) -> float:
        """The time of its first (0) or last (-1) drop, in seconds."""
        return float(self.rows["time_seconds"][row].as_py())


def find(folder: Path, run: Run, receiver: str) -> Blackout | None:
    """The longest run of drops at the ports to a receiver; None without consecutive drops, or without a link rate."""
    record = spools.record(folder, run)
    path = folder / "runs" / str(run.number)
    drops = drop_runs.drops(path / "drops.parquet", files=run.files)
    if drops is None:
        return None
    longest = _longest(drops.filter(pc.is_in(drops["port"], pa.array(came_by.ports_to(record, receiver), pa.string()))))
    if longest is None or longest.length < LEAST_LENGTH:
        return None
    port, name = (longest.rows[column][0].as_py() for column in ("port", "input_port"))
    rate = _bits_per_second(record, port)
    if not rate:
        return None
    around = AROUND_FRAMES * 8 * pc.max(longest.rows["frame_bytes"]).as_py() / rate
    span = (longest.time(0) - around, longest.time(-1) + around)
    events = spools.table(path / "events.parquet", files=run.files)
    rows = _rows(events, port, span) if events is not None and set(_EVENTS) <= set(events.column_names) else []
    drop_rows = [row for row in rows if row["kind"] == "dropped" and row["input_port"] == name]
    # Events are recorded for some ports only, and may end before the record of drops does.
    is_whole = len(drop_rows) >= longest.rows.num_rows
    if not is_whole:
        rows = [{**row, "kind": "dropped"} for row in _rows(drops, port, span)]
    waits = dig(record, "measure", "fabric", "waits") or ()
    inputs = [wait["input_port"] for wait in waits if wait["port"] == port]
    return _blackout(run, longest, around, rows, is_whole, inputs)


def _rows(table: pa.Table, port: str, span: tuple[float, float]) -> list[Row]:
    """The rows of a port within a span of time, in order."""
    time = table["time_seconds"]
    inside = pc.and_(pc.greater_equal(time, span[0]), pc.less_equal(time, span[1]))
    rows: list[Row] = table.filter(pc.and_(inside, pc.equal(table["port"], port))).to_pylist()
    return sorted(rows, key=lambda row: float(row["time_seconds"]))


def _longest(drops: pa.Table) -> _Longest | None:
    """The longest run of drops, and the first if there are several."""
    best: _Longest | None = None
    for rows in (drop_runs.by_input(drops) if drops.num_rows else {}).values():
        numbers = rows["run_length"].to_numpy().astype(np.int64)
        ends = drop_runs.ends(numbers)
        index = int(np.argmax(numbers[ends]))
        length, begin = int(numbers[ends][index]), int(ends[index - 1]) + 1 if index else 0
        if best is None or length > best.length:
            best = _Longest(length, rows.slice(begin, int(ends[index]) + 1 - begin))
    return best


def _bits_per_second(record: Mapping[str, Any], port: str) -> float | None:
    """The rate of the port's link; if no network is on record, the rate of all links."""
    for link in dig(record, "rack", "network", "ports") or ():
        if link["port"] == port:
            return link.get("bits_per_second")  # type: ignore[no-any-return]
    return dig(record, "conditions", "bits_per_second")  # type: ignore[no-any-return]


def _blackout(
    run: Run, longest: _Longest, around: float, rows: Sequence[Row], is_whole: bool, inputs: Sequence[str]
) -> Blackout:
    """The blackout of the longest run of drops. `inputs`: all input ports by which frames came in the whole run."""
    port, own_input = (longest.rows[name][0].as_py() for name in ("port", "input_port"))
    begin, end = longest.time(0), longest.time(-1)
    # A dropped frame may also have an event for its arrival: two events, one frame.
    dropped_frames = {_frame(row) for row in rows if row["kind"] == "dropped"}
    names = dict.fromkeys((*inputs, *(row["input_port"] for row in rows)))
    other_inputs = [name for name in names if name != own_input]
    rows_between = [row for row in rows if begin <= row["time_seconds"] <= end]

    def count(kind: str, name: str) -> int:
        return sum(
            row["kind"] == kind
            and row["input_port"] == name
            and (kind == "dropped" or _frame(row) not in dropped_frames)
            for row in rows_between
        )

    def times(kind: str) -> dict[str, list[float]]:
        return {
            name: [row["time_seconds"] - begin for row in rows if row["kind"] == kind and row["input_port"] == name]
            for name in (own_input, *other_inputs)
        }

    return Blackout(
        run, port, own_input, longest.length, begin, end, around, is_whole,
        [(row["time_seconds"] - begin, row["queue_bytes"]) for row in rows],
        times("arrived"), times("dropped"),
        {name: count("arrived", name) for name in other_inputs} if is_whole else None,
        {name: count("dropped", name) for name in other_inputs},
    )  # fmt: skip


def _frame(row: Row) -> tuple[Any, ...]:
    return row["time_seconds"], row["input_port"], row["flow"], row["frame_bytes"]
