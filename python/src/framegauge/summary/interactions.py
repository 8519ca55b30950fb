"""How the effect depends on what else was varied: the entries of the summary, and sentences about them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from framegauge.metrics import METRICS
from framegauge.statistics import family
from framegauge.statistics.effects import AtLevel, Effect, effects, excludes_equality
from framegauge.statistics.pairs import Row, log_ratios_by_cell
from framegauge.statistics.ratio import ALPHA
from framegauge.statistics.sequential import StoppingRule
from framegauge.summary import words
from framegauge.summary.intervals import interval

__all__ = ["ALONE", "interactions", "sentences"]

# Of the same figure as a verdict's, whose interval is corrected for all comparisons, and wider.
ALONE = "each 95 % interval by itself; none decides a verdict"


def interactions(
    rows: Sequence[Row], metrics: Sequence[str], key: str, rule: StoppingRule | None = None
) -> list[dict[str, Any]]:
    """One entry per metric, level of the treatment (named `key`), and factor or pair of factors that was varied.

    A contrast is `sure` if it differs by more than chance: all contrasts of the study are one family (Holm), over all
    looks of `rule`.
    """
    treated = sorted((row for row in rows if row.role == "treatment"), key=lambda row: json.dumps(row.level))
    arms = {row.arm: row.level for row in treated}
    baseline = next((row.level for row in rows if row.role == "baseline"), None)
    pairs: list[tuple[Effect, dict[str, Any]]] = []
    for metric in (name for name in metrics if name in METRICS):
        for arm, level in arms.items():
            for workload in dict.fromkeys(row.workload for row in rows):
                workload_rows = [row for row in rows if row.workload == workload]
                logs = log_ratios_by_cell(workload_rows, metric, arm)
                conditions = {row.cell: row.conditions for row in workload_rows}
                for effect in effects(logs, conditions):
                    if len(logs) > 1:
                        pairs.append((effect, _entry(effect, workload, metric, {key: baseline}, {key: level})))
    _mark(pairs, rule or StoppingRule())
    return [entry for _, entry in pairs]


def _mark(pairs: Sequence[tuple[Effect, dict[str, Any]]], rule: StoppingRule) -> None:
    """Marks the contrasts that differ by more than chance."""
    contrasts = [
        (contrast.ratio, contrast_entry)
        for effect, entry in pairs
        for contrast, contrast_entry in zip(effect.contrasts, entry["contrasts"], strict=True)
    ]
    levels = family.levels([partial(excludes_equality, ratio, rule) for ratio, _ in contrasts], ALPHA)
    for (ratio, contrast_entry), level in zip(contrasts, levels, strict=True):
        contrast_entry["sure"] = excludes_equality(ratio, rule, level)


def _entry(
    effect: Effect, workload: str, metric: str, baseline: Mapping[str, Any], treatment: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "workload": workload,
        "metric": metric,
        "baseline": dict(baseline),
        "treatment": dict(treatment),
        "factors": list(effect.factors),
        "at": [_at(at_level) for at_level in effect.at],
        "contrasts": [_at(at_level) for at_level in effect.contrasts],
    }


def _at(at_level: AtLevel) -> dict[str, Any]:
    ratio = at_level.ratio
    return {"levels": dict(at_level.levels), "ratio": ratio.ratio, "ci95": interval(ratio), "cells": at_level.cells}


def sentences(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line per interaction with a contrast that is no chance: "with LRO on +5.2 %; with LRO off +38 %". Older
    summaries do not say which are."""
    several = [len({json.dumps(item[name]) for item in entries}) > 1 for name in ("workload", "treatment")]
    for entry in entries:
        sure = [item for item in entry["contrasts"] if item.get("sure")]
        if len(entry["factors"]) == 1 and sure:
            name = entry["factors"][0]
            parts = [f"with {words.condition(name, item['levels'][name])} {_change(item)}" for item in entry["at"]]
            what = words.metric(entry["metric"])
            what += f" of {entry['workload']}" if several[0] else ""
            what += f", {words.levels(entry['treatment'])}" if several[1] else ""
            yield f"{what}: " + "; ".join(parts)


def _change(effect: Mapping[str, Any]) -> str:
    interval = "" if effect["ci95"] is None else f" ({words.change_interval(effect['ci95'])})"
    return words.change(effect["ratio"], effect["ci95"]) + interval
