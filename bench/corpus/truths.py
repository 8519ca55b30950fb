"""What is true of a run, connection by connection: the books of the wire, and which scene it was."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.corpus.splits import split
from bench.diagnosis.judging import LIMITS, true
from bench.diagnosis.kernel_trace import Again
from bench.diagnosis.ledger import DELIVERED, FORGED, LOST, TAKEN, Entry, balance
from bench.diagnosis.run import Played
from bench.diagnosis.scenes import Scene
from bench.diagnosis.segments import ACK, SYN
from bench.diagnosis.wire import FAR, MIDDLE, NEAR, TAPS

SCHEMA = 1
SECOND = 1_000_000_000
# Properties of a capture, not of a connection in it.
OF_CAPTURES = frozenset(
    {"capture_duplicates", "capture_loss", "capture_misordered", "half_capture", "truncated", "aggregates",
     "checksum_offload", "clock_jump"}
)  # fmt: skip
# They end when what was lost or held has arrived. All others last until the connection's end, as needless repeats do:
# a sender whose timer ran out in vain goes on to repeat what arrived.
PASSING = frozenset(
    {"fast_retransmit", "rto_stall", "tail_loss", "double_loss", "reordering", "syn_loss", "pmtu_black_hole", "incast"}
)
# What the wire does without provoking anything; and the fault that makes one kind where there are several.
HARMLESS = frozenset({"ThinAcks"})
PROVOKES = {"outcast": "Starve"}
Ends = tuple[bytes, int]


@dataclass
class Way:
    """One direction of a connection, as the wire saw it."""

    packets: int = 0
    data_packets: int = 0
    resent_packets: int = 0
    lost_packets: int = 0
    # Bytes of the stream: the last that was sent, and how many arrived.
    stream_bytes: int = 0
    arrived_bytes: int = 0


@dataclass
class Connection:
    """A connection between a sender and a receiver of a scene. `outer`: the sender as it is called behind a router."""

    number: int
    sender: Ends
    receiver: Ends
    outer: Ends
    entries: list[Entry] = field(default_factory=list)

    @property
    def begin(self) -> int:
        return self.entries[0].at

    @property
    def end(self) -> int:
        return max(max(entry.at, entry.left_at) for entry in self.entries)

    @property
    def opened_by(self) -> str | None:
        """Who sent the first SYN that is no answer."""
        sides = (entry.side for entry in self.entries if entry.flags & (SYN | ACK) == SYN and entry.origin == TAKEN)
        return {0: "sender", 1: "receiver", None: None}[next(sides, None)]

    def ends(self, tap: str) -> list[str]:
        """Sender and receiver, as packets at a tap name them."""
        return [named(self.sender if tap == NEAR else self.outer), named(self.receiver)]

    def way(self, side: int) -> Way:
        """What went from one side to the other."""
        way = Way()
        own = [entry for entry in self.entries if entry.side == side and entry.origin == TAKEN]
        for entry in own:
            way.packets += 1
            way.data_packets += entry.payload > 0
            way.resent_packets += entry.is_again
            way.lost_packets += entry.fate == LOST
            way.stream_bytes = max(way.stream_bytes, entry.begin + entry.payload if entry.payload else 0)
        arrived = [(entry.begin, entry.begin + entry.payload) for entry in own if entry.fate == DELIVERED]
        way.arrived_bytes = sum(end - begin for begin, end in joined(arrived))
        return way


def named(end: Ends) -> str:
    """An end as text: 10.9.1.1:5000, [fd00:1::1]:5000."""
    address = ipaddress.ip_address(end[0])
    return f"[{address}]:{end[1]}" if address.version == 6 else f"{address}:{end[1]}"


def joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes in as few ranges as possible."""
    whole: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        if end <= begin:
            continue
        if whole and begin <= whole[-1][1]:
            whole[-1] = (whole[-1][0], max(end, whole[-1][1]))
        else:
            whole.append((begin, end))
    return whole


def connections(entries: Sequence[Entry], outer: Mapping[Ends, Ends]) -> list[Connection]:
    """The connections of a wire in the order of their first packets. `outer`: translated ends, by the inner ones."""
    inner = {end: own for own, end in outer.items()}
    by_ends: dict[tuple[Ends, Ends], Connection] = {}
    for entry in entries:
        source, destination = entry.ends[:2], entry.ends[2:]
        sender, receiver = (source, destination) if entry.side == 0 else (destination, source)
        sender = inner.get(sender, sender)
        key = (sender, receiver)
        if key not in by_ends:
            by_ends[key] = Connection(len(by_ends) + 1, sender, receiver, outer.get(sender, sender))
        by_ends[key].entries.append(entry)
    return list(by_ends.values())


def acts(connection: Connection, kind: str) -> list[Entry]:
    """Packets of a connection to which the wire did something that provokes this kind."""
    only = PROVOKES.get(kind)
    return [
        entry
        for entry in connection.entries
        if (names := ({entry.fault} if entry.fate == LOST or entry.origin == FORGED else set()) | entry.holders)
        and (only in names if only else names - HARMLESS)
    ]


def repaired(connection: Connection, entry: Entry) -> int:
    """When all that the packet carried had arrived; the connection's end, if it never did."""
    if entry.fate == DELIVERED:
        return entry.left_at
    missing = [(entry.begin, entry.begin + max(1, entry.payload))]
    later = (other for other in connection.entries if other.side == entry.side and other.fate == DELIVERED)
    for other in sorted(later, key=lambda other: other.left_at):
        if not entry.payload:
            if other.left_at > entry.at and other.flags == entry.flags:
                return other.left_at
            continue
        begin, end = other.begin, other.begin + other.payload
        missing = [
            part
            for low, high in missing
            for part in ((low, min(high, begin)), (max(low, end), high))
            if part[0] < part[1]
        ]
        if not missing:
            return other.left_at
    return connection.end


def causes(connection: Connection, kinds: Iterable[str], is_by_wire: bool) -> list[dict[str, Any]]:
    """When each of these kinds acted on a connection; it is left out if the wire made it, elsewhere."""
    spans = []
    for kind in sorted(kinds):
        made = acts(connection, kind) if is_by_wire else []
        if is_by_wire and not made:
            continue
        begin = made[0].at if made else connection.begin
        end = max(repaired(connection, entry) for entry in made) if made and kind in PASSING else connection.end
        span = {"begin_nanoseconds": begin, "end_nanoseconds": max(begin, end)}
        spans.append({"cause": kind, "connection": connection.number, **span})
    return spans


def retransmissions(all_of_them: Sequence[Connection], again: Sequence[Again] | None) -> list[dict[str, Any]]:
    """Every data packet that was sent again, why the kernel did it, and whether an earlier copy of all of it arrived.

    One event of the kernel's is one segment of its queue, which may be several packets of the link.
    """
    lines = []
    for connection in all_of_them:
        for side in (0, 1):
            events = [event for event in again or () if _is_of(event, connection, side)]
            arrived: list[tuple[int, int]] = []
            for entry in connection.entries:
                if entry.side != side or not entry.payload or entry.origin != TAKEN:
                    continue
                span = (entry.begin, entry.begin + entry.payload)
                if entry.is_again:
                    needless = any(low <= span[0] and span[1] <= high for low, high in joined(arrived))
                    whys = [event.why for event in events if event.at <= entry.at]
                    lines.append(
                        {
                            "connection": connection.number, "from": ("sender", "receiver")[side],
                            "at_nanoseconds": entry.at, "aggregate": entry.aggregate, "begin": entry.begin,
                            "bytes": entry.payload,
                            "why": whys[-1] if whys else None, "needless": needless,
                        }
                    )  # fmt: skip
                if entry.fate == DELIVERED:
                    arrived.append(span)
    return lines


def own_of(again: Iterable[Again], all_of_them: Iterable[Connection]) -> list[Again]:
    """Those of a run: the kernel's trace points tell of every namespace."""
    known = list(all_of_them)
    return [event for event in again if any(_is_of(event, each, side) for each in known for side in (0, 1))]


def _is_of(event: Again, connection: Connection, side: int) -> bool:
    source, destination = connection.sender, connection.receiver
    if side:
        source, destination = connection.receiver, connection.outer
    own, other = (str(ipaddress.ip_address(end[0])) for end in (source, destination))
    return (event.source, event.port, event.destination, event.other) == (own, source[1], other, destination[1])


def described(value: Any) -> Any:
    """What was drawn for a run, as JSON: a dataclass with its name in `is`, without what it remembers."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value) if not each.name.startswith("_")]
        return {"is": type(value).__name__, **{name: described(getattr(value, name)) for name in names}}
    if isinstance(value, Mapping):
        return {name: described(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [described(inner) for inner in value]
    return value.hex() if isinstance(value, bytes) else value


def truth(name: str, scene: Scene, played: Played, again: Sequence[Again] | None) -> dict[str, Any]:
    """The whole truth of a run, in the form of `corpus.schema.json`."""
    wire, variant = played.wire, played.variant
    all_of_them = connections(wire.ledger, played.translated)
    again = None if again is None else own_of(again, all_of_them)
    is_by_wire = any(type(fault).__name__ not in {*HARMLESS, "Freeze"} for fault in (*variant.near, *variant.far))
    lives = [(connection.end - connection.begin) / SECOND for connection in all_of_them]
    captured = played.captured()
    captures = {}
    for tap in TAPS:
        must, may = true(scene, variant, played.ran, tap, lives)
        found = [{"cause": kind, "connection": None} for kind in sorted(must & OF_CAPTURES)]
        for connection in all_of_them[scene.concerns_from - 1 :]:
            found += causes(connection, must - OF_CAPTURES, is_by_wire)
        # A cause that a connection must have is wrong on another, but somebody is always the limit there, too.
        stated = sorted((may - {each["cause"] for each in found}) | (may & LIMITS))
        captures[tap] = {"packets": len(captured[tap]), "must": found, "may": stated}
    return {
        "schema": SCHEMA,
        "run": name,
        "scene": scene.name,
        "kind": scene.kind,
        "number": variant.number,
        "seed": variant.seed,
        "split": split(variant.number),
        "source": scene.source or None,
        "conditions": described(variant),
        "connections": [_told(connection) for connection in all_of_them],
        "captures": captures,
        "conservation": balance(wire.ledger),
        "retransmissions": retransmissions(all_of_them, again),
        "kernel_retransmissions": None if again is None else dict(Counter(event.why for event in again)),
    }


def _told(connection: Connection) -> dict[str, Any]:
    return {
        "connection": connection.number,
        "ends": {tap: connection.ends(tap) for tap in (NEAR, MIDDLE, FAR)},
        "opened_by": connection.opened_by,
        "begin_nanoseconds": connection.begin,
        "end_nanoseconds": connection.end,
        "sender_to_receiver": dataclasses.asdict(connection.way(0)),
        "receiver_to_sender": dataclasses.asdict(connection.way(1)),
    }
