"""What a tool answers, as CSV: a row for each cause that it names.

    capture,connection,cause,begin,end
    runs/one-loss-10005/sender.pcapng.gz,10.9.1.1:5000-10.9.2.1:41000,fast_retransmit,1795903329.20,1795903329.23

`capture` is the file's path in the corpus. `connection` is both ends in any order, or empty: the capture as a whole.
`cause` is a kind or a family. `begin` and `end` are seconds since 1970, or both empty: the tool does not say when.
"""

from __future__ import annotations

import csv
import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TextIO

from bench.corpus.families import known

COLUMNS = ["capture", "connection", "cause", "begin", "end"]
END = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<four>[0-9.]+)):(?P<port>\d{1,5})")
Pair = frozenset[str]


class AnswersError(Exception):
    """What is wrong with a file of answers, in one line."""


@dataclass(frozen=True)
class Answer:
    """A cause that a tool names. `connection` None: of the capture. Times: seconds since 1970."""

    capture: str
    connection: Pair | None
    cause: str
    begin: float | None = None
    end: float | None = None


def end(address: str, port: str | int) -> str:
    """An end as it is written in answers and truths."""
    return f"[{ipaddress.ip_address(address)}]:{port}" if ":" in address else f"{address}:{port}"


def pair(text: str) -> Pair:
    """Both ends of a connection. ValueError: they are none."""
    first, dash, second = text.partition("-")
    ends = []
    for part in (first, second):
        matched = END.fullmatch(part.strip())
        if not dash or matched is None or int(matched["port"]) > 65535:
            raise ValueError(text)
        ends.append(end(matched["six"] or str(ipaddress.ip_address(matched["four"])), int(matched["port"])))
    return frozenset(ends)


def read(lines: Iterable[str], name: str = "answers") -> list[Answer]:
    """The answers of a file. AnswersError: a row that cannot be understood."""
    rows = csv.DictReader(lines)
    if rows.fieldnames is None or list(rows.fieldnames) != COLUMNS:
        raise AnswersError(f"{name}: found the columns {rows.fieldnames}, expected {','.join(COLUMNS)}")
    return [_answer(row, f"{name}, line {rows.line_num}") for row in rows]


def _answer(row: dict[str, str | None], place: str) -> Answer:
    if None in row or None in row.values():
        raise AnswersError(f"{place}: found more or fewer values than {len(COLUMNS)}, expected one per column")
    values = {name: (value or "").strip() for name, value in row.items()}
    if values["cause"] not in known():
        raise AnswersError(f"{place}: found the cause {values['cause']}, expected a kind or a family of the corpus")
    try:
        connection = pair(values["connection"]) if values["connection"] else None
    except ValueError:
        raise AnswersError(
            f"{place}: found the connection {values['connection']}, expected ADDRESS:PORT-ADDRESS:PORT or nothing"
        ) from None
    if bool(values["begin"]) != bool(values["end"]):
        raise AnswersError(f"{place}: found one of begin and end, expected both or none")
    try:
        begin, last = (float(values[name]) if values[name] else None for name in ("begin", "end"))
    except ValueError:
        raise AnswersError(
            f"{place}: found the times {values['begin']} and {values['end']}, expected seconds since 1970"
        ) from None
    return Answer(values["capture"], connection, values["cause"], begin, last)


def write(answers: Iterable[Answer], out: TextIO) -> int:
    """Write them; how many."""
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(COLUMNS)
    written = 0
    for row in _rows(answers):
        rows.writerow(row)
        written += 1
    return written


def _rows(answers: Iterable[Answer]) -> Iterator[list[str]]:
    for answer in answers:
        times = ["" if time is None else f"{time:.6f}" for time in (answer.begin, answer.end)]
        yield [answer.capture, "-".join(sorted(answer.connection or ())), answer.cause, *times]
