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
    change = _change(summary, reading, reading.where)
    if reading.than is None:
        return change
    other_change = _change(summary, reading, reading.than)
    if change.estimate is None or other_change.estimate is None:
        return change if change.estimate is None else other_change
    estimate = change.estimate.over(other_change.estimate)
    changes_text = " beside ".join(
        words.change(part.number, part.interval) for part in (change.estimate, other_change.estimate)
    )
    text = f"{changes_text}: {estimate.number:.3g} times ({estimate.low:.3g} to {estimate.high:.3g})"
    return Value(estimate, text, change.verdict, min(change.runs, other_change.runs))


def conditions(summary: Summary) -> frozenset[str]:
    """The names of all conditions of a study's comparisons."""
    return frozenset(name for verdict in summary["verdicts"] for name in verdict["conditions"])


def _change(summary: Summary, reading: Reading, where: Mapping[str, Any]) -> Value:
    """The change at these conditions; those that are not given are the first levels of what the study varies."""
    verdicts = [entry for entry in summary["verdicts"] if not words.is_control(entry)]
    if not any(entry["metric"] == reading.metric for entry in verdicts):
        unread = {entry["metric"]: str(entry["why"]) for entry in summary.get("not_measured", ())}
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
    candidates = [item["conditions"] for item in verdicts if where.keys() <= item["conditions"].keys()]
    return next((item for item in candidates if is_at(item, where)), candidates[0] if candidates else {})


def is_at(there: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    """Whether conditions are those that a reading names, whatever else they are."""
    return all(name in there and _alike(there[name], level) for name, level in where.items())


def _is_whole(actual: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    return actual.keys() == expected.keys() and is_at(actual, expected)


def _alike(actual: Any, expected: Any) -> bool:
    if isinstance(expected, float) and isinstance(actual, (int, float)):
        return math.isclose(actual, expected, rel_tol=1e-6)
    return bool(actual == expected)


def _of(verdict: Verdict) -> Value:
    runs = int(verdict["runs"])
    if verdict["verdict"] in _NOT_JUDGED:
        return none(_NOT_JUDGED[verdict["verdict"]], verdict["verdict"], runs)
    if verdict["ratio"] is None or verdict["ci95"] is None:
        return none(NO_INTERVAL, verdict["verdict"], runs)
    estimate = Estimate(verdict["ratio"], *verdict["ci95"])
    before, after = (words.quantity(verdict[side]["estimate"], verdict["unit"]) for side in ("baseline", "treatment"))
    change = f"{words.change(estimate.number, estimate.interval)} ({words.change_interval(estimate.interval)})"
    return Value(estimate, f"{before} → {after}, {change}", verdict["verdict"], runs)


def _share(entry: Mapping[str, Any]) -> Value:
    if entry["share"] is None or entry["ci95"] is None:
        return none(NO_INTERVAL, entry["verdict"], entry["runs"])
    estimate = Estimate(entry["share"], *entry["ci95"])
    return Value(
        estimate, f"{estimate.number:.2g} ({estimate.low:.2g} to {estimate.high:.2g})", entry["verdict"], entry["runs"]
    )


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
