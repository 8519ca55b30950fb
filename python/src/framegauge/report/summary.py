"""summary.json: the verdicts of a results folder, schema 1."""

from __future__ import annotations

import json
import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from framegauge import standing
from framegauge.report.flows import contention, flows
from framegauge.report.interactions import interactions
from framegauge.report.why import why
from framegauge.results.journal import Run, Saved
from framegauge.statistics.judge import (
    METRICS,
    Comparison,
    Row,
    is_settled as statistics_settled,
    judge,
    log_ratios_by_cell,
    not_measured,
)
from framegauge.statistics.ratio import ALPHA, Ratio
from framegauge.statistics.sequential import StoppingRule
from framegauge.statistics.verdict import Verdict

__all__ = ["compare", "factor_key", "interval", "is_evidence", "is_settled", "spreads", "summarise", "text"]

SCHEMA = 1
MOST_LOST = 0.25  # a study that lost this share of its comparisons, or more, is not what was planned
# The names of factors in `baseline` and `treatment`, with the unit where the value has one.
_KEYS = {
    "rtt": "rtt_seconds", "moderation": "moderation_seconds", "buffer": "buffer_bytes", "skew": "skew_ppm",
}  # fmt: skip


def factor_key(treatment: str) -> str:
    """The treatment's key in the two sides of a verdict, with the unit where it has one."""
    return _KEYS.get(treatment, treatment)


def compare(saved: Saved) -> list[Comparison]:
    """All comparisons of a folder's runs."""
    return judge([_row(run) for run in saved.runs], saved.plan["margins"], _rule(saved.plan))


def is_settled(plan: Mapping[str, Any], blocks: int, runs: Sequence[Run]) -> bool:
    """Whether a study may stop after this many blocks: its plan has a look here, and everything has its verdict."""
    rule = _rule(plan)
    if not rule.looks_after(blocks):
        return False
    return statistics_settled(judge([_row(run) for run in runs], plan["margins"], rule, explain=False))


def wants_runs(plan: Mapping[str, Any], runs: Sequence[Run]) -> bool:
    """Whether a comparison lacks a verdict only until more runs show if the excluded ones were lost at random."""
    found = judge([_row(run) for run in runs], plan["margins"], _rule(plan), explain=False)
    return any(each.wants_runs for each in found)


def spreads(saved: Saved) -> dict[str, list[float]]:
    """The standard deviations of the log ratios of blocks, by metric, for every cell and arm with at least three."""
    rows = [_row(run) for run in saved.runs]
    found: dict[str, list[float]] = {}
    for metric in METRICS:
        for arm in {row.arm for row in rows if row.role != "baseline"}:
            cells = log_ratios_by_cell(rows, metric, arm).values()
            found.setdefault(metric, []).extend(statistics.stdev(logs.values()) for logs in cells if len(logs) > 2)
    return {metric: values for metric, values in found.items() if values}


def _rule(plan: Mapping[str, Any]) -> StoppingRule:
    """The stopping rule of a plan. Older folders, from before studies could stop early, lack the key."""
    return StoppingRule(plan["planned_blocks"] if plan.get("stop") == "settled" else None)


def _row(run: Run) -> Row:
    return Row(
        run.block, run.cell, run.arm, run.role, run.level, run.workload, run.conditions, run.metrics,
        bool(run.excluded), run.readings.get("not_measured", {}),
    )  # fmt: skip


def summarise(saved: Saved) -> dict[str, Any]:
    """The summary of a results folder. An A/A control is a verdict whose two levels are the same."""
    found = compare(saved)
    degraded = sorted({line for run in saved.runs for line in run.degraded})
    return {
        "schema": SCHEMA,
        "question": saved.plan["question"],
        "scope": saved.plan["scope"],
        "faithful": is_faithful(found),
        "suspect": _suspect(found),
        "family": {
            "error": ALPHA,
            "treatments": sum(each.judged is not None and each.role != "control" for each in found),
            "controls": sum(each.judged is not None and each.role == "control" for each in found),
        },
        "stopping": {
            "stop": saved.plan.get("stop", "blocks"),
            "planned_blocks": saved.plan.get("planned_blocks"),
            "blocks": 1 + max((run.block for run in saved.runs), default=-1),
        },
        "verdicts": [_verdict(each, saved.plan["treatment"], degraded) for each in found],
        "interactions": interactions(
            [_row(run) for run in saved.runs],
            list(saved.plan["margins"]),
            factor_key(saved.plan["treatment"]),
        ),
        "why": why(saved.runs, found, factor_key(saved.plan["treatment"])),
        "flows": contention.entries(flows.read(saved), factor_key(saved.plan["treatment"])),
        "not_measured": [
            {"metric": metric, "why": why}
            for metric, why in not_measured([_row(run) for run in saved.runs], saved.plan["margins"]).items()
        ],
        "cpu": _cpu(saved.runs),
        "caveats": [
            *_caveats(saved.plan["margins"], saved.plan["scope"]),
            *standing.caveats(run.readings for run in saved.runs),
            *_refused(saved.runs),
        ],
        "excluded": [
            {
                "run": run.number,
                "block": run.block,
                "arm": run.arm,
                "workload": run.workload,
                "conditions": dict(run.conditions),
                factor_key(saved.plan["treatment"]): run.level,
                "reasons": list(run.excluded),
            }
            for run in saved.runs
            if run.excluded
        ],
    }


def _cpu(runs: Sequence[Run]) -> dict[str, float] | None:
    """The shares of the whole system's CPU time in the median run, and the time that the meter itself took."""
    names = ("hosts", "fabric", "framegauge", "unattributed")
    keys = {**{name: f"cpu_share_{name}" for name in names}, "meter_seconds": "meter_seconds"}
    rows = [run.readings for run in runs if not run.excluded]
    values = {name: [row[key] for row in rows if row.get(key) is not None] for name, key in keys.items()}
    return {name: statistics.median(found) for name, found in values.items()} if all(values.values()) else None


def _caveats(metrics: Collection[str], scope: str) -> list[str]:
    """The limits of CPU figures as evidence (docs/cpu-cost.md)."""
    lines = []
    if scope == "measured":
        if any(metric.endswith("_cpu_cost") for metric in metrics):
            lines.append(
                "CPU figures are for whole hosts: they include whatever else ran there, less its use before each run"
            )
        return lines
    if any(METRICS[metric].unit.endswith("_per_gigabyte") for metric in metrics):
        lines.append("CPU figures are for this machine's kernel and a virtual NIC: not evidence about hardware")
    if any(metric.endswith(("_cpu_cost", "_cycles")) for metric in metrics):
        lines.append("CPU time and cycles vary with caches and other load; instruction counts repeat: judge by those")
    return lines


def _refused(runs: Sequence[Run]) -> list[str]:
    """A note if anything but the study's own hosts connected to its data ports."""
    count = sum(run.readings.get("refused_connections", 0) for run in runs)
    were = "connection without its run's token was" if count == 1 else "connections without their run's token were"
    return [f"{count} {were} refused"] if count else []


def _suspect(found: Sequence[Comparison]) -> list[str]:
    """Why the study as a whole is suspect, one line for each reason: whatever makes an A/A control differ may affect
    every comparison. Runs that were not lost at random affect their own comparison only, unless many are affected."""
    many = _lost_many(found)
    mine = [each for each in found if each.verdict is Verdict.SUSPECT and (each.control_differs or many)]
    return list({each.warnings[0]: None for each in mine if each.warnings})


def _lost_many(found: Sequence[Comparison]) -> bool:
    """Whether too many comparisons lack a verdict, among all of them or among those of treatments."""
    lost = [each.verdict in (Verdict.SUSPECT, Verdict.NOT_JUDGED) for each in found]
    treated = [gone for gone, each in zip(lost, found, strict=True) if each.role != "control"]
    return any(group and sum(group) >= MOST_LOST * len(group) for group in (lost, treated))


def is_faithful(found: Sequence[Comparison]) -> bool:
    """Whether the study is evidence: no A/A control differs, and few comparisons lost their runs."""
    return bool(found) and not _lost_many(found) and not any(each.control_differs for each in found)


def is_evidence(summary: Mapping[str, Any]) -> bool:
    """Whether the study can answer its question: it is faithful, and has verdicts."""
    return bool(summary["faithful"]) and bool(summary["verdicts"])


def _verdict(found: Comparison, treatment: str, degraded: Sequence[str]) -> dict[str, Any]:
    key, ratio = factor_key(treatment), found.ratio
    return {
        "workload": found.workload,
        "conditions": dict(found.conditions),
        "metric": found.metric,
        "unit": METRICS[found.metric].unit,
        "baseline": {key: found.baseline_level, "estimate": found.baseline},
        "treatment": {key: found.treatment_level, "estimate": found.treatment},
        "ratio": None if ratio is None else ratio.ratio,
        "ci95": interval(ratio),
        "margin": found.margin,
        "judged": None
        if found.judged is None
        else {"confidence": 1 - found.judged.alpha, "interval": interval(found.judged)},
        "assumption": None if found.judged is None else found.judged.assumption,
        "verdict": str(found.verdict),
        "runs": found.runs,
        "warnings": [*found.warnings, *(f"degraded: {line}" for line in degraded)],
    }


def interval(found: Ratio | None) -> list[float] | None:
    """An interval as it is written: low and high, or None."""
    return None if found is None or found.low is None or found.high is None else [found.low, found.high]


def text(summary: Mapping[str, Any]) -> str:
    """The text of summary.json, which --json prints, too."""
    return json.dumps(summary, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
