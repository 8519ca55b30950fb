"""Evidence from the live sockets of programs (`sockets.watched`): bytes, congestion control, TCP_NODELAY and MSS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypedDict

from framegauge.testbeds.base import Host, Json
from framegauge.workloads.base import side_by_side

__all__ = ["Watch", "evidence"]

INTERVAL_SECONDS = 0.02
TALKS_SHARE = 0.1  # of the most that a host sends or receives: from there on it is one of the senders or receivers
MOST_GROUPS = 200  # per host, that a record keeps
# What Linux says of a socket before it is connected and after it is closed: TCP_MIN_SND_MSS, less the timestamps.
UNCONNECTED = (48, 36)


class Watch:
    """The watch of the sockets of all hosts. `restart` begins anew at the moment from which bytes count."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._hosts = list(hosts)
        self._before: dict[str, Json] = {}

    def begin(self) -> None:
        """Starts it on all hosts."""
        side_by_side([(host, _begin) for host in self._hosts])

    def restart(self) -> None:
        """Ends what has been watched so far, which is what was sent while servers started, and starts again."""
        self._before = self._ended()
        self.begin()

    def end(self) -> dict[str, Json]:
        """The sockets by host, with the bytes since `restart`."""
        found = self._ended()
        for name, watched in found.items():
            before = {_key(each): each for each in self._before.get(name, {}).get("sockets", ())}
            for each in watched["sockets"]:
                if (first := before.get(_key(each))) is not None and each["local"] is not None:
                    for way in ("sent_bytes", "received_bytes"):
                        each[way] = max(0, each[way] - first[way])
        return found

    def _ended(self) -> dict[str, Json]:
        found = side_by_side([(host, lambda host: host.agent.request("sockets.watched")) for host in self._hosts])
        return {host.name: each for host, each in zip(self._hosts, found, strict=True)}


@contextmanager
def watching(hosts: Sequence[Host]) -> Iterator[Watch]:
    """A watch from now on."""
    watch = Watch(hosts)
    watch.begin()
    yield watch


def _begin(host: Host) -> Json:
    return host.agent.request("sockets.watch", {"interval_seconds": INTERVAL_SECONDS})


def _key(each: Json) -> tuple[object, ...]:
    return each["local"], each["remote"]


class Seen(TypedDict):
    """What live sockets tell of a run, by host: keys of Record, and `sent_bytes`; the others are for pictures."""

    senders: list[str]
    receivers: list[str]
    received_bytes: dict[str, int]
    sent_bytes: dict[str, int]
    bytes: int
    congestion_control: dict[str, list[str]]
    live: list[Json]
    lifetimes: list[dict[str, Any]]
    traffic: dict[str, list[Json]]
    traffic_inside: dict[str, list[Json]]
    connections: dict[str, int]
    watch: dict[str, Json]
    nodelay: dict[str, list[Any]]
    not_proved: list[str]


def evidence(hosts: Sequence[Host], watched: Mapping[str, Json], preloaded: Iterable[str]) -> Seen:
    """The keys of a run's record that follow from its sockets. `hosts`: all of the study, also those that were not
    watched; `preloaded`: those whose Nagle setting is made."""
    ends = {address: (host.name, number) for host in hosts for number, address in enumerate(host.addresses, 1)}
    outer = {name: [each for each in one["sockets"] if not each["loopback"]] for name, one in watched.items()}
    sent, received = (
        {name: sum(each[f"{way}_bytes"] for each in outer[name]) for name in outer} for way in ("sent", "received")
    )
    chosen = set(preloaded)
    nodelay, unread = _nodelay({name: outer[name] for name in outer if name in chosen})
    rows = [row for name in outer for row in _segments(name, outer[name], ends)]
    return {
        "senders": _talking(sent),
        "receivers": _talking(received),
        "received_bytes": {name: amount for name, amount in received.items() if amount},
        "sent_bytes": {name: amount for name, amount in sent.items() if amount},
        "bytes": sum(received.values()),
        "congestion_control": {
            name: values for name in outer if (values := _distinct(outer[name], "congestion_control"))
        },
        "live": rows,
        "lifetimes": [row for name in outer for row in _lifetimes(name, watched[name], ends)][:MOST_GROUPS],
        "traffic": {name: _groups(outer[name]) for name in outer},
        "traffic_inside": {
            name: _groups([each for each in one["sockets"] if each["loopback"]]) for name, one in watched.items()
        },
        "connections": {name: sum(each["connections"] for each in outer[name]) for name in outer},
        "watch": {
            name: {key: one[key] for key in ("looks", "seconds", "cpu_seconds", "lost", "more")}
            for name, one in watched.items()
        },
        "nodelay": nodelay,
        "not_proved": [
            *unread,
            *_unproved(rows, [each for name in outer for each in outer[name]]),
        ],
    }


def _unproved(rows: Sequence[Json], outer: Sequence[Json]) -> Iterator[str]:
    """Why the sockets on the network tell nothing of the MTUs between hosts of the study."""
    if not outer:
        yield "MSS: no TCP connection of these programs was seen"
    elif not rows and all(each["remote"] for each in outer):
        yield "MSS: no connection of these programs is to another host of the study"


def _talking(amounts: Mapping[str, int]) -> list[str]:
    most = max(amounts.values(), default=0)
    return [name for name, amount in amounts.items() if amount and amount >= TALKS_SHARE * most]


def _distinct(sockets: Iterable[Json], key: str) -> list[Any]:
    return list(dict.fromkeys(value for each in sockets for value in each[key]))


def _end(each: Json, ends: Mapping[str, tuple[str, int]]) -> tuple[str | None, int]:
    """The host at the far end of a connection, if it is one of the study, and the number of its NIC."""
    return ends.get((each["remote"] or "").rpartition(":")[0].strip("[]"), (None, 1))


def _segments(host: str, sockets: Iterable[Json], ends: Mapping[str, tuple[str, int]]) -> Iterator[Json]:
    """The last MSS of each connection to a NIC of another host of the study: rows without their connections, which are
    many."""
    rows: dict[tuple[str, int, str, int], int] = {}
    for each in sockets:
        other, nic = _end(each, ends)
        if other is not None and (sizes := _sizes(each)):
            key = (other, nic, each["program"] or "", sizes[-1])
            rows[key] = rows.get(key, 0) + each["connections"]
    for (other, nic, program, mss), count in rows.items():
        yield {"host": host, "other": other, "nic": nic, "program": program, "mss_bytes": mss, "connections": count}


def _sizes(socket: Json) -> list[int]:
    """Every MSS that a socket had while it was connected, in order. One that carried data was."""
    known = [each for each in socket["mss_bytes"] if each not in UNCONNECTED]
    return known or (list(socket["mss_bytes"]) if socket["sent_bytes"] or socket["received_bytes"] else [])


def _lifetimes(host: str, watched: Json, ends: Mapping[str, tuple[str, int]]) -> Iterator[Json]:
    """When single connections to other hosts of the study were first and last seen, on the machine's clock, and every
    MSS that they had."""
    for each in watched["sockets"]:
        other, _ = _end(each, ends)
        if other is not None and not each["loopback"] and each["connections"] == 1 and (sizes := _sizes(each)):
            first, last = (watched["started_seconds"] + each[f"{name}_seconds"] for name in ("first", "last"))
            yield {
                "host": host, "other": other, "program": each["program"], "mss_bytes": sizes,
                "first_seconds": first, "last_seconds": last,
            }  # fmt: skip


def _groups(sockets: Iterable[Json]) -> list[Json]:
    """Connections, bytes and settings by program, role and the server's port; the largest first."""
    groups: dict[tuple[object, ...], Json] = {}
    for each in sockets:
        key = (each["program"], each["role"], each["port"])
        group = groups.setdefault(
            key,
            {
                "program": each["program"], "role": each["role"], "port": each["port"], "connections": 0,
                "sent_bytes": 0, "received_bytes": 0, "congestion_control": [], "nodelay": [], "mss_bytes": [],
            },
        )  # fmt: skip
        for name in ("connections", "sent_bytes", "received_bytes"):
            group[name] += each[name]
        for name in ("congestion_control", "nodelay", "mss_bytes"):
            group[name] = list(dict.fromkeys([*group[name], *each[name]]))
    ordered = sorted(groups.values(), key=lambda group: -(group["sent_bytes"] + group["received_bytes"]))
    return ordered[:MOST_GROUPS]


def _nodelay(outer: Mapping[str, Sequence[Json]]) -> tuple[dict[str, list[Any]], list[str]]:
    """TCP_NODELAY by "host (program)"; and what could not be read."""
    found: dict[str, list[object]] = {}
    unread = []
    for host, sockets in outer.items():
        for program in dict.fromkeys(each["program"] for each in sockets):
            mine = [each for each in sockets if each["program"] == program]
            # A program sets it after it has connected, so the last reading of a connection is the one that holds.
            values = list(dict.fromkeys(each["nodelay"][-1] for each in mine if each["nodelay"]))
            if values:
                found[f"{host} ({program})"] = values
            else:
                unread.append(
                    f"Nagle: no connection of {program or 'an unknown program'} on {host} lived long enough to be read"
                )
    return found, unread
