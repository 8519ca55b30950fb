"""Every comparison of a study: rows in, comparisons out. Knows neither files nor testbeds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from framegauge.statistics.ratio import Ratio, estimate
from framegauge.statistics.verdict import Verdict, decide, exclusions_differ, warnings

__all__ = ["METRICS", "Comparison", "Metric", "Row", "judge", "not_measured"]


@dataclass(frozen=True)
class Metric:
    """A metric's base unit and direction."""

    unit: str
    higher_is_better: bool


METRICS: Mapping[str, Metric] = {
    "goodput": Metric("bits_per_second", True),
    "completion_time": Metric("seconds", False),
    "fairness": Metric("share", True),
    "latency_p50": Metric("seconds", False),
    "latency_p99": Metric("seconds", False),
    "latency_p999": Metric("seconds", False),
    "transactions": Metric("per_second", True),
    "receiver_cpu_cost": Metric("core_seconds_per_gigabyte", False),
    "sender_cpu_cost": Metric("core_seconds_per_gigabyte", False),
    "receiver_instructions": Metric("instructions_per_gigabyte", False),
    "sender_instructions": Metric("instructions_per_gigabyte", False),
    "receiver_cycles": Metric("cycles_per_gigabyte", False),
    "sender_cycles": Metric("cycles_per_gigabyte", False),
}


@dataclass(frozen=True)
class Row:
    """One run. `excluded`: it is no evidence; its metrics are not looked at. `not_measured`: why, by metric."""

    block: int
    cell: int
    arm: str
    role: str
    level: Any
    workload: str
    conditions: Mapping[str, Any]
    metrics: Mapping[str, float]
    excluded: bool
    not_measured: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """One metric of one arm against the baseline, within one cell."""

    cell: int
    workload: str
    conditions: Mapping[str, Any]
    metric: str
    role: str
    baseline_level: Any
    treatment_level: Any
    baseline: float | None
    treatment: float | None
    ratio: Ratio | None
    margin: float
    verdict: Verdict
    runs: int
    warnings: Sequence[str] = field(default=())


def judge(rows: Sequence[Row], margins: Mapping[str, float]) -> list[Comparison]:
    """All comparisons, cell by cell in the study's order, the A/A control before the treatments."""
    found: list[Comparison] = []
    for cell in sorted({row.cell for row in rows}):
        inside = [row for row in rows if row.cell == cell]
        others = {row.arm: row for row in inside if row.role != "baseline"}
        ordered = sorted(others.values(), key=lambda row: (row.role != "control", json.dumps(row.level)))
        for metric, margin in margins.items():
            if not any(metric in row.metrics for row in inside if not row.excluded) and any(
                not row.excluded for row in inside
            ):
                continue  # this workload does not have the metric
            compared = [_compare(inside, rows, example, metric, margin) for example in ordered]
            found += _heed_control(compared)
    return found


def not_measured(rows: Sequence[Row], margins: Mapping[str, float]) -> dict[str, str]:
    """The metrics with a margin that no run has, each with the reason: the runs' own, where they give one."""
    if all(row.excluded for row in rows):
        return {}  # then every metric is there, as not judged
    found = {}
    for metric in margins:
        if not any(metric in row.metrics for row in rows if not row.excluded):
            given = [row.not_measured[metric] for row in rows if metric in row.not_measured]
            found[metric] = given[0] if given else "no workload of this study has it"
    return found


def _geometric_mean(values: Sequence[float]) -> float | None:
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else None


def _values(rows: Iterable[Row], arm: str, metric: str) -> dict[int, float]:
    return {
        row.block: row.metrics[metric] for row in rows if row.arm == arm and not row.excluded and metric in row.metrics
    }


def _compare(inside: Sequence[Row], rows: Sequence[Row], example: Row, metric: str, margin: float) -> Comparison:
    """One arm against the baseline; `inside` is the cell, `rows` the whole study."""
    before, after = _values(inside, "baseline", metric), _values(inside, example.arm, metric)
    blocks = sorted(before.keys() & after.keys())
    baseline, treatment = [before[block] for block in blocks], [after[block] for block in blocks]
    level = next((row.level for row in inside if row.role == "baseline"), None)
    empty = Comparison(
        example.cell, example.workload, example.conditions, metric, example.role, level, example.level,
        None, None, None, margin, Verdict.NOT_JUDGED, 0, ("no pair of runs that could be evidence",),
    )  # fmt: skip
    differ = _exclusions(inside, example.arm) or _exclusions(rows, example.arm)
    if not blocks:
        return replace(empty, warnings=(*empty.warnings, *([differ] if differ else [])))
    better_when_higher = METRICS[metric].higher_is_better
    ratio = estimate(baseline, treatment)
    lines = warnings(baseline, treatment, margin, better_when_higher)
    verdict = decide(ratio, margin, better_when_higher)
    if differ:
        verdict, lines = Verdict.SUSPECT, [differ, *lines]
    return replace(
        empty,
        baseline=_geometric_mean(baseline),
        treatment=_geometric_mean(treatment),
        ratio=ratio,
        verdict=verdict,
        runs=2 * len(blocks),
        warnings=tuple(lines),
    )


def _exclusions(rows: Iterable[Row], arm: str) -> str | None:
    counts = {"baseline": [0, 0], arm: [0, 0]}
    for row in rows:
        if row.arm in counts:
            counts[row.arm][0] += row.excluded
            counts[row.arm][1] += 1
    first, second = counts["baseline"], counts[arm]
    return exclusions_differ((first[0], first[1]), (second[0], second[1]))


def _heed_control(compared: Sequence[Comparison]) -> list[Comparison]:
    """If the A/A control differs from its twin beyond the margin, nothing in the cell is a verdict."""
    control = next((each for each in compared if each.role == "control"), None)
    if control is None or control.verdict not in (Verdict.BETTER, Verdict.WORSE):
        return list(compared)
    line = f"the A/A control was {control.verdict} than its own level: something else than the treatment acts"
    return [
        replace(each, verdict=Verdict.SUSPECT, warnings=(line, *each.warnings))
        if each.verdict is not Verdict.NOT_JUDGED
        else each
        for each in compared
    ]
