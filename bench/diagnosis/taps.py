"""Captures of a scene's taps as pcapng, with what captures do to packets: each flaw is data."""

# ruff: noqa: ARG002 (not every flaw draws)

from __future__ import annotations

import gzip
import random
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.diagnosis.wire import TAPS, Captured

RAW_IP = 101
# No packet with a SYN or an acknowledgement alone is larger.
SMALL = 120


@dataclass(frozen=True)
class Flaw(ABC):
    """What a capture does to the packets that a tap saw."""

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


def _source(data: bytes) -> bytes:
    return data[12:16] if data[0] >> 4 == 4 else data[8:24]


def write(path: Path, packets: Iterable[Captured], flaws: Sequence[Flaw], draws: random.Random) -> None:
    """One pcapng, with an interface for each tap; compressed if the name says so."""
    taps = {tap: [each for each in packets if each[1] == tap] for tap in TAPS}
    out = [_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for tap in TAPS:
        name = tap.encode()
        options = struct.pack("<HH", 2, len(name)) + name + bytes(-len(name) % 4) + struct.pack("<HHB3x", 9, 1, 9)
        out.append(_block(1, struct.pack("<HHI", RAW_IP, 0, 262_144) + options + bytes(4)))
    for number, tap in enumerate(TAPS):
        kept = sorted(taps[tap], key=lambda each: each[0])
        for flaw in flaws:
            kept = flaw.spoil(kept, draws)
        for at, _, data, size in kept:
            head = struct.pack("<IIIII", number, at >> 32, at & 0xFFFFFFFF, len(data), size)
            out.append(_block(6, head + data + bytes(-len(data) % 4)))
    whole = b"".join(out)
    path.write_bytes(gzip.compress(whole, mtime=0) if path.suffix == ".gz" else whole)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length
