"""The wire between the two hosts of a scene: packets in, faults, packets out, and three taps that know the truth.

    sender's device ──▶ tap "sender" ─▶ near faults ─▶ tap "switch" ─▶ far faults ─▶ tap "receiver" ──▶ device

A packet passes the middle after half the delay, so a fault before or behind it is seen or not at the tap there. Every
packet that was lost or held is in `log`, and what became of each packet in `ledger`. How late the wire was is in
`late`: a run in which it was is no evidence.
"""

from __future__ import annotations

import heapq
import os
import random
import select
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.diagnosis.faults import LOST, Fault, Flow, Freeze, PortMtu, Seen
from bench.diagnosis.ledger import DELIVERED, FORGED, LOST as DROPPED, REFUSED, TAKEN, Entry
from bench.diagnosis.segments import SYN, Packet, cut, parse, too_big
from bench.diagnosis.stacks import Nat, Numbering

READ_BYTES = 70_000
NEAR, MIDDLE, FAR = TAPS = ("sender", "switch", "receiver")
Captured = tuple[int, str, bytes, int]


@dataclass
class Wire:
    """One run's wire. `delay` is that of one way, in nanoseconds; `devices` the sender's and the receiver's."""

    devices: tuple[int, int]
    delay: int
    near: Sequence[Fault]
    far: Sequence[Fault]
    draws: random.Random
    has_virtio: bool = False
    merges: bool = False
    kept_bytes: int = 128
    # How the hosts at each end number their packets, and the router between the first tap and the second.
    numberings: tuple[Numbering | None, Numbering | None] = (None, None)
    nat: Nat | None = None
    captured: list[Captured] = field(default_factory=list)
    log: list[dict[str, object]] = field(default_factory=list)
    ledger: list[Entry] = field(default_factory=list)
    late: int = 0
    _taken: int = 0
    _under_way: list[int] = field(default_factory=lambda: [0, 0])
    _flows: dict[object, Flow] = field(default_factory=dict)
    _queue: list[tuple[int, int, int, Packet]] = field(default_factory=list)
    _last: list[int] = field(default_factory=lambda: [0, 0])
    _count: int = 0
    _held: list[tuple[int, int, Packet] | None] = field(default_factory=lambda: [None, None])

    def step(self, others: Sequence[int], deadline: int) -> list[int]:
        """Wait for packets, for the next delivery, or for the deadline; which of the other descriptors are ready."""
        now = time.time_ns()
        frozen = max((fault.frozen_until() for fault in (*self.near, *self.far)), default=0)
        devices = self.devices[1:] if frozen > now else self.devices
        wake = min(
            deadline,
            self._queue[0][0] if self._queue else deadline,
            frozen if frozen > now else deadline,
            *(held[1] for held in self._held if held is not None),
        )
        wait = max(0.0, (wake - now) / 1e9)
        ready, _, _ = select.select([*devices, *others], [], [], wait)
        for side, device in enumerate(self.devices):
            if device in ready:
                self._take(side, device)
        for side, held in enumerate(self._held):
            if held is not None and time.time_ns() >= held[1]:
                self._release(side)
        self._deliver()
        return [each for each in ready if each in others]

    def _take(self, side: int, device: int) -> None:
        for _ in range(64):
            try:
                data = os.read(device, READ_BYTES)
            except BlockingIOError:
                return
            now = time.time_ns()
            virtio, data = (data[:10], data[10:]) if self.has_virtio else (b"", data)
            whole = parse(data, virtio)
            if not whole.is_tcp:
                continue
            numbering = self.numberings[side]
            whole = numbering.number(whole) if numbering else whole
            self._keep(now, TAPS[2 * side], whole)
            self._taken += 1
            for packet in cut(whole):
                seen = self._pass(packet, side, now)
                self._forge(seen, side, now)

    def _forge(self, seen: Seen, side: int, now: int) -> None:
        """What a broken host sends behind a packet."""
        for fault in (*self.near, *self.far):
            packet = fault.forged(seen)
            if packet is not None:
                self._keep(now, TAPS[2 * side], packet)
                self._note(fault, seen, "forged")
                what = Seen(packet, side == 0, now, 0, 0, False)
                self._enter(what, side, now, FORGED, type(fault).__name__)
                self._go_on(packet, side, now, what, (), 0)

    def _pass(self, packet: Packet, side: int, now: int) -> Seen:
        """One packet of the link, from its arrival to its place in the queue."""
        seen = self._seen(packet, side == 0, now)
        self._enter(seen, side, now, TAKEN)
        first, second = (self.near, self.far) if side == 0 else (self.far, self.near)
        held = self._judge(first, seen, side)
        if held < LOST:
            self._hold_back(packet, side, now, LOST - held)
        elif held != LOST:
            self._go_on(packet, side, now, seen, second, held)
            self._release(side)
        return seen

    def _hold_back(self, packet: Packet, side: int, now: int, others: int) -> None:
        self._held[side] = (others, now + 2_000_000, packet)

    def _release(self, side: int) -> None:
        """A packet has passed, and may be the last for which another one waited."""
        held = self._held[side]
        if held is None:
            return
        others, until, packet = held
        now = time.time_ns()
        if others > 1 and now < until:
            self._held[side] = (others - 1, until, packet)
            return
        self._held[side] = None
        _, second = (self.near, self.far) if side == 0 else (self.far, self.near)
        self.log.append({"at": now, "fault": "Swap", "what": "held", "forth": side == 0})
        if packet.entry is not None:
            packet.entry.held += now - packet.entry.at
            packet.entry.holders.add("Swap")
        self._go_on(packet, side, now, self._seen(packet, side == 0, now), second, 0)

    def _go_on(self, packet: Packet, side: int, now: int, seen: Seen, second: Sequence[Fault], held: int) -> None:
        middle = now + self.delay // 2 + held
        outer = self.nat.outward(packet) if self.nat and side == 0 else packet
        self._keep(middle, MIDDLE, outer)
        seen.now = middle
        more = self._judge(second, seen, side)
        if more == LOST:
            return
        self._count += 1
        due = middle + more + self.delay - self.delay // 2
        inner = self.nat.inward(packet) if self.nat and side == 1 else outer
        heapq.heappush(self._queue, (due, self._count, 1 - side, inner))

    def _enter(self, seen: Seen, side: int, now: int, origin: str, fault: str = "") -> None:
        """Open the packet's line in the books."""
        packet = seen.packet
        packet.entry = Entry(
            now, side, packet.ends, packet.flags, packet.seq, packet.ack, seen.begin, packet.payload, packet.size,
            seen.is_again, self._taken, self._under_way[side], origin, fault=fault,
        )  # fmt: skip
        self._under_way[side] += packet.size
        self.ledger.append(packet.entry)

    def _close(self, packet: Packet, fate: str, at: int, fault: str = "") -> None:
        if packet.entry is not None:
            self._under_way[packet.entry.side] -= packet.entry.size
            packet.entry.leave(fate, at, fault or packet.entry.fault)

    def _seen(self, packet: Packet, forth: bool, now: int) -> Seen:
        flow = self._flows.setdefault(packet.ends, Flow())
        if packet.flags & SYN or flow.first is None:
            flow.first = (packet.seq + bool(packet.flags & SYN)) % 2**32
            flow.high = flow.sent = 0
        begin = flow.place(packet)
        is_again = packet.payload > 0 and begin + packet.payload <= flow.high
        if packet.payload and not is_again:
            flow.sent += 1
        flow.high = max(flow.high, begin + packet.payload)
        return Seen(packet, forth, now, begin, flow.sent, is_again)

    def _judge(self, faults: Sequence[Fault], seen: Seen, side: int) -> int:
        held = 0
        for fault in faults:
            answer = fault.act(seen, self.draws)
            if answer == LOST:
                self._note(fault, seen, "lost")
                self._close(seen.packet, DROPPED, seen.now, type(fault).__name__)
                if isinstance(fault, PortMtu) and fault.tells:
                    self._tell(seen.packet, fault.mtu, side)
                return LOST
            if answer < LOST:
                return answer
            if answer > 0:
                held += answer
                if seen.packet.entry is not None:
                    seen.packet.entry.held += answer
                    seen.packet.entry.holders.add(type(fault).__name__)
                if not isinstance(fault, Freeze):
                    self._note(fault, seen, "held", answer)
        return held

    def _note(self, fault: Fault, seen: Seen, what: str, nanoseconds: int = 0) -> None:
        entry = {"at": seen.now, "fault": type(fault).__name__, "what": what, "forth": seen.forth, "begin": seen.begin}
        more = {"payload": seen.packet.payload, "again": seen.is_again, "nanoseconds": nanoseconds}
        self.log.append(entry | more)

    def _tell(self, packet: Packet, mtu: int, side: int) -> None:
        data = too_big(packet, mtu)
        self._keep_raw(time.time_ns(), TAPS[2 * side], data, len(data))
        os.write(self.devices[side], bytes(10 if self.has_virtio else 0) + data)

    def _deliver(self) -> None:
        while self._queue:
            now = time.time_ns()
            if self._queue[0][0] > now:
                return
            due, _, side, packet = heapq.heappop(self._queue)
            self.late = max(self.late, now - due)
            self._write(side, *self._merged(packet, now), now)

    def _merged(self, packet: Packet, now: int) -> tuple[Packet, list[Packet]]:
        """The whole aggregate again, as GRO would make it, if all of its packets are due and nothing is between, and
        the packets that it is made of."""
        whole = packet.whole
        if not self.merges or whole is None or packet.seq != whole.seq:
            return packet, [packet]
        count = -(-whole.payload // packet.payload)
        rest = [each for each in self._queue if each[3].whole is whole and each[0] <= now]
        if len(rest) != count - 1:
            return packet, [packet]
        self._queue = [each for each in self._queue if each not in rest]
        heapq.heapify(self._queue)
        return whole, [packet, *(each[3] for each in rest)]

    def _write(self, side: int, packet: Packet, parts: Sequence[Packet], now: int) -> None:
        # A device shows its packets in the order in which they came, whatever the stamps of two calls say.
        self._last[side] = now = max(now, self._last[side])
        self._keep(now, TAPS[2 * side], packet)
        try:
            os.write(self.devices[side], packet.virtio + packet.data)
            fate = DELIVERED
        except OSError:
            self.log.append({"at": now, "fault": "device", "what": "lost"})
            fate = REFUSED
        for part in parts:
            self._close(part, fate, now)

    def _keep(self, at: int, tap: str, packet: Packet) -> None:
        self._keep_raw(at, tap, packet.data[: self.kept_bytes], packet.size)

    def _keep_raw(self, at: int, tap: str, data: bytes, size: int) -> None:
        self.captured.append((at, tap, data[: self.kept_bytes], size))
