"""What a comparison is made of: runs from anywhere, each with its conditions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from framegauge.errors import InputError

__all__ = ["LARGEST_VALUE", "OtherRun", "Sample", "Side", "Unreadable", "as_number", "load_json", "one_line", "set_key"]

LARGEST_VALUE = 1e18  # of any metric: beyond, a file is broken, and logarithms stay far from their limits
SMALLEST_VALUE = 1e-18
MOST_TEXT = 200


class Unreadable(InputError):
    """A file that gives no run: one line, what was found and what was expected."""

    lost = True  # counts as a run that was attempted and failed


class OtherRun(Unreadable):
    """A run that went well, of a kind that is not compared."""

    lost = False


@dataclass(frozen=True)
class Sample:
    """One run under one set of conditions, in base units.

    A file that measured both directions gives several, of the same `run`. Samples of one `unit` are not independent of
    one another (a block's runs at the same level) and count once. `level` is that of the treatment, such as
    {"mtu": 9000}; files of other tools have none. `excluded` holds the reasons why it is no evidence, `lost` is whether
    it failed and might have been; `facts` what is known of where it ran.
    """

    run: str
    workload: str
    conditions: Mapping[str, Any]
    metrics: Mapping[str, float]
    level: Mapping[str, Any] = field(default_factory=dict)
    unit: str = ""
    excluded: Sequence[str] = ()
    lost: bool = True
    began: datetime | None = None
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Side:
    """One of the two sides of a comparison: `source` as it was asked for, `place` its folder, however it was named,
    `kind` results, iperf3 or flent.

    `margins` are those that were declared beforehand, `facts` what holds for all its runs, `doubts` why a metric is
    suspect by workload and conditions (see `set_key`), `notes` what a reader should know of it.
    """

    source: str
    place: str
    kind: str
    samples: Sequence[Sample]
    margins: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    doubts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    notes: Sequence[str] = ()


def set_key(workload: str, conditions: Mapping[str, Any], level: Mapping[str, Any] | None = None) -> str:
    """A text that is the same for runs that were made alike; 10 s and 10.0 s are."""
    return json.dumps([workload, _whole(conditions), _whole(level or {})], sort_keys=True, default=str)


def _whole(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value for name, value in found.items()
    }


def one_line(text: object, most: int = MOST_TEXT) -> str:
    """Somebody else's text, fit for one line of a terminal: no control characters, nothing that cannot be encoded."""
    clean = str(text)[: 4 * most].encode("utf-8", "replace").decode("utf-8")
    clean = " ".join("".join(letter if letter.isprintable() else " " for letter in clean).split())
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def load_json(data: bytes, what: str) -> Mapping[str, Any]:
    """The object that the bytes hold; Unreadable if they do not."""
    try:
        found = json.loads(data)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise Unreadable(f"found more than one JSON document, expected one {what}: one file is one run") from None
        raise Unreadable(f"found no JSON ({error.msg} at byte {error.pos}), expected {what}") from None
    except (ValueError, RecursionError):  # wrong encodings, numbers of a million digits, endless nesting
        raise Unreadable(f"found no JSON, expected {what}") from None
    if not isinstance(found, dict):
        raise Unreadable(f"found no JSON object, expected {what}")
    return found


def as_number(value: object) -> float | None:
    """A number that a metric can have (0, or one within reason), else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not (value == 0 or SMALLEST_VALUE <= value <= LARGEST_VALUE) or not math.isfinite(value):
        return None
    return float(value)
