"""What a reducer of Hadoop logs of its shuffle (syslog.shuffle): which host it fetched from, how much, how long. Pure.

Each of its fetchers is a thread. It gets a host, which it draws among those with output of maps, has all of that over
one connection, and says when it is done with the host (`ShuffleSchedulerImpl`), and in what time: connecting and the
wait for the host's answer included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

__all__ = ["Fetched", "parse"]

_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) \w+ \[(fetcher#\d+)\] [\w.$]+: (.*)")
_READ = re.compile(r"Read (\d+) bytes from map-output for ")
_FREED = re.compile(r"(\S+):\d+ freed by fetcher#\d+ in (\d+)ms")
_CLOCK = "%Y-%m-%d %H:%M:%S,%f"
MILLISECOND = 1e-3


@dataclass(frozen=True)
class Fetched:
    """A fetch that brought something: payload as the reducer keeps it, and times of the cluster's clock."""

    server: str
    bytes: int
    begin_seconds: float
    end_seconds: float


def parse(text: str) -> Iterator[Fetched]:
    """The fetches of a log, in the order of their ends. One that failed brought nothing, and is left out."""
    carried: dict[str, int] = {}
    for line in text.splitlines():
        if (match := _LINE.match(line)) is None:
            continue
        stamp, thread, message = match.groups()
        if read_match := _READ.match(message):
            carried[thread] = carried.get(thread, 0) + int(read_match[1])
        elif (freed_match := _FREED.match(message)) and (size := carried.pop(thread, 0)):
            # Both ends of a fetch are by the same clock, so any time zone will do.
            end = datetime.strptime(stamp, _CLOCK).replace(tzinfo=UTC).timestamp()
            yield Fetched(freed_match[1], size, end - int(freed_match[2]) * MILLISECOND, end)
