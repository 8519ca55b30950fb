"""The reading of a figure in a study's summary: a ratio, or the share of the few, with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.metrics import SHARE_OF_FEW
from framegauge.reproduce.documents import Reading
from framegauge.reproduce.values import Estimate, Value, none
from framegauge.summary import words

__all__ = ["conditions", "is_at", "is_level", "value"]

NO_COMPARISON = "no such comparison in this study's results"
NO_INTERVAL = "no usable interval from so few runs"
_NOT_JUDGED = {
    "suspect": "an A/A control differs, so nothing is claimed", "not judged": "too many runs were lost",
}  # fmt: skip
Summary = Mapping[str, Any]
Verdict = Mapping[str, Any]


def value(summary: Summary, reading: Reading) -> Value:
    """The reading of a figure: the share of the few, or a change, or how many times another change it is."""
    if reading.metric == SHARE_OF_FEW:
        return next(map(_share, _entries(summary, reading)), none(NO_COMPARISON))
    here = _change(summary, reading, reading.where)
    if reading.than is None:
        return here
    there = _change(summary, reading, reading.than)
    if here.estimate is None or there.estimate is None:
        return here if here.estimate is None else there
    found = here.estimate.over(there.estimate)
    said = " beside ".join(words.change(each.number, each.interval) for each in (here.estimate, there.estimate))
    text = f"{said}: {found.number:.3g} times ({found.low:.3g} to {found.high:.3g})"
    return Value(found, text, here.verdict, min(here.runs, there.runs))


def conditions(summary: Summary) -> frozenset[str]:
    """The names of all conditions of a study's comparisons."""
    return frozenset(name for verdict in summary["verdicts"] for name in verdict["conditions"])


def _change(summary: Summary, reading: Reading, where: Mapping[str, Any]) -> Value:
    """The change at these conditions; those that are not given are the first levels of what the study varies."""
    verdicts = [each for each in summary["verdicts"] if not words.is_control(each)]
    if not any(each["metric"] == reading.metric for each in verdicts):
        unread = {each["metric"]: str(each["why"]) for each in summary.get("not_measured", ())}
        return none(unread.get(reading.metric, f"{words.metric(reading.metric)} is not measured on this testbed"))
    treatment = reading.treatment or next(iter(verdicts[0]["treatment"]))
    expected = {**_first(verdicts, where), **where}
    for verdict in verdicts:
        is_here = verdict["metric"] == reading.metric and is_level(verdict["treatment"].get(treatment), reading.level)
        if is_here and _is_whole(verdict["conditions"], expected):
            return _of(verdict)
    return none(NO_COMPARISON)


def _first(verdicts: Sequence[Verdict], where: Mapping[str, Any]) -> Mapping[str, Any]:
    """The conditions of the first comparison that has what is given: of several workloads, those of the right one. Two
    of these may vary the same, and only one at these values."""
    named = [each["conditions"] for each in verdicts if where.keys() <= each["conditions"].keys()]
    return next((each for each in named if is_at(each, where)), named[0] if named else {})


def is_at(there: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    """Whether conditions are those that a reading names, whatever else they are."""
    return all(name in there and _alike(there[name], given) for name, given in where.items())


def _is_whole(there: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    return there.keys() == expected.keys() and is_at(there, expected)


def _alike(there: Any, given: Any) -> bool:
    if isinstance(given, float) and isinstance(there, (int, float)):
        return math.isclose(there, given, rel_tol=1e-6)
    return bool(there == given)


def _of(verdict: Verdict) -> Value:
    runs = int(verdict["runs"])
    if verdict["verdict"] in _NOT_JUDGED:
        return none(_NOT_JUDGED[verdict["verdict"]], verdict["verdict"], runs)
    if verdict["ratio"] is None or verdict["ci95"] is None:
        return none(NO_INTERVAL, verdict["verdict"], runs)
    found = Estimate(verdict["ratio"], *verdict["ci95"])
    before, after = (words.quantity(verdict[side]["estimate"], verdict["unit"]) for side in ("baseline", "treatment"))
    change = f"{words.change(found.number, found.interval)} ({words.change_interval(found.interval)})"
    return Value(found, f"{before} → {after}, {change}", verdict["verdict"], runs)


def _share(entry: Mapping[str, Any]) -> Value:
    if entry["share"] is None or entry["ci95"] is None:
        return none(NO_INTERVAL, entry["verdict"], entry["runs"])
    found = Estimate(entry["share"], *entry["ci95"])
    return Value(found, f"{found.number:.2g} ({found.low:.2g} to {found.high:.2g})", entry["verdict"], entry["runs"])


def _entries(summary: Summary, reading: Reading) -> Iterator[Mapping[str, Any]]:
    for entry in summary.get("few", ()):
        (level,) = entry["levels"].values()
        if is_level(level, reading.level) and is_at(entry["conditions"], reading.where):
            yield entry


def is_level(there: Any, given: Any) -> bool:
    """Whether a level is that of a reading: {kind: red} means that of this kind, whatever else it says."""
    if isinstance(given, dict) and isinstance(there, Mapping):
        return given.items() <= there.items()
    return bool(there == given)
