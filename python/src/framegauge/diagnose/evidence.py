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
    file_comments: list[dict[int, list[str]]] = [{} for _ in files]
    source_of = sources(document)
    for finding in document["findings"]:
        source = source_of.get(finding["capture"])
        if source is None:
            continue
        connection = "" if finding["connection"] is None else f", connection {finding['connection']}"
        lost = f", {print_seconds(finding['lost_seconds'], 3)}" if finding["lost_seconds"] else ""
        lost += " lost" if lost and finding["kind"] not in WORTH_NOTHING else ""
        line = f"{finding['kind']}{connection}{lost}: {finding['text']}"
        for number in finding["packets"]:
            file_comments[source.file].setdefault(number, []).append(line)
    return [
        {
            number: f"packet {number} of the capture\n" + "\n".join(lines)
            for number, lines in sorted(packet_lines.items())
        }
        for packet_lines in file_comments
    ]


def write(document: Mapping[str, Any], files: Sequence[Path], output: IO[bytes]) -> int:
    """Copies the packets to a file that is open, as pcapng, and tells how many. InputError for a capture that cannot be
    read a second time."""
    packet_comments = comments(document, files)
    asked(["--evidence"], files, json.dumps(packet_comments).encode(), output)
    return sum(map(len, packet_comments))
