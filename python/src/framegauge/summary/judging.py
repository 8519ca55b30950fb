"""The comparisons of a results folder, and whether the study as a whole may stop, and counts as evidence."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from framegauge.metrics import METRICS, SHARE_OF_FEW
from framegauge.results.journal import Run, Saved
from framegauge.statistics.judge import Comparison, is_settled as statistics_settled, judge
from framegauge.statistics.ordered import Smallest, smallest
from framegauge.statistics.pairs import Row, log_ratios_by_cell
from framegauge.statistics.power import REFERENCE_OF_TWO, Spread
from framegauge.statistics.ratio import ALPHA
from framegauge.statistics.sequential import StoppingRule
from framegauge.statistics.verdict import WITHOUT_FIGURES, Verdict
from framegauge.summary import few

__all__ = [
    "compare",
    "doubted",
    "family_error",
    "is_evidence",
    "is_faithful",
    "is_settled",
    "row",
    "rule_of",
    "smallest_levels",
    "spreads",
    "suspicions",
    "wants_runs",
]

ORDERED = ("mtu", "buffer", "moderation")  # treatments whose smallest sufficient level is asked for
MOST_LOST = 0.25  # a study that lost this share of its comparisons, or more, is not what was planned


def compare(saved: Saved) -> list[Comparison]:
    """All comparisons of a folder's runs.

    If more runs are needed to tell whether the excluded ones were lost at random, a comparison is undecided in a study
    that has not tried all planned runs yet, and suspect in one that has.
    """
    comparisons = _judged(saved.plan, [row(run) for run in saved.runs])
    if not _is_cut_off(saved):
        return comparisons
    open_ = [
        comparison.wants_runs and comparison.verdict is Verdict.SUSPECT and not comparison.control_differs
        for comparison in comparisons
    ]
    return [
        replace(comparison, verdict=Verdict.UNDECIDED) if is_open else comparison
        for comparison, is_open in zip(comparisons, open_, strict=True)
    ]  # fmt: skip


def doubted(found: Sequence[Comparison]) -> list[Comparison]:
    """The same, and no claim on any treatment if an A/A control differs: whatever makes it differ may affect all."""
    if not any(comparison.control_differs for comparison in found):
        return list(found)
    line = "an A/A control of this study differs from the identical baseline, so nothing is claimed"
    return [
        replace(comparison, verdict=Verdict.SUSPECT, warnings=(line, *comparison.warnings), unseen_stalls=None)
        if comparison.role != "control" and comparison.verdict not in (Verdict.SUSPECT, *WITHOUT_FIGURES)
        else comparison
        for comparison in found
    ]


def _judged(plan: Mapping[str, Any], rows: Sequence[Row], explain: bool = True) -> list[Comparison]:
    """The comparisons of these rows by a plan; older ones lack some of its keys."""
    not_worse = plan.get("ask") == "not worse"
    estimators = plan.get("estimators", {})
    return judge(rows, plan["margins"], rule_of(plan), explain, plan.get("primary", ()), not_worse, estimators)


def _is_cut_off(saved: Saved) -> bool:
    """Whether the study was interrupted, or ran out of its budget, before it had tried every planned run."""
    planned = saved.plan.get("planned_runs")
    return isinstance(planned, int) and len({run.key for run in saved.runs}) < planned


def is_settled(plan: Mapping[str, Any], blocks: int, runs: Sequence[Run]) -> bool:
    """Whether a study may stop after this many blocks: its plan has a look here, and everything has its verdict."""
    rows = [row(run) for run in runs]
    if not rule_of(plan).looks_after(blocks):
        return False
    comparisons = _judged(plan, rows, explain=False)
    if not statistics_settled(comparisons):
        return False
    if SHARE_OF_FEW in plan["margins"] and not all(
        result.is_settled for result in few.judged(plan, rows, rule_of(plan), False)
    ):
        return False
    return all(result.is_settled for result in smallest_levels(plan, rows, comparisons) if result.cell is None)


def smallest_levels(plan: Mapping[str, Any], rows: Sequence[Row], found: Sequence[Comparison]) -> list[Smallest]:
    """The smallest sufficient level of a treatment of which a larger level asks more of the network; `found` are the
    comparisons of these rows."""
    if plan["treatment"] not in ORDERED:
        return []
    doubted = {(comparison.cell, comparison.metric) for comparison in found if comparison.control_differs}
    return smallest(rows, plan["margins"], rule_of(plan), doubted, plan.get("estimators", {}))


def wants_runs(plan: Mapping[str, Any], runs: Sequence[Run]) -> bool:
    """Whether a comparison lacks a verdict only until more runs show if the excluded ones were lost at random."""
    comparisons = _judged(plan, [row(run) for run in runs], explain=False)
    return any(comparison.wants_runs for comparison in comparisons)


def spreads(saved: Saved) -> dict[str, list[Spread]]:
    """The spread of the log ratios of a run to another by metric, of every cell and treatment with at least three
    blocks; of the A/A controls in a study without treatments. What the mean of two runs of the baseline saves is added
    again, since the study that is planned may have one."""
    rows = [row(run) for run in saved.runs]
    roles = {row.arm: row.role for row in rows}
    treated = [arm for arm, role in roles.items() if role == "treatment"]
    factor = 1 / REFERENCE_OF_TWO if treated and "control" in roles.values() else 1.0
    metric_spreads: dict[str, list[Spread]] = {}
    for metric in METRICS:
        for arm in treated or [arm for arm, role in roles.items() if role == "control"]:
            for logs in log_ratios_by_cell(rows, metric, arm).values():
                if len(logs) > 2:
                    metric_spreads.setdefault(metric, []).append(
                        Spread(factor * statistics.stdev(logs.values()), len(logs))
                    )
    return metric_spreads


def rule_of(plan: Mapping[str, Any]) -> StoppingRule:
    """The stopping rule of a plan. Older folders, from before studies could stop early, lack the key."""
    before = tuple(plan.get("extended_from", ()))
    ends = (*before, plan["planned_blocks"]) if before else ()
    if plan.get("stop") != "settled":
        return StoppingRule(None, ends)
    return StoppingRule(before[0] if before else plan["planned_blocks"], ends)


def family_error(plan: Mapping[str, Any], comparisons: int) -> float:
    """The probability that any of so many comparisons has a wrong verdict, extensions of the study included."""
    rule, count = rule_of(plan), max(1, comparisons)
    return count * rule.error(ALPHA / count) if rule.is_extended else ALPHA


def row(run: Run) -> Row:
    """A run as a row for the statistics."""
    return Row(
        run.block, run.cell, run.arm, run.role, run.level, run.workload, run.conditions, run.metrics,
        bool(run.excluded), run.readings.get("not_measured", {}), run.number, run.failure,
        bool(run.readings.get("shared_cpus", False)), run.readings.get("held_share") or 0.0,
    )  # fmt: skip


def suspicions(found: Sequence[Comparison]) -> list[str]:
    """Why the study as a whole is suspect, one line for each reason: whatever makes an A/A control differ may affect
    every comparison. Runs that were not lost at random affect their own comparison only, unless many are affected."""
    has_lost_many = _lost_many(found)
    suspects = [
        comparison
        for comparison in found
        if comparison.verdict is Verdict.SUSPECT and (comparison.control_differs or has_lost_many)
    ]
    return list({comparison.warnings[0]: None for comparison in suspects if comparison.warnings})


def _lost_many(comparisons: Sequence[Comparison]) -> bool:
    """Whether too many comparisons lack a verdict, among all of them or among those of treatments."""
    readable = [comparison for comparison in comparisons if not comparison.is_unread]
    lost = [comparison.verdict in (Verdict.SUSPECT, Verdict.NOT_JUDGED) for comparison in readable]
    treated = [is_lost for is_lost, comparison in zip(lost, readable, strict=True) if comparison.role != "control"]
    return any(group and sum(group) >= MOST_LOST * len(group) for group in (lost, treated))


def is_faithful(found: Sequence[Comparison]) -> bool:
    """Whether the study is evidence: no A/A control differs, and few comparisons lost their runs. Metrics that could
    not be read are left out, but not all of them."""
    treated = [comparison for comparison in found if comparison.role != "control"] or found
    is_read = any(not comparison.is_unread for comparison in treated)
    return is_read and not _lost_many(found) and not any(comparison.control_differs for comparison in found)


def is_evidence(summary: Mapping[str, Any]) -> bool:
    """Whether the study can answer its question: it is faithful, and has verdicts."""
    return bool(summary["faithful"]) and bool(summary["verdicts"])
