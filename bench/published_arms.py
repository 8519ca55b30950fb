"""Which verdict answers a published figure, and which arm explains a difference: for bench/reproduction.py."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.published_rows import Arm, Published

from framegauge.summary import words

__all__ = ["Judged", "Row", "agrees", "answers", "judged", "section"]

EQUAL = 1.2  # within this factor an interval may reach, if it is to agree that two are equal
Interval = Sequence[float]
Summaries = Mapping[str, Mapping[str, Any]]
Verdict = Mapping[str, Any]
Row = tuple[Published, Verdict | None, Sequence[str]]


@dataclass(frozen=True)
class Judged:
    """What an arm found: its verdict, by which factor it moves the row's ratio, and whether that explains it.

    The interval of the factor takes the two ratios as independent (half-widths of their logarithms in quadrature),
    which is wider than what pairs of the same blocks would give.
    """

    arm: Arm
    verdict: Verdict
    moved: float
    moved_ci95: Interval
    explains: bool
    helps: bool

    @property
    def said(self) -> str:
        """The candidate, and the change with it."""
        return f"{self.arm.said}, with {_change(self.verdict)}"


def answers(summaries: Summaries, asked: Published) -> Iterator[Verdict]:
    """The verdicts that answer a published figure: those of its study in which nothing but what is `free` differs from
    the first levels of what is varied."""
    yield from _matching(summaries.get(asked.study), asked, asked.conditions, asked.metric)


def _matching(
    summary: Mapping[str, Any] | None, asked: Published, conditions: Mapping[str, Any], metric: str
) -> Iterator[Verdict]:
    verdicts = [] if summary is None else [each for each in summary["verdicts"] if not words.is_control(each)]
    for verdict in verdicts:
        at = verdict["conditions"]
        first = {name: value for name, value in verdicts[0]["conditions"].items() if name not in asked.free}
        expected = {**first, **{name: value for name, value in conditions.items() if name in at}}
        same = all(_alike(at.get(name), value) for name, value in expected.items())
        if same and verdict["metric"] == metric and verdict["treatment"].get(asked.treatment) in asked.levels:
            yield verdict


def _alike(found: Any, asked: Any) -> bool:
    if isinstance(asked, float) and isinstance(found, (int, float)):
        return math.isclose(found, asked, rel_tol=1e-6)
    return bool(found == asked)


def agrees(asked: Published, verdict: Verdict) -> str:
    """Whether a verdict agrees with the published figure."""
    if verdict["verdict"] in ("suspect", "not judged"):
        return "no evidence"
    if verdict["ci95"] is None:
        return "cannot tell"
    low, high = verdict["ci95"]
    if low > asked.high or asked.low > high:
        return "no"
    # One so wide says nothing about equality.
    if asked.low <= 1 <= asked.high and not 1 / EQUAL <= low <= high <= EQUAL:
        return "cannot tell"
    # An interval that holds both the published effect and none at all says nothing about it.
    return "cannot tell" if low <= 1 <= high and not asked.low <= 1 <= asked.high else "yes"


def judged(summaries: Summaries, asked: Published, row: Verdict) -> list[Judged]:
    """The arms of a row that were measured, those first that come closest to the published figure."""
    found = []
    for arm in asked.arms:
        own = {name: row["conditions"][name] for name in asked.free}
        conditions = {**asked.conditions, **own, **arm.conditions}
        for verdict in _matching(summaries.get(arm.study), asked, conditions, arm.metric or asked.metric):
            same = verdict["treatment"][asked.treatment] == row["treatment"][asked.treatment]
            if same and verdict["ci95"] and row["ci95"]:
                found.append(_judge(arm, asked, row, verdict))
    return sorted(found, key=lambda each: _distance(asked, each.verdict["ratio"]))


def _judge(arm: Arm, asked: Published, row: Verdict, verdict: Verdict) -> Judged:
    halves = [math.log(each["ci95"][1] / each["ci95"][0]) / 2 for each in (row, verdict)]
    moved, half = verdict["ratio"] / row["ratio"], math.hypot(*halves)
    interval = moved * math.exp(-half), moved * math.exp(half)
    sure = interval[0] > 1 or interval[1] < 1
    nearer = _distance(asked, verdict["ratio"]) < _distance(asked, row["ratio"])
    return Judged(arm, verdict, moved, interval, sure and agrees(asked, verdict) == "yes", sure and nearer)


def _distance(asked: Published, ratio: float) -> float:
    """How far a ratio is from the published range, as the logarithm of a factor."""
    return max(math.log(asked.low) - math.log(ratio), math.log(ratio) - math.log(asked.high), 0.0)


def section(summaries: Summaries, rows: Iterable[Row]) -> Iterator[str]:
    """The table of all arms of the rows that differ."""
    yield from (
        "## What may explain the differences",
        "",
        "Each arm differs from its row in what it names alone, and is a study in `bench/published/` or a part of one.",
        "It explains the row if it moves our figure by more than chance (the 95 % interval of the factor excludes 1)",
        "and to where the published figure is; *in part*, if it moves it towards that.",
        "",
        "| row, published | arm | with it | moves it by a factor of | explains |",
        "| --- | --- | --- | --- | --- |",
    )
    for asked, verdict, row in rows:
        if verdict is None or row[5] != "no":
            continue
        arms = judged(summaries, asked, verdict)
        first = f"{row[0]}: {row[1]}"
        for each in arms:
            yield "| " + " | ".join((first, f"{each.arm.said} (`{each.arm.study}`)", *_cells(each))) + " |"
            first = ""
        if not arms:
            yield f"| {first} | none | | | no |"
    yield ""


def _cells(each: Judged) -> tuple[str, str, str]:
    low, high = each.moved_ci95
    told = "yes" if each.explains else "in part" if each.helps else "no"
    return _change(each.verdict), f"{each.moved:.3g} ({low:.3g} to {high:.3g})", told


def _change(verdict: Verdict) -> str:
    return f"{words.change(verdict['ratio'], verdict['ci95'])} ({words.change_interval(verdict['ci95'])})"
