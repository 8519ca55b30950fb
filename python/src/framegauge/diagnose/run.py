"""Diagnoses capture files with the agent's binary: one process for each file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from framegauge.diagnose import joined, rows
from framegauge.diagnose.engines import Engine, local
from framegauge.diagnose.kinds import KINDS, NOTES, QUALITY, WORTH_NOTHING
from framegauge.diagnose.process import asked
from framegauge.errors import InputError
from framegauge.printable import complaint, one_line

__all__ = [
    "SCHEMA", "diagnose", "each_worth_fixing", "is_judgeable", "notes", "schema", "separate", "worth_anywhere",
    "worth_fixing",
]  # fmt: skip

SCHEMA = 1
Json = dict[str, Any]


def diagnose(
    files: Sequence[Path],
    only: Sequence[str] = (),
    thresholds: Mapping[str, float] | None = None,
    done: Callable[[Path], None] = lambda _: None,
    hosts: Mapping[str, Path] | None = None,
    engine: Engine = local,
) -> Json:
    """The document of `framegauge diagnose --json`: captures, connections and findings, those first that cost most.

    `only` names the kinds of findings that are kept; `hosts` says where files were captured, maybe some of `files`.
    InputError with a line for each file that cannot be read at all.
    """
    hosts = hosts or {}
    files = joined.unique_files(files, hosts)
    document = separate(files, only, thresholds, done, engine)
    sources = joined.labelled(files, hosts)
    document["joined"] = joined.join(document, sources, hosts, _together)
    if document["joined"] is not None:
        document["findings"] = list(document["findings"])
        joined.annotate(document)
    return document


def separate(
    files: Sequence[Path],
    only: Sequence[str] = (),
    thresholds: Mapping[str, float] | None = None,
    done: Callable[[Path], None] = lambda _: None,
    engine: Engine = local,
) -> Json:
    """The same without what captures say together, which takes a second reading."""
    if empty := [str(path) for path in files if path.is_file() and not path.stat().st_size]:
        raise InputError("\n".join(f"{one_line(path, 300)}: found an empty file, expected a capture" for path in empty))
    words = ["--thresholds", json.dumps(dict(thresholds or {})), "--rows"]
    answers = [rows.read(answer) for answer in engine(words, files, done)]
    problems = [complaint(capture["error"], "", 300) for capture, _ in answers if "error" in capture]
    if problems:
        raise InputError("\n".join(problems))
    return _numbered(answers, only)


def _together(sources: str) -> Any:
    return json.loads(asked(["--join", sources], []))


def _numbered(answers: Sequence[tuple[Json, list[rows.Tap]]], only: Sequence[str]) -> Json:
    """One document of all files and the taps in them; connections are numbered through."""
    captures: list[Json] = []
    taps: list[rows.Tap] = []
    for capture, capture_taps in answers:
        for tap in capture_taps or [rows.nothing()]:
            captures.append({"capture": len(captures) + 1, **capture, **tap.words})
            taps.append(tap)
    return {
        "schema": SCHEMA,
        "captures": captures,
        "connections": rows.Rows(rows.CONNECTION, taps).kept(),
        "findings": rows.Rows(rows.FINDING, taps, _ranked(taps, only)).kept(),
    }


def _ranked(taps: Sequence[rows.Tap], only: Sequence[str]) -> Sequence[tuple[int, int]] | None:
    """The places of the findings that are wanted, the most time lost first; None if all are, in their order."""
    if len(taps) == 1 and not only:
        return None
    ranking: list[tuple[float, int, int]] = []
    for number, tap in enumerate(taps):
        for place in range(tap.count(rows.FINDING)):
            row = tap.row(rows.FINDING, place)
            if not only or row["kind"] in only:
                ranking.append((-row["lost_seconds"], number, place))
    return [(number, place) for _, number, place in sorted(ranking)]


def worth_anywhere(document: Mapping[str, Any]) -> Iterator[Json]:
    """The same findings, wherever they were seen."""
    return (finding for finding in document["findings"] if finding["kind"] not in (*QUALITY, *WORTH_NOTHING, *NOTES))


def notes(document: Mapping[str, Any]) -> list[Json]:
    """One finding of each kind that is worth knowing, and no fault."""
    return list(
        {finding["kind"]: finding for finding in reversed(document["findings"]) if finding["kind"] in NOTES}.values()
    )


def is_judgeable(document: Mapping[str, Any]) -> bool:
    """Whether there is anything that could be judged: what is only known of the capture itself is not, and of a
    connection one packet tells nothing."""
    has_more = any(entry["end_seconds"] > entry["begin_seconds"] for entry in document["connections"])
    return has_more or any(entry["kind"] not in QUALITY for entry in document["findings"])


def connections_in_words(document: Mapping[str, Any]) -> str:
    """How many TCP connections there are. What several places saw of one counts once."""
    joined = document["joined"]["connections"] if document.get("joined") else []
    repeats = sum(len({place["connection"] for place in connection["seen"]}) - 1 for connection in joined)
    count = len(document["connections"]) - repeats
    return f"{count} TCP connection{'' if count == 1 else 's'}"


def worth_fixing(document: Mapping[str, Any]) -> list[Json]:
    """The findings that somebody may want to mend, the most time lost first.

    What several places saw of one connection counts once: where it took the most time.
    """
    return list(each_worth_fixing(document))


def each_worth_fixing(document: Mapping[str, Any]) -> Iterator[Json]:
    """The same, one after the other."""
    joined = document.get("joined") or {"connections": ()}
    joined_place = {
        seen["connection"]: place for place, entry in enumerate(joined["connections"]) for seen in entry["seen"]
    }
    reported = set()
    for entry in worth_anywhere(document):
        seen = (entry["kind"], joined_place.get(entry["connection"]))
        if seen[1] is None or seen not in reported:
            yield entry
        if seen[1] is not None:
            reported.add(seen)


def schema() -> Json:
    """The JSON Schema of the document."""
    document: Json = json.loads(Path(__file__).with_name("diagnosis.schema.json").read_bytes())
    document["properties"]["findings"]["items"]["properties"]["kind"]["enum"] = list(KINDS)
    return document
