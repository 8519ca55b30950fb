"""The smallest relative effects worth acting on, by metric, where nobody declares others."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["OTHERWISE", "USUAL", "usual"]

# About what repeated measurements of a quiet machine differ by, and nobody would act on.
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
    """The metric's usual margin, as a share."""
    return USUAL.get(metric, OTHERWISE)
