"""The metrics that programs print: found in their output by a regular expression or a JMESPath."""

from __future__ import annotations

import itertools
import json
import math
import re
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import jmespath
import jmespath.exceptions

from framegauge import foreign
from framegauge.errors import ProgramFailure
from framegauge.printable import one_line

__all__ = ["Reading", "of_clients", "value"]

MOST_MATCHES = 1000  # that are counted
LAST_LINES = 5
MOST_SHOWN = 400
# 1, 1.5, .5, 1e3, with commas between thousands, as programs print them.
_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Reading:
    """Where a metric stands, the factor to its base unit, and how the values of several clients are put together."""

    output: str | None = None
    json: str | None = None
    file: str | None = None
    client: str | None = None
    factor: float = 1.0
    over_clients: str = "sum"


_TOGETHER: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": math.fsum, "mean": statistics.fmean, "max": max, "min": min,
}  # fmt: skip


def of_clients(reading: Reading, values: Sequence[float]) -> float:
    """The metric of a run in its base unit, from the values of its clients; ProgramFailure if it is too large."""
    try:
        total = reading.factor * _TOGETHER[reading.over_clients](values)
    except OverflowError:
        total = math.inf
    if not math.isfinite(total):
        raise ProgramFailure(f"metrics: found {values[0]:g} from a client, expected numbers with a finite sum")
    return total


def value(name: str, reading: Reading, text: str, where: str) -> float:
    """The number in a client's output, as printed; ProgramFailure with the last lines if there is not exactly one."""
    if reading.output is not None:
        number = _matched(name, reading.output, text, where)
    else:
        number = _picked(name, reading.json or "@", text, where)
    if not math.isfinite(number):
        raise ProgramFailure(f"metric {name}: {where}: found {number}, expected a number")
    return number


def _matched(name: str, pattern: str, text: str, where: str) -> float:
    matches = itertools.islice(re.finditer(pattern, text, re.MULTILINE), MOST_MATCHES)
    texts = [item[1] if item.re.groups else item[0] for item in matches]
    if len(texts) != 1:
        count = "nothing that matches" if not texts else f"{len(texts)} matches of"
        examples = "" if not texts else f" ({', '.join(repr((item or '')[:60]) for item in texts[:3])})"
        raise ProgramFailure(
            f"metric {name}: {where}: found {count} {pattern!r}{examples}, expected one; {_last(text)}"
        )
    number = _NUMBER.fullmatch((texts[0] or "").strip())
    if number is None:
        raise ProgramFailure(
            f"metric {name}: {where}: {pattern!r} found {str(texts[0])[:60]!r}, expected a number; {_last(text)}"
        )
    return float(number[0].replace(",", ""))


def _picked(name: str, path: str, text: str, where: str) -> float:
    try:
        document = foreign.load_json(text.encode())
    except ValueError as error:
        raise ProgramFailure(f"metric {name}: {where}: found no JSON ({error}), expected it; {_last(text)}") from None
    try:
        result = jmespath.search(path, document)
    except (jmespath.exceptions.JMESPathError, ArithmeticError, LookupError, RecursionError, TypeError) as error:
        reason = one_line(error, 200) or type(error).__name__
        raise ProgramFailure(
            f"metric {name}: {where}: {path!r} fails ({reason}), expected a number; {_last(text)}"
        ) from None
    if isinstance(result, str) and _NUMBER.fullmatch(result.strip()):
        return float(result.strip().replace(",", ""))
    if isinstance(result, bool) or not isinstance(result, int | float):
        printed = _shown(result)
        raise ProgramFailure(f"metric {name}: {where}: found {printed} at {path!r}, expected a number; {_last(text)}")
    return float(result) if abs(result) <= sys.float_info.max else math.inf


def _shown(result: object) -> str:
    try:
        return "nothing" if result is None else json.dumps(result)[:60]
    except RecursionError:
        return "something deep"


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return "it printed nothing"
    return f"its last lines: {one_line(' | '.join(lines[-LAST_LINES:])[-MOST_SHOWN:])}"
