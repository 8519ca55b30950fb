"""The transfers of `stream`, and those of `mixed` that are its bulk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from framegauge.errors import InputError
from framegauge.files.recordings import Recorded
from framegauge.report.recorded.rows import Chains, Columns, Found, begins
from framegauge.report.recorded.shapes import Streams

__all__ = ["COLUMNS", "Sent", "add", "streams"]

COLUMNS = ("flow", "start_seconds", "end_seconds", "bytes")
# What the generator sends besides: a greeting first, and a confirmation of a transfer of a size (crates/traffic).
GREETING_BYTES, CONFIRMATION_BYTES = 48, 8


@dataclass(frozen=True)
class Sent:
    """The transfers of one `stream.run` by column, whose times count from `begun_seconds`."""

    client: str
    server: str
    begun_seconds: float
    columns: Columns
    reverse: bool = False
    is_sized: bool = False


def streams(found: Found) -> list[Recorded]:
    """Each transfer waits for the one before of its flow."""
    work = found.told(Streams)
    if not work.runs and found.has("completions.parquet"):
        return _of_many(found)
    runs = [(stream, found.columns(f"{stream.transfers}.arrow", COLUMNS)) for stream in work.runs if stream.transfers]
    longest = max((float(columns["end_seconds"].max(initial=0.0)) for _, columns in runs), default=0.0)
    started = begins([stream.result.started_seconds for stream, _ in runs], longest)
    is_sized = work.transfer_bytes is not None
    chains = Chains()
    add(
        chains,
        [
            Sent(stream.client, stream.server, begun, columns, stream.reverse, is_sized)
            for (stream, columns), begun in zip(runs, started, strict=True)
        ],
    )
    return chains.in_order()


def _of_many(entry: Found) -> list[Recorded]:
    """Those of a simulation too large for a table of each client: greetings and confirmations are counted."""
    if entry.run.conditions.get("bidir"):
        raise InputError(
            f"{entry.name}: found more than 64 tables of both directions, expected one direction, or fewer"
        )
    columns, chains = entry.columns("completions.parquet", (*COLUMNS, "round")), Chains()
    reverse, is_sized = bool(entry.run.conditions.get("reverse")), "size_bytes" in entry.run.conditions
    overhead = GREETING_BYTES if reverse else CONFIRMATION_BYTES if is_sized else 0
    for place, (client, server) in enumerate(entry.ends(columns["flow"])):
        flow, start, end, count = (columns[name][place].item() for name in COLUMNS)
        if count > overhead:
            sent, back = (overhead, count - overhead) if reverse else (count - overhead, overhead)
            chains.add(Recorded(client, server, start, sent, back, end), flow)
    return chains.in_order()


def add(chains: Chains, parts: Sequence[Sent]) -> None:
    """Their transfers that carried anything."""
    for place, part in enumerate(parts):
        rows = sorted(zip(*(part.columns[name].tolist() for name in COLUMNS), strict=True), key=lambda row: row[1:3])
        confirmed = CONFIRMATION_BYTES if part.is_sized else 0
        for flow, start, end, count in rows:
            sent, back = (0, count) if part.reverse else (count, confirmed)
            if count:
                chains.add(
                    Recorded(
                        part.client, part.server, part.begun_seconds + start, GREETING_BYTES + int(sent), int(back),
                        part.begun_seconds + end,
                    ),
                    ("transfers", place, flow),
                )  # fmt: skip
