"""The bulk records of a run, as its folder has them: tables that may be missing, torn, or of an older shape.

What the network did (drops, events, queues) is in Parquet files, all else in Arrow files. Older folders have Arrow
files alone.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

__all__ = ["columns", "dig", "record", "table"]


def table(path: Path) -> pa.Table | None:
    """A whole table; None where there is none that can be read. Where there is no Parquet file, the Arrow file of that
    name."""
    try:
        if path.suffix == ".parquet" and path.exists():
            return pyarrow.parquet.read_table(path)
        return pyarrow.ipc.open_file(path.with_suffix(".arrow")).read_all()
    except (pa.ArrowException, OSError):
        return None


def columns(path: Path, names: Collection[str], others: Collection[str] = ()) -> dict[str, list[Any]] | None:
    """The named columns of a table, and those of `others` that it has; None where it lacks one of `names`."""
    found = table(path)
    if found is None or not set(names) <= set(found.column_names):
        return None
    return {name: found[name].to_pylist() for name in (*names, *others) if name in found.column_names}


def record(folder: Path, number: int) -> Mapping[str, Any]:
    """What a run's record.json says; nothing where it cannot be read."""
    try:
        found = json.loads((folder / "runs" / str(number) / "record.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, Mapping) else {}


def dig(found: Any, *path: str) -> Any:
    """What is at the path; None where there is no such thing."""
    for name in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return found
