"""What the wire of a scene does to packets: each fault is data, with a method that judges one packet."""

# ruff: noqa: ARG002 (not every fault draws)

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter, deque
from dataclasses import dataclass, field

from bench.diagnosis.segments import ACK, FIN, SYN, Packet, rewritten

LOST = -1
SECOND = 1_000_000_000


@dataclass(slots=True)
class Flow:
    """What the wire remembers of one direction of a connection."""

    first: int | None = None
    high: int = 0
    sent: int = 0

    def place(self, packet: Packet) -> int:
        """Bytes of the stream before the packet's first."""
        assert self.first is not None
        distance = (packet.seq - self.first) % 2**32
        return distance - 2**32 if distance > 2**31 else distance


@dataclass(slots=True)
class Seen:
    """A packet as a fault sees it. `forth`: it goes from the scene's sender to its receiver."""

    packet: Packet
    forth: bool
    now: int
    begin: int
    number: int
    is_again: bool

    @property
    def end(self) -> int:
        return self.begin + self.packet.payload

    @property
    def is_data(self) -> bool:
        return self.packet.payload > 0 and self.forth


@dataclass
class Fault(ABC):
    """Judges a packet: LOST, the nanoseconds by which it is held, or -1 - n: until n others have passed."""

    @abstractmethod
    def act(self, seen: Seen, draws: random.Random) -> int:
        """What becomes of this packet."""

    def frozen_until(self) -> int:
        """Until when the sender's device hands nothing over."""
        return 0

    def forged(self, seen: Seen) -> Packet | None:
        """What a host whose TCP is broken sends behind this packet."""
        return None


@dataclass
class DropBytes(Fault):
    """Data that has one of these bytes of the stream is lost, so many times each; `flows` of several connections."""

    begin: int
    end: int
    copies: int = 1
    _times: Counter[tuple[object, int]] = field(default_factory=Counter)

    def act(self, seen: Seen, draws: random.Random) -> int:
        if not seen.is_data or seen.end <= self.begin or seen.begin >= self.end:
            return 0
        key = (seen.packet.ends, seen.begin)
        self._times[key] += 1
        return LOST if self._times[key] <= self.copies else 0


@dataclass
class DropFlight(Fault):
    """From this byte on all data is lost until the sender repeats something, and `more` of its repeats with it."""

    begin: int
    more: int = 0
    _over: set[object] = field(default_factory=set)
    _repeats: Counter[object] = field(default_factory=Counter)

    def act(self, seen: Seen, draws: random.Random) -> int:
        key = seen.packet.ends
        if not seen.is_data or seen.end <= self.begin or key in self._over:
            return 0
        if seen.is_again:
            self._repeats[key] += 1
            if self._repeats[key] > self.more:
                self._over.add(key)
                return 0
        return LOST


@dataclass
class Blackout(Fault):
    """From this byte on nothing passes for a time, in both directions."""

    begin: int
    seconds: float
    _from: int = 0

    def act(self, seen: Seen, draws: random.Random) -> int:
        if self._from == 0 and seen.is_data and seen.end > self.begin:
            self._from = seen.now
        return LOST if self._from and seen.now - self._from < self.seconds * SECOND else 0


@dataclass
class DropSyn(Fault):
    """The first SYNs of each connection are lost, or its SYN-ACKs."""

    count: int
    answers: bool = False
    _times: Counter[object] = field(default_factory=Counter)

    def act(self, seen: Seen, draws: random.Random) -> int:
        flags = seen.packet.flags
        if not flags & SYN or bool(flags & ACK) != self.answers:
            return 0
        self._times[seen.packet.ends] += 1
        return LOST if self._times[seen.packet.ends] <= self.count else 0


@dataclass
class Lose(Fault):
    """Each data packet is lost with a probability."""

    share: float

    def act(self, seen: Seen, draws: random.Random) -> int:
        return LOST if seen.is_data and draws.random() < self.share else 0


@dataclass
class Overtaken(Fault):
    """Every so many data packets, one is held for a time, so that those behind overtake it."""

    every: int
    seconds: float

    def act(self, seen: Seen, draws: random.Random) -> int:
        held = seen.is_data and not seen.is_again and seen.number % self.every == self.every // 2
        return int(self.seconds * SECOND) if held else 0


@dataclass
class Swap(Fault):
    """Every so many data packets, one is held until `by` others of its direction have passed, or for 2 ms."""

    every: int
    by: int = 1

    def act(self, seen: Seen, draws: random.Random) -> int:
        swapped = seen.is_data and not seen.is_again and seen.number % self.every == self.every // 2
        return -1 - self.by if swapped else 0


@dataclass
class Standstill(Fault):
    """At each of these bytes of the stream something stands still for a time."""

    places: tuple[int, ...]
    seconds: float
    _left: deque[int] = field(default_factory=deque)
    _until: int = 0
    _begun: bool = False

    def act(self, seen: Seen, draws: random.Random) -> int:
        if not self._begun:
            self._left, self._begun = deque(self.places), True
        if self._left and seen.is_data and seen.end > self._left[0]:
            self._left.popleft()
            self._until = seen.now + int(self.seconds * SECOND)
        return 0


@dataclass
class Hold(Standstill):
    """The wire stands still; nothing is lost or overtakes.

    `data`: packets to the receiver stand still; `answers`: those to the sender.
    """

    data: bool = True
    answers: bool = False

    def act(self, seen: Seen, draws: random.Random) -> int:
        super().act(seen, draws)
        concerned = self.data if seen.forth else self.answers
        return max(0, self._until - seen.now) if concerned else 0


@dataclass
class Freeze(Standstill):
    """The sender's device hands nothing over."""

    def frozen_until(self) -> int:
        return self._until


@dataclass
class Queue(Fault):
    """A bottleneck: packets to the receiver leave at a rate, and what does not fit its buffer is lost."""

    bits_per_second: float
    buffer_bytes: int
    _free: int = 0

    def act(self, seen: Seen, draws: random.Random) -> int:
        if not seen.forth:
            return 0
        wait = max(0, self._free - seen.now)
        if wait * self.bits_per_second / 8 / SECOND + seen.packet.size > self.buffer_bytes:
            return LOST
        self._free = seen.now + wait + int(seen.packet.size * 8 / self.bits_per_second * SECOND)
        return self._free - seen.now


@dataclass
class PortMtu(Fault):
    """A port whose MTU is too small: larger packets die, and with `tells` their senders are told (ICMP).

    It is so from the first data on that goes beyond the byte `begin` of its stream: the route has changed.
    """

    mtu: int
    tells: bool = False
    begin: int = 0
    _has_changed: bool = False

    def act(self, seen: Seen, draws: random.Random) -> int:
        self._has_changed |= self.begin == 0 or (seen.is_data and seen.end > self.begin)
        return LOST if self._has_changed and seen.packet.size > self.mtu else 0


@dataclass
class Starve(Fault):
    """A full queue blacks out one host's input port: of each `every` new data packets, the first `lost` are lost.

    The host is that of the first connection.
    """

    every: int
    lost: int
    _host: object = None

    def act(self, seen: Seen, draws: random.Random) -> int:
        if self._host is None and seen.packet.flags & SYN and seen.forth:
            self._host = seen.packet.ends[0]
        if not seen.is_data or seen.is_again or seen.packet.ends[0] != self._host:
            return 0
        return LOST if seen.number > self.every and seen.number % self.every < self.lost else 0


@dataclass
class ThinAcks(Fault):
    """A middlebox that thins out acknowledgements (RFC 3449 section 5.2.1).

    Of those that acknowledge new data and carry none, one in `keep` passes, and all while little is under way, so that
    none is missed.
    """

    keep: int
    _high: dict[object, int] = field(default_factory=dict)
    _acknowledged: dict[object, int] = field(default_factory=dict)
    _count: int = 0

    def act(self, seen: Seen, draws: random.Random) -> int:
        packet = seen.packet
        source, port, destination, other = packet.ends
        if packet.payload and not seen.is_again:
            self._high[packet.ends] = packet.seq + packet.payload
        if packet.payload or packet.flags != ACK or seen.forth:
            return 0
        way = (destination, other, source, port)
        is_new = 0 < (packet.ack - self._acknowledged.get(way, packet.ack)) % 2**32 < 2**31
        self._acknowledged[way] = packet.ack
        # What SACK says is in an option, and a duplicate says it by its number: neither is new by its number.
        if not is_new or (self._high.get(way, packet.ack) - packet.ack) % 2**32 < 10 * 1448:
            return 0
        self._count += 1
        return LOST if self._count % self.keep else 0


@dataclass
class Forge(Fault):
    """Behind the `place`-th packet of its kind a host sends one that TCP does not allow.

    `what`: "acknowledges" data that nobody has sent; "jumps" to a sequence number far outside of the window; "accepts"
    twice, with another number; "contradicts" itself: SYN and FIN.
    """

    what: str
    place: int
    _count: int = 0

    def act(self, seen: Seen, draws: random.Random) -> int:
        return 0

    def forged(self, seen: Seen) -> Packet | None:
        packet = seen.packet
        opens = bool(packet.flags & SYN)
        wanted = {
            "acknowledges": not seen.forth and not opens and packet.payload == 0,
            "jumps": seen.is_data,
            "accepts": opens and bool(packet.flags & ACK),
            "contradicts": seen.is_data,
        }[self.what]
        self._count += wanted
        if not wanted or self._count != (1 if self.what == "accepts" else self.place):
            return None
        match self.what:
            case "acknowledges":
                return rewritten(packet, ack=1_000_000)
            case "jumps":
                return rewritten(packet, seq=500_000_000)
            case "accepts":
                return rewritten(packet, seq=12_345)
            case _:
                return rewritten(packet, flags=SYN | FIN)
