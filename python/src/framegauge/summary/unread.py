"""Metrics that could not be read: what they are, where and why. They are left out, and the rest is judged.

A CPU cost that is too small to tell from an idle host's is the usual one. Its runs count, so that nothing is wrong with
what else was measured in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.statistics.judge import Comparison
from framegauge.summary import words

__all__ = ["entries", "lines"]


def entries(nowhere: Mapping[str, str], compared: Sequence[Comparison], key: str) -> list[dict[str, Any]]:
    """The metrics without any value, each with its reason, then those of treatments that could not be read, with the
    reason of the first: by cell where the metric could be read in another, and by level of the treatment (`key`) where
    it could at another one there."""
    measured = [comparison for comparison in compared if comparison.metric not in nowhere]
    treated = [comparison for comparison in measured if comparison.role != "control"] or measured
    read_metrics = {comparison.metric for comparison in treated if not comparison.is_unread}
    read_cells = {(comparison.metric, comparison.cell) for comparison in treated if not comparison.is_unread}
    missing: dict[str, dict[str, Any]] = {}
    for comparison in treated:
        if not comparison.is_unread:
            continue
        place: dict[str, Any] = {}
        if comparison.metric in read_metrics:
            place |= {"workload": comparison.workload, "conditions": dict(comparison.conditions)}
        if (comparison.metric, comparison.cell) in read_cells:
            place["treatment"] = {key: comparison.treatment_level}
        missing.setdefault(
            json.dumps([comparison.metric, place]),
            {"metric": comparison.metric, "why": comparison.warnings[0], **place},
        )
    return [*({"metric": metric, "why": why} for metric, why in nowhere.items()), *missing.values()]


def lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """The same in words, of a summary: "receiver CPU cost (rr) was not measured: …". Older summaries lack the key."""
    missing = summary.get("not_measured", ())
    placed = [entry for entry in missing if "workload" in entry]
    cells = words.Cells([*summary["verdicts"], *placed])
    for entry in missing:
        names = [cells.name(entry)] if "workload" in entry else []
        names += [words.subject(entry["treatment"])] if "treatment" in entry else []
        where = f" ({', '.join(names)})" if names else ""
        yield f"{words.metric(entry['metric'])}{where} was not measured: {entry['why']}"
