"""The files that clients read and write: made on the server, each page with its offset, which readers look for."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

__all__ = ["PAGE_BYTES", "STAMP_BYTES", "make", "page_wrong", "pages", "stamp"]

PAGE_BYTES = 4096
STAMP_BYTES = 8
PIECE_PAGES = 256


def stamp(offset: int) -> bytes:
    """The first bytes of the page at that offset."""
    return offset.to_bytes(STAMP_BYTES, "big")


def pages(offset: int, length: int, filler: bytes) -> bytes:
    """The bytes from an offset on; offset and length are multiples of a page."""
    return b"".join(stamp(page_offset) + filler for page_offset in range(offset, offset + length, PAGE_BYTES))


def page_wrong(data: memoryview, offset: int) -> str | None:
    """What is wrong with bytes read from an offset, by their first and their last page; None if nothing is."""
    last_page = (len(data) - 1) // PAGE_BYTES * PAGE_BYTES
    for start in {0, last_page}:
        page_stamp = bytes(data[start : start + STAMP_BYTES])
        if page_stamp != stamp(offset + start):
            return f"found {page_stamp.hex()} in the page at {offset + start}, expected {stamp(offset + start).hex()}"
    return None


def filler() -> bytes:
    """What a page has behind its stamp: bytes without a pattern, so that nothing on the way could compress them."""
    return os.urandom(PAGE_BYTES - STAMP_BYTES)


def make(path: Path, size_bytes: int) -> None:
    """Writes a file of whole pages."""
    page_filler = filler()
    piece_bytes = PIECE_PAGES * PAGE_BYTES
    with path.open("wb") as file:
        for offset in range(0, size_bytes, piece_bytes):
            file.write(pages(offset, min(piece_bytes, size_bytes - offset), page_filler))


def main() -> None:
    """Makes files of one size."""
    parser = argparse.ArgumentParser(description="Writes the files that NFS clients use.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--size-bytes", type=int, required=True)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    needed, filesystem = options.size_bytes * len(options.names), os.statvfs(options.folder)
    if (free := filesystem.f_bavail * filesystem.f_frsize) < needed:
        sys.exit(f"nfs: found {free} bytes of room for files, expected {needed}: a smaller `size`, or fewer clients")
    for name in options.names:
        make(options.folder / name, options.size_bytes)


if __name__ == "__main__":
    main()
