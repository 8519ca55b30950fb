"""The bulk records in a run's folder: tables that may be missing, torn, or of an older format.

Records of the network (drops, events, queues) are in Parquet files, all others in Arrow files. Older folders have only
Arrow files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from framegauge import foreign
from framegauge.errors import CorruptResults
from framegauge.files import tables
from framegauge.results import seals, shapes
from framegauge.results.runs import Run

__all__ = ["RECORD", "columns", "dig", "record", "table"]

RECORD = "record.json"
MOST_BYTES = 4 << 30  # of a table in memory
MOST_SECONDS = 1e10  # of what counts from 1970, too
MOST_FLOWS = 1 << 22


def table(
    path: Path,
    wanted: Collection[str] | None = None,
    coded: Collection[str] = (),
    files: Mapping[str, str] = seals.NONE,
) -> pa.Table | None:
    """A whole table; None if it cannot be read, or has times and flows that cannot be. If there is no Parquet file, the
    Arrow file of that name is read. CorruptResults if it is not the one of which `files`, of its run, has the digest.

    Of a Parquet file, only the `wanted` columns that it has are read, and those of text in `coded` as dictionaries,
    which takes a third of the time.
    """
    try:
        # Read here: Arrow itself takes no path that is not UTF-8.
        is_parquet = path.suffix == ".parquet" and path.exists()
        file_path = path if is_parquet else path.with_suffix(".arrow")
        data = foreign.read(file_path, MOST_BYTES)
        if not seals.check_file(file_path, data, files):
            return None
        result = _parquet(data, wanted, coded) if is_parquet else tables.table(data, MOST_BYTES)
        result.validate(full=True)
    except (pa.ArrowException, OSError, ValueError):
        return None
    return result if all(map(_is_possible, result.column_names, result.columns)) else None


def _parquet(data: bytes, names: Collection[str] | None, coded: Collection[str]) -> pa.Table:
    file = pa.BufferReader(data)
    metadata = pyarrow.parquet.read_metadata(file)
    column_names = set(metadata.schema.to_arrow_schema().names)
    parquet = pyarrow.parquet.ParquetFile(file, metadata=metadata, read_dictionary=sorted(column_names & {*coded}))
    return parquet.read(None if names is None else sorted(column_names & {*names}))


def _is_possible(name: str, values: pa.ChunkedArray) -> bool:
    """Whether a column of times, or of numbers of flows, has only such as can be: what is drawn is as long as them."""
    limits = (-MOST_SECONDS, MOST_SECONDS) if name.endswith("_seconds") else None
    limits = (0, MOST_FLOWS) if name in ("flow", "round") else limits
    if limits is None or not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        return limits is None
    ends = pc.min_max(values).as_py()
    if ends["min"] is None:
        return True
    has_nan = pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py()
    return not has_nan and bool(limits[0] <= ends["min"] <= ends["max"] <= limits[1])


def columns(
    path: Path, names: Collection[str], others: Collection[str] = (), files: Mapping[str, str] = seals.NONE
) -> dict[str, list[Any]] | None:
    """The named columns of a table, and those of `others` that it has; None if it lacks one of `names`."""
    content = table(path, files=files)
    if content is None or not set(names) <= set(content.column_names):
        return None
    return {name: content[name].to_pylist() for name in (*names, *others) if name in content.column_names}


def record(folder: Path, run: Run) -> Mapping[str, Any]:
    """A run's record.json; empty if there is none, CorruptResults if it is no record, or not that of the run."""
    path = folder / "runs" / str(run.number) / RECORD
    try:
        data = foreign.read(path)
    except OSError:
        return {}
    except foreign.TooLarge as error:
        raise CorruptResults(f"{path}: {error}") from None
    content = shapes.checked(shapes.load(data, str(path), "the record of a run"), shapes.Record, str(path))
    seals.check_file(path, data, run.files)
    return content


def dig(value: Any, *path: str) -> Any:
    """The value at a path of keys; None if there is none."""
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value
