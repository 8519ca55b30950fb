"""What agents have read from the sockets of a run, by host, and whether flows kept to their rates."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pyarrow as pa

from framegauge.testbeds.base import Json

__all__ = ["ahead_of", "paced", "sizes", "subflows"]

Answers = Iterable[tuple[str, Json]]  # of `stream.run` and `stream.close`, each with its host


def sizes(answers: Answers) -> Json:
    """The smallest buffers, and the largest call."""
    by_host: dict[str, list[Json]] = {}
    for host, answer in answers:
        by_host.setdefault(host, []).append(answer)
    aggregates = {"send_buffer_bytes": min, "receive_buffer_bytes": min, "largest_call_bytes": max}
    return {
        host: {
            name: take((reading[name] for reading in readings if reading[name] is not None), default=None)
            for name, take in aggregates.items()
        }
        for host, readings in by_host.items()
    }


def paced(answers: Answers) -> dict[str, list[int | None]]:
    """The limits of sending sockets in bits per second, from the answers of their ends; None: not paced."""
    by_host: dict[str, dict[int | None, None]] = {}
    for host, answer in answers:
        by_host.setdefault(host, {}).update(dict.fromkeys(answer.get("max_pacing_bits_per_second", ())))
    return {host: list(limits) for host, limits in by_host.items()}


def subflows(answers: Answers) -> dict[str, list[int]]:
    """How many subflows the connections had, from the answers of their sending ends; none of TCP."""
    by_host: dict[str, set[int]] = {}
    for host, answer in answers:
        by_host.setdefault(host, set()).update(answer.get("subflows", ()))
    return {host: sorted(counts) for host, counts in by_host.items()}


def ahead_of(bits_per_second: int | None, table: pa.Table) -> list[int]:
    """What each transfer of one client delivered beyond a rate since it was connected; nothing without a rate."""
    if bits_per_second is None:
        return []
    names = ("connected_seconds", "counted_seconds", "counted_bytes")
    rows = zip(*(table.column(name).to_pylist() for name in names), strict=True)
    return [math.ceil(size - bits_per_second / 8 * (end - begin)) for begin, end, size in rows]
