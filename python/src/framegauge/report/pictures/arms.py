"""The order and the look of a study's arms, the same in all charts: the baseline, its A/A control, the treatments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.printable import printable
from framegauge.results.journal import Run
from framegauge.summary import words
from framegauge.summary.document import factor_key

__all__ = ["Look", "cell_title", "in_order", "looks"]

_ORDER = {"baseline": 0, "control": 1}
_TREATMENTS = (("first", "square"), ("second", "triangle-up"), ("third", "triangle-down"), ("fourth", "triangle-right"))


@dataclass(frozen=True)
class Look:
    """How an arm is named and drawn: a colour by its role, and a shape, so that colour is never the only difference."""

    label: str
    role: str
    shape: str


def in_order(runs: Sequence[Run]) -> list[Run]:
    """Runs sorted by arm, and by number within an arm."""
    return sorted(runs, key=lambda run: (_ORDER.get(run.role, 2), json.dumps(run.level, sort_keys=True), run.number))


def looks(plan: Mapping[str, Any], runs: Sequence[Run]) -> dict[str, Look]:
    """The look of each arm, in the order in which arms are shown."""
    by_arm: dict[str, Look] = {}
    treatments = 0
    for run in in_order(runs):
        if run.arm in by_arm:
            continue
        label = printable(words.levels({factor_key(plan["treatment"]): run.level}))
        if run.role == "baseline":
            by_arm[run.arm] = Look(label, "baseline", "circle")
        elif run.role == "control":
            by_arm[run.arm] = Look(f"{label} (A/A)", "control", "diamond")
        else:
            role, shape = _TREATMENTS[treatments % len(_TREATMENTS)]
            by_arm[run.arm] = Look(label, role, shape)
            treatments += 1
    return by_arm


def cell_title(runs: Sequence[Run], cells: words.Cells) -> str:
    """What tells the cell of these runs from the others; the workload, if nothing does."""
    return printable(cells.name({"workload": runs[0].workload, "conditions": runs[0].conditions}))
