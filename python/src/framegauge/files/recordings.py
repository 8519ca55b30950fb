"""Recorded flows: who sent how much to whom, and when. Read from CSV files."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from framegauge import foreign
from framegauge.errors import StudyError
from framegauge.printable import printable

__all__ = ["MOST_FLOWS", "Recorded", "Recording", "parse_csv", "read", "to_csv"]

MOST_FLOWS = 1_000_000
MOST_BYTES = 256 << 20  # of a file
MOST_FLOW_BYTES = 1 << 50  # of a flow in one direction
MOST_SECONDS = 1e10  # more than the seconds since 1970
EXPECTED = "a CSV file of flows"
MOST_SHOWN = 60  # characters of a value in an error
NEEDED = ("client", "server", "start_seconds", "bytes")
OPTIONAL = ("reverse_bytes", "end_seconds", "id", "after", "connection")


@dataclass(frozen=True)
class Recorded:
    """One flow. It sent `bytes` from client to server, and then `reverse_bytes` back; `after`: the flows, by their
    place, that had to end before it began. `end_seconds`: None if it is not known. Flows with the same `connection`
    went over one, in their order; without a name, each over its own."""

    client: str
    server: str
    start_seconds: float
    bytes: int
    reverse_bytes: int = 0
    end_seconds: float | None = None
    after: tuple[int, ...] = ()
    connection: str = ""


@dataclass(frozen=True)
class Recording:
    """The flows of a recording, in its order; times count from the first start."""

    flows: Sequence[Recorded]

    @property
    def names(self) -> list[str]:
        """The ends in the order in which they appear."""
        return list(dict.fromkeys(name for flow in self.flows for name in (flow.client, flow.server)))

    @cached_property
    def sha256(self) -> str:
        """What tells it from others."""
        # Without names of connections it is what it was before there were any.
        count = len(fields(Recorded)) - (not any(flow.connection for flow in self.flows))
        text = json.dumps([astuple(flow)[:count] for flow in self.flows], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


class _Bad(ValueError):
    """What was found, and what was expected."""


def read(path: Path) -> Recording:
    """The recording in a CSV file; StudyError in one line."""
    try:
        about = path.stat()
        return _read(path, (about.st_mtime_ns, about.st_size))
    except OSError as error:
        raise StudyError([f"{path}: found no readable file ({error.strerror}), expected {EXPECTED}"]) from None


@lru_cache(maxsize=4)
def _read(path: Path, _state: tuple[int, int]) -> Recording:
    try:
        data = foreign.read(path, MOST_BYTES)
    except foreign.TooLarge as error:
        raise StudyError([f"{path}: {error}"]) from None
    return parse_csv(data, str(path))


def parse_csv(data: bytes, name: str) -> Recording:
    """The recording in a CSV file with a line of column names; StudyError with the line of what is wrong."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise StudyError([f"{name}: found invalid UTF-8 at byte {error.start}, expected CSV"]) from None
    rows = csv.reader(text.splitlines(), strict=True)
    try:
        columns = [cell.strip() for cell in next(rows, [])]
        _check(columns, name)
        return _whole(_rows(rows, columns, name), name)
    except csv.Error as error:
        raise StudyError([f"{name}:{rows.line_num}: found no CSV ({error}), expected values between commas"]) from None


def to_csv(flows: Iterable[Recorded]) -> str:
    """Flows as `parse_csv` reads them: if the first of them starts at 0, it gives the same ones."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow((*NEEDED, *OPTIONAL))
    for place, flow in enumerate(flows):
        end = "" if flow.end_seconds is None else repr(flow.end_seconds)
        sizes = repr(flow.start_seconds), flow.bytes, flow.reverse_bytes, end
        rows.writerow((flow.client, flow.server, *sizes, place, " ".join(map(str, flow.after)), flow.connection))
    return text.getvalue()


def _check(columns: Sequence[str], name: str) -> None:
    known_columns = (*NEEDED, *OPTIONAL)
    for column in columns:
        if column not in known_columns:
            raise StudyError([f"{name}:1: found column {_shown(column)}, expected {', '.join(known_columns)}"])
        if columns.count(column) > 1:
            raise StudyError([f"{name}:1: found column {column} twice, expected once"])
    if lacking := [column for column in NEEDED if column not in columns]:
        raise StudyError([f"{name}:1: found no column {lacking[0]}, expected {', '.join(NEEDED)}"])
    if "after" in columns and "id" not in columns:
        raise StudyError([f"{name}:1: found column after without id, expected both"])


def _rows(rows: Any, columns: Sequence[str], name: str) -> Iterator[Recorded]:
    places: dict[str, int] = {}
    ends: dict[str, tuple[str, str]] = {}
    count = 0
    for row in rows:
        if not row:
            continue
        where = f"{name}:{rows.line_num}"
        if len(row) != len(columns):
            raise StudyError([f"{where}: found {len(row)} values, expected {len(columns)}"])
        values = dict(zip(columns, (value.strip() for value in row), strict=True))
        try:
            flow = _recorded(values, places)
            if flow.connection and ends.setdefault(flow.connection, (flow.client, flow.server)) != (
                flow.client, flow.server,
            ):  # fmt: skip
                expected = " and ".join(map(_shown, ends[flow.connection]))
                raise _Bad(
                    f"connection: found {_shown(flow.connection)} with other ends, expected {expected} as before"
                )
            yield flow
            if identity := values.get("id"):
                if identity in places:
                    raise _Bad(f"id: found {_shown(identity)} twice, expected another")
                places[identity] = count
        except _Bad as error:
            raise StudyError([f"{where}: {error}"]) from None
        count += 1


def _recorded(values: Mapping[str, str], places: Mapping[str, int]) -> Recorded:
    for end in ("client", "server"):
        if not values[end]:
            raise _Bad(f"{end}: found nothing, expected the name of a host")
    start = _seconds("start_seconds", values["start_seconds"])
    end_seconds = _seconds("end_seconds", values["end_seconds"]) if values.get("end_seconds") else None
    after = values.get("after", "").split()
    for identity in after:
        if identity not in places:
            raise _Bad(f"after: found {_shown(identity)}, expected the id of a flow above")
    return _sound(
        Recorded(
            values["client"], values["server"], start, _bytes("bytes", values["bytes"]),
            _bytes("reverse_bytes", values.get("reverse_bytes") or "0"), end_seconds,
            tuple(dict.fromkeys(places[identity] for identity in after)), values.get("connection", ""),
        )
    )  # fmt: skip


def _sound(flow: Recorded) -> Recorded:
    if flow.client == flow.server:
        raise _Bad(f"server: found {_shown(flow.server)}, the client, expected another host")
    if not flow.bytes + flow.reverse_bytes:
        raise _Bad("bytes: found 0, expected more than 0 in one direction")
    if flow.end_seconds is not None and flow.end_seconds <= flow.start_seconds:
        raise _Bad(f"end_seconds: found {flow.end_seconds:g}, expected a time after the start")
    return flow


def _bytes(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 16 or int(text) > MOST_FLOW_BYTES:
        raise _Bad(f"{name}: found {_shown(text)}, expected a whole number from 0 to {MOST_FLOW_BYTES}")
    return int(text)


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= MOST_SECONDS:
        raise _Bad(f"{name}: found {_shown(text)}, expected seconds from 0 to {MOST_SECONDS:g}")
    return seconds


def _whole(flows: Iterator[Recorded], name: str) -> Recording:
    recorded: list[Recorded] = []
    for flow in flows:
        if len(recorded) == MOST_FLOWS:
            raise StudyError([f"{name}: found more than {MOST_FLOWS} flows, expected at most that many"])
        recorded.append(flow)
    if not recorded:
        raise StudyError([f"{name}: found no flows, expected at least one"])
    first = min(flow.start_seconds for flow in recorded)
    return Recording(tuple(_since(flow, first) for flow in recorded))


def _since(flow: Recorded, first: float) -> Recorded:
    end = None if flow.end_seconds is None else flow.end_seconds - first
    return Recorded(
        flow.client, flow.server, flow.start_seconds - first, flow.bytes, flow.reverse_bytes, end, flow.after,
        flow.connection,
    )  # fmt: skip


def _shown(text: str) -> str:
    return f'"{printable(text[:MOST_SHOWN])}"'
