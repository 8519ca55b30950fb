"""The smallest sufficient level of an ordered treatment: the entries of the summary, and sentences about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.metrics import METRICS
from framegauge.statistics.ordered import Enough, Smallest
from framegauge.statistics.verdict import LEAST_FOR_EQUALITY, edges
from framegauge.summary import words

__all__ = ["entries", "lines"]


def entries(found: Sequence[Smallest], key: str) -> list[dict[str, Any]]:
    """One entry per metric over all cells, then one per cell; `key` names the treatment."""
    return [
        {
            "metric": smallest.metric,
            "margin": smallest.margin,
            "workload": smallest.workload,
            "conditions": dict(smallest.conditions),
            "all_cells": smallest.cell is None,
            "largest": {key: smallest.largest},
            "smallest": {key: smallest.level},
            "settled": smallest.is_settled,
            "steps": [
                {
                    key: step.level,
                    "enough": str(step.enough),
                    "ratio": None if step.ratio is None else step.ratio.ratio,
                    "interval": None
                    if step.ratio is None or step.ratio.low is None or step.ratio.high is None
                    else [step.ratio.low, step.ratio.high],
                }
                for step in smallest.steps
            ],
        }
        for smallest in found
    ]


def lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """A sentence per metric on the smallest level that is enough in all cells, and one per cell where they differ."""
    if not summary["faithful"]:
        return
    sufficient, cells = summary.get("smallest_levels", ()), words.Cells(summary["verdicts"])
    is_few = (summary.get("stopping") or {}).get("blocks", LEAST_FOR_EQUALITY) < LEAST_FOR_EQUALITY
    for overall in (entry for entry in sufficient if entry["all_cells"]):
        by_cell = [entry for entry in sufficient if not entry["all_cells"] and entry["metric"] == overall["metric"]]
        yield _said(overall, is_few, " in every cell" if by_cell else "", " in the worst cell" if by_cell else "")
        if any(entry["smallest"] != overall["smallest"] for entry in by_cell):
            yield from (f"{cells.name(entry)}: {_said(entry, is_few)}" for entry in by_cell)


def _said(entry: Mapping[str, Any], is_few: bool, where: str = "", worst: str = "") -> str:
    """Such as "MTU 4200 already gives the goodput of MTU 9000 (within 2 %); MTU 1500 does not (−4.1 % to −3.7 %)".

    `is_few`: there are fewer blocks than any level that is enough needs, which an interval inside the margin must say.
    """
    largest, smallest = words.levels(entry["largest"]), words.levels(entry["smallest"])
    metric, margin = words.metric(entry["metric"]), words.margin(entry["margin"])
    last = entry["steps"][-1]
    level = words.levels({name: last[name] for name in entry["largest"]})
    change = "" if last["ratio"] is None else f" ({words.change_interval(last['interval'])}{worst})"
    if smallest != largest:
        text = f"{smallest} already gives the {metric} of {largest}{where} (within {margin})"
        if last["enough"] == Enough.YES:
            return text
        return f"{text}; " + (f"{level} does not" if last["enough"] == Enough.NO else f"{level} is open") + change
    if last["enough"] == Enough.NO:
        return f"the {metric} of {largest} needs {largest}: {level} does not give it{change}"
    few = f" until there are {LEAST_FOR_EQUALITY} blocks" if is_few and _is_inside(entry, last) else ""
    return f"whether {level} already gives the {metric} of {largest}{where} (within {margin}) is open{few}{change}"


def _is_inside(entry: Mapping[str, Any], last: Mapping[str, Any]) -> bool:
    """Whether the interval by itself would show that the level is enough, so that what it lacks is blocks."""
    if last["interval"] is None:
        return False
    (low, high), (lowest, highest) = last["interval"], edges(entry["margin"])
    return bool(low >= lowest if METRICS[entry["metric"]].higher_is_better else high <= highest)
