"""Folders of captures, as `framegauge capture` writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from framegauge.errors import InputError

__all__ = ["captures"]

ENDINGS = (".pcap", ".pcapng", ".cap")
COMPRESSED = (".gz", ".zst", ".xz", ".lzma", ".bz2", ".lz4")


def captures(places: Sequence[Path]) -> list[Path]:
    """The files, and of each folder all captures in it, by name; InputError for a folder without one."""
    files = []
    for place in places:
        if not place.is_dir():
            files.append(place)
            continue
        contents = sorted(file for file in place.iterdir() if _is_capture(file) and file.is_file())
        if not contents:
            endings = ", ".join(ENDINGS)
            raise InputError(f"{place}: found no capture in this folder, expected files with an ending of {endings}")
        files += contents
    return files


def _is_capture(place: Path) -> bool:
    name = place.name.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    return name.endswith(ENDINGS) and not name.startswith(".")
