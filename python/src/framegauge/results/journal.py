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
full disk is cut off when the study resumes. Only one process writes at a time (flock). What is changed afterwards is
noticed (`seals`).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from framegauge import foreign
from framegauge.errors import DiskFull, FolderNotEmpty, InputError
from framegauge.results import reading, seals, shapes, spools
from framegauge.results.lock import LOCK, Claim
from framegauge.results.reading import Saved, parse_journal, read
from framegauge.results.runs import SCHEMA, Run
from framegauge.results.seals import Chain
from framegauge.results.writing import FULL, as_json, disk, sync_folder, write_whole

__all__ = ["RECORDINGS", "SCHEMA", "Journal", "Run", "Saved", "check_readable", "parse_journal", "read"]

# These tables may have millions of rows, and are those that users open with other tools: Parquet is widely supported,
# and takes a sixth to a tenth of the space.
KEPT = ("files", "sealed_again")  # of results.json: what whoever plans does not know
EVIDENCE = ("drops", "events", "queues", "flows", "completions", "few")
CAPTURE = ".pcapng"
RECORDINGS = "recordings"


@contextlib.contextmanager
def _resumable(runs: Sequence[Run]) -> Iterator[None]:
    """Says in the error of a full disk that these runs are kept: without any, the folder is not kept either."""
    try:
        yield
    except DiskFull as error:
        if runs:
            raise DiskFull(f"{error} with --resume; finished runs are kept") from error
        raise


class Journal:
    """The only writer of a results folder. As a context manager it releases the lock at the end."""

    def __init__(self, claim: Claim, saved: Saved, is_new: bool = False) -> None:
        self.folder = folder = claim.folder
        self.runs = list(saved.runs)
        self._claim, self._chain, self._is_new = claim, copy(saved.chain), is_new
        self._kept = {key: saved.plan[key] for key in KEPT if key in saved.plan}
        self._file = _opened(folder)
        sync_folder(folder)

    @classmethod
    def create(
        cls, folder: str | Path, study: str, plan: Mapping[str, Any], recordings: Mapping[str, bytes] | None = None
    ) -> Journal:
        """A journal in a new folder, with `recordings` by path; FolderInUse, FolderNotEmpty or DiskFull otherwise."""
        folder = Path(folder)
        had_lock = (folder / LOCK).exists()
        claim = Claim(folder, disk, FULL)
        try:
            others = sorted(item.name for item in folder.iterdir() if item.name != LOCK)
            if others:
                raise FolderNotEmpty(
                    f"{folder}: found {others[0]}, expected an empty folder: "
                    f"continue that study with --resume, or choose another --out"
                )
            for name, data in {**(recordings or {}), "study.yaml": study.encode()}.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                write_whole(folder / name, data)
            # This file is written last: a folder without results.json is not a study.
            whole = _plan(plan, {"files": {reading.STUDY: seals.digest(study.encode())}})
            write_whole(folder / reading.PLAN, as_json(whole))
            return cls(claim, Saved(folder, whole, [], torn=False), is_new=True)
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
        claim = Claim(folder, disk, FULL)
        try:
            saved = read(folder)
            path = folder / "runs.jsonl"
            if saved.torn:
                data = path.read_bytes()
                _, good = parse_journal(data, str(path))
                whole = data[:good]
                with _resumable(saved.runs):
                    write_whole(path, whole if whole.endswith(b"\n") or not whole else whole + b"\n")
            return cls(claim, saved)
        except BaseException:
            claim.free()
            raise

    @classmethod
    def reseal(cls, folder: str | Path, at: str) -> tuple[Journal, list[str]]:
        """The journal of a folder that was edited on purpose, with new seals; and what had been changed, which the plan
        keeps, with the time `at`."""
        claim = Claim(Path(folder), disk, FULL)
        try:
            saved, changed = reading.as_it_is(folder)
            if not saved.is_sealed:
                changed.insert(0, reading.UNSEALED)
            entries = [{"at": at, "changed": changed}] if changed else []
            study = Path(folder) / reading.STUDY
            files = {reading.STUDY: seals.digest_of(study)} if study.is_file() else {}
            plan_keys = {"files": files, "sealed_again": [*saved.plan.get("sealed_again", ()), *entries]}
            journal = cls(claim, replace(saved, plan={**saved.plan, **plan_keys}))
            journal._rewrite()
            environment = saved.folder / reading.ENVIRONMENT
            if environment.is_file():
                facts = shapes.load(foreign.read(environment), str(environment), "the environment of a study")
                journal.environment(shapes.checked(facts, shapes.Environment, str(environment)))
            journal.extend(saved.plan)
            return journal, changed
        except BaseException:
            claim.free()
            raise

    def add(self, run: Run, record: Mapping[str, Any], bulk: Mapping[str, bytes]) -> None:
        """Saves a finished run, and `bulk` as tables; after this it survives a power failure. DiskFull leaves no
        incomplete line."""
        with _resumable(self.runs):
            self.runs.append(self._added(run, record, bulk))

    def _added(self, run: Run, record: Mapping[str, Any], bulk: Mapping[str, bytes]) -> Run:
        place = self.folder / "runs" / str(run.number)
        with disk(place):
            place.mkdir(parents=True, exist_ok=True)
            files = {**dict(map(_kept, bulk.items())), spools.RECORD: as_json(record)}
            for name, data in files.items():
                # These files need no atomic writes: the folder does not count until the journal has its line.
                with (place / name).open("wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
            sync_folder(place)
            sync_folder(place.parent)
        run = replace(run, files={name: seals.digest(data) for name, data in sorted(files.items())})
        chain = copy(self._chain)
        line = _line(run, chain)
        before = os.fstat(self._file).st_size
        try:
            with disk(self.folder / "runs.jsonl"):
                written = os.write(self._file, line)
                # A full disk may cause a short write first; the next write then raises the error.
                while written < len(line):
                    written += os.write(self._file, line[written:])
                os.fsync(self._file)
        except BaseException:
            os.ftruncate(self._file, before)
            raise
        self._chain = chain
        return run

    def put_in_order(self) -> None:
        """Writes the lines in the order of the runs' numbers, if they are not: runs side by side may end in any."""
        numbers = [run.number for run in self.runs]
        if numbers == sorted(numbers):
            return
        self.runs.sort(key=lambda run: run.number)
        self._rewrite()

    def amend(self, run: Run) -> None:
        """Writes a finished run anew, with what became known of it afterwards."""
        index = next(index for index, other in enumerate(self.runs) if other.number == run.number)
        self.runs[index] = run
        self._rewrite()

    def _rewrite(self) -> None:
        chain = Chain()
        with _resumable(self.runs):
            write_whole(self.folder / reading.JOURNAL, b"".join(_line(run, chain) for run in self.runs))
        os.close(self._file)
        self._file, self._chain = _opened(self.folder), chain

    def environment(self, found: Mapping[str, Any]) -> None:
        """Saves facts that hold for every run: versions, kernel, degraded requirements."""
        self.save(reading.ENVIRONMENT, as_json(seals.sealed({**found, "schema": SCHEMA})))

    def extend(self, plan: Mapping[str, Any]) -> None:
        """Saves what is planned now; the study file keeps what was planned at the beginning."""
        self.save(reading.PLAN, as_json(_plan(plan, self._kept)))

    def replan(self, study: str, plan: Mapping[str, Any]) -> None:
        """Saves another study file, with its plan, before the first run."""
        # Whenever this is killed, the plan has no digest of another study file than the one that is there.
        self._kept["files"] = {}
        self.extend(plan)
        self.save(reading.STUDY, study.encode())
        self._kept["files"] = {reading.STUDY: seals.digest(study.encode())}
        self.extend(plan)

    def discard(self) -> None:
        """Removes all files of a new study without runs, and the folders that were created for it. One that is resumed
        stays as it is: it can be resumed once more."""
        if self._is_new and not self.runs:
            _forget(self._claim)

    def save(self, name: str, data: bytes) -> None:
        """Saves a derived file of the folder, completely or not at all."""
        with _resumable(self.runs):
            write_whole(self.folder / name, data)

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


def check_readable(run: Run, record: Mapping[str, Any]) -> None:
    """CorruptResults if a run could not be read again once it is saved; ValueError if it is no JSON."""
    line, data = json.dumps(asdict(run), ensure_ascii=False, allow_nan=False).encode(), as_json(record)
    where = f"run {run.number}"
    shapes.checked(shapes.load(line, where, "a line"), shapes.Line, where)
    shapes.checked(shapes.load(data, where, "a record"), shapes.Record, where)


def _opened(folder: Path) -> int:
    return os.open(folder / "runs.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)


def _line(run: Run, chain: Chain) -> bytes:
    return chain.seal(json.dumps(asdict(run), ensure_ascii=False, allow_nan=False).encode()) + b"\n"


def _plan(plan: Mapping[str, Any], journal_keys: Mapping[str, Any]) -> dict[str, Any]:
    """What results.json says: the plan, with what is the journal's own."""
    return seals.sealed({**plan, **journal_keys, "schema": SCHEMA})


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
    for name in (reading.PLAN, reading.STUDY, reading.ENVIRONMENT, reading.JOURNAL):
        (claim.folder / name).unlink(missing_ok=True)
    for name in ("runs", RECORDINGS):  # files of an unfinished run
        shutil.rmtree(claim.folder / name, ignore_errors=True)
    claim.forget()
