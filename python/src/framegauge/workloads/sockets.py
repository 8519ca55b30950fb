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
    said: dict[str, list[Json]] = {}
    for host, answer in answers:
        said.setdefault(host, []).append(answer)
    taken = {"send_buffer_bytes": min, "receive_buffer_bytes": min, "largest_call_bytes": max}
    return {
        host: {
            name: take((each[name] for each in known if each[name] is not None), default=None)
            for name, take in taken.items()
        }
        for host, known in said.items()
    }


def paced(answers: Answers) -> dict[str, list[int | None]]:
    """The limits of sending sockets in bits per second, from the answers of their ends; None: not paced."""
    found: dict[str, dict[int | None, None]] = {}
    for host, answer in answers:
        found.setdefault(host, {}).update(dict.fromkeys(answer.get("max_pacing_bits_per_second", ())))
    return {host: list(limits) for host, limits in found.items()}


def subflows(answers: Answers) -> dict[str, list[int]]:
    """How many subflows the connections had, from the answers of their sending ends; none of TCP."""
    found: dict[str, set[int]] = {}
    for host, answer in answers:
        found.setdefault(host, set()).update(answer.get("subflows", ()))
    return {host: sorted(counts) for host, counts in found.items()}


def ahead_of(bits_per_second: int | None, table: pa.Table) -> list[int]:
    """What each transfer of one client delivered beyond a rate since it was connected; nothing without a rate."""
    if bits_per_second is None:
        return []
    names = ("connected_seconds", "counted_seconds", "counted_bytes")
    rows = zip(*(table.column(name).to_pylist() for name in names), strict=True)
    return [math.ceil(size - bits_per_second / 8 * (end - begin)) for begin, end, size in rows]
