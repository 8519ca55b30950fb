"""The table of metrics: their units, their directions, and the smallest relative effects worth acting on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["METRICS", "Metric", "usual_margin"]

OTHERWISE = 0.05


@dataclass(frozen=True)
class Metric:
    """A metric's base unit and direction.

    `hull`: even its logarithm is far from normal, so its interval is the hull of Hall's and Student's, so many times as
    wide (`statistics.skewness`; the factor is from docs/measured/calibration.md). None: Student's.
    `margin`: the smallest relative effect worth acting on if a study declares none; about the difference between
    repeated measurements on a quiet machine.
    """

    unit: str
    higher_is_better: bool
    hull: float | None = None
    margin: float = OTHERWISE


METRICS: Mapping[str, Metric] = {
    "goodput": Metric("bits_per_second", True, margin=0.02),
    "completion_time": Metric("seconds", False, margin=0.02),
    "fairness": Metric("share", True, hull=1.12, margin=0.02),
    "smallest_goodput": Metric("bits_per_second", True),
    "latency_p50": Metric("seconds", False),
    "latency_p99": Metric("seconds", False, hull=1.0),
    "latency_p999": Metric("seconds", False, hull=1.0),
    "transactions": Metric("per_second", True, margin=0.02),
    "receiver_cpu_cost": Metric("core_seconds_per_gigabyte", False),
    "sender_cpu_cost": Metric("core_seconds_per_gigabyte", False),
    "receiver_instructions": Metric("instructions_per_gigabyte", False),
    "sender_instructions": Metric("instructions_per_gigabyte", False),
    "receiver_cycles": Metric("cycles_per_gigabyte", False),
    "sender_cycles": Metric("cycles_per_gigabyte", False),
    # These occur in files of other tools only: a study measures the costs above, which cover whole hosts.
    "local_cpu_cost": Metric("core_seconds_per_gigabyte", False),
    "remote_cpu_cost": Metric("core_seconds_per_gigabyte", False),
    "retransmits": Metric("per_gigabyte", False, hull=1.0),
}


def usual_margin(metric: str) -> float:
    """The metric's default margin, as a share; 5 % for a metric that is not in the table."""
    return METRICS[metric].margin if metric in METRICS else OTHERWISE
