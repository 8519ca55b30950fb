"""Where the connections and packets of a document come from: the file, and the place of the tap in it."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framegauge.diagnose.run import worth_anywhere

__all__ = ["MOST_PICTURES", "Source", "chosen", "is_read_once", "sources"]

MOST_PICTURES = 6  # connections that are drawn
Json = Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """A capture of a document: a tap of a file."""

    file: int  # its place among the files that were named
    tap: int  # its place in the file
    before: int  # connections of earlier captures


def sources(document: Json) -> dict[int, Source]:
    """By the number of the capture. The captures of a file follow each other, and each names another interface."""
    by_capture: dict[int, Source] = {}
    counts: dict[int, int] = {}
    for entry in document["connections"]:
        counts[entry["capture"]] = counts.get(entry["capture"], 0) + 1
    file, tap, before = -1, 0, 0
    name, interfaces = None, set[str | None]()
    for entry in document["captures"]:
        interface = entry["interface"]
        if entry["file"] != name or None in (interface, *interfaces) or interface in interfaces:
            file, tap, interfaces = file + 1, -1, set()
        tap += 1
        name = entry["file"]
        interfaces.add(interface)
        by_capture[entry["capture"]] = Source(file, tap, before)
        before += counts.get(entry["capture"], 0)
    return by_capture


def chosen(document: Json, most: int = MOST_PICTURES) -> list[int]:
    """The connections that are worth a picture: those that lost most time by what is worth fixing, or else that which
    carried most. One that carried nothing and lost no time shows nothing."""
    carried = {entry["connection"] for entry in document["connections"] if any(entry["bytes"])}
    lost: dict[int, tuple[float, int]] = {}
    for entry in worth_anywhere(document):
        number = entry["connection"]
        if number is not None and (entry["lost_seconds"] or number in carried):
            seconds, count = lost.get(number, (0.0, 0))
            lost[number] = (seconds + entry["lost_seconds"], count + entry["count"])
    ranked = sorted(lost, key=lambda number: (lost[number], -number), reverse=True)
    if not ranked and carried:
        busiest = max(document["connections"], key=lambda entry: sum(entry["bytes"]))
        ranked = [busiest["connection"]]
    return ranked[:most]


def is_read_once(path: Path) -> bool:
    """Whether a second pass is impossible: standard input, a pipe, a device."""
    if str(path) == "-":
        return True
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False  # reading it says what is wrong
