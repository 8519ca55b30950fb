"""The results folder: a journal that loses nothing, and the tables derived from it.

    results.json       schema version, question, margins, what was planned
    study.yaml         the resolved study file; running it again is the same study
    recordings/        recorded flows that it replays
    environment.json   versions, kernel, readings that hold for every run
    runs.jsonl         one line per finished run, synced to disk before the next run begins
    runs/<number>/     record.json (everything that was read), the network (Parquet, pcapng), samples (Arrow IPC)
    runs.parquet, runs.csv   derived from runs.jsonl, rewritten whole
    summary.json       the verdicts
    report.html        the same as a page, with charts

A run is finished when its line is complete: all its other files are synced before that. A line torn by `kill -9` or a
full disk is cut off when the study resumes. Only one process writes at a time (flock).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from framegauge import foreign
from framegauge.errors import CorruptResults, DiskFull, FolderNotEmpty, InputError, NewerResults
from framegauge.results import shapes
from framegauge.results.lock import LOCK, Claim
from framegauge.results.runs import SCHEMA, Run, misfit

__all__ = ["RECORDINGS", "SCHEMA", "Journal", "Run", "Saved", "check_readable", "parse_journal", "read"]

# These tables may have millions of rows, and are those that users open with other tools: Parquet is widely supported,
# and takes a sixth to a tenth of the space.
MOST_NAMED = 3
EVIDENCE = ("drops", "events", "queues", "flows", "completions", "few")
CAPTURE = ".pcapng"
RECORDINGS = "recordings"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Saved:
    """A results folder as read."""

    folder: Path
    plan: Mapping[str, Any]
    runs: Sequence[Run]
    torn: bool


@contextlib.contextmanager
def _disk(path: Path) -> Iterator[None]:
    """Turns a full disk into a DiskFull error of one line; other system errors are passed on."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(
                f"{path}: cannot be written ({os.strerror(error.errno or 0)}); free some space and run again"
            ) from error
        raise


@contextlib.contextmanager
def _resumable(runs: Sequence[Run]) -> Iterator[None]:
    """Says in the error of a full disk that these runs are kept: without any, the folder is not kept either."""
    try:
        yield
    except DiskFull as error:
        if runs:
            raise DiskFull(f"{error} with --resume; finished runs are kept") from error
        raise


def _write_whole(path: Path, data: bytes) -> None:
    """Writes a file so that it exists completely or not at all, even after a crash."""
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


def _json(value: Mapping[str, Any]) -> bytes:
    """JSON with a line per key: indentation would take the encoder ten times as long."""
    lines = (
        f" {json.dumps(key)}: {json.dumps(each, ensure_ascii=False, allow_nan=False)}" for key, each in value.items()
    )
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def parse_journal(data: bytes, name: str) -> tuple[list[Run], int]:
    """The runs in a journal, and the number of its bytes that form complete lines.

    Only the last line can be torn, and is then left out. Any other damage raises CorruptResults with the line's number;
    a line of a newer schema raises NewerResults.
    """
    runs: list[Run] = []
    good = 0
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        last = number == len(lines)
        if last and not line:
            break
        try:
            found = shapes.load(line, f"{name}:{number}", "one JSON object per line")
        except CorruptResults:
            if last:
                break
            raise
        runs.append(_run(found, f"{name}:{number}"))
        good += len(line) + (0 if last else 1)
    return runs, good


def _run(found: Any, where: str) -> Run:
    if not isinstance(found, dict):
        raise CorruptResults(f"{where}: found no run, expected one JSON object per line")
    check_schema(found, where)
    shapes.checked(found, shapes.Line, where)
    # A newer framegauge of the same schema may have added keys, which must not make a line look torn.
    return Run(**{each.name: found[each.name] for each in fields(Run) if each.name in found})


def check_readable(run: Run, record: Mapping[str, Any]) -> None:
    """CorruptResults if a run could not be read again once it is saved; ValueError if it is no JSON."""
    line, data = json.dumps(asdict(run), ensure_ascii=False, allow_nan=False).encode(), _json(record)
    where = f"run {run.number}"
    shapes.checked(shapes.load(line, where, "a line"), shapes.Line, where)
    shapes.checked(shapes.load(data, where, "a record"), shapes.Record, where)


def check_schema(found: Mapping[str, Any], where: str) -> None:
    """NewerResults if `found` was written by a newer framegauge; CorruptResults if it has no version."""
    version = found.get("schema")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise CorruptResults(f"{where}: found schema {version!r}, expected a version up to {SCHEMA}")
    if version > SCHEMA:
        raise NewerResults(
            f"{where}: found results of schema {version}, expected at most {SCHEMA}: "
            f"they were written by a newer framegauge; update to read them"
        )


def read(folder: str | Path) -> Saved:
    """A results folder; InputError (CorruptResults, NewerResults) if it cannot be read as one."""
    folder = Path(folder)
    try:
        data = foreign.read(folder / "results.json")
    except OSError as error:
        there = sorted(each.parent for each in folder.glob("*/results.json"))[:MOST_NAMED]
        beneath = f", such as {', '.join(map(str, there))}" if there else ""
        raise InputError(
            f"{folder}: found no results.json ({error.strerror}), expected the folder of a study{beneath}"
        ) from None
    except foreign.TooLarge as error:
        raise CorruptResults(f"{folder}/results.json: {error}") from None
    plan = shapes.load(data, f"{folder}/results.json", "the plan of a study")
    if not isinstance(plan, dict):
        raise CorruptResults(f"{folder}/results.json: found no object, expected the plan of a study")
    check_schema(plan, f"{folder}/results.json")
    shapes.checked_plan(plan, f"{folder}/results.json")
    path = folder / "runs.jsonl"
    data = path.read_bytes() if path.exists() else b""
    runs, good = parse_journal(data, str(path))
    if why := misfit(runs, plan["treatment"]):
        raise CorruptResults(f"{path}: {why}")
    return Saved(folder, plan, runs, torn=good != len(data) or (not data.endswith(b"\n") and bool(data)))


class Journal:
    """The only writer of a results folder. As a context manager it releases the lock at the end."""

    def __init__(self, claim: Claim, runs: Sequence[Run]) -> None:
        self.folder = folder = claim.folder
        self.runs = list(runs)
        self._claim = claim
        self._file = _opened(folder)
        _sync_folder(folder)

    @classmethod
    def create(
        cls, folder: str | Path, study: str, plan: Mapping[str, Any], recordings: Mapping[str, bytes] | None = None
    ) -> Journal:
        """A journal in a new folder, with `recordings` by path; FolderInUse, FolderNotEmpty or DiskFull otherwise."""
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
            for name, data in {**(recordings or {}), "study.yaml": study.encode()}.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                _write_whole(folder / name, data)
            # This file is written last: a folder without results.json is not a study.
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
        """The journal of an existing folder: a torn last line is cut off, everything before it is kept."""
        folder = Path(folder)
        if not (folder / "results.json").exists():
            raise InputError(f"{folder}: found no results.json, expected the folder of a study to resume")
        claim = Claim(folder, _disk, _FULL)
        try:
            saved = read(folder)
            path = folder / "runs.jsonl"
            if saved.torn:
                data = path.read_bytes()
                _, good = parse_journal(data, str(path))
                whole = data[:good]
                with _resumable(saved.runs):
                    _write_whole(path, whole if whole.endswith(b"\n") or not whole else whole + b"\n")
            return cls(claim, saved.runs)
        except BaseException:
            claim.free()
            raise

    def add(self, run: Run, record: Mapping[str, Any], bulk: Mapping[str, bytes]) -> None:
        """Saves a finished run, and `bulk` as tables; after this it survives a power failure. DiskFull leaves no
        incomplete line."""
        with _resumable(self.runs):
            self._add(run, record, bulk)
        self.runs.append(run)

    def _add(self, run: Run, record: Mapping[str, Any], bulk: Mapping[str, bytes]) -> None:
        place = self.folder / "runs" / str(run.number)
        with _disk(place):
            place.mkdir(parents=True, exist_ok=True)
            for name, data in {**dict(map(_kept, bulk.items())), "record.json": _json(record)}.items():
                # These files need no atomic writes: the folder does not count until the journal has its line.
                with (place / name).open("wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
            _sync_folder(place)
            _sync_folder(place.parent)
        line = _line(run)
        before = os.fstat(self._file).st_size
        try:
            with _disk(self.folder / "runs.jsonl"):
                written = os.write(self._file, line)
                # A full disk may cause a short write first; the next write then raises the error.
                while written < len(line):
                    written += os.write(self._file, line[written:])
                os.fsync(self._file)
        except BaseException:
            os.ftruncate(self._file, before)
            raise

    def put_in_order(self) -> None:
        """Writes the lines in the order of the runs' numbers, if they are not: runs side by side may end in any."""
        numbers = [run.number for run in self.runs]
        if numbers == sorted(numbers):
            return
        self.runs.sort(key=lambda run: run.number)
        self._rewrite()

    def amend(self, run: Run) -> None:
        """Writes a finished run anew, with what became known of it afterwards."""
        place = next(place for place, each in enumerate(self.runs) if each.number == run.number)
        self.runs[place] = run
        self._rewrite()

    def _rewrite(self) -> None:
        with _resumable(self.runs):
            _write_whole(self.folder / "runs.jsonl", b"".join(map(_line, self.runs)))
        os.close(self._file)
        self._file = _opened(self.folder)

    def environment(self, found: Mapping[str, Any]) -> None:
        """Saves facts that hold for every run: versions, kernel, degraded requirements."""
        self.save("environment.json", _json({"schema": SCHEMA, **found}))

    def extend(self, plan: Mapping[str, Any]) -> None:
        """Saves what is planned now; the study file keeps what was planned at the beginning."""
        self.save("results.json", _json({"schema": SCHEMA, **plan}))

    def discard(self) -> None:
        """Removes all files of a study without runs, and the folders that were created for it."""
        if not self.runs:
            _forget(self._claim)

    def save(self, name: str, data: bytes) -> None:
        """Saves a derived file of the folder, completely or not at all."""
        with _resumable(self.runs):
            _write_whole(self.folder / name, data)

    def close(self) -> None:
        """Releases the folder for other processes; may be called twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            self._claim.free()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _opened(folder: Path) -> int:
    return os.open(folder / "runs.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)


def _line(run: Run) -> bytes:
    return json.dumps(asdict(run), ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _kept(spool: tuple[str, bytes]) -> tuple[str, bytes]:
    """The name and the bytes of the file for a spool; captures, and what is no Arrow file, are kept unchanged."""
    name, data = spool
    if name.endswith(CAPTURE):
        return name, data
    if name in EVIDENCE:
        with contextlib.suppress(pa.ArrowException, OSError):
            table = pyarrow.ipc.open_file(pa.BufferReader(data)).read_all()
            sink = pa.BufferOutputStream()
            pyarrow.parquet.write_table(table, sink, compression="zstd")
            return f"{name}.parquet", sink.getvalue().to_pybytes()
    return f"{name}.arrow", data


def _forget(claim: Claim) -> None:
    """Removes all that a study without runs has written."""
    for name in ("results.json", "study.yaml", "environment.json", "runs.jsonl"):
        (claim.folder / name).unlink(missing_ok=True)
    for name in ("runs", RECORDINGS):  # files of an unfinished run
        shutil.rmtree(claim.folder / name, ignore_errors=True)
    claim.forget()
