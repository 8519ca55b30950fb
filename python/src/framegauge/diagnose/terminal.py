"""A diagnosis as lines for a terminal: first what is worth fixing, then the connections, then the captures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.diagnose import together
from framegauge.diagnose.kinds import QUALITY
from framegauge.diagnose.run import is_judgeable, notes, worth_fixing
from framegauge.printable import one_line, wrapped
from framegauge.quantities import print_bytes, print_seconds

__all__ = ["lines", "nothing_judged"]

FIRST = 3
MOST_ROWS = 20
WIDTH = 118
# What a capture has besides segments of TCP.
_OTHERS = {
    "not_ip": "other than IP", "not_tcp": "of another protocol", "icmp": "ICMP", "encrypted": "encrypted",
    "fragments": "later fragments", "cut": "cut in their headers", "malformed": "malformed",
}  # fmt: skip
Json = Mapping[str, Any]


def lines(document: Json) -> Iterator[str]:
    """All of it."""
    worth = worth_fixing(document)
    connections = {each["connection"]: each for each in document["connections"]}
    if not worth:
        yield _nothing(document)
    else:
        first = f"; the first {FIRST}" if len(worth) > FIRST else ""
        yield f"{len(worth)} finding{'' if len(worth) == 1 else 's'} worth fixing{first}:"
    for place, each in enumerate(worth[:FIRST], start=1):
        yield ""
        yield from _finding(place, each, connections)
    for each in notes(document):
        yield ""
        yield f"Note: {each['kind']}{_where(each, connections)}"
        yield from _wrapped(each["text"])
    yield from together.lines(document["joined"])
    yield from _table(document, worth)
    yield from _captures(document)


def _nothing(document: Json) -> str:
    if not is_judgeable(document):
        return nothing_judged(document)
    count = len(document["connections"])
    return f"Nothing worth fixing was found in {count} TCP connection{'' if count == 1 else 's'}."


def nothing_judged(document: Json) -> str:
    """What there is instead of TCP connections."""
    packets = sum(each["packets"] for each in document["captures"])
    counts = {name: sum(each["others"][name] for each in document["captures"]) for name in _OTHERS}
    said = [f"{count} {_OTHERS[name]}" for name, count in counts.items() if count]
    rest = f" ({', '.join(said)})" if said else ""
    return f"Cannot tell: there is no TCP connection in {packets} packet{'' if packets == 1 else 's'}{rest}."


def _finding(place: int, each: Json, connections: Mapping[int, Json]) -> Iterator[str]:
    lost = f", {_seconds(each['lost_seconds'])} lost" if each["lost_seconds"] else ""
    yield f"{place}. {each['kind']}{lost}{_where(each, connections)}"
    yield from _wrapped(each["text"])
    yield from _wrapped(f"Do: {each['remedy']}")
    if each["packets"]:
        yield from _wrapped(f"Packets: {', '.join(map(str, each['packets']))}")


def _where(each: Json, connections: Mapping[int, Json]) -> str:
    of = connections.get(each["connection"])
    return "" if of is None else f", connection {each['connection']}, {of['client']} to {of['server']}"


def _wrapped(text: str) -> list[str]:
    return wrapped(text, WIDTH, "   ", "   ", hyphens=False)


def _table(document: Json, worth: Sequence[Json]) -> Iterator[str]:
    """The kinds of all findings, with how many connections have them."""
    kinds: dict[str, list[Json]] = {}
    for each in document["findings"]:
        kinds.setdefault(each["kind"], []).append(each)
    if not kinds:
        return
    yield ""
    yield f"{'finding':<24} {'connections':>11} {'times':>8} {'lost':>10}"
    ranked = sorted(
        kinds.items(), key=lambda item: (item[0] in QUALITY, -sum(each["lost_seconds"] for each in item[1]))
    )
    for kind, all_of_it in ranked:
        lost = sum(each["lost_seconds"] for each in all_of_it)
        of = len({each["connection"] for each in all_of_it if each["connection"] is not None})
        count = sum(each["count"] for each in all_of_it)
        yield f"{kind:<24} {of or '-':>11} {count:>8} {_seconds(lost) if lost else '-':>10}"
    yield from _slowest(document, worth)


def _slowest(document: Json, worth: Sequence[Json]) -> Iterator[str]:
    """The connections that lost most."""
    lost: dict[int, float] = {}
    for each in worth:
        if each["connection"] is not None:
            lost[each["connection"]] = lost.get(each["connection"], 0.0) + each["lost_seconds"]
    shown = sorted(lost, key=lambda number: -lost[number])[:MOST_ROWS]
    if not shown:
        return
    yield ""
    yield f"{'connection':>10} {'client':<24} {'server':<24} {'life':>9} {'lost':>9} {'sent':>9} {'received':>9}"
    connections = {each["connection"]: each for each in document["connections"]}
    for number in shown:
        each = connections[number]
        life = each["end_seconds"] - each["begin_seconds"]
        sent, received = (print_bytes(count) for count in each["bytes"])
        yield (
            f"{number:>10} {each['client']:<24} {each['server']:<24} {_seconds(life):>9} "
            f"{_seconds(lost[number]):>9} {sent:>9} {received:>9}"
        )
    if len(lost) > len(shown):
        yield f"… and {len(lost) - len(shown)} more: --json has them all"


def _captures(document: Json) -> Iterator[str]:
    yield ""
    for each in document["captures"]:
        name = one_line(each["file"] + (f" ({each['interface']})" if each["interface"] else ""), 80)
        yield f"{name}: {each['packets']} packets, {each['segments']} TCP segments here, {_seconds(each['seconds'])}"
        if each["broken"]:
            yield f"{name}: read up to here only: {one_line(each['broken'], 200)}"
        if each["missed_packets"]:
            yield f"{name}: the capture lacks {each['missed_packets']} packets by its own account"


def _seconds(value: float) -> str:
    return print_seconds(value, 3)
