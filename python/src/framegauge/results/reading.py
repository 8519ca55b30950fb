"""Reads a results folder: its plan and its journal, whole and as they were written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from framegauge import foreign
from framegauge.errors import CorruptResults, InputError, NewerResults
from framegauge.results import seals, shapes
from framegauge.results.runs import SCHEMA, Run, misfit
from framegauge.results.seals import Chain

__all__ = [
    "ENVIRONMENT",
    "JOURNAL",
    "JUDGED",
    "PLAN",
    "STUDY",
    "SUMMARY",
    "UNSEALED",
    "Saved",
    "as_it_is",
    "parse_journal",
    "read",
]

PLAN, STUDY, ENVIRONMENT, JOURNAL = "results.json", "study.yaml", "environment.json", "runs.jsonl"
SUMMARY = "summary.json"
JUDGED = "judged_runs"  # of summary.json: how many runs the journal had then
MOST_NAMED = 3
UNSEALED = "what had no seals"

Hear = Callable[[str, CorruptResults], None]


@dataclass(frozen=True)
class Saved:
    """A results folder as read."""

    folder: Path
    plan: Mapping[str, Any]
    runs: Sequence[Run]
    torn: bool
    chain: Chain = field(default_factory=Chain)  # after the last run

    @property
    def is_sealed(self) -> bool:
        """Whether a change of the plan or of any run would have been noticed."""
        return seals.KEY in self.plan and not self.chain.unsealed


def parse_journal(data: bytes, name: str) -> tuple[list[Run], int]:
    """The runs in a journal, and the number of its bytes that form complete lines.

    Only the last line can be torn, and is then left out. Any other damage raises CorruptResults with the line's number,
    and so does a line that is not the one that was written there; a line of a newer schema raises NewerResults.
    """
    return _parsed(data, name, Chain(), _refuse)


def _refuse(_: str, error: CorruptResults) -> None:
    raise error


def _parsed(data: bytes, name: str, chain: Chain, hear: Hear) -> tuple[list[Run], int]:
    runs: list[Run] = []
    good = 0
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        last, where = number == len(lines), f"{name}:{number}"
        if last and not line:
            break
        try:
            entry = shapes.load(line, where, "one JSON object per line")
        except CorruptResults:
            if last:
                break
            raise
        runs.append(_run(entry, where))
        try:
            chain.check(line, entry, where)
        except CorruptResults as error:
            hear(f"{JOURNAL}:{number}", error)
        good += len(line) + (0 if last else 1)
    return runs, good


def _run(entry: Any, where: str) -> Run:
    if not isinstance(entry, dict):
        raise CorruptResults(f"{where}: found no run, expected one JSON object per line")
    _check_schema(entry, where)
    shapes.checked(entry, shapes.Line, where)
    # A newer framegauge of the same schema may have added keys, which must not make a line look torn.
    return Run(**{run_field.name: entry[run_field.name] for run_field in fields(Run) if run_field.name in entry})


def _check_schema(entry: Mapping[str, Any], where: str) -> None:
    """NewerResults if `entry` was written by a newer framegauge; CorruptResults if it has no version."""
    version = entry.get("schema")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise CorruptResults(f"{where}: found schema {version!r}, expected a version up to {SCHEMA}")
    if version > SCHEMA:
        raise NewerResults(
            f"{where}: found results of schema {version}, expected at most {SCHEMA}: "
            f"they were written by a newer framegauge; update to read them"
        )


def read(folder: str | Path) -> Saved:
    """A results folder; InputError (CorruptResults, NewerResults) if it cannot be read as one, or something has changed
    it."""
    return _read(Path(folder), _refuse)


def as_it_is(folder: str | Path) -> tuple[Saved, list[str]]:
    """A results folder, each run with the digests of its files as they are now; and what is not as it was written.
    InputError if it cannot be read as one."""
    folder, changed = Path(folder), list[str]()

    def hear(where: str, _: CorruptResults) -> None:
        changed.append(where)

    saved = _read(folder, hear)
    runs = [replace(run, files=dict(_digests(folder, run))) for run in saved.runs]
    for before, now in zip(saved.runs, runs, strict=True):
        changed += [
            f"runs/{now.number}/{name}"
            for name, file_digest in now.files.items()
            if before.files and before.files.get(name) != file_digest
        ]
    return replace(saved, runs=runs), changed


def _digests(folder: Path, run: Run) -> Iterator[tuple[str, str]]:
    place = folder / "runs" / str(run.number)
    for path in sorted(place.iterdir()) if place.is_dir() else ():
        if path.is_file():
            yield path.name, seals.digest_of(path)


def _read(folder: Path, hear: Hear) -> Saved:
    plan = _plan(folder, hear)
    _check_study(folder, plan, hear)
    _document(folder, ENVIRONMENT, hear)
    judged = _document(folder, SUMMARY, hear).get(JUDGED, 0)  # before the journal, to which a study may write meanwhile
    path, chain = folder / JOURNAL, Chain()
    data = path.read_bytes() if path.exists() else b""
    other: list[tuple[str, CorruptResults]] = []  # lines: what cannot be is said first
    runs, good = _parsed(data, str(path), chain, lambda where, error: other.append((where, error)))
    if why := misfit(runs, plan["treatment"]):
        raise CorruptResults(f"{path}: {why}")
    for where, error in other:
        hear(where, error)
    if type(judged) is int and len(runs) < judged:
        text = f"{path}: found {len(runs)} runs, expected the {judged} of which {SUMMARY} was made ({seals.REMEDY})"
        hear(JOURNAL, CorruptResults(text))
    is_torn = good != len(data) or (not data.endswith(b"\n") and bool(data))
    return Saved(folder, plan, runs, is_torn, chain)


def _plan(folder: Path, hear: Hear) -> Mapping[str, Any]:
    path = folder / PLAN
    try:
        data = foreign.read(path)
    except OSError as error:
        plan_folders = sorted(plan_path.parent for plan_path in folder.glob(f"*/{PLAN}"))[:MOST_NAMED]
        examples = f", such as {', '.join(map(str, plan_folders))}" if plan_folders else ""
        raise InputError(
            f"{folder}: found no {PLAN} ({error.strerror}), expected the folder of a study{examples}"
        ) from None
    except foreign.TooLarge as error:
        raise CorruptResults(f"{path}: {error}") from None
    plan = shapes.load(data, str(path), "the plan of a study")
    if not isinstance(plan, dict):
        raise CorruptResults(f"{path}: found no object, expected the plan of a study")
    _check_schema(plan, str(path))
    shapes.checked_plan(plan, str(path))
    try:
        seals.check(plan, str(path))
    except CorruptResults as error:
        hear(PLAN, error)
    return plan


def _check_study(folder: Path, plan: Mapping[str, Any], hear: Hear) -> None:
    """Whether the study file is the one of the plan, if that says which."""
    path, expected = folder / STUDY, plan.get("files", {}).get(STUDY)
    try:
        is_other = expected and seals.digest(foreign.read(path)) != expected
    except OSError:
        return  # whoever needs it says so
    except foreign.TooLarge as error:
        raise CorruptResults(f"{path}: {error}") from None
    if is_other:
        hear(STUDY, CorruptResults(f"{path}: found other content, expected what was sealed ({seals.REMEDY})"))


def _document(folder: Path, name: str, hear: Hear) -> Mapping[str, Any]:
    """A document of the folder as it was sealed; empty if it is not there, or has no seal that fits."""
    path, expected = folder / name, "a document of framegauge"
    try:
        document = shapes.load(foreign.read(path), str(path), expected)
    except OSError:
        return {}
    except foreign.TooLarge as error:
        raise CorruptResults(f"{path}: {error}") from None
    if not isinstance(document, dict):
        raise CorruptResults(f"{path}: found no object, expected {expected}")
    try:
        return document if seals.check(document, str(path)) else {}
    except CorruptResults as error:
        hear(name, error)
        return {}
