"""What all kinds of workloads need: columns of a run's tables, and flows in the order of their starts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from framegauge.errors import CorruptResults, InputError
from framegauge.files.recordings import Recorded
from framegauge.results import shapes, spools
from framegauge.results.journal import Run

__all__ = ["Chains", "Found", "begins"]

Shape = TypeVar("Shape", bound=BaseModel)
Columns = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Found:
    """A run of a results folder, and its record."""

    folder: Path
    run: Run
    record: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What errors begin with."""
        return f"{self.folder}, run {self.run.number}"

    def told(self, shape: type[Shape]) -> Shape:
        """What the record says of the workload; CorruptResults if that is not in it."""
        where = f"{self.folder}/runs/{self.run.number}/record.json: workload"
        work = self.record.get("workload")
        shapes.checked(work, shape, where)
        return shape.model_validate(work)

    def condition(self, name: str) -> int:
        """A whole number among the conditions; CorruptResults without it."""
        value = self.run.conditions.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise CorruptResults(
                f"{self.name}: conditions.{name}: found {shapes.shown(value)}, expected a whole number from 0"
            )
        return value

    def has(self, table: str) -> bool:
        """Whether it left such a table."""
        return (self.folder / "runs" / str(self.run.number) / table).is_file()

    def table(self, name: str) -> pa.Table:
        """A table of the run; InputError if it is not there."""
        path = self.folder / "runs" / str(self.run.number) / name
        # Hosts' names are in those of tables: no path leads out of the folder.
        table = spools.table(path, files=self.run.files) if Path(name).name == name else None
        if table is None:
            raise InputError(f"{self.name}: found no readable {name}, expected this table of the workload")
        return table

    def columns(self, table: str, numbers: Sequence[str], texts: Sequence[str] = ()) -> Columns:
        """Columns of a table, by name; InputError if it is not there, CorruptResults if a value is missing or none."""
        arrow_table, columns = self.table(table), {}
        for name in (*numbers, *texts):
            column = arrow_table[name] if name in arrow_table.column_names else pa.chunked_array([[]], pa.null())
            values = column.to_numpy()
            kinds, expected = ("O", "texts") if name in texts else ("uifb", "numbers from 0")
            if column.null_count or len(values) != arrow_table.num_rows or values.dtype.kind not in kinds:
                actual = f"{column.type}" if name in arrow_table.column_names else "no such column"
                raise CorruptResults(f"{self.name}: {table}: {name}: found {actual}, expected {expected} in all rows")
            if name in numbers and not (np.isfinite(values) & (values >= 0)).all():
                raise CorruptResults(f"{self.name}: {table}: {name}: found {values.min():g}, expected numbers from 0")
            columns[name] = values
        return columns

    def ends(self, flows: np.ndarray) -> list[tuple[str, str]]:
        """Client and server of these flows of a simulation."""
        columns = self.columns("flows.parquet", (), ("client", "server"))
        if len(flows) and (most := int(flows.max())) >= len(columns["client"]):
            raise CorruptResults(f"{self.name}: found flow {most}, expected one of those in flows.parquet")
        return [(str(columns["client"][flow]), str(columns["server"][flow])) for flow in flows.tolist()]


class Chains:
    """Flows as they are found. Those of a chain wait for one another."""

    def __init__(self) -> None:
        self._flows: list[Recorded] = []
        self._last: dict[Hashable, int] = {}

    def add(self, flow: Recorded, chain: Hashable = None) -> None:
        """The next flow; it waits for the one before of its chain, too."""
        if chain is not None and chain in self._last:
            flow = replace(flow, after=(*flow.after, self._last[chain]))
        if flow.end_seconds is not None and flow.end_seconds <= flow.start_seconds:
            flow = replace(flow, end_seconds=None)
        if chain is not None:
            self._last[chain] = len(self._flows)
        self._flows.append(flow)

    def in_order(self) -> list[Recorded]:
        """All of them in the order of their starts, the first of which is at 0."""
        order = sorted(range(len(self._flows)), key=lambda place: self._flows[place].start_seconds)
        places = {old: new for new, old in enumerate(order)}
        first = self._flows[order[0]].start_seconds if order else 0.0
        flows = []
        for new, old in enumerate(order):
            flow = self._flows[old]
            # Times are rounded: what ended as another began may seem to have begun later.
            after = tuple(places[index] for index in flow.after if places[index] < new)
            end = None if flow.end_seconds is None else flow.end_seconds - first
            flows.append(replace(flow, start_seconds=flow.start_seconds - first, end_seconds=end, after=after))
        return flows


def begins(started: Sequence[float], seconds: float) -> list[float]:
    """When the hosts of a run began, since the first of them. What is asked of hosts side by side overlaps: if starts
    are further apart than the work took, their clocks are not the same, and all began at once."""
    spread = max(started, default=0.0) - min(started, default=0.0)
    return [start - min(started) if spread <= max(1.0, seconds) else 0.0 for start in started]
