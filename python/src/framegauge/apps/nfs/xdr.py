"""XDR, the external data representation (RFC 4506): big-endian units of four bytes."""

from __future__ import annotations

import struct

__all__ = ["BadMessage", "Reader", "opaque", "uint", "ulong"]

UNIT = 4


class BadMessage(Exception):
    """A message that is not as its specification says, in one line."""


def uint(*values: int) -> bytes:
    """Unsigned integers of 32 bits (RFC 4506 section 4.2)."""
    return struct.pack(f">{len(values)}I", *values)


def ulong(value: int) -> bytes:
    """An unsigned integer of 64 bits (RFC 4506 section 4.5)."""
    return struct.pack(">Q", value)


def opaque(data: bytes) -> bytes:
    """Bytes of any length: their number, themselves, and zeros up to a whole unit (RFC 4506 section 4.10)."""
    return uint(len(data)) + data + bytes(-len(data) % UNIT)


class Reader:
    """Takes values from a message, in order; BadMessage if it ends before that."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._place = data, 0

    def _take(self, length: int) -> memoryview:
        begin, end = self._place, self._place + length
        if end > len(self._data):
            raise BadMessage(f"found a message of {len(self._data)} bytes, expected {end} or more")
        self._place = end
        return self._data[begin:end]

    def uint(self) -> int:
        """The next unsigned integer of 32 bits."""
        return int.from_bytes(self._take(UNIT), "big")

    def uints(self, count: int) -> tuple[int, ...]:
        """The next unsigned integers of 32 bits."""
        return struct.unpack(f">{count}I", self._take(UNIT * count))

    def skip(self, length: int) -> None:
        """Leaves out bytes of a fixed length, which is a multiple of four."""
        self._take(length)

    def fixed(self, length: int) -> bytes:
        """Bytes of a fixed length, which is a multiple of four."""
        return bytes(self._take(length))

    def opaque(self) -> memoryview:
        """The next bytes of variable length, in place."""
        length = self.uint()
        data = self._take(length)
        self._take(-length % UNIT)
        return data
