"""The transfers of a run of `stream`, as its record and its tables have them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from framegauge.results import spools
from framegauge.results.runs import Run
from framegauge.results.spools import dig

__all__ = ["COLUMNS", "transfers_of"]

COLUMNS = ("flow", "start_seconds", "end_seconds", "bytes")


def transfers_of(folder: Path, run: Run) -> list[tuple[Mapping[str, Any], Mapping[str, list[Any]]]]:
    """Each `stream.run` of a run on hosts, as it is recorded, with its transfers by column."""
    results: list[tuple[Mapping[str, Any], Mapping[str, list[Any]]]] = []
    for stream in dig(spools.record(folder, run), "workload", "runs") or ():
        name = stream.get("transfers") if isinstance(stream, Mapping) else None
        if isinstance(name, str) and name.replace("-", "").replace(".", "").isalnum():
            table = spools.columns(folder / "runs" / str(run.number) / f"{name}.arrow", COLUMNS, files=run.files)
            if table is not None:
                results.append((stream, table))
    return results
