"""The results folder: a journal that loses nothing, and the tables derived from it.

    results.json       schema version, question, margins, what was planned
    study.yaml         the resolved study file; running it again is the same study
    environment.json   versions, kernel, readings that hold for every run
    runs.jsonl         one line a finished run, synced to disk before the next run begins
    runs/<number>/     record.json (everything that was read), evidence of the network (Parquet), samples (Arrow IPC)
    runs.parquet, runs.csv   derived from runs.jsonl, rewritten whole
    summary.json       the verdicts
    report.html        the same as a page, with charts

A run is finished when its line is complete: all its other files are synced before. A line torn by
`kill -9` or by a full disk is cut off when the study resumes. One process writes at a time (flock).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from framegauge.errors import CorruptResults, DiskFull, FolderNotEmpty, InputError, NewerResults
from framegauge.results.lock import LOCK, Claim

__all__ = ["SCHEMA", "Journal", "Run", "Saved", "parse_journal", "read", "write_tables"]

SCHEMA = 1
# It may have millions of rows, and is what other tools are asked about first: Parquet opens everywhere, and takes a
# sixth to a tenth of the room.
EVIDENCE = ("drops", "events", "queues")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Run:
    """One line of runs.jsonl. `excluded` holds the reasons why the run is no evidence; empty if it is.

    `began` is when, in UTC, as ISO 8601 text; "" in journals that were written before it was noted.
    """

    number: int
    block: int
    cell: int
    arm: str
    role: str
    level: Any
    attempt: int
    workload: str
    conditions: Mapping[str, Any]
    metrics: Mapping[str, float]
    excluded: Sequence[str]
    readings: Mapping[str, Any] = field(default_factory=dict)
    degraded: Sequence[str] = ()
    seconds: float = 0.0
    began: str = ""
    schema: int = SCHEMA

    @property
    def key(self) -> tuple[int, int, str]:
        """The slot that this run fills: block, cell, arm."""
        return self.block, self.cell, self.arm


@dataclass(frozen=True)
class Saved:
    """A results folder as read."""

    folder: Path
    plan: Mapping[str, Any]
    runs: Sequence[Run]
    torn: bool


@contextlib.contextmanager
def _disk(path: Path) -> Iterator[None]:
    """Turn a full disk into one line; other errors of the system pass."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(
                f"{path}: nothing more can be written ({os.strerror(error.errno or 0)}): finished runs are kept; "
                f"free some space and run again with --resume"
            ) from error
        raise


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, also after a crash."""
    draft = path.with_name(path.name + ".new")
    try:
        with _disk(path), draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1).encode() + b"\n"


def parse_journal(data: bytes, name: str) -> tuple[list[Run], int]:
    """The runs in a journal, and how many of its bytes are whole lines.

    Only the last line can be torn: it is left out. Anything wrong before it raises CorruptResults
    with the line's number; a line of a newer schema raises NewerResults.
    """
    runs: list[Run] = []
    good = 0
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        last = number == len(lines)
        if last and not line:
            break
        try:
            runs.append(_run(line, f"{name}:{number}"))
        except (ValueError, TypeError, RecursionError):
            if last:
                break
            raise CorruptResults(f"{name}:{number}: found no run, expected one JSON object a line") from None
        good += len(line) + (0 if last else 1)
    return runs, good


def _run(line: bytes, where: str) -> Run:
    found = json.loads(line)
    if not isinstance(found, dict):
        raise TypeError("no object")
    check_schema(found, where)
    # A newer framegauge of the same schema may have added some: a line must not look torn because of them.
    return Run(**{each.name: found[each.name] for each in fields(Run) if each.name in found})


def check_schema(found: Mapping[str, Any], where: str) -> None:
    """NewerResults if `found` was written by a newer framegauge; CorruptResults if it has no version."""
    version = found.get("schema")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise CorruptResults(f"{where}: found schema {version!r}, expected a version up to {SCHEMA}")
    if version > SCHEMA:
        raise NewerResults(
            f"{where}: found results of schema {version}, expected at most {SCHEMA}: "
            f"they were written by a newer framegauge; update this one to read them"
        )


def read(folder: str | Path) -> Saved:
    """A results folder; InputError (CorruptResults, NewerResults) if it is not one that can be read."""
    folder = Path(folder)
    try:
        plan = json.loads((folder / "results.json").read_bytes())
    except OSError as error:
        raise InputError(
            f"{folder}: found no results.json ({error.strerror}), expected the folder of a study"
        ) from None
    except ValueError:
        raise CorruptResults(f"{folder}/results.json: found no JSON, expected the plan of a study") from None
    if not isinstance(plan, dict):
        raise CorruptResults(f"{folder}/results.json: found no object, expected the plan of a study")
    check_schema(plan, f"{folder}/results.json")
    path = folder / "runs.jsonl"
    data = path.read_bytes() if path.exists() else b""
    runs, good = parse_journal(data, str(path))
    return Saved(folder, plan, runs, torn=good != len(data) or (not data.endswith(b"\n") and bool(data)))


class Journal:
    """The one writer of a results folder. Use as a context manager: leaving it frees the lock."""

    def __init__(self, claim: Claim, runs: Sequence[Run]) -> None:
        self.folder = folder = claim.folder
        self.runs = list(runs)
        self._claim = claim
        self._file = os.open(folder / "runs.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        _sync_folder(folder)

    @classmethod
    def create(cls, folder: str | Path, study: str, plan: Mapping[str, Any]) -> Journal:
        """A new folder; FolderInUse, FolderNotEmpty or DiskFull if that cannot be."""
        folder = Path(folder)
        had_lock = (folder / LOCK).exists()
        claim = Claim(folder, _disk, _FULL)
        try:
            others = sorted(item.name for item in folder.iterdir() if item.name != LOCK)
            if others:
                raise FolderNotEmpty(
                    f"{folder}: found {others[0]}, expected an empty folder: "
                    f"continue that study with --resume, or choose another --out"
                )
            _write_whole(folder / "study.yaml", study.encode())
            # Last: a folder without results.json never became a study.
            _write_whole(folder / "results.json", _json({"schema": SCHEMA, **plan}))
            return cls(claim, [])
        except FolderNotEmpty:
            if not had_lock:
                claim.forget()
            claim.free()
            raise
        except BaseException:
            _forget(claim)
            claim.free()
            raise

    @classmethod
    def resume(cls, folder: str | Path) -> Journal:
        """Continue a folder: a torn last line is cut off, everything before it is kept."""
        folder = Path(folder)
        if not (folder / "results.json").exists():
            raise InputError(f"{folder}: found no results.json, expected a folder that a study has begun")
        claim = Claim(folder, _disk, _FULL)
        try:
            saved = read(folder)
            path = folder / "runs.jsonl"
            if saved.torn:
                data = path.read_bytes()
                _, good = parse_journal(data, str(path))
                whole = data[:good]
                with _disk(path):
                    _write_whole(path, whole if whole.endswith(b"\n") or not whole else whole + b"\n")
            return cls(claim, saved.runs)
        except BaseException:
            claim.free()
            raise

    def add(self, run: Run, record: Mapping[str, Any], bulk: Mapping[str, bytes]) -> None:
        """Save a finished run, `bulk` as Arrow files; when this returns it survives a power cut. DiskFull leaves no
        half line."""
        place = self.folder / "runs" / str(run.number)
        with _disk(place):
            place.mkdir(parents=True, exist_ok=True)
            for name, data in {**dict(map(_kept, bulk.items())), "record.json": _json(record)}.items():
                # Not atomic one by one: until the journal has its line, this folder does not count.
                with (place / name).open("wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
            _sync_folder(place)
            _sync_folder(place.parent)
        line = json.dumps(asdict(run), ensure_ascii=False, allow_nan=False).encode() + b"\n"
        before = os.fstat(self._file).st_size
        try:
            with _disk(self.folder / "runs.jsonl"):
                written = os.write(self._file, line)
                # A short write is the disk's last gasp; the next write gives the error.
                while written < len(line):
                    written += os.write(self._file, line[written:])
                os.fsync(self._file)
        except BaseException:
            os.ftruncate(self._file, before)
            raise
        self.runs.append(run)

    def environment(self, found: Mapping[str, Any]) -> None:
        """Save what holds for every run: versions, kernel, what is degraded."""
        self.save("environment.json", _json({"schema": SCHEMA, **found}))

    def discard(self) -> None:
        """Forget a study that never had a run: nothing is left of it, nor a folder that was made for it."""
        if not self.runs:
            _forget(self._claim)

    def save(self, name: str, data: bytes) -> None:
        """Save a derived file of the folder, whole or not at all."""
        _write_whole(self.folder / name, data)

    def close(self) -> None:
        """Free the folder for others. Twice is once."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            self._claim.free()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _kept(spool: tuple[str, bytes]) -> tuple[str, bytes]:
    """The name and the bytes of the file that keeps a spool; one that is no Arrow file is kept as it came."""
    name, data = spool
    if name in EVIDENCE:
        with contextlib.suppress(pa.ArrowException, OSError):
            table = pyarrow.ipc.open_file(pa.BufferReader(data)).read_all()
            sink = pa.BufferOutputStream()
            pyarrow.parquet.write_table(table, sink, compression="zstd")
            return f"{name}.parquet", sink.getvalue().to_pybytes()
    return f"{name}.arrow", data


def _forget(claim: Claim) -> None:
    """Take away all that a study without runs has written."""
    for name in ("results.json", "study.yaml", "environment.json", "runs.jsonl"):
        (claim.folder / name).unlink(missing_ok=True)
    shutil.rmtree(claim.folder / "runs", ignore_errors=True)  # of a run that was never finished
    claim.forget()


def write_tables(journal: Journal) -> None:
    """runs.parquet and runs.csv: one row a run, mappings flattened to columns with their path as name.

    Numbers are numbers, times are times, lists are lists; in CSV, which has neither, times are ISO 8601 and lists are
    joined by "; ".
    """
    rows = [_flat(asdict(run)) for run in journal.runs]
    order = [each.name for each in fields(Run)]
    names = sorted({name: None for row in rows for name in row}, key=lambda name: order.index(name.split(".")[0]))
    columns = {name: [row.get(name) for row in rows] for name in names}
    typed = {name: _column(name, values) for name, values in columns.items()}
    plain = {name: _plain(map(_joined, values)) for name, values in columns.items()}
    for file, write, table in (
        ("runs.parquet", pyarrow.parquet.write_table, typed),
        ("runs.csv", pyarrow.csv.write_csv, plain),
    ):
        sink = pa.BufferOutputStream()
        write(pa.table(table), sink)
        journal.save(file, sink.getvalue().to_pybytes())


def _column(name: str, values: Sequence[Any]) -> pa.Array:
    """A column of one type, the same in every folder wherever the name says what it is."""
    if name == "began":
        times = [datetime.fromisoformat(value) if value else None for value in values]
        return pa.array(times, pa.timestamp("ms", "UTC"))
    if any(isinstance(value, list | tuple) for value in values):
        texts = [value if value is None else [str(item) for item in value] for value in values]
        return pa.array(texts, pa.list_(pa.string()))
    column = _plain(values)
    # Whole numbers of a metric are still measured; and a column without a value has some type in every reader.
    as_float = pa.types.is_null(column.type) or (name.startswith("metrics.") and pa.types.is_integer(column.type))
    return column.cast(pa.float64()) if as_float else column


def _plain(values: Iterable[Any]) -> pa.Array:
    """Of one type; a column that mixes types (levels: 9000 and h1=9000,h2=1500) becomes text."""
    found = list(values)
    try:
        return pa.array(found)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in found])


def _joined(value: Any) -> Any:
    return "; ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, Mapping):
            found |= _flat(item, f"{prefix}{key}.")
        else:
            found[prefix + key] = item
    return found
