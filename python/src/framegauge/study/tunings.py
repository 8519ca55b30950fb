"""Tunings: named sets of settings of the hosts, which the factor `tuning` compares, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import PlainValidator, StrictStr, WithJsonSchema

from framegauge.errors import QuantityError
from framegauge.files import settings
from framegauge.files.types import Problem, Sparse, nearest
from framegauge.study.aggregates import PROBING

__all__ = ["AS_IS", "Tuning", "tuned_sysctls", "tuning_problems"]

AS_IS = "as-is"  # the level that every study knows: no settings but the study's own
MOST_SEGMENTS = 1000
WINDOW_EXPECTED = f"whole segments, 1 to {MOST_SEGMENTS}, such as 10"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
# The factors that set a sysctl, or overrule it.
_SET_BY = {
    "net.ipv4.tcp_ecn": "ecn", PROBING: "mtu_probing", settings.CONGESTION_CONTROL: "congestion_control",
}  # fmt: skip


def _segments(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_SEGMENTS:
        raise QuantityError(value, WINDOW_EXPECTED)
    return value


Segments = Annotated[
    int,
    PlainValidator(_segments),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MOST_SEGMENTS, "description": WINDOW_EXPECTED}),
]


class Tuning(Sparse):
    """One set of settings. `sysctls` come on top of the study's.

    `initial_window` is what a new connection may send before its first acknowledgement, `initial_receive_window` the
    largest window that it announces at first, both in segments: `initcwnd` and `initrwnd` of all routes of a host.
    `slow_start_threshold` is where the first slow start ends, in segments (the initial ssthresh of RFC 5681), which
    only simulated hosts can be told. Without them, they are the kernel's own.
    """

    sysctls: dict[StrictStr, StrictStr] | None = None
    initial_window: Segments | None = None
    initial_receive_window: Segments | None = None
    slow_start_threshold: Segments | None = None


def tuned_sysctls(own: Mapping[str, str], tunings: Mapping[str, Tuning], level: str | None) -> dict[str, str]:
    """The sysctls at a level of `tuning`: the study's `own`, and those of the set."""
    tuning = tunings.get(level or AS_IS)
    return {**own, **((tuning.sysctls or {}) if tuning is not None else {})}


def tuning_problems(
    levels: Sequence[Any], tunings: Mapping[str, Tuning], factors: Collection[str], kind: str, builds_hosts: bool
) -> Iterator[Problem]:
    """Problems with the sets and the levels that name them. `factors` are those that the study gives; `kind` and
    `builds_hosts` are of its testbed."""
    for index, level in enumerate(levels):
        if level not in (None, AS_IS, *tunings):
            expected = f"{AS_IS} or one of tunings: {nearest(level, [AS_IS, *tunings])}"
            yield Problem(("factors", "tuning", "levels", index), level, expected)
    for name, tuning in tunings.items():
        path = ("tunings", name)
        if name == AS_IS:
            yield Problem(path, name, f"another name: {AS_IS} is a level without settings but the study's own")
        elif not _NAME.fullmatch(name):
            yield Problem(path, name, "a name of up to 40 letters, digits, dots, hyphens and underscores")
        elif name not in levels:
            yield Problem(path, name, "a level of factors.tuning by this name: nothing uses it")
        yield from _set_problems(name, tuning, factors, kind, builds_hosts)


def _set_problems(
    name: str, tuning: Tuning, factors: Collection[str], kind: str, builds_hosts: bool
) -> Iterator[Problem]:
    windows = {key: getattr(tuning, key) for key in ("initial_window", "initial_receive_window")}
    set_windows = {key: segments for key, segments in windows.items() if segments is not None}
    threshold = tuning.slow_start_threshold
    if not set_windows and not tuning.sysctls and threshold is None:
        expected = "sysctls, initial_window, initial_receive_window or slow_start_threshold"
        yield Problem(("tunings", name), "nothing", expected)
    if threshold is not None and kind != "simulator":
        expected = f"no such key on testbed {kind}: Linux has no setting for it; the simulator has"
        yield Problem(("tunings", name, "slow_start_threshold"), threshold, expected)
    for key, segments in set_windows.items() if not builds_hosts else ():
        expected = f"no such key on testbed {kind}: the routes of your own hosts are left unchanged"
        yield Problem(("tunings", name, key), segments, expected)
    for sysctl, value in (tuning.sysctls or {}).items():
        path = ("tunings", name, "sysctls", sysctl)
        if problem := settings.sysctl(sysctl, value):
            yield Problem(path, *problem)
        elif _SET_BY.get(sysctl) in factors:
            yield Problem(path, value, f"no such key with factors.{_SET_BY[sysctl]}, which sets it")
