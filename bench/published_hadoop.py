"""What the published study found of Hadoop, for bench/reproduction.py: terasort and grep on twelve workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["STUDIES", "figures", "remarks"]

# Hours, with 13 hosts; on two CPUs no run of it is faithful (docs/reference/workloads.md).
STUDIES = {"published-terasort": "bench/published/terasort.yaml"}

# By job and metric: as published, and the range of ratios of MTU 9000 to 1500 that its rounding leaves. The study
# counted cycles of servers; ours are the CPU time of tasks, by Hadoop, and that of hosts, or cycles where they are
# counted.
_CYCLES = {
    "terasort": ("cycles 3.221 → 3.192 × 10¹², −0.9 %", 3.1915 / 3.2215, 3.1925 / 3.2205),
    "grep": ("cycles 2.660 → 2.658 × 10¹², −0.07 %", 2.6575 / 2.6605, 2.6585 / 2.6595),
}
_FIGURES: Mapping[tuple[str, str], tuple[str, float, float]] = {
    ("terasort", "job_time"): ("completion about 4 % longer at 1500", 1 / 1.045, 1 / 1.035),
    ("terasort", "shuffle_time"): ("mean shuffle 440 → 421 s, −4.3 %", 420.5 / 440.5, 421.5 / 439.5),
    ("grep", "job_time"): ("1.5 % shorter", 0.9845, 0.9855),
    **{
        (job, metric): told
        for job, told in _CYCLES.items()
        for metric in ("task_cpu_time", "receiver_cpu_cost", "receiver_cycles")
    },
}


def figures() -> Iterator[dict[str, Any]]:
    """The figures, as the fields of `reproduction.Published`: for Nagle on and off, of which the study says nothing."""
    for (job, metric), (said, low, high) in _FIGURES.items():
        yield {
            "study": "terasort", "said": said, "low": low, "high": high, "metric": metric, "conditions": {"job": job},
            "optional": True, "free": ("nagle",),
        }  # fmt: skip


def remarks(is_there: bool) -> tuple[str, list[str]]:
    """What the page says of Hadoop among what was not carried, and its last lines."""
    if is_there:
        return "Hadoop sorts 1 GB instead of 100", []
    return "Hadoop is not included", [
        "Hadoop's study (`--hadoop`) takes ten hours, and more than two CPUs to be faithful."
    ]
