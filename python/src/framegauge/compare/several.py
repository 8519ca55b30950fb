"""Several results against the first: the document of `framegauge compare A B C`, schema 1.

All comparisons with the first are one family (Holm), however many results there are, so that the whole table makes a
false claim with a probability of 5 % at most. Results are not compared with each other: that would be a family of its
own, and a question of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from framegauge.compare import comparison
from framegauge.compare.formats.samples import Side
from framegauge.errors import InputError
from framegauge.statistics.ratio import ALPHA
from framegauge.statistics.sides import judge

__all__ = ["compare"]


def compare(
    base: Side, others: Sequence[Side], given: Mapping[str, float], only: Collection[str] = ()
) -> dict[str, Any]:
    """The document: that of each comparison with `base`, and how all of them come out; else as `comparison.compare`."""
    names = [side.source for side in (base, *others)]
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise InputError(f"compare: found {repeated} twice, expected each once")
    prepared = [comparison.prepare(base, side, given, only) for side in others]
    judged = iter(judge([pair.sets for item in prepared for pair in item.pairs]))
    side_outcomes = [[next(judged) for _ in item.pairs] for item in prepared]
    family = sum(outcome.assumption is not None for outcomes in side_outcomes for outcome in outcomes)
    documents = [
        comparison.document(item, outcomes, family, len(others))
        for item, outcomes in zip(prepared, side_outcomes, strict=True)
    ]
    return {
        "schema": comparison.SCHEMA,
        "question": "Is any of these better or worse than BASE?",
        "base": names[0],
        "new": names[1:],
        "family": {"error": ALPHA, "comparisons": family},
        "outcome": _outcome([item["outcome"] for item in documents]),
        "comparisons": documents,
    }


def _outcome(outcomes: Sequence[str]) -> str:
    """The gravest: one that is worse; then one that is not known."""
    if "worse" in outcomes:
        return "worse"
    if set(outcomes) == {"not_comparable"}:
        return "not_comparable"
    return "nothing_worse" if set(outcomes) == {"nothing_worse"} else "not_all_judged"
