"""Readings of all hosts while a run goes on, for what is compared before and after a change of them.

One message per host and second, as the pipe's rule has it: the first at once, and one shortly before each change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from framegauge.errors import AgentFailure
from framegauge.testbeds.base import Host, Json

__all__ = ["INTERVAL_SECONDS", "marked", "moments"]

INTERVAL_SECONDS = 1.0
AHEAD_SECONDS = 0.05  # of a change
MOST_MARKS = 3600  # of a run


def moments(changes: Iterable[float]) -> Iterator[float]:
    """The times after the beginning at which hosts are read, in order; `changes` are those of the changes."""
    ahead = sorted({round(moment - AHEAD_SECONDS, 6) for moment in changes})
    mark = 0.0
    for _ in range(MOST_MARKS):
        yield mark
        least = mark + INTERVAL_SECONDS - 2 * AHEAD_SECONDS
        mark = next((moment for moment in ahead if least <= moment < least + INTERVAL_SECONDS), mark + INTERVAL_SECONDS)


@contextmanager
def marked(
    hosts: Sequence[Host], changes: Sequence[Mapping[str, Any]], begun_seconds: float, now: Callable[[], float]
) -> Iterator[list[Json]]:
    """Reads all hosts until the block is left, if any of the changes (as in Conditions) is one of a host's MTU. The
    list, which is complete after that, has by host the seconds of CPU and the packets so far, and when that was. A host
    that fails ends it."""
    readings: list[Json] = []
    switches = [change["at_seconds"] for change in changes if {"host", "mtu"} <= change["set"].keys()]
    if not hosts or not switches:
        yield readings
        return
    stop, schedule = threading.Event(), moments(switches)

    def go_on() -> None:
        for moment in schedule:
            if stop.wait(max(0.0, begun_seconds + moment - now())):
                return
            try:
                readings.append(_read(hosts, begun_seconds, now))
            except AgentFailure:
                return

    next(schedule)
    readings.append(_read(hosts, begun_seconds, now))
    thread = threading.Thread(target=go_on, name="marks", daemon=True)
    thread.start()
    try:
        yield readings
    finally:
        stop.set()
        thread.join()


def _read(hosts: Sequence[Host], begun_seconds: float, now: Callable[[], float]) -> Json:
    readings: dict[str, Json] = {}
    for host in hosts:
        moment, reading = now() - begun_seconds, host.agent.request("cpu.read")
        parts = [reading[name]["cpu_seconds"] for name in ("programs", "receive_path") if reading[name] is not None]
        readings[host.name] = {"at_seconds": round(moment, 6), "cpu_seconds": sum(parts), "packets": reading["packets"]}
    return readings
