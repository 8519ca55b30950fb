"""The time-sequence pictures of connections: a second pass over the captures, for those that are worth it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from framegauge.diagnose.process import asked
from framegauge.diagnose.sources import is_read_once, sources

__all__ = ["draw"]

Json = dict[str, Any]


def draw(
    files: Sequence[Path], document: Mapping[str, Any], connections: Iterable[int], thresholds: Mapping[str, float]
) -> dict[int, Json]:
    """Pictures by the number of the connection, in this order, as crates/diagnosis/src/picture.rs tells them.

    Columns are differences: each value less the one before. Files that can be read once only have none.
    """
    capture_of = {connection["connection"]: connection["capture"] for connection in document["connections"]}
    source_of = sources(document)
    by_file: dict[int, list[tuple[int, int]]] = {}
    places: dict[int, tuple[int, int, int]] = {}
    for number in connections:
        source = source_of[capture_of[number]]
        if not is_read_once(files[source.file]):
            local = number - source.before
            by_file.setdefault(source.file, []).append((source.tap, local))
            places[number] = (source.file, source.tap, local)
    if not by_file:
        return {}
    with ThreadPoolExecutor(len(by_file)) as pool:
        answers = pool.map(lambda item: _one(files[item[0]], item[1], thresholds), by_file.items())
        drawn = {
            (file, tap, picture["connection"]): picture
            for file, answer in zip(by_file, answers, strict=True)
            for tap, pictures in enumerate(answer.get("taps", ()))
            for picture in pictures
        }
    return {number: drawn[place] for number, place in places.items() if place in drawn}


def _one(file: Path, connections: list[tuple[int, int]], thresholds: Mapping[str, float]) -> Json:
    words = ["--thresholds", json.dumps(dict(thresholds)), "--draw", json.dumps(connections)]
    answer: Json = json.loads(asked(words, [file]))
    return answer
