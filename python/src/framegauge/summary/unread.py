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
    known = [each for each in compared if each.metric not in nowhere]
    treated = [each for each in known if each.role != "control"] or known
    somewhere = {each.metric for each in treated if not each.is_unread}
    here = {(each.metric, each.cell) for each in treated if not each.is_unread}
    listed: dict[str, dict[str, Any]] = {}
    for each in treated:
        if not each.is_unread:
            continue
        place: dict[str, Any] = {}
        if each.metric in somewhere:
            place |= {"workload": each.workload, "conditions": dict(each.conditions)}
        if (each.metric, each.cell) in here:
            place["treatment"] = {key: each.treatment_level}
        listed.setdefault(json.dumps([each.metric, place]), {"metric": each.metric, "why": each.warnings[0], **place})
    return [*({"metric": metric, "why": why} for metric, why in nowhere.items()), *listed.values()]


def lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """The same in words, of a summary: "receiver CPU cost (rr) was not measured: …". Older summaries lack the key."""
    missing = summary.get("not_measured", ())
    placed = [each for each in missing if "workload" in each]
    cells = words.Cells([*summary["verdicts"], *placed])
    for each in missing:
        named = [cells.name(each)] if "workload" in each else []
        named += [words.subject(each["treatment"])] if "treatment" in each else []
        where = f" ({', '.join(named)})" if named else ""
        yield f"{words.metric(each['metric'])}{where} was not measured: {each['why']}"
