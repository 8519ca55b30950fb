"""What became worse where the study claims a gain, in a metric of that workload for which the study has no margin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from framegauge.loads import waits_for_all
from framegauge.metrics import usual_margin
from framegauge.statistics.judge import Comparison, judge
from framegauge.statistics.pairs import Row
from framegauge.statistics.sequential import StoppingRule
from framegauge.statistics.verdict import Verdict
from framegauge.summary import words

__all__ = ["LEADING", "leading_first", "lines", "worse"]

LEADING = ("completion_time", "smallest_goodput")  # where the last of several transfers decides
_PRIMARY = ("goodput", "transactions", "latency_p50")  # what else a workload is there for
MOST_SAID = 2


def leading_first(found: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons by cell; in each the metrics of the last transfer come first if that decides."""
    cells = list(dict.fromkeys(comparison.cell for comparison in found))

    def place(comparison: Comparison) -> tuple[int, int]:
        leads = comparison.metric in LEADING and waits_for_all(comparison.workload, comparison.conditions)
        return cells.index(comparison.cell), LEADING.index(comparison.metric) if leads else len(LEADING)

    return sorted(found, key=place)


def worse(
    rows: Sequence[Row], margins: Mapping[str, float], rule: StoppingRule, claimed: Sequence[Comparison]
) -> list[Comparison]:
    """The primary metrics without a margin that are worse by more than their usual one, in the cells in which one with
    a margin is `claimed` to be better."""
    metric_names = {name for row in rows if not row.excluded for name in row.metrics}
    usual_margins = {
        name: usual_margin(name) for name in (*LEADING, *_PRIMARY) if name in metric_names and name not in margins
    }
    gains = {(pair.cell, repr(pair.treatment_level)) for pair in claimed if pair.verdict is Verdict.BETTER}
    if not usual_margins or not gains:
        return []
    judged = judge(rows, usual_margins, rule, explain=False)
    return [
        pair for pair in judged if pair.verdict is Verdict.WORSE and (pair.cell, repr(pair.treatment_level)) in gains
    ]  # fmt: skip


def lines(found: Sequence[Mapping[str, Any]]) -> str:
    """The entries of a summary's `unasked` in words: "goodput (926 Mb/s → 78.2 Mb/s) is worse, …"; "" for none."""
    if not found:
        return ""
    cells = words.Cells(found)
    clauses = []
    for entry in found[:MOST_SAID]:
        values = " → ".join(
            words.quantity(entry[side]["estimate"], entry["unit"]) for side in ("baseline", "treatment")
        )
        where = cells.of(entry)
        clauses.append(f"{words.metric(entry['metric'])} is worse ({values}{f'; {where}' if where else ''})")
    more = f" and {len(found) - MOST_SAID} more" if len(found) > MOST_SAID else ""
    return f"{words.joined(clauses)}{more}, for which this study states no margin"
