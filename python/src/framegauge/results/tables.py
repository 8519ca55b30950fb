"""The runs of a study as tables: Parquet and CSV, one row per run; mappings are columns named by their path."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from framegauge.results.journal import Journal
from framegauge.results.runs import Run

__all__ = ["METRICS", "csv", "write_tables"]

# What `framegauge report --csv` has of a run: what it was, and what was measured; not what it was made of.
METRICS = ("number", "block", "arm", "role", "level", "workload", "conditions", "metrics", "excluded", "began")
SEALS = "files"  # of a run, which are no result


def write_tables(journal: Journal) -> None:
    """Writes runs.parquet and runs.csv.

    Numbers, times and lists keep their types; in CSV, which lacks the latter two, times are ISO 8601 and lists are
    joined by "; ".
    """
    columns = _columns(journal.runs)
    typed = {name: _column(name, values) for name, values in columns.items()}
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.table(typed), sink)
    journal.save("runs.parquet", sink.getvalue().to_pybytes())
    journal.save("runs.csv", csv(journal.runs))


def csv(runs: Sequence[Run], parts: Collection[str] = ()) -> bytes:
    """The runs as CSV, a row for each; of `parts`, the names of fields of a run, or of all."""
    sink = pa.BufferOutputStream()
    plain = {name: _plain(map(_joined, values)) for name, values in _columns(runs, parts).items()}
    pyarrow.csv.write_csv(pa.table(plain), sink)
    return bytes(sink.getvalue().to_pybytes())


def _columns(runs: Sequence[Run], parts: Collection[str] = ()) -> dict[str, list[Any]]:
    """The values of all runs by the path of their column, in the order of the fields of a run."""
    order = [field.name for field in fields(Run) if field.name != SEALS and (not parts or field.name in parts)]
    rows = [_flat({name: value for name, value in asdict(run).items() if name in order}) for run in runs]
    names = sorted({name: None for row in rows for name in row}, key=lambda name: order.index(name.split(".")[0]))
    return {name: [row.get(name) for row in rows] for name in names}


def _column(name: str, values: Sequence[Any]) -> pa.Array:
    """A column of one type, which is the same in every folder if the name determines it."""
    if name == "began":
        times = [datetime.fromisoformat(value) if value else None for value in values]
        return pa.array(times, pa.timestamp("ms", "UTC"))
    if any(isinstance(value, list | tuple) for value in values):
        texts = [value if value is None else [str(item) for item in value] for value in values]
        return pa.array(texts, pa.list_(pa.string()))
    column = _plain(values)
    # Metrics are always floats, even if all are whole; a column without values needs a type that all readers support.
    as_float = pa.types.is_null(column.type) or (name.startswith("metrics.") and pa.types.is_integer(column.type))
    return column.cast(pa.float64()) if as_float else column


def _plain(values: Iterable[Any]) -> pa.Array:
    """A column of one type; mixed types (levels: 9000 and h1=9000,h2=1500) become text."""
    items = list(values)
    try:
        return pa.array(items)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in items])


def _joined(value: Any) -> Any:
    return "; ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, Mapping):
            columns |= _flat(item, f"{prefix}{key}.")
        else:
            columns[prefix + key] = item
    return columns
