"""What a treatment does to each metric, as the words of a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from framegauge.metrics import METRICS
from framegauge.summary import words

__all__ = ["does", "names_workload", "sizes"]

_WHAT = {
    "stream": "bulk transfers", "iperf3": "iperf3 transfers", "ftp": "FTP transfers", "rr": "requests",
    "mixed": "requests alongside bulk transfers", "mapreduce": "MapReduce jobs",
    "incast": "reads from many servers at once", "ceph": "blocks of Ceph", "shuffle": "shuffles",
    "users": "requests of users", "arrivals": "arriving flows", "replay": "recorded flows",
}  # fmt: skip
# By metric: a regular verb, what follows it if the verdict is better, and if it is worse.
_PHRASES = {
    "goodput": ("move", "{what} {x} faster", "{what} {x} more slowly"),
    "completion_time": ("let", "{what} finish in {x} less time", "{what} take {x} more time"),
    "fairness": ("share", "the link {x} more evenly", "the link {x} less evenly"),
    "smallest_goodput": ("move", "the slowest flow {x} faster", "the slowest flow {x} more slowly"),
    "share_of_few": ("give", "the few {x} more beside the many", "the few {x} less beside the many"),
    "transactions": ("give", "{x} more transactions per second", "{x} fewer transactions per second"),
    "slowdown_p50": ("give", "{what} {x} less slowdown in the median", "{what} {x} more slowdown in the median"),
    "slowdown_p99": ("give", "{what} {x} less slowdown at 99 %", "{what} {x} more slowdown at 99 %"),
    "latency_p50": ("give", "{what} {x} less latency in the median", "{what} {x} more latency in the median"),
    "latency_p99": ("give", "{what} {x} less latency at 99 %", "{what} {x} more latency at 99 %"),
    "latency_p999": ("give", "{what} {x} less latency at 99.9 %", "{what} {x} more latency at 99.9 %"),
    **{
        f"{side}_{name}": (
            "cost", f"the {side} {{x}} {less} {noun} per gigabyte", f"the {side} {{x}} more {noun} per gigabyte",
        )
        for side in ("receiver", "sender")
        for name, less, noun in (
            ("cpu_cost", "less", "CPU time"), ("instructions", "fewer", "instructions"), ("cycles", "fewer", "cycles"),
        )
    },
    # These come from files of other tools.
    **{
        f"{side}_cpu_cost": (
            "cost", f"{end} {{x}} less CPU time per gigabyte", f"{end} {{x}} more CPU time per gigabyte",
        )
        for side, end in (("local", "the local end"), ("remote", "the far end"))
    },
    "retransmits": ("cause", "{x} fewer retransmits per gigabyte", "{x} more retransmits per gigabyte"),
}  # fmt: skip
# Of a better verdict whose changes are all that large, in place of a percentage of hundreds.
_MANY_TIMES = {
    "goodput": ("move", "{what} {x} times as fast"),
    "smallest_goodput": ("move", "the slowest flow {x} times as fast"),
    "share_of_few": ("give", "the few {x} times as much beside the many"),
    "transactions": ("give", "{x} times as many transactions per second"),
}
_MANY = 3.0


def does(metric: str, workloads: Sequence[str], ratios: Sequence[float], better: bool, plural: bool) -> str:
    """What the treatment does to a metric, after its name: "moves bulk transfers 5.3 % faster"."""
    what = words.joined([_WHAT.get(each, each) for each in workloads])
    if metric in _MANY_TIMES and better and min(ratios) >= _MANY:
        verb, text = _MANY_TIMES[metric]
        text = text.format(what=what, x=words.span([f"{each:.2g}" for each in (min(ratios), max(ratios))]))
    else:
        verb, *texts = _PHRASES[metric] if metric in _PHRASES else _own(metric)
        text = texts[0 if better else 1].format(what=what, x=sizes(ratios))
    return f"{verb if plural else f'{verb}s'} {text}"


def names_workload(metric: str) -> bool:
    """Whether the words for this metric say for which workload."""
    return metric not in _PHRASES or "{what}" in _PHRASES[metric][1]


def _own(metric: str) -> tuple[str, str, str]:
    """The words for a metric that a study has declared: programs print what they like, so it is more or less of it."""
    name, higher = words.metric(metric), METRICS[metric].higher_is_better
    more, less = f"{{what}} {{x}} more {name}", f"{{what}} {{x}} less {name}"
    return ("give", more, less) if higher else ("give", less, more)


def sizes(ratios: Sequence[float]) -> str:
    """The range of ratios on the same side of 1: "5.3 %", or "5.3 % to 19 %"."""
    return words.span(words.shares([min(found := [abs(ratio - 1) for ratio in ratios]), max(found)]))
