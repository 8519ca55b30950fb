"""How many packets are left of a mixed load when the MTU is raised, from the sizes of packets before.

A program writes a message at once, and TCP cuts it into full segments and a last one that is not full, the end:

    before   | full | full | full | full | full | full | full | end |
    after    |              full              |          end        |

Of a run of k full segments of s bytes and an end of r bytes, ceil((k s + r) / S) segments of S bytes are left. A
message that fits into one segment stays one packet. That is why a cluster with large and small messages has a quarter
of the packets with S / s = 6, and not a sixth.

A histogram of sizes has the full segments and the ends, but not which of these end a run. So the number of segments
that are left is between two bounds:

- at least as many as carry all bytes in full segments, and one for each segment that is not full, since no message goes
  without a packet;
- at most one more for each segment that is not full, since every run has one of these as its end. (This is wrong for
  messages of whole segments to the byte, whose runs have no end.)

The estimate in between takes half of the segments that are not full as ends: each message is answered by a small one,
as in protocols of requests and responses. Messages with y new segments in the mean then take y + 1/2 of them, since
any end is as likely as any other, or one if that is less. How many segments are ends hardly matters: with twice as
many runs, each has half the length. `Way.runs` has the exact number where a capture has told the order of packets.

Acknowledgements without data: where a sample has told which segments each of them answered, the agent has gone through
these again with larger segments (`crates/metering/src/answers.rs`), and `Way.left` has what is left. It has also seen
small answers to parts of a message, which go with one another where more of the message comes at once: `Way.merged`.
Otherwise only the number of acknowledgements is known: a receiver sends one for every second segment at least (RFC 5681
section 4.2), but fewer while it is busy with a run, and one for each segment while it answers at once. Runs are shorter
afterwards, so the rate is taken halfway between that before and 1/2. Of messages that are one packet already nothing
changes. At least, the last segment of each other message is acknowledged with what is sent next, and only pairs of
segments before it by themselves; and where the answers themselves become shorter, each may go with the acknowledgement
of its request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from framegauge.estimate.windows import Narrow

__all__ = ["PER_SEGMENT", "Prediction", "Way", "predict", "runs"]

RUNS_SHARE = 0.5  # of the segments that are not full, those that end a run
PER_SEGMENT = 0.5  # acknowledgements: one for every second segment


@dataclass(frozen=True)
class Way:
    """The packets of one direction by TCP payload: {bytes: packets}; those of 0 bytes are acknowledgements.

    `runs` are the messages where their order is known: {(full segments, bytes of the end): messages}. `left` are the
    shares of the acknowledgements that are left where that is known, by the bytes of larger full segments: the likely
    one, the least, the most. `merged` are the small segments that go with others then: the likely number, the most.
    `narrow` is what small windows leave of larger segments, by the bytes of these; `mutual` the share of segments of
    connections whose data goes both ways at once (`windows`).
    """

    payloads: Mapping[int, int]
    runs: Mapping[tuple[int, int], int] | None = None
    left: Mapping[int, tuple[float, float, float]] | None = None
    merged: Mapping[int, tuple[int, int]] | None = None
    narrow: Mapping[int, Narrow] | None = None
    mutual: float = 0.0

    @classmethod
    def counted(cls, packets: int, payload_bytes: int, full: int, segment_bytes: int, empty: int = 0) -> Way:
        """From counts alone: of all packets, `full` have a whole segment and `empty` nothing; all others are taken as
        equal. ValueError if they cannot carry the payload."""
        others, left = packets - full - empty, payload_bytes - full * segment_bytes
        if min(packets, full, empty, others, left) < 0 or not others <= left <= others * (segment_bytes - 1):
            shown = f"{packets} packets, {full} full and {empty} empty, with {payload_bytes} bytes"
            raise ValueError(f"found {shown}, expected as many bytes as they can carry in segments of {segment_bytes}")
        counts = {segment_bytes: full, 0: empty}
        if others:
            small, larger = divmod(left, others)
            counts |= {small: others - larger, small + 1: larger}
        return cls({size: count for size, count in counts.items() if count > 0})

    @property
    def packets(self) -> int:
        """All packets."""
        return sum(self.payloads.values())

    @property
    def acknowledgements(self) -> int:
        """Those without data."""
        return self.payloads.get(0, 0)


@dataclass(frozen=True)
class Prediction:
    """Packets before, and those that are left: the estimate, and its bounds."""

    before: int
    after: float
    least: float
    most: float

    @property
    def ratio(self) -> float:
        """Packets before for each one after."""
        return self.before / self.after

    @property
    def ratio_bounds(self) -> tuple[float, float]:
        """The ratios at the bounds."""
        return self.before / self.most, self.before / self.least


def predict(there: Way, back: Way, old_bytes: int, new_bytes: int) -> Prediction:
    """Packets of both directions, each of which acknowledges the other, with segments of `new_bytes` in place of
    `old_bytes`. ValueError without a packet, or if one has more than a segment."""
    before = there.packets + back.packets
    if not before or not 0 < old_bytes <= new_bytes:
        shown = f"{before} packets, and segments of {old_bytes} and {new_bytes} bytes"
        raise ValueError(f"found {shown}, expected packets, and larger segments than before")
    sums = [0.0, 0.0, 0.0]
    for way, other in ((there, back), (back, there)):
        segments, answers = _left(way, old_bytes, new_bytes), _answers(way, other, old_bytes, new_bytes)
        for index in range(3):
            sums[index] += segments[index] + answers[index]
    return Prediction(before, *sums)


def runs(payloads: Iterable[int], segment_bytes: int) -> dict[tuple[int, int], int]:
    """The messages of one direction of a connection, from the payloads of its packets in order, for `Way.runs`."""
    messages: Counter[tuple[int, int]] = Counter()
    full = 0
    for size in payloads:
        if size == segment_bytes:
            full += 1
        elif size:
            messages[full, size] += 1
            full = 0
    if full:
        messages[full, 0] += 1
    return dict(messages)


def _answers(way: Way, other: Way, old_bytes: int, new_bytes: int) -> tuple[float, float, float]:
    """The acknowledgements that are left of a direction, of data of the other one: the estimate, the least, the most.

    Of data both ways none may be alone, or one for each segment. So may there be for each in a window that opens for a
    segment at a time, but no more than came.
    """
    likely, least, most = _by_rate(way, other, old_bytes, new_bytes)
    most_segments, small = _left(other, old_bytes, new_bytes)[2], (other.narrow or {}).get(new_bytes)
    narrow = 0.0 if small is None else small.share * max(0.0, min(most_segments, way.acknowledgements) - most)
    return likely, least * (1 - way.mutual), most + max(narrow, way.mutual * max(0.0, most_segments - most))


def _by_rate(way: Way, other: Way, old_bytes: int, new_bytes: int) -> tuple[float, float, float]:
    """The same of data one way at a time, in windows that are large enough."""
    data, count = other.packets - other.acknowledgements, way.acknowledgements
    known = (way.left or {}).get(new_bytes)
    if known is not None:
        # What goes with another segment is not acknowledged by itself any more.
        likely, most = (other.merged or {}).get(new_bytes, (0, 0))
        gone = likely * min(1.0, count / max(1, data))
        # Small answers that are acknowledged together are so by chance: by more or fewer, once requests come at once.
        together = count < data - other.payloads.get(old_bytes, 0) and way.payloads.get(old_bytes, 0) > 0
        least = 0.0 if together else max(0.0, count * known[1] - most)
        return max(0.0, count * known[0] - gone), least, count * known[2]
    if not data:
        return count, count, count
    full, answers = (direction.payloads.get(old_bytes, 0) for direction in (other, way))
    answered = _answered(count / data, full, data, _left(other, old_bytes, new_bytes), answers > 0)
    return min(count, answered[0]), min(count, answered[1]), min(count, answered[2])


def _answered(
    rate: float, full: int, data: int, left: tuple[float, float, float], shorter: bool
) -> tuple[float, float, float]:
    """The acknowledgements of what is left of a direction (the estimate, the least, the most) that had so many for each
    segment with data before. `shorter`: the answers to it become so."""
    ends = data - full
    messages = min(full, ends)  # at most: each has a full segment and an end
    unchanged = ends - messages
    likely, least, most = (max(0.0, bound - unchanged) for bound in left)
    return (
        rate * unchanged + (rate + PER_SEGMENT) / 2 * likely,
        (0.0 if shorter else rate * unchanged) + min(rate * least, max(0.0, least - messages) * PER_SEGMENT),
        rate * unchanged + max(rate, PER_SEGMENT) * most,
    )


def _left(way: Way, old_bytes: int, new_bytes: int) -> tuple[float, float, float]:
    """The segments with data that are left of a direction: the estimate, the least, the most."""
    data = {size: count for size, count in way.payloads.items() if size and count}
    if not data:
        return 0.0, 0.0, 0.0
    if min(data) < 0 or max(data) > old_bytes:
        raise ValueError(f"found a packet of {max(data)} bytes, expected 0 to {old_bytes}, a segment")
    likely, most_merged = (way.merged or {}).get(new_bytes, (0, 0))
    if way.runs is not None:
        exact = sum(n * -(-(full * old_bytes + end) // new_bytes) for (full, end), n in way.runs.items())
        most = _in_windows(way, exact, old_bytes, new_bytes)
        return float(max(1, exact - likely)), float(max(1, exact - most_merged)), most
    total, packets = sum(size * count for size, count in data.items()), sum(data.values())
    ends = packets - data.get(old_bytes, 0)
    least = max(-(-total // new_bytes), ends - most_merged)
    most = min(packets, total // new_bytes + ends) if ends else packets
    full = data.get(old_bytes, 0)
    messages = max(1.0, min(full, RUNS_SHARE * ends))
    run_bytes = full * old_bytes + (total - full * old_bytes) * messages / max(1, ends)
    estimate = ends - likely - min(messages, ends) + messages * max(1.0, run_bytes / (messages * new_bytes) + 0.5)
    return min(max(estimate, least), most), float(least), _in_windows(way, most, old_bytes, new_bytes)


def _in_windows(way: Way, most: float, old_bytes: int, new_bytes: int) -> float:
    """The most segments with data, where windows may be too small for larger ones."""
    small = (way.narrow or {}).get(new_bytes)
    if small is None:
        return float(most)
    full, data = way.payloads.get(old_bytes, 0), way.packets - way.acknowledgements
    left = min(float(data), full * old_bytes / small.segment_bytes + data - full)
    return max(most, (1 - small.share) * most + small.share * left)
