"""What several captures say together, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framegauge.diagnose.joined import WORTH_SECONDS, ends, hops, waits
from framegauge.printable import one_line
from framegauge.quantities import print_bytes, print_seconds

__all__ = ["lines"]

MOST_ROWS = 10
MOST_DELAYS = 4
MOST_UNJUDGED = 3
LEAST_UNJUDGED = 3  # of fewer, the edges of captures are reason enough
Json = Mapping[str, Any]


def lines(joined: Json | None) -> Iterator[str]:
    """All of it; nothing if the captures share no connection."""
    if joined is None:
        return
    names = {tap["tap"]: one_line(tap["name"], 40) for tap in joined["taps"]}
    count = len(joined["connections"])
    yield ""
    yield f"{count} connection{' was' if count == 1 else 's were'} captured at several places:"
    yield from _lost(joined, names)
    yield from _delays(joined, names)
    yield from _held(joined, names)
    yield from _clocks(joined, names)


def _lost(joined: Json, names: Mapping[int, str]) -> Iterator[str]:
    """Where packets were lost, the most first."""
    lost = sorted(
        (entry for entry in hops(joined) if entry[2]["lost_packets"]), key=lambda entry: -entry[2]["lost_packets"]
    )
    unjudged = [entry for entry in hops(joined) if entry[2]["unjudged_packets"] >= LEAST_UNJUDGED]
    if not lost and not unjudged:
        # Each direction may have been captured at a place of its own.
        are_compared = any(entry[2]["arrived_packets"] for entry in hops(joined))
        yield (
            "  no packet was lost between them"
            if are_compared
            else ("  cannot tell whether packets were lost between them: none was captured at two of them")
        )
    for connection, direction, hop in lost[:MOST_ROWS]:
        near, far = (names[tap] for tap in hop["between"])
        packets = hop["lost_packets"]
        total = packets + hop["arrived_packets"]
        yield (
            f"  {packets} of {total} packets ({print_bytes(hop['lost_bytes'])}) were lost between {near} and {far}, "
            f"from {ends(connection, direction)}"
        )
    if len(lost) > MOST_ROWS:
        yield f"  … and {len(lost) - MOST_ROWS} more: --json has them all"
    for connection, direction, hop in sorted(unjudged, key=lambda entry: -entry[2]["unjudged_packets"])[:MOST_UNJUDGED]:
        near, far = (names[tap] for tap in hop["between"])
        yield (
            f"  cannot tell whether {hop['unjudged_packets']} packets of {near} came to {far}, whose capture may have "
            f"begun later or ended before, from {ends(connection, direction)}"
        )
    missed = sum(hop["missed_packets"] for _, _, hop in hops(joined))
    if missed:
        yield f"  {missed} packets arrived that a capture behind them has not: those are no losses of the network"


def _delays(joined: Json, names: Mapping[int, str]) -> Iterator[str]:
    """One-way delays, those that rise most first."""
    measured = [entry for entry in hops(joined) if entry[2]["delay"] is not None]
    measured.sort(key=lambda entry: entry[2]["delay"]["least_seconds"] - entry[2]["delay"]["p99_seconds"])
    for connection, direction, hop in measured[:MOST_DELAYS]:
        near, far = (names[tap] for tap in hop["between"])
        delay = hop["delay"]
        least, median, p99, known_to = (
            _seconds(delay[f"{name}_seconds"]) for name in ("least", "median", "p99", "uncertainty")
        )
        rises = len(delay["rises"])
        risen = f"; far above the least {rises} time{'' if rises == 1 else 's'}" if rises else ""
        yield (
            f"  {near} to {far} took {median} in the median, {least} at least, {p99} for 99 % "
            f"(all known to {known_to}), from {ends(connection, direction)}{risen}"
        )
    if len(measured) > MOST_DELAYS:
        yield f"  … and {len(measured) - MOST_DELAYS} more delays: --json has them all"


def _held(joined: Json, names: Mapping[int, str]) -> Iterator[str]:
    """Who held answers back, the longest first."""
    held = [
        (wait, connection, direction)
        for connection in joined["connections"]
        for direction, wait in waits(connection)
        if wait["held_seconds"] >= WORTH_SECONDS
    ]
    for wait, connection, direction in sorted(held, key=lambda entry: -entry[0]["held_seconds"])[:MOST_DELAYS]:
        near, far = (names[tap] for tap in wait["between"])
        yield (
            f"  {far} held {wait['answers']} answers back for {_seconds(wait['held_seconds'])} of the "
            f"{_seconds(wait['waited_seconds'])} that {near} waited, requests from {ends(connection, direction)}"
        )


def _clocks(joined: Json, names: Mapping[int, str]) -> Iterator[str]:
    """How far clocks are from the first tap's; once for each file."""
    files: set[str] = set()
    first = joined["taps"][0]
    for tap in joined["taps"]:
        if tap["file"] in files or tap["file"] == first["file"]:
            continue
        files.add(tap["file"])
        clock = tap["clock"]
        if clock is None:
            yield f"  the clocks of {names[tap['tap']]} and {names[first['tap']]} cannot be compared"
            continue
        side = "ahead of" if clock["offset_seconds"] >= 0 else "behind"
        pieces = clock["pieces"]
        # What a clock gains in all must be more than what is not known.
        gained = max(
            (abs(piece["drift"]) * (piece["end_seconds"] - piece["begin_seconds"]) for piece in pieces), default=0
        )
        gains = f"gains {clock['drift'] * 1e6:.3g} us per s, " if gained > clock["uncertainty_seconds"] else ""
        parts = f"in {len(pieces)} pieces, " if len(pieces) > 1 else ""
        yield (
            f"  the clock of {names[tap['tap']]} is {_seconds(abs(clock['offset_seconds']))} {side} that of "
            f"{names[first['tap']]}, {gains}{parts}known to {_seconds(clock['uncertainty_seconds'])}"
        )


def _seconds(value: float) -> str:
    return f"-{print_seconds(-value, 3)}" if value < 0 else print_seconds(value, 3)
