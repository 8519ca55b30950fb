"""The transfers of a run as recorded flows, which a simulation can replay."""

from __future__ import annotations

from pathlib import Path

from framegauge.errors import InputError
from framegauge.files.recordings import Recorded
from framegauge.results import spools
from framegauge.results.flows import COLUMNS, transfers_of
from framegauge.results.spools import dig

__all__ = ["recorded"]

# What the generator sends besides: a greeting first, and a confirmation of a transfer of a size (crates/traffic).
GREETING_BYTES, CONFIRMATION_BYTES = 48, 8


def recorded(folder: Path, number: int) -> list[Recorded]:
    """The transfers of a run of `stream`, in the order of their starts; each waits for the one before of its flow.

    The generator's greeting and confirmation are in the sizes, because the times include them.
    InputError for a run that is not there or has none.
    """
    if not (folder / "runs" / str(number)).is_dir():
        raise InputError(f"{folder}: found no run {number}, expected one of those in {folder}/runs")
    rows = [
        (start, end, count, (place, flow), each)
        for place, (each, table) in enumerate(transfers_of(folder, number))
        for flow, start, end, count in zip(*(table[name] for name in COLUMNS), strict=True)
        if count
    ]
    if not rows:
        raise InputError(f"{folder}, run {number}: found no transfers, expected those of a run of stream")
    is_sized = dig(spools.record(folder, number), "workload", "transfer_bytes") is not None
    last: dict[tuple[int, int], int] = {}
    found = []
    for start, end, count, flow, each in sorted(rows, key=lambda row: row[:2]):
        confirmed = CONFIRMATION_BYTES if is_sized else 0
        sent, back = (0, count) if each.get("reverse") else (count, confirmed)
        after = (last[flow],) if flow in last else ()
        found.append(
            Recorded(str(each.get("client")), str(each.get("server")), start, GREETING_BYTES + sent, back, end, after)
        )
        last[flow] = len(found) - 1
    return found
