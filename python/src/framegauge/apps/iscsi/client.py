"""A client: reads or writes blocks of the disk for a stated time, in a closed loop or at a stated rate.

Closed loop: `depth` requests are under way at all times. Open loop: requests are due at even distances, and a request's
latency counts from when it was due, so a stall delays, in the figures too, all requests that it would have met.

Every read must bring the page numbers of where it was asked for. Nothing waits for ever: login and logout have a limit,
and what is under way some time after the end is given up.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from framegauge.apps.course import Course
from framegauge.apps.iscsi import MOST_DEPTH, PAGE_BYTES, SECTOR_BYTES, TARGET
from framegauge.apps.iscsi.initiator import Answer, Session
from framegauge.apps.iscsi.store import number_at

__all__ = ["DRAIN_SECONDS", "Asked", "Client", "main", "sectors"]

ANSWER_SECONDS = 10  # for login and logout
DRAIN_SECONDS = 5.0  # for requests that are under way at the end
CHECK_CONDITION = 2  # SAM-5 5.3.1
IDLE_SECONDS = 0.1  # after which the session's own timers are looked at


@dataclass(frozen=True)
class Asked:
    """What a client is to do. `rate_per_second` None: a closed loop. `place`: which one of so many `clients` it is."""

    portal: str
    operation: str
    access: str
    block_bytes: int
    size_bytes: int
    depth: int
    rate_per_second: float | None
    duration_seconds: float
    seed: int
    place: int
    clients: int
    reconnects: int = 0


def sectors(asked: Asked) -> Iterator[int]:
    """Where requests read or write: at random, or block after block, each client from its own part of the disk on."""
    blocks, step = asked.size_bytes // asked.block_bytes, asked.block_bytes // SECTOR_BYTES
    if asked.access == "random":
        draw = random.Random(asked.seed)
        while True:
            yield draw.randrange(blocks) * step
    block = blocks * asked.place // asked.clients
    while True:
        yield block * step
        block = (block + 1) % blocks


class Client:
    """A session, and the requests that are under way."""

    def __init__(self, asked: Asked) -> None:
        self._asked, self._sectors = asked, sectors(asked)
        slots = asked.depth if asked.rate_per_second is None else MOST_DEPTH
        self._free = list(range(slots))
        self._due, self._at = [0.0] * slots, [0] * slots
        self._begun = self._answered_ = self._again = 0
        self._course = Course()
        self._microseconds: Counter[int] = Counter()
        self._session = Session(
            asked.portal, TARGET, slots, asked.block_bytes, ANSWER_SECONDS, self._answered, asked.reconnects
        )
        self._begin_one = self._session.read if asked.operation == "read" else self._session.write
        content = os.urandom(asked.block_bytes)
        for buffer in self._session.buffers if asked.operation == "write" else ():
            buffer.raw = content

    def run(self) -> dict[str, Any]:
        """Works for the duration, and awaits what is under way; the result. OSError says what went wrong."""
        with self._session:
            begin = time.monotonic()
            self._course.begin(begin)
            end = begin + self._asked.duration_seconds
            while (now := time.monotonic()) < end:
                self._course.look(now)
                wake = self._begin(begin, end, now)
                self._session.serve(min(wake, end, now + IDLE_SECONDS) - now)
            while self._begun > self._answered_ and (now := time.monotonic()) < end + DRAIN_SECONDS:
                self._session.serve(min(IDLE_SECONDS, end + DRAIN_SECONDS - now))
            if self._begun > self._answered_:
                self._session.abort()
        return self._result(begin, end)  # after the logout, for which a connection may be opened again

    def _begin(self, begin: float, end: float, now: float) -> float:
        """Begins all requests that are due, as far as slots are free; when the next one is due."""
        rate = self._asked.rate_per_second
        while self._free:
            due = now if rate is None else begin + self._begun / rate
            if due > now:
                return due
            slot, sector = self._free.pop(), next(self._sectors)
            self._due[slot], self._at[slot] = due, sector
            self._begun += 1
            self._begin_one(slot, sector)
        return end

    def _answered(self, answer: Answer) -> None:
        now, settings = time.monotonic(), self._asked
        sector = self._at[answer.slot]
        if answer.status == CHECK_CONDITION and self._again < settings.reconnects:
            # Of a new connection the target answers the first request with UNIT ATTENTION (SAM-5 5.14).
            self._again += 1
            self._begin_one(answer.slot, sector)
            return
        where = f"{settings.operation} of sector {sector}"
        if answer.status != 0 or answer.bytes != settings.block_bytes:
            outcome = f"status {answer.status:#x} and {answer.bytes} bytes"
            raise OSError(f"{where}: found {outcome}, expected {settings.block_bytes} bytes")
        if settings.operation == "read":
            data = memoryview(self._session.buffers[answer.slot]).cast("B")
            first_page = sector * SECTOR_BYTES // PAGE_BYTES
            for number in range(settings.block_bytes // PAGE_BYTES):
                if (found_page := number_at(data[number * PAGE_BYTES :])) != first_page + number:
                    raise OSError(f"{where}: found page {found_page}, expected {first_page + number}")
        self._course.answered(now, now - self._due[answer.slot])
        self._answered_ += 1
        self._microseconds[round(1e6 * (now - self._due[answer.slot]))] += 1
        self._free.append(answer.slot)

    def _result(self, begin: float, end: float) -> dict[str, Any]:
        settings = self._asked
        rate = settings.rate_per_second
        # Of an open loop those count, too, that were due and have had no slot.
        requests = self._begun if rate is None else max(self._begun, int(settings.duration_seconds * rate))
        return {
            "began_seconds": begin,
            "ended_seconds": max(self._course.last_seconds, end),
            "requests": requests,
            "begun": self._begun,
            "asked_again": self._again,
            "logged_in_again": self._session.connections - 1,
            "sent_again": self._session.sent_again,
            "answered": self._answered_,
            "unanswered": requests - self._answered_,
            "payload_bytes": self._answered_ * settings.block_bytes,
            "course": self._course.as_json(),
            "latency_microseconds": {
                str(microseconds): count for microseconds, count in sorted(self._microseconds.items())
            },
        }


def main() -> None:
    """One client, as the words of its command say; the result as JSON."""
    parser = argparse.ArgumentParser(description="Reads or writes a disk over iSCSI.")
    for name, kind in (
        ("portal", str), ("operation", str), ("access", str), ("block-bytes", int), ("size-bytes", int),
        ("depth", int), ("duration-seconds", float), ("seed", int), ("place", int), ("clients", int),
        ("reconnects", int),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=kind, required=True)
    parser.add_argument("--rate-per-second", type=float)
    settings = Asked(**vars(parser.parse_args()))
    try:
        json.dump(Client(settings).run(), sys.stdout)
    except OSError as error:
        sys.exit(f"iscsi: {error}")


if __name__ == "__main__":
    main()
