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
    ahead = sorted({round(each - AHEAD_SECONDS, 6) for each in changes})
    at = 0.0
    for _ in range(MOST_MARKS):
        yield at
        least = at + INTERVAL_SECONDS - 2 * AHEAD_SECONDS
        at = next((each for each in ahead if least <= each < least + INTERVAL_SECONDS), at + INTERVAL_SECONDS)


@contextmanager
def marked(
    hosts: Sequence[Host], changes: Sequence[Mapping[str, Any]], begun_seconds: float, now: Callable[[], float]
) -> Iterator[list[Json]]:
    """Reads all hosts until the block is left, if any of the changes (as in Conditions) is one of a host's MTU. The
    list, which is complete after that, has by host the seconds of CPU and the packets so far, and when that was. A host
    that fails ends it."""
    found: list[Json] = []
    switches = [each["at_seconds"] for each in changes if {"host", "mtu"} <= each["set"].keys()]
    if not hosts or not switches:
        yield found
        return
    over, due = threading.Event(), moments(switches)

    def go_on() -> None:
        for moment in due:
            if over.wait(max(0.0, begun_seconds + moment - now())):
                return
            try:
                found.append(_read(hosts, begun_seconds, now))
            except AgentFailure:
                return

    next(due)
    found.append(_read(hosts, begun_seconds, now))
    thread = threading.Thread(target=go_on, name="marks", daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def _read(hosts: Sequence[Host], begun_seconds: float, now: Callable[[], float]) -> Json:
    told: dict[str, Json] = {}
    for host in hosts:
        at, one = now() - begun_seconds, host.agent.request("cpu.read")
        parts = [one[name]["cpu_seconds"] for name in ("programs", "receive_path") if one[name] is not None]
        told[host.name] = {"at_seconds": round(at, 6), "cpu_seconds": sum(parts), "packets": one["packets"]}
    return told
