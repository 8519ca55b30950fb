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
    found: list[tuple[Effect, dict[str, Any]]] = []
    for metric in (each for each in metrics if each in METRICS):
        for arm, level in arms.items():
            for workload in dict.fromkeys(row.workload for row in rows):
                mine = [row for row in rows if row.workload == workload]
                logs = log_ratios_by_cell(mine, metric, arm)
                conditions = {row.cell: row.conditions for row in mine}
                for effect in effects(logs, conditions):
                    if len(logs) > 1:
                        found.append((effect, _entry(effect, workload, metric, {key: baseline}, {key: level})))
    _mark(found, rule or StoppingRule())
    return [entry for _, entry in found]


def _mark(found: Sequence[tuple[Effect, dict[str, Any]]], rule: StoppingRule) -> None:
    """Marks the contrasts that differ by more than chance."""
    contrasts = [
        (each.ratio, place)
        for effect, entry in found
        for each, place in zip(effect.contrasts, entry["contrasts"], strict=True)
    ]
    levels = family.levels([partial(excludes_equality, ratio, rule) for ratio, _ in contrasts], ALPHA)
    for (ratio, place), level in zip(contrasts, levels, strict=True):
        place["sure"] = excludes_equality(ratio, rule, level)


def _entry(
    effect: Effect, workload: str, metric: str, baseline: Mapping[str, Any], treatment: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "workload": workload,
        "metric": metric,
        "baseline": dict(baseline),
        "treatment": dict(treatment),
        "factors": list(effect.factors),
        "at": [_at(each) for each in effect.at],
        "contrasts": [_at(each) for each in effect.contrasts],
    }


def _at(found: AtLevel) -> dict[str, Any]:
    ratio = found.ratio
    return {"levels": dict(found.levels), "ratio": ratio.ratio, "ci95": interval(ratio), "cells": found.cells}


def sentences(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line per interaction with a contrast that is no chance: "with LRO on +5.2 %; with LRO off +38 %". Older
    summaries do not say which are."""
    several = [len({json.dumps(each[name]) for each in entries}) > 1 for name in ("workload", "treatment")]
    for entry in entries:
        sure = [each for each in entry["contrasts"] if each.get("sure")]
        if len(entry["factors"]) == 1 and sure:
            name = entry["factors"][0]
            parts = [f"with {words.condition(name, each['levels'][name])} {_change(each)}" for each in entry["at"]]
            what = words.metric(entry["metric"])
            what += f" of {entry['workload']}" if several[0] else ""
            what += f", {words.levels(entry['treatment'])}" if several[1] else ""
            yield f"{what}: " + "; ".join(parts)


def _change(found: Mapping[str, Any]) -> str:
    interval = "" if found["ci95"] is None else f" ({words.change_interval(found['ci95'])})"
    return words.change(found["ratio"], found["ci95"]) + interval
