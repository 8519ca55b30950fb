"""Reads an agent's spools: bulk records, piece by piece."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from framegauge.agents.pipe import Requests
from framegauge.errors import BadAnswer

__all__ = ["MOST_BYTES", "PIECE_BYTES", "pieces", "read_spool"]

PIECE_BYTES = 1 << 20  # the most that one spool.read may request
# The largest honest one has 20 million transactions of about 40 bytes; a capture ends at 256 MiB.
MOST_BYTES = 1 << 30


def read_spool(source: Requests, spool: int) -> bytes:
    """The whole content of a spool, which is dropped afterwards; BadAnswer as in `pieces`."""
    return b"".join(data for data, _ in pieces(source, spool))


def pieces(source: Requests, spool: int) -> Iterator[tuple[bytes, int]]:
    """The content of a spool, piece by piece, each with the size of all; the spool is dropped after the last. BadAnswer
    if it is larger than MOST_BYTES, if its size changes, or if a piece is not as long as what was asked for."""
    read, size = 0, None
    while size is None or read < size:
        params = {"spool": spool, "offset_bytes": read, "length_bytes": PIECE_BYTES}
        piece = source.request("spool.read", params)
        size = piece["size_bytes"] if size is None else size
        if size > MOST_BYTES:
            raise BadAnswer(f"spool {spool}: found a size of {size} bytes, expected at most {MOST_BYTES}")
        if piece["size_bytes"] != size:
            raise BadAnswer(
                f"spool {spool}: found a size of {piece['size_bytes']} bytes after {size}, expected no change"
            )
        data, expected = base64.b64decode(piece["data"]), min(PIECE_BYTES, size - read)
        if len(data) != expected:
            raise BadAnswer(
                f"spool {spool}: found {len(data)} bytes at {read} of {size}, expected a piece of {expected}"
            )
        read += len(data)
        yield data, size
    source.request("spool.drop", {"spool": spool})
