"""The packets that prove the findings, with comments that Wireshark shows: a second pass over the captures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from framegauge.diagnose.kinds import WORTH_NOTHING
from framegauge.diagnose.process import asked
from framegauge.diagnose.sources import sources
from framegauge.quantities import print_seconds

__all__ = ["comments", "write"]


def comments(document: Mapping[str, Any], files: Sequence[Path]) -> list[dict[int, str]]:
    """For each file what there is to say of its packets, by their numbers: a line for each finding that they prove."""
    found: list[dict[int, list[str]]] = [{} for _ in files]
    of = sources(document)
    for each in document["findings"]:
        source = of.get(each["capture"])
        if source is None:
            continue
        connection = "" if each["connection"] is None else f", connection {each['connection']}"
        lost = f", {print_seconds(each['lost_seconds'], 3)}" if each["lost_seconds"] else ""
        lost += " lost" if lost and each["kind"] not in WORTH_NOTHING else ""
        line = f"{each['kind']}{connection}{lost}: {each['text']}"
        for number in each["packets"]:
            found[source.file].setdefault(number, []).append(line)
    return [
        {number: f"packet {number} of the capture\n" + "\n".join(lines) for number, lines in sorted(mine.items())}
        for mine in found
    ]


def write(document: Mapping[str, Any], files: Sequence[Path], output: IO[bytes]) -> int:
    """Copies the packets to a file that is open, as pcapng, and tells how many. InputError for a capture that cannot be
    read a second time."""
    said = comments(document, files)
    asked(["--evidence"], files, json.dumps(said).encode(), output)
    return sum(map(len, said))
