"""What another setting gives beside the treatment: each alone, and both together, against neither.

A contrast of log values within each block, as in `effects`: cells that differ in the setting alone are paired, and the
mean over the pairs of a block is one observation. Only blocks that have all pairs in all arms count, so that the three
ratios are of the same runs. These figures are descriptive; the verdicts of a study are on its treatment.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.statistics.effects import mean_ratio
from framegauge.statistics.ratio import ALPHA, Ratio
from framegauge.statistics.sequential import StoppingRule

__all__ = ["Competitor", "Sides", "alike", "competitors", "logs"]

Sides = Mapping[int, Mapping[int, tuple[float, float]]]  # by cell and block: the baseline's value, the treatment's


@dataclass(frozen=True)
class Competitor:
    """A setting at `level` against its `first` level: alone (the treatment at its baseline), the treatment alone (the
    setting at its first level), and both together; each a ratio to neither, over so many pairs of cells."""

    name: str
    first: Any
    level: Any
    alone: Ratio
    treatment: Ratio
    together: Ratio
    pairs: int


def competitors(
    sides: Sides, conditions: Mapping[int, Mapping[str, Any]], settings: Sequence[str], rule: StoppingRule
) -> Iterator[Competitor]:
    """One for each further level of each of these settings that cells differ in."""
    cells = [cell for cell in sorted(conditions) if sides.get(cell)]  # as the study numbers them
    for name in settings:
        subset = [cell for cell in cells if name in conditions[cell]]
        levels = list(
            {json.dumps(conditions[cell][name], sort_keys=True): conditions[cell][name] for cell in subset}.values()
        )
        for level in levels[1:]:
            pairs = list(alike(conditions, subset, name, levels[0], level))
            effects = _against(sides, pairs, rule) if pairs else None
            if effects is not None:
                yield Competitor(name, levels[0], level, *effects, len(pairs))


def alike(
    conditions: Mapping[int, Mapping[str, Any]], cells: Sequence[int], name: str, first: Any, level: Any
) -> Iterator[tuple[int, int]]:
    """The cells at the first level, each with the one at the other level that is like it in all else."""

    def rest(cell: int) -> str:
        return json.dumps({key: value for key, value in conditions[cell].items() if key != name}, sort_keys=True)

    others = {rest(cell): cell for cell in cells if conditions[cell][name] == level}
    for cell in cells:
        if conditions[cell][name] == first and rest(cell) in others:
            yield cell, others[rest(cell)]


def logs(sides: Sides, pairs: Sequence[tuple[int, int]]) -> tuple[list[float], list[float], list[float]]:
    """The log ratios to neither, by block: of the setting alone, of the treatment alone, and of both together. Only
    blocks count that have all pairs on both sides."""
    blocks = set.intersection(*(set(sides[cell]) for pair in pairs for cell in pair))
    alone, treatment, together = [], [], []
    for block in sorted(blocks):
        values = [(*sides[first][block], *sides[other][block]) for first, other in pairs]
        alone.append(_mean(math.log(other / neither) for neither, _, other, _ in values))
        treatment.append(_mean(math.log(treated / neither) for neither, treated, _, _ in values))
        together.append(_mean(math.log(combined / neither) for neither, _, _, combined in values))
    return alone, treatment, together


def _against(sides: Sides, pairs: Sequence[tuple[int, int]], rule: StoppingRule) -> tuple[Ratio, Ratio, Ratio] | None:
    """The three ratios; None without a block that has everything."""
    alone, treatment, together = logs(sides, pairs)
    if not alone:
        return None
    level = rule.nominal(ALPHA, len(alone))
    return mean_ratio(alone, level), mean_ratio(treatment, level), mean_ratio(together, level)


def _mean(values: Iterator[float]) -> float:
    sample = list(values)
    return math.fsum(sample) / len(sample)
