"""Every comparison of a results folder, and what follows for the study as a whole: may it stop, is it evidence?"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from framegauge.metrics import METRICS
from framegauge.results.journal import Run, Saved
from framegauge.statistics.judge import Comparison, Row, is_settled as statistics_settled, judge, log_ratios_by_cell
from framegauge.statistics.sequential import StoppingRule
from framegauge.statistics.verdict import Verdict

__all__ = ["compare", "is_evidence", "is_faithful", "is_settled", "row", "spreads", "suspicions", "wants_runs"]

MOST_LOST = 0.25  # of a study's comparisons: with so many and more of them gone, the rest is not what was planned


def compare(saved: Saved) -> list[Comparison]:
    """Every comparison of the folder's runs.

    Where too few runs tell whether the excluded ones were lost at random, a study that has not run all its blocks is
    undecided: the rest of them will tell. One that has is suspect.
    """
    found = judge([row(run) for run in saved.runs], saved.plan["margins"], _rule(saved.plan))
    if not _is_cut_off(saved):
        return found
    open_ = [each.wants_runs and each.verdict is Verdict.SUSPECT and not each.control_differs for each in found]
    return [
        replace(each, verdict=Verdict.UNDECIDED) if is_open else each
        for each, is_open in zip(found, open_, strict=True)
    ]  # fmt: skip


def _is_cut_off(saved: Saved) -> bool:
    """Whether the study was interrupted, or ran out of its budget, before it had tried every planned run."""
    planned = saved.plan.get("planned_runs")
    return isinstance(planned, int) and len({run.key for run in saved.runs}) < planned


def is_settled(plan: Mapping[str, Any], blocks: int, runs: Sequence[Run]) -> bool:
    """Whether a study of this plan may stop after so many blocks: it looks now, and everything has its verdict."""
    rule = _rule(plan)
    if not rule.looks_after(blocks):
        return False
    return statistics_settled(judge([row(run) for run in runs], plan["margins"], rule, explain=False))


def wants_runs(plan: Mapping[str, Any], runs: Sequence[Run]) -> bool:
    """Whether a comparison has no verdict only because too few runs tell if the excluded ones were lost at random."""
    found = judge([row(run) for run in runs], plan["margins"], _rule(plan), explain=False)
    return any(each.wants_runs for each in found)


def spreads(saved: Saved) -> dict[str, list[float]]:
    """Standard deviations of the log ratios of blocks, by metric, of every cell and arm with three blocks or more."""
    rows = [row(run) for run in saved.runs]
    found: dict[str, list[float]] = {}
    for metric in METRICS:
        for arm in {row.arm for row in rows if row.role != "baseline"}:
            cells = log_ratios_by_cell(rows, metric, arm).values()
            found.setdefault(metric, []).extend(statistics.stdev(logs.values()) for logs in cells if len(logs) > 2)
    return {metric: values for metric, values in found.items() if values}


def _rule(plan: Mapping[str, Any]) -> StoppingRule:
    """Folders that were written before studies could stop have no such key."""
    return StoppingRule(plan["planned_blocks"] if plan.get("stop") == "settled" else None)


def row(run: Run) -> Row:
    """A run as the statistics see it."""
    return Row(
        run.block, run.cell, run.arm, run.role, run.level, run.workload, run.conditions, run.metrics,
        bool(run.excluded), run.readings.get("not_measured", {}),
    )  # fmt: skip


def suspicions(found: Sequence[Comparison]) -> list[str]:
    """Why the study as a whole is suspect, a line each: whatever makes an A/A control differ may act everywhere. Runs
    that were not lost at random cost their own comparison only, unless they cost many."""
    many = _lost_many(found)
    mine = [each for each in found if each.verdict is Verdict.SUSPECT and (each.control_differs or many)]
    return list({each.warnings[0]: None for each in mine if each.warnings})


def _lost_many(found: Sequence[Comparison]) -> bool:
    """Of all comparisons, or of those of the treatments."""
    lost = [each.verdict in (Verdict.SUSPECT, Verdict.NOT_JUDGED) for each in found]
    treated = [gone for gone, each in zip(lost, found, strict=True) if each.role != "control"]
    return any(group and sum(group) >= MOST_LOST * len(group) for group in (lost, treated))


def is_faithful(found: Sequence[Comparison]) -> bool:
    """Whether the study is evidence for what it judges: no A/A control differs, and few comparisons lost their runs."""
    return bool(found) and not _lost_many(found) and not any(each.control_differs for each in found)


def is_evidence(summary: Mapping[str, Any]) -> bool:
    """Whether the study answers anything: faithful, and at least one treatment judged."""
    return bool(summary["faithful"]) and bool(summary["verdicts"])
