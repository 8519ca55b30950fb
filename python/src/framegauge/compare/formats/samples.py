"""The data of a comparison: runs from any tool, each with its conditions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from framegauge import foreign
from framegauge.errors import InputError

__all__ = [
    "LARGEST_VALUE",
    "MovedNothing",
    "OtherRun",
    "Sample",
    "Side",
    "Unreadable",
    "as_number",
    "load_json",
    "one_line",
    "set_key",
]

LARGEST_VALUE = 1e18  # of any metric: a file with a larger value is broken
SMALLEST_VALUE = 1e-18
MOST_TEXT = 200


class Unreadable(InputError):
    """A file without a usable run: one line with what was found and what was expected."""

    lost = True  # counts as a run that was attempted and failed
    moved_nothing = False
    cut_off = False  # nothing tells what became of the run


class MovedNothing(Unreadable):
    """A run that was made, and moved no data: a result. `conditions` are those that the file tells."""

    moved_nothing = True

    def __init__(self, message: str, conditions: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.conditions = conditions or {}


class CutOff(Unreadable):
    """A file that is empty or ends within its document, as a tool leaves it that was killed: the run may have moved
    nothing, or all but the end."""

    cut_off = True


class OtherRun(Unreadable):
    """A successful run of a kind that is not compared."""

    lost = False


@dataclass(frozen=True)
class Sample:
    """One run under one set of conditions, in base units.

    A file with both directions gives several samples of the same `run`. Samples of one `unit` depend on one another
    (runs of a block at the same level) and count once. `level` is that of the treatment, such as {"mtu": 9000}; files
    of other tools have none. `excluded` holds the reasons why the run does not count, `lost` is whether it was tried
    and failed, `moved_nothing` whether it was made and no data arrived, `cut_off` whether its file does not tell that,
    `slot` is what a run shares with its retries, `stalled` how it moved something and then, or in a part of it,
    nothing, `facts` describes where it ran, `notes` what makes it worth less.
    """

    run: str
    workload: str
    conditions: Mapping[str, Any]
    metrics: Mapping[str, float]
    level: Mapping[str, Any] = field(default_factory=dict)
    unit: str = ""
    slot: str = ""
    excluded: Sequence[str] = ()
    lost: bool = True
    moved_nothing: bool = False
    cut_off: bool = False
    stalled: str = ""
    began: datetime | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Side:
    """One of the two sides of a comparison: `source` as given, `place` its resolved folder, `kind` results, iperf3 or
    flent.

    `margins` are those declared beforehand, `facts` hold for all its runs, `doubts` are the reasons why a metric is
    suspect, by workload and conditions (see `set_key`), `notes` are for the reader, `own` are the metrics that a study
    has declared, as in its results.json.
    """

    source: str
    place: str
    kind: str
    samples: Sequence[Sample]
    margins: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    doubts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    own: Mapping[str, Any] = field(default_factory=dict)


def set_key(workload: str, conditions: Mapping[str, Any], level: Mapping[str, Any] | None = None) -> str:
    """A key that is equal for runs of the same workload, conditions and level; 10 s and 10.0 s are the same."""
    return json.dumps([workload, _whole(conditions), _whole(level or {})], sort_keys=True, default=str)


def _whole(conditions: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in conditions.items()
    }


def one_line(text: object, most: int = MOST_TEXT) -> str:
    """Text from outside as one line that is safe to print: no control characters, nothing that cannot be encoded."""
    clean = str(text)[: 4 * most].encode("utf-8", "replace").decode("utf-8")
    clean = " ".join("".join(letter if letter.isprintable() else " " for letter in clean).split())
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def load_json(data: bytes, what: str) -> Mapping[str, Any]:
    """The JSON object in the bytes; Unreadable if there is none, CutOff if there is only its beginning."""
    if not data.strip():
        raise CutOff(f"found an empty file, expected {what}: was the run killed?")
    try:
        document = foreign.load_json(data)
    except foreign.TooLarge as error:
        raise Unreadable(f"{error}, in {what}") from None
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise Unreadable(f"found more than one JSON document, expected one {what}: one file is one run") from None
        if data.lstrip().startswith(b"{") and (
            error.pos >= len(error.doc.rstrip()) or not data.rstrip().endswith(b"}")
        ):
            raise CutOff(
                f"found JSON that is cut off after {len(data)} bytes, expected {what}: was the run killed?"
            ) from None
        raise Unreadable(f"found no JSON ({error.msg} at byte {error.pos}), expected {what}") from None
    except ValueError:  # wrong encodings, numbers of a million digits, endless nesting
        raise Unreadable(f"found no JSON, expected {what}") from None
    if not isinstance(document, dict):
        raise Unreadable(f"found no JSON object, expected {what}")
    return document


def as_number(value: object) -> float | None:
    """The value as a number if a metric can have it (0, or within the limits), else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not (value == 0 or SMALLEST_VALUE <= value <= LARGEST_VALUE) or not math.isfinite(value):
        return None
    return float(value)
