"""The table of metrics: their units, their directions, and the smallest relative effects worth acting on.

A study may declare metrics of its own, which its programs print (workload `command`). They are entered here when the
study, or a folder with its results, is read, so that every part that knows a metric's name can look it up. Whoever has
two studies open must see that they mean the same by a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from framegauge.errors import InputError

__all__ = ["METRICS", "SHARE_OF_FEW", "SMALL", "UNITS", "Metric", "declare", "declared", "is_own", "usual_margin"]

OTHERWISE = 0.05
SMALL = 0.1  # of a margin: what moves a ratio by less is not worth a word
WAKES_SECONDS = 100e-6  # up to 75 us were needed; docs/measured/busy.md

# The units in which programs print, each with its base unit and the factor to it.
UNITS: Mapping[str, tuple[str, float]] = {
    "s": ("seconds", 1.0), "ms": ("seconds", 1e-3), "us": ("seconds", 1e-6), "ns": ("seconds", 1e-9),
    "min": ("seconds", 60.0),
    "B": ("bytes", 1.0), "kB": ("bytes", 1e3), "MB": ("bytes", 1e6), "GB": ("bytes", 1e9),
    "KiB": ("bytes", 1024.0), "MiB": ("bytes", 1024.0**2), "GiB": ("bytes", 1024.0**3),
    "B/s": ("bytes_per_second", 1.0), "kB/s": ("bytes_per_second", 1e3), "MB/s": ("bytes_per_second", 1e6),
    "GB/s": ("bytes_per_second", 1e9), "KiB/s": ("bytes_per_second", 1024.0),
    "MiB/s": ("bytes_per_second", 1024.0**2), "GiB/s": ("bytes_per_second", 1024.0**3),
    "b/s": ("bits_per_second", 1.0), "kb/s": ("bits_per_second", 1e3), "Mb/s": ("bits_per_second", 1e6),
    "Gb/s": ("bits_per_second", 1e9),
    "1/s": ("per_second", 1.0), "1/min": ("per_second", 1 / 60), "1": ("number", 1.0), "%": ("percent", 1.0),
}  # fmt: skip


@dataclass(frozen=True)
class Metric:
    """A metric's base unit and direction.

    `hull`: even its logarithm is far from normal, so its interval is the hull of Hall's and Student's, so many times as
    wide (`statistics.skewness`; the factor is from docs/measured/calibration.md). None: Student's.
    `margin`: the smallest relative effect worth acting on if a study declares none; about the difference between
    repeated measurements on a quiet machine. `wakes_seconds`: by how much an exchange may take longer where other
    programs use the hosts' CPUs (`statistics.shared`). `is_tail`: a few exchanges in a hundred make it. `is_total`: the
    whole run makes it, so that it lacks what a CPU that was held took (`statistics.held`); a median, or the cost of a
    byte, does not.
    """

    unit: str
    higher_is_better: bool
    hull: float | None = None
    margin: float = OTHERWISE
    wakes_seconds: float = 0.0
    is_tail: bool = False
    is_total: bool = True

    @property
    def most(self) -> float | None:
        """The largest value that it can have, if there is one."""
        return 1.0 if self.unit == "share" else None


def _cost(unit: str) -> Metric:
    """What a byte costs its hosts."""
    return Metric(unit, False, is_total=False)


def _tail(unit: str, wakes_seconds: float = 0.0) -> Metric:
    """What the slowest few see."""
    return Metric(unit, False, hull=1.0, wakes_seconds=wakes_seconds, is_tail=True, is_total=False)


SHARE_OF_FEW = "share_of_few"
_BUILT_IN: Mapping[str, Metric] = {
    "goodput": Metric("bits_per_second", True, margin=0.02),
    "completion_time": Metric("seconds", False, margin=0.02),
    "fairness": Metric("share", True, hull=1.12, margin=0.02),
    "smallest_goodput": Metric("bits_per_second", True),
    SHARE_OF_FEW: Metric("number", True, hull=1.0, margin=0.25),
    "latency_p50": Metric("seconds", False, wakes_seconds=WAKES_SECONDS, is_total=False),
    "latency_p99": _tail("seconds", WAKES_SECONDS),
    "latency_p999": _tail("seconds", WAKES_SECONDS),
    "transactions": Metric("per_second", True, margin=0.02, wakes_seconds=WAKES_SECONDS),
    "delay_p50": Metric("seconds", False, wakes_seconds=WAKES_SECONDS, is_total=False),
    "delay_p99": _tail("seconds", WAKES_SECONDS),
    "jitter": _tail("seconds", WAKES_SECONDS),
    "delivered": Metric("share", True, hull=1.12, margin=0.01),
    "slowdown_p50": Metric("number", False, is_total=False),
    "slowdown_p99": _tail("number"),
    "receiver_cpu_cost": _cost("core_seconds_per_gigabyte"),
    "sender_cpu_cost": _cost("core_seconds_per_gigabyte"),
    "receiver_instructions": _cost("instructions_per_gigabyte"),
    "sender_instructions": _cost("instructions_per_gigabyte"),
    "receiver_cycles": _cost("cycles_per_gigabyte"),
    "sender_cycles": _cost("cycles_per_gigabyte"),
    # These occur in files of other tools only: a study measures the costs above, which cover whole hosts.
    "local_cpu_cost": _cost("core_seconds_per_gigabyte"),
    "remote_cpu_cost": _cost("core_seconds_per_gigabyte"),
    "retransmits": Metric("per_gigabyte", False, hull=1.0, is_total=False),
}


class _Table(Mapping[str, Metric]):
    """The metrics that are built in, and those that have been declared."""

    def __init__(self) -> None:
        self.own: dict[str, Metric] = {}

    def __getitem__(self, name: str) -> Metric:
        return _BUILT_IN[name] if name in _BUILT_IN else self.own[name]

    def __iter__(self) -> Iterator[str]:
        yield from _BUILT_IN
        yield from self.own

    def __len__(self) -> int:
        return len(_BUILT_IN) + len(self.own)


_TABLE = _Table()
METRICS: Mapping[str, Metric] = _TABLE


def is_own(name: str) -> bool:
    """Whether a metric was declared by a study."""
    return name in _TABLE.own


def declare(name: str, metric: Metric) -> None:
    """Enters a metric of a study, in place of one of that name from a study before; InputError if it is built in."""
    if name in _BUILT_IN:
        raise InputError(f"metric {name}: found the name of one that is built in, expected another name")
    _TABLE.own[name] = metric


def declared(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Those of these metrics that a study has declared, for its results folder."""
    return {name: asdict(_TABLE.own[name]) for name in names if name in _TABLE.own}


def usual_margin(metric: str) -> float:
    """The metric's default margin, as a share; 5 % for a metric that is not in the table."""
    return METRICS[metric].margin if metric in METRICS else OTHERWISE
