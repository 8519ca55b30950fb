"""summary.json: the verdicts of a results folder, schema 1."""

from __future__ import annotations

import json
import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from framegauge.results import Run, Saved
from framegauge.statistics.judge import METRICS, Comparison, Row, judge, not_measured
from framegauge.statistics.verdict import Verdict

__all__ = ["compare", "is_evidence", "summarise", "text"]

SCHEMA = 1
# How a factor is named in `baseline` and `treatment`: with its unit, where the value has one.
_KEYS = {"rtt": "rtt_seconds", "moderation": "moderation_seconds"}


def compare(saved: Saved) -> list[Comparison]:
    """Every comparison of the folder's runs."""
    return judge([_row(run) for run in saved.runs], saved.plan["margins"])


def _row(run: Run) -> Row:
    return Row(
        run.block, run.cell, run.arm, run.role, run.level, run.workload, run.conditions, run.metrics,
        bool(run.excluded), run.readings.get("not_measured", {}),
    )  # fmt: skip


def summarise(saved: Saved) -> dict[str, Any]:
    """The summary. An A/A control is a verdict whose two levels are the same."""
    found = compare(saved)
    degraded = sorted({line for run in saved.runs for line in run.degraded})
    return {
        "schema": SCHEMA,
        "question": saved.plan["question"],
        "scope": saved.plan["scope"],
        "faithful": is_faithful(found),
        "verdicts": [_verdict(each, saved.plan["treatment"], degraded) for each in found],
        "not_measured": [
            {"metric": metric, "why": why}
            for metric, why in not_measured([_row(run) for run in saved.runs], saved.plan["margins"]).items()
        ],
        "cpu": _cpu(saved.runs),
        "caveats": _caveats(saved.plan["margins"]),
        "excluded": [
            {
                "run": run.number,
                "block": run.block,
                "arm": run.arm,
                "workload": run.workload,
                "conditions": dict(run.conditions),
                _KEYS.get(saved.plan["treatment"], saved.plan["treatment"]): run.level,
                "reasons": list(run.excluded),
            }
            for run in saved.runs
            if run.excluded
        ],
    }


def _cpu(runs: Sequence[Run]) -> dict[str, float] | None:
    """Where the whole system's CPU time went, in the median run: shares of it, and what the meter itself took."""
    names = ("hosts", "fabric", "framegauge", "unattributed")
    keys = {**{name: f"cpu_share_{name}" for name in names}, "meter_seconds": "meter_seconds"}
    rows = [run.readings for run in runs if not run.excluded]
    values = {name: [row[key] for row in rows if row.get(key) is not None] for name, key in keys.items()}
    return {name: statistics.median(found) for name, found in values.items()} if all(values.values()) else None


def _caveats(metrics: Collection[str]) -> list[str]:
    """What a figure is no evidence for, and which of them repeat (docs/cpu-cost.md)."""
    lines = []
    if any(METRICS[metric].unit.endswith("_per_gigabyte") for metric in metrics):
        lines.append("CPU figures are of this machine's kernel and a virtual NIC: no evidence about hardware")
    if any(metric.endswith(("_cpu_cost", "_cycles")) for metric in metrics):
        lines.append("CPU time and cycles move with neighbours and caches; instructions repeat: judge by those")
    return lines


def is_faithful(found: Sequence[Comparison]) -> bool:
    """Whether every comparison rests on faithful runs, lost (if at all) at random."""
    return bool(found) and all(each.verdict not in (Verdict.SUSPECT, Verdict.NOT_JUDGED) for each in found)


def is_evidence(summary: Mapping[str, Any]) -> bool:
    """Whether the study answers anything: faithful, and at least one treatment judged."""
    return bool(summary["faithful"]) and bool(summary["verdicts"])


def _verdict(found: Comparison, treatment: str, degraded: Sequence[str]) -> dict[str, Any]:
    key, ratio = _KEYS.get(treatment, treatment), found.ratio
    return {
        "workload": found.workload,
        "conditions": dict(found.conditions),
        "metric": found.metric,
        "unit": METRICS[found.metric].unit,
        "baseline": {key: found.baseline_level, "estimate": found.baseline},
        "treatment": {key: found.treatment_level, "estimate": found.treatment},
        "ratio": None if ratio is None else ratio.ratio,
        "ci95": None if ratio is None or ratio.low is None else [ratio.low, ratio.high],
        "verdict": str(found.verdict),
        "runs": found.runs,
        "warnings": [*found.warnings, *(f"degraded: {line}" for line in degraded)],
    }


def text(summary: Mapping[str, Any]) -> str:
    """As it is written to summary.json and printed by --json."""
    return json.dumps(summary, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
