"""What a treatment does to each metric, as the words of a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from framegauge.loads import LOADS
from framegauge.metrics import METRICS
from framegauge.summary import words

__all__ = ["does", "names_workload", "sizes"]

_NAMES = {
    "goodput": "the goodput of {what}",
    "completion_time": "the completion time of {what}",
    "fairness": "the fairness of the flows",
    "smallest_goodput": "the goodput of the slowest flow",
    "share_of_few": "what the few get beside the many",
    "transactions": "the transactions per second",
    "slowdown_p50": "the median slowdown of {what}",
    "slowdown_p99": "the p99 slowdown of {what}",
    "delay_p50": "the median one-way delay of {what}",
    "delay_p99": "the p99 one-way delay of {what}",
    "jitter": "the jitter of {what}",
    "delivered": "the share of {what} that arrive",
    "latency_p50": "the median latency of {what}",
    "latency_p95": "the p95 latency of {what}",
    "latency_p99": "the p99 latency of {what}",
    "latency_p999": "the p99.9 latency of {what}",
    **{
        f"{side}_{name}": f"the {side}'s {noun} per gigabyte"
        for side in ("receiver", "sender")
        for name, noun in (("cpu_cost", "CPU time"), ("instructions", "instructions"), ("cycles", "cycles"))
    },
    # These come from files of other tools.
    "local_cpu_cost": "the local end's CPU time per gigabyte",
    "remote_cpu_cost": "the far end's CPU time per gigabyte",
    "retransmits": "the retransmits per gigabyte",
}  # fmt: skip
_OF_THE_LAST = {"completion_time": "the time until all {what} have ended"}
_MANY = 3.0  # from here on a factor is said in place of a percentage of hundreds
_PER_SECOND = "per_second"


def does(
    metric: str,
    workloads: Sequence[str],
    ratios: Sequence[float],
    better: bool,
    plural: bool,
    of_the_last: bool = False,
) -> str:
    """What the treatment does to a metric, after its name: "raises the goodput of NFS by 5.3 %". `of_the_last`: several
    transfers begin at once, and the last decides."""
    what = words.joined([LOADS[item].what if item in LOADS else item for item in workloads])
    name = (_OF_THE_LAST if of_the_last else {}).get(metric, _name(metric)).format(what=what)
    if min(ratios) >= _MANY:
        verb, by = ("multiply", "multiplies"), words.span([_times(item) for item in (min(ratios), max(ratios))])
    else:
        rises = better is (metric not in METRICS or METRICS[metric].higher_is_better)
        verb, by = ("raise", "raises") if rises else ("lower", "lowers"), sizes(ratios)
    return f"{verb[0 if plural else 1]} {name} by {by}"


def _times(ratio: float) -> str:
    """A factor with two digits: "8.8", "1,000"."""
    return f"{float(f'{ratio:.2g}'):,g}"


def names_workload(metric: str) -> bool:
    """Whether the words for this metric say for which workload."""
    return "{what}" in _name(metric)


def _name(metric: str) -> str:
    """The metric as an object; one that a study has declared is of its program."""
    if metric in _NAMES:
        return _NAMES[metric]
    name = words.metric(metric)
    per = " per second" if metric in METRICS and METRICS[metric].unit == _PER_SECOND and " per " not in name else ""
    return f"the {name}{per} of {{what}}"


def sizes(ratios: Sequence[float]) -> str:
    """The range of ratios on the same side of 1: "5.3 %", or "5.3 % to 19 %"."""
    return words.span(words.shares([min(distances := [abs(ratio - 1) for ratio in ratios]), max(distances)]))
