"""The default margins: the smallest relative effect worth acting on, by metric, where a study declares no other."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["OTHERWISE", "USUAL", "usual"]

# Repeated measurements on a quiet machine differ by about this much, and such differences call for no action.
USUAL: Mapping[str, float] = {
    "goodput": 0.02,
    "completion_time": 0.02,
    "transactions": 0.02,
    "fairness": 0.02,
    "latency_p50": 0.05,
    "latency_p99": 0.05,
    "latency_p999": 0.05,
}
OTHERWISE = 0.05


def usual(metric: str) -> float:
    """The metric's default margin, as a share."""
    return USUAL.get(metric, OTHERWISE)
