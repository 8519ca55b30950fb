"""Multipath TCP as levels of a factor: off, or the number of a connection's subflows."""

from __future__ import annotations

import re

from framegauge.errors import QuantityError

__all__ = ["EXPECTED", "MOST", "OFF", "level", "subflows"]

OFF = "off"
MOST = 8  # that `stream.run` accepts
EXPECTED = f"off, or the number of subflows of each connection, 1 to {MOST}, such as 2"
_TEXT = re.compile(r"([1-9][0-9]?) subflows?")


def level(value: object) -> str:
    """The level as words: "off", "1 subflow", "2 subflows"; QuantityError if it is neither."""
    if value is False or value == OFF:
        return OFF
    match = _TEXT.fullmatch(value) if isinstance(value, str) else None
    count = int(match[1]) if match else value
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST:
        raise QuantityError(value, EXPECTED)
    return f"{count} subflow{'s' if count > 1 else ''}"


def subflows(level: str | None) -> int | None:
    """The subflows of a connection; None: it is plain TCP."""
    return None if level in (None, OFF) else int(level.split()[0])
