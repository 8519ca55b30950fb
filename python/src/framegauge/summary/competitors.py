"""Settings that a study varied beside its treatment, and what each of them gives: entries of the summary, and rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from framegauge.metrics import METRICS
from framegauge.statistics import competitors as statistics, family
from framegauge.statistics.effects import excludes_equality
from framegauge.statistics.pairs import Row, sides_by_cell
from framegauge.statistics.ratio import ALPHA, Ratio
from framegauge.statistics.sequential import StoppingRule
from framegauge.summary import words
from framegauge.summary.intervals import interval

__all__ = ["CIRCUMSTANCES", "SETTINGS", "competitors", "fixed", "head", "is_setting", "rows"]

# Conditions that somebody can set instead of the treatment, without their units.
SETTINGS = (
    "mtu", "offloads", "tso", "gso_size", "lro", "gro", "hw_gro", "gro_size", "checksum", "moderation", "nagle",
    "congestion_control", "qdisc", "queue", "buffer", "ecn", "routing", "sizes", "mtu_probing", "pacing", "mptcp",
    "plpmtud", "tuning",
)  # fmt: skip
# Factors that are as they are: the network and what it runs on.
CIRCUMSTANCES = ("rtt", "skew", "shaping", "overlay")


def is_setting(name: str) -> bool:
    """Whether a condition is a setting that may give what the treatment gives."""
    return name.removesuffix("_bytes").removesuffix("_seconds") in SETTINGS


def competitors(rows: Sequence[Row], metrics: Sequence[str], key: str, rule: StoppingRule) -> list[dict[str, Any]]:
    """One entry per metric, workload, further level of a setting, and level of the treatment (named `key`).

    `sure` marks the settings that alone differ from the baseline by more than chance: all of them are one family
    (Holm), over all looks of the study.
    """
    treated = sorted((row for row in rows if row.role == "treatment"), key=lambda row: json.dumps(row.level))
    arms = {row.arm: row.level for row in treated}
    baseline = next((row.level for row in rows if row.role == "baseline"), None)
    candidates: list[tuple[Ratio, dict[str, Any]]] = []
    for metric in (item for item in metrics if item in METRICS):
        for workload in dict.fromkeys(row.workload for row in rows):
            workload_rows = [row for row in rows if row.workload == workload]
            conditions = {row.cell: row.conditions for row in workload_rows}
            settings = dict.fromkeys(name for item in conditions.values() for name in item)
            for arm, level in arms.items():
                sides = sides_by_cell(workload_rows, metric, arm)
                for item in statistics.competitors(sides, conditions, list(filter(is_setting, settings)), rule):
                    levels = {"baseline": {key: baseline}, "treatment": {key: level}}
                    candidates.append((item.alone, {"workload": workload, "metric": metric, **levels, **_entry(item)}))
    limits = family.levels([partial(excludes_equality, ratio, rule) for ratio, _ in candidates], ALPHA)
    for (ratio, entry), limit in zip(candidates, limits, strict=True):
        entry["sure"] = excludes_equality(ratio, rule, limit)
    return [entry for _, entry in candidates]


def _entry(competitor: statistics.Competitor) -> dict[str, Any]:
    return {
        "first": {competitor.name: competitor.first},
        "level": {competitor.name: competitor.level},
        "alone": _ratio(competitor.alone),
        "treatment_alone": _ratio(competitor.treatment),
        "together": _ratio(competitor.together),
        "pairs": competitor.pairs,
    }


def _ratio(ratio: Ratio) -> dict[str, Any]:
    return {"ratio": ratio.ratio, "ci95": interval(ratio)}


def head(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """The head of the table of `rows`."""
    baseline, several = words.levels(entries[0]["baseline"]), _several(entries)
    return [
        "setting",
        "metric",
        f"it alone, at {baseline}",
        "treatment alone" if several else _alone(entries[0]),
        "both",
    ]


def rows(entries: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """One row per entry, the changes with their intervals."""
    several, named = _several(entries), words.of_workload(entries)
    for entry in entries:
        treated = f"{words.levels(entry['treatment'])}: " if several else ""
        yield [
            words.alternatives([_said(entry["level"]), _said(entry["first"])], "instead of"),
            named(entry),
            _change(entry["alone"]) + ("" if entry["sure"] else ", may be chance"),
            treated + _change(entry["treatment_alone"]),
            _change(entry["together"]),
        ]


def fixed(verdicts: Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings and circumstances that had one level in the whole study, in words: "TSO off"."""
    levels: dict[str, dict[str, Any]] = {}
    for verdict in verdicts:
        for name, value in verdict["conditions"].items():
            levels.setdefault(name, {})[json.dumps(value, sort_keys=True)] = value
    texts = []
    for name, values in levels.items():
        is_known = is_setting(name) or name.removesuffix("_seconds").removesuffix("_ppm") in CIRCUMSTANCES
        value = next(iter(values.values()))
        if is_known and len(values) == 1 and value is not None:
            texts.append(words.condition(name, value))
    return texts


def _several(entries: Sequence[Mapping[str, Any]]) -> bool:
    return len({json.dumps(entry["treatment"]) for entry in entries}) > 1


def _alone(entry: Mapping[str, Any]) -> str:
    return f"{words.levels(entry['treatment'])} alone"


def _said(levels: Mapping[str, Any]) -> str:
    return words.joined([words.condition(name, value) for name, value in levels.items()])


def _change(effect: Mapping[str, Any]) -> str:
    interval = "" if effect["ci95"] is None else f" ({words.change_interval(effect['ci95'])})"
    return words.change(effect["ratio"], effect["ci95"]) + interval
