"""A diagnosis as lines for a terminal: first what is worth fixing, then the connections, then the captures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from framegauge.diagnose import together
from framegauge.diagnose.kinds import QUALITY
from framegauge.diagnose.run import connections_in_words, each_worth_fixing, is_judgeable, notes
from framegauge.printable import one_line, wrapped
from framegauge.quantities import print_bytes, print_seconds

__all__ = ["lines", "nothing_judged"]

FIRST = 3
MOST_ROWS = 20
MOST_NUMBERS = 3
WIDTH = 118
# What a capture has besides segments of TCP.
_OTHERS = {
    "not_ip": "other than IP", "not_tcp": "of another protocol", "icmp": "ICMP", "encrypted": "encrypted",
    "fragments": "later fragments", "cut": "cut in their headers", "malformed": "malformed",
}  # fmt: skip
Json = Mapping[str, Any]


def lines(document: Json) -> Iterator[str]:
    """All of it."""
    worth = sum(1 for _ in each_worth_fixing(document))
    first = list(itertools.islice(each_worth_fixing(document), FIRST))
    remarks = notes(document)
    connections = _connections(document, {finding["connection"] for finding in (*first, *remarks)})
    if not worth:
        yield _nothing(document)
    else:
        more = f"; the first {FIRST}, and all with --html FILE or --json" if worth > FIRST else ""
        yield f"{worth} finding{'' if worth == 1 else 's'} worth fixing{more}:"
    for place, finding in enumerate(first, start=1):
        yield ""
        yield from _finding(place, finding, connections)
    for finding in remarks:
        yield ""
        yield f"Note: {finding['kind']}{_where(finding, connections)}"
        yield from _wrapped(finding["text"])
    yield from together.lines(document["joined"])
    yield from _table(document)
    yield from _captures(document)


def _connections(document: Json, numbers: Set[int | None]) -> dict[int, Json]:
    """Those of these numbers: there may be far more than memory has room for."""
    return {
        connection["connection"]: connection
        for connection in document["connections"]
        if connection["connection"] in numbers
    }


def _nothing(document: Json) -> str:
    if not is_judgeable(document):
        return nothing_judged(document)
    return f"Nothing worth fixing was found in {connections_in_words(document)}."


def nothing_judged(document: Json) -> str:
    """What there is instead of TCP connections with more than one packet."""
    if document["connections"]:
        count = len(document["connections"])
        subject = "the TCP connection" if count == 1 else f"each of {count} TCP connections"
        return f"Cannot tell: of {subject} there is one packet."
    packets = sum(capture["packets"] for capture in document["captures"])
    counts = {name: sum(capture["others"][name] for capture in document["captures"]) for name in _OTHERS}
    texts = [f"{count} {_OTHERS[name]}{_numbers(document, name)}" for name, count in counts.items() if count]
    rest = f" ({', '.join(texts)})" if texts else ""
    return f"Cannot tell: there is no TCP connection in {packets} packet{'' if packets == 1 else 's'}{rest}."


def _numbers(document: Json, name: str) -> str:
    """What most of these packets carry, by number: an EtherType as it is usually written."""
    packets: dict[int, int] = {}
    for capture in document["captures"]:
        for number, count in capture["unread"].get(name, {}).items():
            packets[int(number)] = packets.get(int(number), 0) + count
    ranked = sorted(packets, key=lambda number: -packets[number])[:MOST_NUMBERS]
    shown = [f"0x{number:04x}" if name == "not_ip" else str(number) for number in ranked]
    return f": {', '.join(shown)}" if shown else ""


def _finding(place: int, finding: Json, connections: Mapping[int, Json]) -> Iterator[str]:
    lost = f", {_seconds(finding['lost_seconds'])} lost" if finding["lost_seconds"] else ""
    yield f"{place}. {finding['kind']}{lost}{_where(finding, connections)}"
    yield from _wrapped(finding["text"])
    yield from _wrapped(f"Do: {finding['remedy']}")
    if finding["packets"]:
        yield from _wrapped(f"Packets: {', '.join(map(str, finding['packets']))}")


def _where(finding: Json, connections: Mapping[int, Json]) -> str:
    connection = connections.get(finding["connection"])
    return (
        ""
        if connection is None
        else f", connection {finding['connection']}, {connection['client']} to {connection['server']}"
    )


def _wrapped(text: str) -> list[str]:
    return wrapped(text, WIDTH, "   ", "   ", hyphens=False)


@dataclass
class _Sum:
    """What there is of one kind."""

    lost: float = 0.0
    count: int = 0
    connections: set[int] = field(default_factory=set)


def _table(document: Json) -> Iterator[str]:
    """The kinds of all findings, with how many connections have them."""
    kinds: dict[str, _Sum] = {}
    for finding in document["findings"]:
        kind = kinds.setdefault(finding["kind"], _Sum())
        kind.lost += finding["lost_seconds"]
        kind.count += finding["count"]
        if finding["connection"] is not None:
            kind.connections.add(finding["connection"])
    if not kinds:
        return
    yield ""
    yield f"{'finding':<24} {'connections':>11} {'times':>8} {'lost':>10}"
    for name, kind in sorted(kinds.items(), key=lambda item: (item[0] in QUALITY, -item[1].lost)):
        affected, lost = len(kind.connections), _seconds(kind.lost) if kind.lost else "-"
        yield f"{name:<24} {affected or '-':>11} {kind.count:>8} {lost:>10}"
    yield from _slowest(document)


def _slowest(document: Json) -> Iterator[str]:
    """The connections that lost most."""
    lost: dict[int, float] = {}
    for finding in each_worth_fixing(document):
        if finding["connection"] is not None:
            lost[finding["connection"]] = lost.get(finding["connection"], 0.0) + finding["lost_seconds"]
    shown = sorted(lost, key=lambda number: -lost[number])[:MOST_ROWS]
    if not shown:
        return
    yield ""
    yield f"{'connection':>10} {'client':<24} {'server':<24} {'life':>9} {'lost':>9} {'sent':>9} {'received':>9}"
    connections = _connections(document, set(shown))
    for number in shown:
        connection = connections[number]
        life = connection["end_seconds"] - connection["begin_seconds"]
        sent, received = (print_bytes(count) for count in connection["bytes"])
        yield (
            f"{number:>10} {connection['client']:<24} {connection['server']:<24} {_seconds(life):>9} "
            f"{_seconds(lost[number]):>9} {sent:>9} {received:>9}"
        )
    if len(lost) > len(shown):
        yield f"… and {len(lost) - len(shown)} more: --json has them all"


def _captures(document: Json) -> Iterator[str]:
    yield ""
    for tap in document["captures"]:
        name = one_line(tap["file"] + (f" ({tap['interface']})" if tap["interface"] else ""), 80)
        yield f"{name}: {tap['packets']} packets, {tap['segments']} TCP segments here, {_seconds(tap['seconds'])}"
        if tap["broken"]:
            yield f"{name}: read up to here only: {one_line(tap['broken'], 200)}"
        if tap["missed_packets"]:
            yield f"{name}: the capture lacks {tap['missed_packets']} packets by its own account"


def _seconds(value: float) -> str:
    return print_seconds(value, 3)
