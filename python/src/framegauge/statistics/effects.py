"""How the effect of a treatment depends on everything else that was varied: main effects and interactions.

Both are contrasts of the log ratios of each block: the mean over the cells at one level of a factor, and the difference
of two such means. Student's t is applied over the blocks, as for a single comparison (each block is one observation of
the contrast). This is the split-plot analysis of a factorial in randomised complete blocks (Box, Hunter & Hunter 2005,
chapters 4, 5 and 9) without pooled variances, because noise may differ between cells. Only blocks that have all cells
of a contrast count. Means over cells are geometric: each cell has the same weight.

These figures are descriptive. Verdicts are given on comparisons only, so effects are not part of the family.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from framegauge.statistics.ratio import ALPHA, Ratio, quantile
from framegauge.statistics.sequential import StoppingRule

__all__ = ["AtLevel", "Effect", "effects", "excludes_equality", "mean_ratio"]


@dataclass(frozen=True)
class AtLevel:
    """The treatment's ratio with the factors at these levels, over all other cells."""

    levels: Mapping[str, Any]
    ratio: Ratio
    cells: int


@dataclass(frozen=True)
class Effect:
    """The treatment's ratio by the levels of no factor (main effect), of one factor, or of two.

    `contrasts` are the interactions: how much the ratio differs, as a factor. With one factor, each level is set
    against the first; with two factors of two levels each, it is the difference of differences.
    """

    factors: Sequence[str]
    at: Sequence[AtLevel]
    contrasts: Sequence[AtLevel]


Logs = Mapping[int, Mapping[int, float]]  # by cell, by block


def effects(logs: Logs, conditions: Mapping[int, Mapping[str, Any]], alpha: float = ALPHA) -> list[Effect]:
    """The effects of one treatment level on one metric: `logs` are its log ratios, `conditions` those of each cell."""
    cells = [cell for cell in sorted(conditions) if logs.get(cell)]  # as the study numbers them
    varied = _varied({cell: conditions[cell] for cell in cells})
    results = [Effect((), list(_at(logs, [({}, cells)], alpha)), ())]
    for name in varied:
        groups = [(levels, members) for levels, members in _groups(conditions, cells, (name,))]
        contrasts = [(levels, [(members, 1), (groups[0][1], -1)]) for levels, members in groups[1:]]
        results.append(Effect((name,), list(_at(logs, groups, alpha)), list(_contrasts(logs, contrasts, alpha))))
    for pair in itertools.combinations(varied, 2):
        groups = list(_groups(conditions, cells, pair))
        if len(groups) != 4 or any(len({json.dumps(g[0][n]) for g in groups}) != 2 for n in pair):
            continue
        signs = [(members, sign) for (_, members), sign in zip(groups, (1, -1, -1, 1), strict=True)]
        contrast = list(_contrasts(logs, [(groups[3][0], signs)], alpha))
        results.append(Effect(pair, list(_at(logs, groups, alpha)), contrast))
    return [effect for effect in results if effect.at]


def excludes_equality(found: Ratio, rule: StoppingRule, alpha: float) -> bool:
    """Whether a contrast's interval excludes 1, at a level of `alpha` over all looks."""
    if found.log_deviation is None or found.blocks < 2:
        return False
    nominal = rule.nominal(alpha, found.blocks)
    half = quantile(found.blocks - 1, nominal) * found.log_deviation / math.sqrt(found.blocks)
    return abs(math.log(found.ratio)) > half


def _varied(conditions: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """Conditions with more than one level over the cells that have them all."""
    names: dict[str, set[str]] = {}
    for settings in conditions.values():
        for name, level in settings.items():
            names.setdefault(name, set()).add(json.dumps(level, sort_keys=True))
    everywhere = [name for name in names if all(name in settings for settings in conditions.values())]
    return [name for name in everywhere if len(names[name]) > 1]


def _groups(
    conditions: Mapping[int, Mapping[str, Any]], cells: Sequence[int], names: Sequence[str]
) -> Iterator[tuple[dict[str, Any], list[int]]]:
    """The cells at each combination of levels, in the order in which the study names them."""
    groups: dict[str, tuple[dict[str, Any], list[int]]] = {}
    for cell in cells:
        levels = {name: conditions[cell][name] for name in names}
        groups.setdefault(json.dumps(levels, sort_keys=True), (levels, []))[1].append(cell)
    yield from groups.values()


def _block_means(logs: Logs, cells: Sequence[int]) -> dict[int, float]:
    """The mean over the cells in each block that has them all."""
    blocks = set.intersection(*(set(logs[cell]) for cell in cells))
    return {block: math.fsum(logs[cell][block] for cell in cells) / len(cells) for block in sorted(blocks)}


def _at(logs: Logs, groups: Sequence[tuple[dict[str, Any], list[int]]], alpha: float) -> Iterator[AtLevel]:
    for levels, cells in groups:
        means = list(_block_means(logs, cells).values()) if cells else []
        if means:
            yield AtLevel(levels, mean_ratio(means, alpha), len(cells))


def _contrasts(
    logs: Logs, contrasts: Sequence[tuple[dict[str, Any], list[tuple[list[int], int]]]], alpha: float
) -> Iterator[AtLevel]:
    for levels, parts in contrasts:
        means = [(_block_means(logs, cells), sign) for cells, sign in parts]
        blocks = set.intersection(*(set(mean) for mean, _ in means))
        values = [math.fsum(sign * mean[block] for mean, sign in means) for block in sorted(blocks)]
        if values:
            yield AtLevel(levels, mean_ratio(values, alpha), sum(len(cells) for cells, _ in parts))


def mean_ratio(values: Sequence[float], alpha: float) -> Ratio:
    """The ratio and its interval from log values, one per block."""
    logs, count = np.asarray(values), len(values)
    centre = float(logs.mean())
    if count < 2:
        return Ratio(math.exp(centre), None, None, count, None, alpha)
    deviation = float(logs.std(ddof=1))
    half = quantile(count - 1, alpha) * deviation / math.sqrt(count) if deviation else 0.0
    return Ratio(math.exp(centre), math.exp(centre - half), math.exp(centre + half), count, deviation, alpha)
