"""What two ends have sent, segment by segment, whoever they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

CLIENT, SERVER = "client", "server"
FIN, SYN, ACK, ECE, CWR = 1, 2, 16, 64, 128
NAMES = {FIN: "FIN", SYN: "SYN", ECE: "ECE", CWR: "CWR"}


class Segment(NamedTuple):
    """A segment as its end sent it. Numbers are relative to the SYNs', which are 0."""

    seconds: float
    sender: str
    sequence: int
    bytes: int
    flags: int
    acknowledged: int
    blocks: tuple[tuple[int, int], ...]
    window: int

    @property
    def is_data(self) -> bool:
        """Whether it takes sequence numbers."""
        return bool(self.bytes or self.flags & (SYN | FIN))

    @property
    def end(self) -> int:
        """The number after it."""
        return self.sequence + self.bytes + bool(self.flags & SYN) + bool(self.flags & FIN)

    def sent(self) -> tuple[int, int, int]:
        """What was sent: number, length, flags but ACK."""
        return self.sequence, self.bytes, self.flags & ~(ACK | ECE) if self.is_data else self.flags & ~ACK

    def told(self) -> tuple[int, tuple[tuple[int, int], ...], int]:
        """What was acknowledged, and whether congestion was echoed."""
        return self.acknowledged, self.blocks, self.flags & ECE

    def words(self, mss: int) -> str:
        """In a line of a table, in segments of that many bytes."""
        names = [name for bit, name in NAMES.items() if self.flags & bit]
        blocks = ", ".join(f"{begin}-{end}" for begin, end in self.blocks)
        number = f"#{(self.sequence - 1) / mss + 1:g}" if self.sequence and self.bytes else ""
        payload = f"{self.sequence}+{self.bytes} {number}".strip() if self.bytes else ""
        told = f"ack {self.acknowledged}" if not self.bytes and not self.flags & SYN else ""
        return " ".join(part for part in ("+".join(names), payload, told, f"[{blocks}]" if blocks else "") if part)


@dataclass(frozen=True)
class Exchange:
    """All of it. `counts` are of both ends' kernels, by mechanism; `cwnd` and `ssthresh` the client's at last."""

    segments: Sequence[Segment]
    counts: Mapping[str, int]
    cwnd: int
    ssthresh: int
    details: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return {**vars(self), "segments": [list(segment) for segment in self.segments]}

    @classmethod
    def parsed(cls, found: dict[str, Any]) -> Exchange:
        """What `as_json` has made."""
        segments = [Segment(*each[:6], tuple(map(tuple, each[6])), each[7]) for each in found["segments"]]
        return cls(**{**found, "segments": segments})

    def of(self, sender: str) -> list[Segment]:
        """What one end sent, in its order."""
        return [segment for segment in self.segments if segment.sender == sender]

    def data(self, sender: str) -> list[tuple[Segment, bool]]:
        """What takes sequence numbers, and whether all of it was sent before."""
        found, top = [], -1
        for segment in self.of(sender):
            if segment.is_data:
                found.append((segment, segment.end <= top))
                top = max(top, segment.end)
        return found
