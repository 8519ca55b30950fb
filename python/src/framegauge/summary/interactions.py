"""How the effect depends on what else was varied: the entries of the summary, and sentences about them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.metrics import METRICS
from framegauge.statistics.effects import AtLevel, Effect, effects
from framegauge.statistics.pairs import Row, log_ratios_by_cell
from framegauge.summary import words

__all__ = ["interactions", "sentences"]


def interactions(rows: Sequence[Row], metrics: Sequence[str], key: str) -> list[dict[str, Any]]:
    """One entry per metric, level of the treatment (named `key`), and factor or pair of factors that was varied."""
    treated = sorted((row for row in rows if row.role == "treatment"), key=lambda row: json.dumps(row.level))
    arms = {row.arm: row.level for row in treated}
    baseline = next((row.level for row in rows if row.role == "baseline"), None)
    found = []
    for metric in (each for each in metrics if each in METRICS):
        for arm, level in arms.items():
            for workload in dict.fromkeys(row.workload for row in rows):
                mine = [row for row in rows if row.workload == workload]
                logs = log_ratios_by_cell(mine, metric, arm)
                conditions = {row.cell: row.conditions for row in mine}
                for effect in effects(logs, conditions):
                    if len(logs) > 1:
                        found.append(_entry(effect, workload, metric, {key: baseline}, {key: level}))
    return found


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
    interval = None if ratio.low is None or ratio.high is None else [ratio.low, ratio.high]
    return {"levels": dict(found.levels), "ratio": ratio.ratio, "ci95": interval, "cells": found.cells}


def sentences(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line per interaction whose interval excludes 1: "with LRO on +5.2 %; with LRO off +38 %"."""
    for entry in entries:
        sure = [each for each in entry["contrasts"] if each["ci95"] and not each["ci95"][0] <= 1 <= each["ci95"][1]]
        if len(entry["factors"]) == 1 and sure:
            name = entry["factors"][0]
            parts = [f"with {words.condition(name, each['levels'][name])} {_change(each)}" for each in entry["at"]]
            what = f"{words.metric(entry['metric'])} of {entry['workload']}, {words.levels(entry['treatment'])}"
            yield f"{what}: " + "; ".join(parts)


def _change(found: Mapping[str, Any]) -> str:
    interval = "" if found["ci95"] is None else f" ({words.change_interval(found['ci95'])})"
    return words.change(found["ratio"], found["ci95"]) + interval
