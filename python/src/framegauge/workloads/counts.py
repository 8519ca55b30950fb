"""Quantiles of latencies that clients have counted: how many took how long."""

from __future__ import annotations

import math
from collections.abc import Mapping

__all__ = ["QUANTILES", "quantile"]

QUANTILES = {"latency_p50": 0.5, "latency_p95": 0.95, "latency_p99": 0.99}


def quantile(counts: Mapping[int, int], share: float, unanswered: int = 0) -> int | None:
    """The value that `share` of all do not exceed (nearest rank); None if there are too few values for it, or if the
    rank falls among the unanswered."""
    total = sum(counts.values()) + unanswered
    if total < round(1 / (1 - share)):
        return None
    rank = math.ceil(share * total)
    for value in sorted(counts):
        rank -= counts[value]
        if rank <= 0:
            return value
    return None
