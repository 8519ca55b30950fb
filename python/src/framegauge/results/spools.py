"""The bulk records in a run's folder: tables that may be missing, torn, or of an older format.

Records of the network (drops, events, queues) are in Parquet files, all others in Arrow files. Older folders have only
Arrow files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from framegauge import foreign
from framegauge.errors import CorruptResults
from framegauge.results import shapes

__all__ = ["columns", "dig", "record", "table"]


def table(path: Path, wanted: Collection[str] | None = None, coded: Collection[str] = ()) -> pa.Table | None:
    """A whole table; None if it cannot be read. If there is no Parquet file, the Arrow file of that name is read.

    Of a Parquet file, only the `wanted` columns that it has are read, and those of text in `coded` as dictionaries,
    which takes a third of the time.
    """
    try:
        # Opened here: Arrow itself takes no path that is not UTF-8.
        if path.suffix == ".parquet" and path.exists():
            with path.open("rb") as file:
                about = pyarrow.parquet.read_metadata(file)
                there = set(about.schema.to_arrow_schema().names)
                parquet = pyarrow.parquet.ParquetFile(file, metadata=about, read_dictionary=sorted(there & {*coded}))
                found = parquet.read(None if wanted is None else sorted(there & {*wanted}))
        else:
            with path.with_suffix(".arrow").open("rb") as file:
                found = pyarrow.ipc.open_file(file).read_all()
        found.validate(full=True)
        return found
    except (pa.ArrowException, OSError):
        return None


def columns(path: Path, names: Collection[str], others: Collection[str] = ()) -> dict[str, list[Any]] | None:
    """The named columns of a table, and those of `others` that it has; None if it lacks one of `names`."""
    found = table(path)
    if found is None or not set(names) <= set(found.column_names):
        return None
    return {name: found[name].to_pylist() for name in (*names, *others) if name in found.column_names}


def record(folder: Path, number: int) -> Mapping[str, Any]:
    """A run's record.json; empty if there is none, CorruptResults if it is no record."""
    path = folder / "runs" / str(number) / "record.json"
    try:
        data = foreign.read(path)
    except OSError:
        return {}
    except foreign.TooLarge as error:
        raise CorruptResults(f"{path}: {error}") from None
    return shapes.checked(shapes.load(data, str(path), "the record of a run"), shapes.Record, str(path))


def dig(found: Any, *path: str) -> Any:
    """The value at a path of keys; None if there is none."""
    for name in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return found
