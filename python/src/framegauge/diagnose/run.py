"""Diagnoses capture files with the agent's binary: one process for each file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from framegauge.diagnose import joined
from framegauge.diagnose.engines import Engine, local
from framegauge.diagnose.kinds import KINDS, NOTES, QUALITY, WORTH_NOTHING
from framegauge.diagnose.process import asked
from framegauge.errors import InputError
from framegauge.printable import one_line

__all__ = ["SCHEMA", "diagnose", "is_judgeable", "notes", "schema", "separate", "worth_anywhere", "worth_fixing"]

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
    words = ["--thresholds", json.dumps(dict(thresholds or {}))]
    answers: list[Json] = [json.loads(answer) for answer in engine(words, files, done)]
    problems = [one_line(each["error"], 300) for each in answers if "error" in each]
    if problems:
        raise InputError("\n".join(problems))
    return _numbered(answers, only)


def _together(sources: str) -> Any:
    return json.loads(asked(["--join", sources], []))


def _numbered(answers: Sequence[Json], only: Sequence[str]) -> Json:
    """One document of all files and the taps in them; connections are numbered through."""
    captures: list[Json] = []
    connections: list[Json] = []
    findings: list[Json] = []
    for answer in answers:
        taps = answer.pop("taps")
        for tap in taps:
            place, before = len(captures) + 1, len(connections)
            for each in tap.pop("connections"):
                connections.append({"capture": place, **each, "connection": each["connection"] + before})
            for each in tap.pop("findings"):
                number = each["connection"]
                numbered = {**each, "connection": None if number is None else number + before}
                if not only or each["kind"] in only:
                    findings.append({"capture": place, **numbered})
            captures.append({"capture": place, **answer, **tap})
        if not taps:
            nothing = {"interface": None, "begin_seconds": None, "segments": 0, "seconds": 0.0}
            captures.append({"capture": len(captures) + 1, **answer, **nothing})
    findings.sort(key=lambda each: -each["lost_seconds"])
    return {"schema": SCHEMA, "captures": captures, "connections": connections, "findings": findings}


def worth_anywhere(document: Mapping[str, Any]) -> list[Json]:
    """The same findings, wherever they were seen."""
    return [each for each in document["findings"] if each["kind"] not in (*QUALITY, *WORTH_NOTHING, *NOTES)]


def notes(document: Mapping[str, Any]) -> list[Json]:
    """One finding of each kind that is worth knowing, and no fault."""
    return list({each["kind"]: each for each in reversed(document["findings"]) if each["kind"] in NOTES}.values())


def is_judgeable(document: Mapping[str, Any]) -> bool:
    """Whether there is anything that could be judged."""
    return bool(document["connections"] or document["findings"])


def worth_fixing(document: Mapping[str, Any]) -> list[Json]:
    """The findings that somebody may want to mend, the most time lost first.

    What several places saw of one connection counts once: where it took the most time.
    """
    joined = document.get("joined") or {"connections": ()}
    same = {seen["connection"]: place for place, each in enumerate(joined["connections"]) for seen in each["seen"]}
    told, found = set(), []
    for each in worth_anywhere(document):
        seen = (each["kind"], same.get(each["connection"]))
        if seen[1] is None or seen not in told:
            found.append(each)
        told.add(seen)
    return found


def schema() -> Json:
    """The JSON Schema of the document."""
    found: Json = json.loads(Path(__file__).with_name("diagnosis.schema.json").read_bytes())
    found["properties"]["findings"]["items"]["properties"]["kind"]["enum"] = list(KINDS)
    return found
