"""A client: reads or writes a file for a stated time, in a closed loop or at a stated rate, and prints what came of it.

Closed loop: `depth` calls are under way at all times. Open loop: calls are due at even distances, and a call's latency
counts from when it was due, so a stall delays, in the figures too, all calls that it would have met.

Over UDP a call that is not answered in time is sent again; the time doubles with each (nfs(5), `timeo`). Every datagram
is counted: sent, answered, or lost. Nothing waits for ever: what is unanswered some time after the end is given up.

Over TCP a connection that has ended is opened again as often as `reconnects` says, and calls that are not answered yet
are sent over the new one, with their XIDs, as NFS clients do (RFC 7530 section 3.1.1).
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import random
import select
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from framegauge.apps.course import Course
from framegauge.apps.nfs import MOUNT_PORT, PORT, files
from framegauge.apps.nfs.rpc import Call, Credential, message, results, xid_of
from framegauge.apps.nfs.transports import TRANSPORTS, Transport
from framegauge.apps.nfs.versions import MOUNT, VERSIONS, Protocol
from framegauge.apps.nfs.xdr import BadMessage, Reader

__all__ = ["DRAIN_SECONDS", "Asked", "Client", "main"]

ANSWER_SECONDS = 10.0  # for a call before or after the measured time
LINGER_SECONDS = 0.3  # in which further answers to calls that were sent again may come
DRAIN_SECONDS = 5.0  # for calls that are under way at the end
LONGEST_TIMER_SECONDS = 60.0  # nfs(5): a time that doubles ends there
MOST_IN_FLIGHT = 1024  # of an open loop; a call that is due beyond that waits, and its latency counts


@dataclass(frozen=True)
class Asked:
    """What a client is to do."""

    server: str
    name: str
    version: int
    transport: str
    operation: str
    access: str
    block_bytes: int
    size_bytes: int
    depth: int
    rate_per_second: float | None
    duration_seconds: float
    retransmit_seconds: float
    seed: int
    reconnects: int = 0
    port: int = PORT
    mount_port: int = MOUNT_PORT


@dataclass
class UnderWay:
    """A call that is not answered yet. `deadline_seconds` is when it is sent again."""

    message: bytes
    offset: int
    due_seconds: float
    timer_seconds: float
    deadline_seconds: float


@dataclass
class Found:
    """What came of the calls of the measured time; times on the machine's monotonic clock."""

    began_seconds: float = 0.0
    ended_seconds: float = 0.0
    calls: int = 0
    answered: int = 0
    again: int = 0  # messages that were sent again
    reconnected: int = 0
    duplicates: int = 0  # answers to calls that had been answered already
    payload_bytes: int = 0
    microseconds: Counter[int] = field(default_factory=Counter)  # latencies


class Client:
    """One client of one file."""

    def __init__(self, asked: Asked, clock: Callable[[], float] = time.monotonic) -> None:
        self._asked, self._clock = asked, clock
        self._protocol: Protocol = VERSIONS[asked.version]()
        self._credential = Credential(socket.gethostname())
        self._transports: list[Transport] = []
        self._way = self._open(asked.port)
        self._xid = random.SystemRandom().getrandbits(32)
        self._under_way: dict[int, UnderWay] = {}
        self._timers: list[tuple[float, int]] = []
        self._verifiers: set[bytes] = set()
        self._filler = files.filler()
        self._course = Course()
        self.found = Found()

    def _open(self, port: int) -> Transport:
        transport = TRANSPORTS[self._asked.transport](self._asked.server, port)
        self._transports.append(transport)
        return transport

    def run(self) -> dict[str, Any]:
        """Everything; the result. BadMessage or OSError says what went wrong."""
        protocol, settings = self._protocol, self._asked
        protocol.find(self._routed, settings.name)
        for transport in self._transports:
            if transport is not self._way and not transport.is_datagrams:
                transport.close()  # of the mount, which is over
        self._loop()
        self._linger()
        if self._under_way and not self._way.is_datagrams:
            self._way.abort()  # an answer to COMMIT would wait behind those that do not come
        elif settings.operation == "write":
            verifier = protocol.taken_commit(self._ask(self._way, protocol.commit()))
            if self._verifiers - {verifier}:
                raise BadMessage("COMMIT: found another verifier than WRITE's, expected the same: the server lost data")
        for transport in self._transports:
            transport.close()
        return self._result()

    def _reopen(self, error: ConnectionError) -> None:
        """Opens the connection again, and sends over it what is under way; the error if that was done too often."""
        if self.found.reconnected >= self._asked.reconnects:
            raise error
        self.found.reconnected += 1
        self._way.close()
        self._way = self._open(self._asked.port)
        for call in self._under_way.values():
            self.found.again += 1
            self._way.send(call.message)

    def _routed(self, call: Call) -> Reader:
        transport = self._open(self._asked.mount_port) if call.program == MOUNT else self._way
        return self._ask(transport, call)

    def _next_xid(self) -> int:
        self._xid = (self._xid + 1) & 0xFFFFFFFF
        return self._xid

    def _ask(self, transport: Transport, call: Call) -> Reader:
        """One call, alone, until it is answered; over UDP it is sent again in between."""
        xid = self._next_xid()
        request = message(xid, call, self._credential)
        timer = self._asked.retransmit_seconds if transport.is_datagrams else ANSWER_SECONDS
        deadline, next_send = self._clock() + ANSWER_SECONDS, 0.0
        while (now := self._clock()) < deadline:
            if now >= next_send:
                self.found.again += next_send > 0
                transport.send(request)
                next_send, timer = now + timer, 2 * timer
            select.select(
                [transport.socket], [transport.socket] if transport.waits else [], [], min(next_send, deadline) - now
            )
            transport.flush()
            for record in transport.arrived():
                if xid_of(record) == xid:
                    return results(memoryview(bytes(record)), call.name)
                self.found.duplicates += 1
        raise BadMessage(
            f"{call.name}: found no answer from {transport.where} within {ANSWER_SECONDS:g} s, expected one"
        )

    def _loop(self) -> None:
        """The measured time, and what is under way at its end."""
        settings, counts = self._asked, self.found
        counts.began_seconds = now = self._clock()
        self._course.begin(now)
        end = now + settings.duration_seconds
        offsets, due, number = self._offsets(), now, 0
        rate, most_calls = (
            settings.rate_per_second,
            settings.depth if settings.rate_per_second is None else MOST_IN_FLIGHT,
        )
        while True:
            now = self._clock()
            self._course.look(now)
            # In an open loop a call that is due before the end is made, however late it is.
            while len(self._under_way) < most_calls and (now < end if rate is None else due <= now and due < end):
                self._issue(next(offsets), now if rate is None else due, now)
                number += 1
                due, now = counts.began_seconds + number / (rate or math.inf), self._clock()
            is_over = now >= end and not self._under_way and (rate is None or due >= end)
            if is_over or now >= end + DRAIN_SECONDS:
                break
            wake = min(end if now < end else end + DRAIN_SECONDS, self._send_again(now))
            if rate is not None and due < end and len(self._under_way) < most_calls:
                wake = min(wake, due)
            self._serve(max(0.0, wake - now))
        counts.ended_seconds = max(counts.ended_seconds, end)

    def _serve(self, seconds: float) -> None:
        """Sends what waits, and takes what arrives, for as long as nothing does."""
        transport = self._way
        select.select([transport.socket], [transport.socket] if transport.waits else [], [], seconds)
        try:
            transport.flush()
            for record in transport.arrived():
                self._take(record)
        except ConnectionError as error:
            self._reopen(error)

    def _linger(self) -> None:
        """Takes further answers to calls that were sent again, so that none finds the socket closed."""
        transport, deadline = self._way, self._clock() + LINGER_SECONDS
        while (
            transport.is_datagrams
            and transport.sent.total() > transport.received.total()
            and (now := self._clock()) < deadline
        ):
            select.select([transport.socket], [], [], deadline - now)
            for record in transport.arrived():
                self._take(record)

    def _offsets(self) -> Iterator[int]:
        """Where calls read or write: block after block, and again from the start; or blocks at random."""
        block, count = self._asked.block_bytes, self._asked.size_bytes // self._asked.block_bytes
        draw = random.Random(self._asked.seed)
        number = 0
        while True:
            yield block * (number % count if self._asked.access == "sequential" else draw.randrange(count))
            number += 1

    def _issue(self, offset: int, due: float, now: float) -> None:
        settings = self._asked
        if settings.operation == "read":
            call = self._protocol.read(offset, settings.block_bytes)
        else:
            call = self._protocol.write(offset, files.pages(offset, settings.block_bytes, self._filler))
        xid = self._next_xid()
        request = message(xid, call, self._credential)
        timer = settings.retransmit_seconds
        self._under_way[xid] = UnderWay(request, offset, due, timer, now + timer)
        if self._way.is_datagrams:
            heapq.heappush(self._timers, (now + timer, xid))
        self.found.calls += 1
        try:
            self._way.send(request)
        except ConnectionError as error:
            self._reopen(error)

    def _send_again(self, now: float) -> float:
        """Sends calls again whose time is over; when the next one's will be."""
        while self._timers:
            deadline, xid = self._timers[0]
            call = self._under_way.get(xid)
            if call is not None and call.deadline_seconds == deadline and deadline > now:
                return deadline
            heapq.heappop(self._timers)
            if call is None or call.deadline_seconds != deadline:
                continue
            call.timer_seconds = min(2 * call.timer_seconds, LONGEST_TIMER_SECONDS)
            call.deadline_seconds = now + call.timer_seconds
            heapq.heappush(self._timers, (call.deadline_seconds, xid))
            self.found.again += 1
            self._way.send(call.message)
        return math.inf

    def _take(self, data: memoryview) -> None:
        call = self._under_way.pop(xid_of(data), None)
        counts = self.found
        if call is None:
            counts.duplicates += 1
            return
        length = self._asked.block_bytes
        if self._asked.operation == "read":
            content = self._protocol.taken_read(results(data, "READ"))
            if len(content) != length:
                raise BadMessage(f"READ at {call.offset}: found {len(content)} bytes, expected {length}")
            if (wrong := files.page_wrong(content, call.offset)) is not None:
                raise BadMessage(f"READ: {wrong}")
        else:
            count, verifier = self._protocol.taken_write(results(data, "WRITE"))
            if count != length:
                raise BadMessage(f"WRITE at {call.offset}: found {count} bytes written, expected {length}")
            self._verifiers.add(verifier)
        counts.ended_seconds = self._clock()
        counts.answered += 1
        counts.payload_bytes += length
        latency = counts.ended_seconds - call.due_seconds
        counts.microseconds[round(1e6 * latency)] += 1
        self._course.answered(counts.ended_seconds, latency)

    def _result(self) -> dict[str, Any]:
        counts = self.found
        sent, received = (
            sum((getattr(transport, name) for transport in self._transports), Counter[int]())
            for name in ("sent", "received")
        )
        return {
            "began_seconds": counts.began_seconds,
            "ended_seconds": counts.ended_seconds,
            "calls": counts.calls,
            "answered": counts.answered,
            "unanswered": len(self._under_way),
            "sent_again": counts.again,
            "reconnected": counts.reconnected,
            "duplicates": counts.duplicates,
            "payload_bytes": counts.payload_bytes,
            "sent": {str(size): count for size, count in sorted(sent.items())},
            "received": {str(size): count for size, count in sorted(received.items())},
            "course": self._course.as_json(),
            "latency_microseconds": {
                str(microseconds): count for microseconds, count in sorted(counts.microseconds.items())
            },
        }


def main() -> None:
    """One client, as the words of its command say; the result as JSON."""
    parser = argparse.ArgumentParser(description="Reads or writes a file over NFS.")
    for name, kind in (
        ("server", str), ("name", str), ("version", int), ("transport", str), ("operation", str),
        ("access", str), ("block-bytes", int), ("size-bytes", int), ("depth", int), ("duration-seconds", float),
        ("retransmit-seconds", float), ("seed", int), ("reconnects", int),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=kind, required=True)
    parser.add_argument("--rate-per-second", type=float)
    settings = Asked(**vars(parser.parse_args()))
    try:
        json.dump(Client(settings).run(), sys.stdout)
    except (BadMessage, OSError) as error:
        sys.exit(f"nfs: {settings.name}: {error}")


if __name__ == "__main__":
    main()
