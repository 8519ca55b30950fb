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
    found: list[tuple[Ratio, dict[str, Any]]] = []
    for metric in (each for each in metrics if each in METRICS):
        for workload in dict.fromkeys(row.workload for row in rows):
            mine = [row for row in rows if row.workload == workload]
            conditions = {row.cell: row.conditions for row in mine}
            settings = dict.fromkeys(name for each in conditions.values() for name in each)
            for arm, level in arms.items():
                sides = sides_by_cell(mine, metric, arm)
                for each in statistics.competitors(sides, conditions, list(filter(is_setting, settings)), rule):
                    levels = {"baseline": {key: baseline}, "treatment": {key: level}}
                    found.append((each.alone, {"workload": workload, "metric": metric, **levels, **_entry(each)}))
    limits = family.levels([partial(excludes_equality, ratio, rule) for ratio, _ in found], ALPHA)
    for (ratio, entry), limit in zip(found, limits, strict=True):
        entry["sure"] = excludes_equality(ratio, rule, limit)
    return [entry for _, entry in found]


def _entry(found: statistics.Competitor) -> dict[str, Any]:
    return {
        "first": {found.name: found.first},
        "level": {found.name: found.level},
        "alone": _ratio(found.alone),
        "treatment_alone": _ratio(found.treatment),
        "together": _ratio(found.together),
        "pairs": found.pairs,
    }


def _ratio(found: Ratio) -> dict[str, Any]:
    return {"ratio": found.ratio, "ci95": interval(found)}


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
    for each in entries:
        treated = f"{words.levels(each['treatment'])}: " if several else ""
        yield [
            words.alternatives([_said(each["level"]), _said(each["first"])], "instead of"),
            named(each),
            _change(each["alone"]) + ("" if each["sure"] else ", may be chance"),
            treated + _change(each["treatment_alone"]),
            _change(each["together"]),
        ]


def fixed(verdicts: Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings and circumstances that had one level in the whole study, in words: "TSO off"."""
    levels: dict[str, dict[str, Any]] = {}
    for each in verdicts:
        for name, value in each["conditions"].items():
            levels.setdefault(name, {})[json.dumps(value, sort_keys=True)] = value
    found = []
    for name, values in levels.items():
        known = is_setting(name) or name.removesuffix("_seconds").removesuffix("_ppm") in CIRCUMSTANCES
        value = next(iter(values.values()))
        if known and len(values) == 1 and value is not None:
            found.append(words.condition(name, value))
    return found


def _several(entries: Sequence[Mapping[str, Any]]) -> bool:
    return len({json.dumps(each["treatment"]) for each in entries}) > 1


def _alone(entry: Mapping[str, Any]) -> str:
    return f"{words.levels(entry['treatment'])} alone"


def _said(levels: Mapping[str, Any]) -> str:
    return words.joined([words.condition(name, value) for name, value in levels.items()])


def _change(found: Mapping[str, Any]) -> str:
    interval = "" if found["ci95"] is None else f" ({words.change_interval(found['ci95'])})"
    return words.change(found["ratio"], found["ci95"]) + interval
