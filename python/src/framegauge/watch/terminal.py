"""The document of a watch as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framegauge.summary.units import figure

__all__ = ["levels", "lines"]

MOST_NAMES = 6


def lines(document: Mapping[str, Any]) -> Iterator[str]:
    """The answer, what was compared, and each metric with its verdict, its levels and the reason."""
    yield document["question"]
    yield document["answer"]
    yield (
        f"switched at {_clock(document['changed_at'])}: {_names(document['switched_hosts'])}; "
        f"beside {_names(document['control_hosts'])}"
    )
    if document["share_of_after"] < 1:
        yield f"{document['share_of_after']:.0%} of the time after the switch is over: nothing can pass yet"
    width = max(len(row["metric"]) for row in document["metrics"])
    for row in document["metrics"]:
        shown = "" if row["decides"] else "  (does not decide)"
        yield f"  {row['metric']:{width}}  {row['verdict'].replace('_', ' '):23}  {levels(row)}{shown}".rstrip()
        yield f"    {row['why']}"
        for doubt in row["doubts"]:
            yield f"    but: {doubt}"
        for change in row["changes"]:
            if change["with_the_switch"]:
                yield f"    the difference changed at {_clock(change['at'])}, with the switch"


def levels(metric: Mapping[str, Any]) -> str:
    """What the switched hosts had before and after, and the others: "0.31 → 0.3 per second, others 0.29 → 0.31"."""
    if metric["switched"] is None:
        return ""
    pairs = [f"{figure(metric[side]['before'])} → {figure(metric[side]['after'])}" for side in ("switched", "control")]
    return f"{pairs[0]} {metric['unit']}".rstrip() + f", others {pairs[1]}"


def _clock(at: str) -> str:
    return at[:19].replace("T", " ") + " UTC"


def _names(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more
