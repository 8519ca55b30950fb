"""A folder of samples: what hosts had counted at times, one line of JSON each, in one file per hour (UTC).

It only grows, and is read while it grows. A line is whole or, after a kill, cut off: then it is no sample. Counters
that are 0 are left out; the first line of a host in a file, and in each of its lives, has the names of all (`names`). A
line without `values` says why there is no sample (`gap`).
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from framegauge import foreign
from framegauge.errors import FolderInUse, InputError
from framegauge.results import seals

__all__ = ["Sample", "Writer", "is_written", "read"]

LOCK = ".lock"
HOUR = 3600.0
MOST_BYTES = 8 << 30  # of a folder: 1,000 hosts for three hours at a sample every 15 s, ten for two weeks
MOST_COUNT = float(1 << 64)
_AT = re.compile(rb'\{"at":([0-9]{1,12}\.[0-9]{1,6}),')


@dataclass(frozen=True)
class Sample:
    """What a host had counted at `at` (seconds since 1970), or why nothing is known (`gap`). `life` changes when its
    counters begin anew, `indexes` when an interface does. `names`: counters of which those without a value are 0."""

    at: float
    host: str
    life: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    indexes: Mapping[str, int] = field(default_factory=dict)
    names: Sequence[str] = ()
    gap: str = ""


def _segment(folder: Path, at: float) -> Path:
    return folder / f"{time.strftime('%Y%m%dT%H', time.gmtime(at))}.jsonl"


class Writer:
    """The only writer of a folder; FolderInUse if there is another, InputError if it cannot be written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._segment: tuple[Path, int] | None = None
        self._named: set[tuple[Path, str, str]] = set()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._bytes = sum(file.stat().st_size for file in folder.glob("*.jsonl"))
        except OSError as error:
            raise InputError(f"{folder}: cannot be used ({error.strerror}), expected a writable folder") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise FolderInUse(f"{folder}: another framegauge samples into it, expected one at a time") from None

    def write(self, samples: Sequence[Sample]) -> None:
        """Adds samples; they are on disk when this returns."""
        for path in dict.fromkeys(_segment(self.folder, sample.at) for sample in samples):
            lines = [self._line(path, sample) for sample in samples if _segment(self.folder, sample.at) == path]
            self._append(path, b"".join(lines))

    def _line(self, path: Path, sample: Sample) -> bytes:
        entry: dict[str, Any] = {"at": 0.0, "host": sample.host}
        if sample.gap:
            entry["gap"] = sample.gap
        else:
            entry |= {"life": sample.life, "values": {name: value for name, value in sample.values.items() if value}}
            entry["indexes"] = dict(sample.indexes)
            if (path, sample.host, sample.life) not in self._named:
                self._named.add((path, sample.host, sample.life))
                entry["names"] = [name for name in sample.values if ":" not in name]
        text = json.dumps(entry, separators=(",", ":"), allow_nan=False)
        # A fixed form, by which lines of other times are passed over unread.
        return seals.line(text.replace('"at":0.0', f'"at":{sample.at:.3f}', 1).encode()) + b"\n"

    def _append(self, path: Path, data: bytes) -> None:
        if self._bytes + len(data) > MOST_BYTES:
            raise InputError(
                f"{self.folder}: found {self._bytes / 1e9:.1f} GB of samples, expected less: remove files of old hours"
            )
        try:
            if self._segment is None or self._segment[0] != path:
                self._close_segment()
                self._segment = path, os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
                size = os.fstat(self._segment[1]).st_size
                if size and os.pread(self._segment[1], 1, size - 1) != b"\n":
                    data = b"\n" + data  # ends the line that a killed writer left
            self._bytes += len(data)
            while data:
                data = data[os.write(self._segment[1], data) :]
            os.fsync(self._segment[1])
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror}), expected room for samples") from None

    def _close_segment(self) -> None:
        if self._segment is not None:
            os.close(self._segment[1])
            self._segment = None

    def close(self) -> None:
        """Lets others write."""
        self._close_segment()
        os.close(self._lock)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_written(folder: Path) -> bool:
    """Whether somebody samples into the folder now."""
    try:
        with Writer(folder):
            return False
    except FolderInUse:
        return True


def read(folder: Path, begin: float, end: float) -> Iterator[Sample]:
    """The samples between two times, in the order in which they were written; before each host's the names that its
    counters have, as a sample without values. What is no whole line is passed over; CorruptResults for one that
    something has changed."""
    hour = begin // HOUR * HOUR
    while hour <= end:
        with suppress(FileNotFoundError), _segment(folder, hour).open("rb") as file:
            for number, line in enumerate(file, 1):
                at = _AT.match(line)
                if at is None or not line.endswith(b"\n"):
                    continue
                is_asked = begin <= float(at[1]) <= end
                if is_asked or b'"names":' in line:
                    yield from _samples(line, is_asked, f"{file.name}:{number}")
        hour += HOUR


def _samples(line: bytes, is_asked: bool, where: str) -> Iterator[Sample]:
    try:
        record = foreign.load_json(line)
        seals.check_line(line.removesuffix(b"\n"), record, where)
        at, host = float(record["at"]), str(record["host"])
        if names := [str(name) for name in record.get("names", ())]:
            yield Sample(at, host, names=names)
        if is_asked and "gap" in record:
            yield Sample(at, host, gap=str(record["gap"]))
        elif is_asked:
            values = {str(name): float(value) for name, value in record["values"].items()}
            indexes = {str(name): int(index) for name, index in record["indexes"].items()}
            if all(math.isfinite(value) and abs(value) <= MOST_COUNT for value in values.values()):
                yield Sample(at, host, str(record["life"]), values, indexes)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return
