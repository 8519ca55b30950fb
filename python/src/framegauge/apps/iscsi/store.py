"""The store of the disk: a file in memory, all of it written, whose pages begin with their numbers."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from framegauge.apps.iscsi import PAGE_BYTES

__all__ = ["available_bytes", "make", "number_at"]

PIECE_PAGES = 4096
SPARE_BYTES = 256 << 20  # of memory, for the programs that then work with it
NUMBER_BYTES = 8


def number_at(data: bytes | memoryview) -> int:
    """The number of the page that begins with these bytes."""
    return int.from_bytes(data[:NUMBER_BYTES], "little")


def _pages(first: int, count: int) -> bytes:
    filler = bytes(PAGE_BYTES - NUMBER_BYTES)
    return b"".join(number.to_bytes(NUMBER_BYTES, "little") + filler for number in range(first, first + count))


def _memory() -> Iterator[tuple[str, int]]:
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, figures = line.partition(":")
        yield name, int(figures.split()[0]) * 1024


def available_bytes(folder: Path) -> int:
    """What a file there can take: the space of its file system, and of memory what may be used without swapping."""
    space = os.statvfs(folder)
    return min(space.f_bavail * space.f_frsize, dict(_memory())["MemAvailable"] - SPARE_BYTES)


def make(path: Path, size_bytes: int) -> None:
    """Writes the store; OSError, with what was found and expected, if there is no room for it."""
    if (room := available_bytes(path.parent)) < size_bytes:
        raise OSError(f"size: found room for {max(0, room)} bytes in memory, expected {size_bytes} bytes")
    with path.open("wb") as file:
        for first in range(0, size_bytes // PAGE_BYTES, PIECE_PAGES):
            file.write(_pages(first, min(PIECE_PAGES, size_bytes // PAGE_BYTES - first)))


def main() -> None:
    """Makes the store."""
    parser = argparse.ArgumentParser(description="Writes the store of a disk.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--size-bytes", type=int, required=True)
    options = parser.parse_args()
    try:
        make(options.path, options.size_bytes)
    except OSError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
