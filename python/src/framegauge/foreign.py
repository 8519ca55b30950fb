"""JSON that others wrote, read in bounded memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["MOST_BYTES", "MOST_VALUES", "TooLarge", "load_json", "read"]

MOST_BYTES = 64 << 20
# A file of 260 kB unpacks to tens of millions of empty lists, which take gigabytes once they are objects.
MOST_VALUES = 2_000_000


class TooLarge(ValueError):
    """A document beyond a limit: what was found, and what was expected."""


def read(path: Path, most: int = MOST_BYTES) -> bytes:
    """A whole file; TooLarge, before more than `most` bytes are read, OSError if it cannot be read."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise TooLarge(f"found more than {most} bytes, expected at most that many")
    return data


def load_json(data: bytes) -> Any:
    """The value in `data`. TooLarge for more than MOST_BYTES or MOST_VALUES; ValueError (JSONDecodeError, unless its
    encoding, a number or its nesting is the reason) if it is no JSON."""
    if len(data) > MOST_BYTES:
        raise TooLarge(f"found {len(data)} bytes, expected at most {MOST_BYTES}")
    # Those inside texts count as well: that is cheap, and no real file is near the limit.
    if sum(map(data.count, (b"[", b"{", b","))) > MOST_VALUES:
        raise TooLarge(f"found more than {MOST_VALUES} values, expected at most that many")
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("found endless nesting") from None
