"""The results folder of `framegauge reproduce`: what was asked for, and a folder of results for each study.

reproduction.json   documents, figures, testbeds and seeds that were asked for; which studies are over, or left out
rack/NAME/          the results of a study on the emulated rack, as of `framegauge study`
simulator/NAME/     the same in virtual time, as of `framegauge simulate`
report.html         the page
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from framegauge.errors import CorruptResults, InputError
from framegauge.reproduce.documents import Figure, Loaded, named
from framegauge.reproduce.outcomes import Result, Results
from framegauge.results.journal import read
from framegauge.results.writing import write_whole
from framegauge.summary.document import summarise

__all__ = ["FILE", "PAGE", "Asked", "State", "begin", "chosen", "key", "place", "results", "resume", "save"]

FILE = "reproduction.json"
PAGE = "report.html"
SCHEMA = 1


@dataclass(frozen=True)
class Asked:
    """What is to be run: the figures (ids) of each document, by its name or path, where, and with how many seeds (None:
    as many as each study has).

    `by_hand`: also studies that only those run who name their figures.
    """

    documents: dict[str, list[str]]
    testbeds: list[str]
    seeds: int | None
    by_hand: bool = False


@dataclass
class State:
    """What was asked for, and what became of its studies: over, or left out with the reason. Keys are testbed/study."""

    asked: Asked
    over: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


class _Shape(BaseModel):
    """A file of a folder, as it must be."""

    model_config = ConfigDict(extra="forbid", strict=True)

    schema_version: int
    documents: dict[str, list[str]]
    testbeds: list[str]
    seeds: int | None
    by_hand: bool
    over: list[str]
    left_out: dict[str, str]


def begin(folder: Path, asked: Asked) -> State:
    """A new folder; InputError if something is there."""
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"--out: found {folder}, which is not empty, expected a new folder, or --resume")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be used ({error.strerror}), expected a writable folder") from None
    state = State(asked)
    save(folder, state)
    return state


def save(folder: Path, state: State) -> None:
    """Writes what has become of the studies, whole or not at all."""
    request = asdict(state.asked)
    document = {"schema_version": SCHEMA, **request, "over": state.over, "left_out": state.left_out}
    write_whole(folder / FILE, json.dumps(document, indent=2).encode() + b"\n")


def resume(folder: Path) -> State:
    """What a folder was asked for, and how far it is; CorruptResults if it is none, or damaged."""
    file = folder / FILE
    try:
        shape = _Shape.model_validate_json(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file}: found no readable file ({error.strerror}), expected a folder of reproduce") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise CorruptResults(f"{file}: {where}: {first['msg'].lower()}") from None
    request = Asked(shape.documents, shape.testbeds, shape.seeds, shape.by_hand)
    return State(request, shape.over, shape.left_out)


def chosen(asked: Asked) -> list[tuple[Loaded, list[Figure]]]:
    """The documents with the figures that are asked for."""
    pairs = []
    for name, ids in asked.documents.items():
        loaded = named(name)
        by_id = {figure.id: figure for figure in loaded.document.figures}
        if unknown := [figure_id for figure_id in ids if figure_id not in by_id]:
            raise InputError(f"{name}: found no figure '{unknown[0]}', expected one that --list shows")
        pairs.append((loaded, [by_id[figure_id] for figure_id in ids]))
    return pairs


def place(folder: Path, engine: str, loaded: Loaded, study: str) -> Path:
    """The results of a study."""
    return folder / engine / f"{loaded.name}-{study}"


def results(folder: Path, loaded: Loaded, figures: Sequence[Figure], engines: Iterable[str]) -> Results:
    """The studies of these figures that have results, each read and judged once."""
    study_results: dict[tuple[str, str], Result] = {}
    for engine in engines:
        for study in loaded.studies_of(figures):
            if (place(folder, engine, loaded, study) / "summary.json").is_file():
                saved = read(place(folder, engine, loaded, study))
                study_results[engine, study] = Result(saved, summarise(saved))
    return study_results


def key(engine: str, loaded: Loaded, study: str) -> str:
    """By which the state names a study."""
    return f"{engine}/{loaded.name}/{study}"
