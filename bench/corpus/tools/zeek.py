"""Zeek's conn.log: a state and a history for each connection."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.corpus.answers import Answer, end

TITLE = "Zeek (conn.log)"
NEEDS = "zeek"
MAPPING = (
    "history `T`, `t` (a payload was retransmitted): `fast_retransmit`; `W`, `w`: `zero_window`; `G`, `g` (a gap) or "
    "missed bytes: `capture_loss`; `C`, `c` (a wrong checksum): `checksum_offload`; states `RSTO`, `RSTR` and "
    "letters `R`, `r`: `reset`, or `connection_refused` with `REJ`; letters of one direction only: `half_capture`"
)
LETTERS = (("T", "fast_retransmit"), ("W", "zero_window"), ("G", "capture_loss"), ("C", "checksum_offload"))


def output(capture: Path) -> str:
    """What the tool prints."""
    with tempfile.TemporaryDirectory() as folder:
        # -C: a capture of headers alone has no checksums that could be verified.
        subprocess.run(["zeek", "-C", "-r", str(capture.resolve())], cwd=folder, check=True, stderr=subprocess.DEVNULL)
        log = Path(folder, "conn.log")
        return log.read_text() if log.exists() else ""


def answers(text: str, capture: str) -> Iterator[Answer]:
    """What it says of a capture."""
    names: list[str] = []
    for line in text.splitlines():
        if line.startswith("#fields"):
            names = line.split("\t")[1:]
        if line.startswith("#") or not line:
            continue
        row = dict(zip(names, line.split("\t"), strict=False))
        if row.get("proto") != "tcp":
            continue
        connection = frozenset(end(row[f"id.{side}_h"], row[f"id.{side}_p"]) for side in ("orig", "resp"))
        begin = float(row["ts"])
        last = begin + (0.0 if row["duration"] == "-" else float(row["duration"]))
        for cause in dict.fromkeys(_causes(row["conn_state"], row["history"], row["missed_bytes"])):
            yield Answer(capture, connection, cause, begin, last)


def _causes(state: str, history: str, missed: str) -> Iterator[str]:
    # "^" says that Zeek has turned the direction round.
    letters = history.replace("^", "").replace("-", "")
    yield from (cause for letter, cause in LETTERS if letter in letters.upper())
    if missed.isdecimal() and int(missed):
        yield "capture_loss"
    if state == "REJ":
        yield "connection_refused"
    elif "R" in letters.upper():
        yield "reset"
    if state != "S0" and (letters.isupper() or letters.islower()):
        yield "half_capture"
