"""The journal of a roll-out: a folder with one line of JSON for everything that happened, from which it can be undone.

It names hosts, interfaces, settings and verdicts; no option of ssh, and nothing that a host or a program has printed
beyond its errors. A line is on disk before what it announces is done. It has the hash of the one before and a seal of
its own, so that a line that was changed, lost or added is noticed; not that somebody has written all of it anew
(docs/why/threat-model.md).
"""

from __future__ import annotations

import fcntl
import getpass
import hashlib
import json
import os
import platform
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from framegauge import __version__
from framegauge.errors import CorruptResults, FolderInUse, FramegaugeError, InputError, NewerResults
from framegauge.printable import one_line
from framegauge.results import seals
from framegauge.results.writing import disk
from framegauge.rollout.entries import complaint
from framegauge.rollout.model import Json

__all__ = ["NAME", "Journal", "Past", "entries", "folder_of", "read"]

NAME = "journal.jsonl"
SCHEMA = 1


def folder_of(path: Path) -> Path:
    """Where the journal of a file is unless the user says otherwise: beside it."""
    return path.with_suffix(".rollout")


@dataclass(frozen=True)
class Past:
    """What a journal says of what was done to the hosts.

    `origin`: by host, the settings before the first change that was neither put back nor undone; empty if there is
    none. `after`: the settings that the last run was to leave. `outcome` of that run: `finished`, `put_back`, `undone`,
    `undone_in_part` (some hosts could not be reached), `parked`, or `open` if it ended without a word. `back`: the
    settings to which hosts were undone since the last change.
    """

    entries: Sequence[Json] = ()
    begun: Json = field(default_factory=dict)
    origin: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    after: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    outcome: str = "none"
    back: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def hold(self) -> int | None:
        """The MTU before a change that is not at its end; None if nothing is under way."""
        if not self.origin or self.outcome == "finished":
            return None
        hosts: Mapping[str, Json] = self.begun["hosts"]
        return min(int(change["hold"]) for change in hosts.values())


class Journal:
    """The only writer of a journal; another process that tries gets FolderInUse."""

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self.folder, self._now, self._run = folder, now, secrets.token_hex(4)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(folder / NAME, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InputError(f"{folder}: cannot be used ({error.strerror}), expected a writable folder") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise FolderInUse(
                f"{folder}: another roll-out is under way with this journal{_whose(folder)}: wait for it"
            ) from None
        self._mend()
        self._last = None
        for self._last, _ in _whole(folder / NAME, (folder / NAME).read_bytes()):
            pass

    def _mend(self) -> None:
        """Ends a line that was cut off when its writer was killed."""
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")

    def write(self, event: str, **more: Any) -> None:
        """Adds an entry; on disk when this returns, whole, and not at all after DiskFull."""
        stamp = datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="milliseconds")
        entry = {"at": stamp, "run": self._run, "event": event, "after": _hash(self._last), **more}
        last = seals.line(json.dumps(entry, ensure_ascii=False, allow_nan=False).encode())
        data, before = last + b"\n", os.fstat(self._file).st_size
        try:
            with disk(self.folder / NAME):
                while data:
                    data = data[os.write(self._file, data) :]
                os.fsync(self._file)
        except BaseException:
            os.ftruncate(self._file, before)
            raise
        self._last = last

    def begin(self, kind: str, asked: Mapping[str, Any], hosts: Mapping[str, Json], origin: Mapping[str, Any]) -> None:
        """The first entry of a run: who does what, when, with which old values, and how it goes back."""
        user = "unknown"
        with suppress(OSError, KeyError):
            user = getpass.getuser()
        self.write(
            "begun", schema=SCHEMA, kind=kind, framegauge=__version__, by={"user": user, "machine": platform.node()},
            asked=dict(asked), hosts=dict(hosts), origin=dict(origin),
        )  # fmt: skip

    def close(self) -> None:
        """Lets others write."""
        os.close(self._file)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _whose(folder: Path) -> str:
    """Who has begun the run that is under way in a journal, and when; nothing if the journal does not say so."""
    try:
        past = read(folder)
    except FramegaugeError:
        return ""
    if past.outcome != "open":
        return ""
    by = past.begun["by"]
    who = one_line(f"{by['user']} on {by['machine']}", 100)
    return f" ({one_line(past.begun['kind'], 40)}, begun {one_line(past.begun['at'], 40)} by {who})"


def read(folder: Path) -> Past:
    """What the journal in a folder says; an empty past if there is none. CorruptResults if it is damaged."""
    path = folder / NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Past()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}), expected a journal") from None
    return _past(entries(path, data))


def entries(path: Path, data: bytes) -> list[Json]:
    """The entries of a journal; a line that is cut off is left out. CorruptResults, with `path`, if it is damaged."""
    return [entry for _, entry in _whole(path, data)]


def _hash(line: bytes | None) -> str | None:
    """By which an entry names the one before; None for the first."""
    return None if line is None else hashlib.sha256(line).hexdigest()[:32]


def _whole(path: Path, data: bytes) -> Iterator[tuple[bytes, Json]]:
    """The lines of a journal, each with its entry; CorruptResults for one that is none, or not the next."""
    lines = data.split(b"\n")
    last: bytes | None = None
    is_sealed = False
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            is_entry = isinstance(entry, dict) and isinstance(entry["event"], str)
        except (ValueError, KeyError, RecursionError):
            is_entry = False
        if not is_entry:
            # A line is cut off if its writer was killed: what it would have announced was not done.
            if number < len(lines) - 1 and not line.startswith(b'{"at"'):
                raise CorruptResults(
                    f"{path}:{number}: found no entry of a journal, expected one line of JSON for each"
                )
            continue
        _demand(f"{path}:{number}", entry, last)
        # Those of older versions have no seal, and none follows one that has.
        if is_sealed and seals.KEY not in entry:
            raise CorruptResults(f"{path}:{number}: found no {seals.KEY}, expected one as in the line before")
        is_sealed = seals.check_line(line, entry, f"{path}:{number}")
        yield line, entry
        last = line


def _demand(where: str, entry: Json, last: bytes | None) -> None:
    """NewerResults or CorruptResults unless the entry is one of this version, whole, and the next after `last`."""
    schema = entry.get("schema")
    if entry["event"] == "begun" and isinstance(schema, int) and schema > SCHEMA:
        raise NewerResults(f"{where}: found schema {schema}, expected at most {SCHEMA}")
    if why := complaint(entry):
        raise CorruptResults(f"{where}: {why}")
    if entry.get("after") != _hash(last):
        raise CorruptResults(
            f"{where}: found an entry after another one than the line before, expected a journal as it was written"
        )


ENDS = ("finished", "put_back", "undone", "undone_in_part", "parked")


def _past(entries: Sequence[Json]) -> Past:
    begun: Json = {}
    origin: Mapping[str, Mapping[str, str]] = {}
    back: Json = {}
    outcome = "none"
    for entry in entries:
        event = entry["event"]
        if event == "begun":
            begun, outcome, before = entry, "open", origin
            origin = entry["origin"]
            back = back if entry["kind"] == "undo" else {}
        elif event in ENDS:
            outcome = event
            if event in ("undone", "undone_in_part"):
                back = back | {name: record for name, record in origin.items() if name in begun["hosts"]}
                origin = {name: record for name, record in origin.items() if name not in back}
            elif event == "put_back":
                origin = before
    after = {name: record["after"] for name, record in begun.get("hosts", {}).items()}
    return Past(entries, begun, origin, after, outcome, back)
