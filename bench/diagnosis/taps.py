"""Captures of a scene's taps as pcapng, with what captures do to packets: each flaw is data."""

# ruff: noqa: ARG002 (not every flaw draws)

from __future__ import annotations

import gzip
import random
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bench.diagnosis.segments import FIN, RST, SYN, TCP
from bench.diagnosis.wire import FAR, MIDDLE, NEAR, TAPS, Captured

RAW_IP = 101
# No packet with a SYN or an acknowledgement alone is larger.
SMALL = 120


@dataclass(frozen=True)
class Flaw(ABC):
    """What a capture does to the packets that a tap saw."""

    # The taps whose packets are in the file of each; others than its own are merged into it.
    merged: ClassVar[Mapping[str, Sequence[str]]] = {}

    @abstractmethod
    def spoil(self, packets: list[Captured], draws: random.Random) -> list[Captured]:
        """What is captured instead of these packets."""


@dataclass(frozen=True)
class Twice(Flaw):
    """A mirror port shows each packet when it enters and again when it leaves, microseconds later."""

    nanoseconds: int

    def spoil(self, packets: list[Captured], draws: random.Random) -> list[Captured]:
        again = [(at + self.nanoseconds, tap, data, size) for at, tap, data, size in packets]
        return sorted([*packets, *again], key=lambda each: each[0])


@dataclass(frozen=True)
class Missing(Flaw):
    """The capture lacks one in so many packets with data."""

    every: int

    def spoil(self, packets: list[Captured], draws: random.Random) -> list[Captured]:
        found, count = [], 0
        for each in packets:
            count += each[3] > SMALL
            if each[3] <= SMALL or count % self.every:
                found.append(each)
        return found


@dataclass(frozen=True)
class OneWay(Flaw):
    """The capture has the packets of one direction only: the sender's, or the receiver's."""

    sender: bool
    address: bytes = b""

    def spoil(self, packets: list[Captured], draws: random.Random) -> list[Captured]:
        return [each for each in packets if (_source(each[2]) == self.address) == self.sender]


@dataclass(frozen=True)
class Swapped(Flaw):
    """Neighbours are written in the wrong order, as by several queues: one in so many."""

    every: int

    def spoil(self, packets: list[Captured], draws: random.Random) -> list[Captured]:
        found = list(packets)
        for place in range(self.every, len(found) - 1, self.every):
            if found[place][0] < found[place + 1][0]:
                found[place], found[place + 1] = found[place + 1], found[place]
        return found


@dataclass(frozen=True)
class Cut(Flaw):
    """The capture keeps so few bytes of each packet that TCP's options are cut: so many behind TCP's fixed header."""

    options: int

    def spoil(self, packets: list[Captured], draws: random.Random) -> list[Captured]:
        kept = {4: 40 + self.options, 6: 60 + self.options}
        return [(at, tap, data[: kept[data[0] >> 4]], size) for at, tap, data, size in packets]


@dataclass(frozen=True)
class Filtered(Flaw):
    """A file saved through a display filter: `shown` is "data" (no packet without payload but SYNs, FINs and resets) or
    "established" (it begins behind the handshake)."""

    shown: str

    def spoil(self, packets: list[Captured], draws: random.Random) -> list[Captured]:
        return [each for each in packets if self._is_shown(*_tcp(each[2], each[3]))]

    def _is_shown(self, flags: int, payload: int) -> bool:
        return not flags & SYN if self.shown == "established" else payload > 0 or bool(flags & (SYN | FIN | RST))


@dataclass(frozen=True)
class Begins(Flaw):
    """The capture was started when this share of the packets had passed."""

    share: float

    def spoil(self, packets: list[Captured], draws: random.Random) -> list[Captured]:
        return packets[int(len(packets) * self.share) :]


@dataclass(frozen=True)
class Halves(Flaw):
    """Of the connections in turn the capture has the packets of one direction, of the other, and both."""

    def spoil(self, packets: list[Captured], draws: random.Random) -> list[Captured]:
        order: dict[frozenset[bytes], int] = {}
        kept = []
        for each in packets:
            ends = _ends(each[2])
            turn = order.setdefault(frozenset(ends), len(order)) % 3
            if turn == 2 or (ends[0] < ends[1]) == (turn == 0):
                kept.append(each)
        return kept


@dataclass(frozen=True)
class Merged(Flaw):
    """Several taps in one file, as `mergecap` and two mirrored ports make it: each packet is there more than once."""

    merged: ClassVar[Mapping[str, Sequence[str]]] = {NEAR: (MIDDLE,), MIDDLE: (NEAR, FAR), FAR: (MIDDLE,)}

    def spoil(self, packets: list[Captured], draws: random.Random) -> list[Captured]:
        return packets


def _stamp(packet: Captured) -> int:
    return packet[0]


def _header(data: bytes) -> int:
    return (data[0] & 15) * 4 if data[0] >> 4 == 4 else 40


def _tcp(data: bytes, size: int) -> tuple[int, int]:
    """Flags and payload. What is no TCP has neither."""
    ip = _header(data)
    if (data[9] if data[0] >> 4 == 4 else data[6]) != TCP:
        return 0, 0
    return data[ip + 13], size - ip - (data[ip + 12] >> 4) * 4


def _ends(data: bytes) -> tuple[bytes, bytes]:
    """Source and destination, as address and port together."""
    ip = _header(data)
    first, second = (data[12:16], data[16:20]) if data[0] >> 4 == 4 else (data[8:24], data[24:40])
    return first + data[ip : ip + 2], second + data[ip + 2 : ip + 4]


def _source(data: bytes) -> bytes:
    return data[12:16] if data[0] >> 4 == 4 else data[8:24]


def spoilt(packets: Iterable[Captured], flaws: Sequence[Flaw], draws: random.Random) -> dict[str, list[Captured]]:
    """What a capture at each tap holds of these packets, in the order of its records."""
    known = {tap: [each for each in packets if each[1] == tap] for tap in TAPS}
    captures = {}
    for tap in TAPS:
        sources = {source for flaw in flaws for source in flaw.merged.get(tap, ())} | {tap}
        kept = sorted((each for source in TAPS if source in sources for each in known[source]), key=_stamp)
        for flaw in flaws:
            kept = flaw.spoil(kept, draws)
        captures[tap] = kept
    return captures


def write(path: Path, captures: Mapping[str, Sequence[Captured]]) -> None:
    """One pcapng, with an interface for each tap; compressed if the name says so."""
    out = [_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for tap in captures:
        name = tap.encode()
        options = struct.pack("<HH", 2, len(name)) + name + bytes(-len(name) % 4) + struct.pack("<HHB3x", 9, 1, 9)
        out.append(_block(1, struct.pack("<HHI", RAW_IP, 0, 262_144) + options + bytes(4)))
    for number, packets in enumerate(captures.values()):
        for at, _, data, size in packets:
            head = struct.pack("<IIIII", number, at >> 32, at & 0xFFFFFFFF, len(data), size)
            out.append(_block(6, head + data + bytes(-len(data) % 4)))
    whole = b"".join(out)
    path.write_bytes(gzip.compress(whole, mtime=0) if path.suffix == ".gz" else whole)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length
