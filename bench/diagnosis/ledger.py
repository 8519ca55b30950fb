"""What became of each packet of a wire: the books of a switch, which must balance (conservation)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

Ends = tuple[bytes, int, bytes, int]
TAKEN, FORGED = "taken", "forged"
UNDER_WAY, DELIVERED, LOST, REFUSED = "under way", "delivered", "lost", "refused"


@dataclass(slots=True)
class Entry:
    """One packet of the link, from a host's device to the other's. Times: nanoseconds since 1970; `held`: a duration.

    `origin`: a host's device gave it, or a fault forged it. `begin`: bytes of the stream before its first. `aggregate`:
    the number of the device's packet of which it was cut. `queued_bytes`: what was under way in its direction when it
    came.
    """

    at: int
    side: int
    ends: Ends
    flags: int
    seq: int
    ack: int
    begin: int
    payload: int
    size: int
    is_again: bool
    aggregate: int
    queued_bytes: int = 0
    origin: str = TAKEN
    fate: str = UNDER_WAY
    fault: str = ""
    held: int = 0
    holders: set[str] = field(default_factory=set)
    left_at: int = 0

    def leave(self, fate: str, at: int, fault: str = "") -> None:
        """Close the entry."""
        self.fate, self.left_at, self.fault = fate, at, fault


def balance(entries: Iterable[Entry]) -> dict[str, dict[str, int]]:
    """Packets and bytes by origin and by fate. What came is what went: both columns have the same sum."""
    came: Counter[str] = Counter()
    went: Counter[str] = Counter()
    for entry in entries:
        for suffix, amount in (("packets", 1), ("bytes", entry.size)):
            came[f"{entry.origin}_{suffix}"] += amount
            went[f"{entry.fate.replace(' ', '_')}_{suffix}"] += amount
    return {"came": dict(came), "went": dict(went)}
