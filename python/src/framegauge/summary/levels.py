"""The smallest sufficient level of an ordered treatment: the entries of the summary, and sentences about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.statistics.ordered import Enough, Smallest
from framegauge.summary import words

__all__ = ["entries", "lines"]


def entries(found: Sequence[Smallest], key: str) -> list[dict[str, Any]]:
    """One entry per metric over all cells, then one per cell; `key` names the treatment."""
    return [
        {
            "metric": each.metric,
            "margin": each.margin,
            "workload": each.workload,
            "conditions": dict(each.conditions),
            "all_cells": each.cell is None,
            "largest": {key: each.largest},
            "smallest": {key: each.level},
            "settled": each.is_settled,
            "steps": [
                {
                    key: step.level,
                    "enough": str(step.enough),
                    "ratio": None if step.ratio is None else step.ratio.ratio,
                    "interval": None
                    if step.ratio is None or step.ratio.low is None or step.ratio.high is None
                    else [step.ratio.low, step.ratio.high],
                }
                for step in each.steps
            ],
        }
        for each in found
    ]


def lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """A sentence per metric on the smallest level that is enough in all cells, and one per cell where they differ."""
    if not summary["faithful"]:
        return
    found, cells = summary.get("smallest_levels", ()), words.Cells(summary["verdicts"])
    for whole in (each for each in found if each["all_cells"]):
        mine = [each for each in found if not each["all_cells"] and each["metric"] == whole["metric"]]
        yield _said(whole, " in every cell" if mine else "", " in the worst cell" if mine else "")
        if any(each["smallest"] != whole["smallest"] for each in mine):
            yield from (f"{cells.name(each)}: {_said(each)}" for each in mine)


def _said(entry: Mapping[str, Any], where: str = "", worst: str = "") -> str:
    """Such as "MTU 4200 already gives the goodput of MTU 9000 (within 2 %); MTU 1500 does not (−4.1 % to −3.7 %)"."""
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
    return f"whether {level} already gives the {metric} of {largest}{where} (within {margin}) is open{change}"
