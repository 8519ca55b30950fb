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
        by_host = self._ended()
        for name, watched in by_host.items():
            baseline = {_key(socket): socket for socket in self._before.get(name, {}).get("sockets", ())}
            for socket in watched["sockets"]:
                if (reading := baseline.get(_key(socket))) is not None and socket["local"] is not None:
                    for key in ("sent_bytes", "received_bytes"):
                        socket[key] = max(0, socket[key] - reading[key])
        return by_host

    def _ended(self) -> dict[str, Json]:
        answers = side_by_side([(host, lambda host: host.agent.request("sockets.watched")) for host in self._hosts])
        return {host.name: answer for host, answer in zip(self._hosts, answers, strict=True)}


@contextmanager
def watching(hosts: Sequence[Host]) -> Iterator[Watch]:
    """A watch from now on."""
    watch = Watch(hosts)
    watch.begin()
    yield watch


def _begin(host: Host) -> Json:
    return host.agent.request("sockets.watch", {"interval_seconds": INTERVAL_SECONDS})


def _key(socket: Json) -> tuple[object, ...]:
    return socket["local"], socket["remote"]


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
    outer = {
        name: [socket for socket in answer["sockets"] if not socket["loopback"]] for name, answer in watched.items()
    }
    sent, received = (
        {name: sum(socket[f"{direction}_bytes"] for socket in outer[name]) for name in outer}
        for direction in ("sent", "received")
    )
    preloaded_hosts = set(preloaded)
    nodelay, unread = _nodelay({name: outer[name] for name in outer if name in preloaded_hosts})
    rows = [row for name in outer for row in _segments(name, outer[name], ends)]
    return {
        "senders": _talking(sent),
        "receivers": _talking(received),
        "received_bytes": {name: total_bytes for name, total_bytes in received.items() if total_bytes},
        "sent_bytes": {name: total_bytes for name, total_bytes in sent.items() if total_bytes},
        "bytes": sum(received.values()),
        "congestion_control": {
            name: values for name in outer if (values := _distinct(outer[name], "congestion_control"))
        },
        "live": rows,
        "lifetimes": [row for name in outer for row in _lifetimes(name, watched[name], ends)][:MOST_GROUPS],
        "traffic": {name: _groups(outer[name]) for name in outer},
        "traffic_inside": {
            name: _groups([socket for socket in answer["sockets"] if socket["loopback"]])
            for name, answer in watched.items()
        },
        "connections": {name: sum(socket["connections"] for socket in outer[name]) for name in outer},
        "watch": {
            name: {key: answer[key] for key in ("looks", "seconds", "cpu_seconds", "lost", "more")}
            for name, answer in watched.items()
        },
        "nodelay": nodelay,
        "not_proved": [
            *unread,
            *_unproved(rows, [socket for name in outer for socket in outer[name]]),
        ],
    }


def _unproved(rows: Sequence[Json], outer: Sequence[Json]) -> Iterator[str]:
    """Why the sockets on the network tell nothing of the MTUs between hosts of the study."""
    if not outer:
        yield "MSS: no TCP connection of these programs was seen"
    elif not rows and all(socket["remote"] for socket in outer):
        yield "MSS: no connection of these programs is to another host of the study"


def _talking(totals: Mapping[str, int]) -> list[str]:
    highest = max(totals.values(), default=0)
    return [name for name, total in totals.items() if total and total >= TALKS_SHARE * highest]


def _distinct(sockets: Iterable[Json], key: str) -> list[Any]:
    return list(dict.fromkeys(value for socket in sockets for value in socket[key]))


def _end(socket: Json, ends: Mapping[str, tuple[str, int]]) -> tuple[str | None, int]:
    """The host at the far end of a connection, if it is one of the study, and the number of its NIC."""
    return ends.get((socket["remote"] or "").rpartition(":")[0].strip("[]"), (None, 1))


def _segments(host: str, sockets: Iterable[Json], ends: Mapping[str, tuple[str, int]]) -> Iterator[Json]:
    """The last MSS of each connection to a NIC of another host of the study: rows without their connections, which are
    many."""
    rows: dict[tuple[str, int, str, int], int] = {}
    for socket in sockets:
        peer, nic = _end(socket, ends)
        if peer is not None and (sizes := _sizes(socket)):
            key = (peer, nic, socket["program"] or "", sizes[-1])
            rows[key] = rows.get(key, 0) + socket["connections"]
    for (peer, nic, program, mss), count in rows.items():
        yield {"host": host, "other": peer, "nic": nic, "program": program, "mss_bytes": mss, "connections": count}


def _sizes(socket: Json) -> list[int]:
    """Every MSS that a socket had while it was connected, in order. One that carried data was."""
    sizes = [size for size in socket["mss_bytes"] if size not in UNCONNECTED]
    return sizes or (list(socket["mss_bytes"]) if socket["sent_bytes"] or socket["received_bytes"] else [])


def _lifetimes(host: str, watched: Json, ends: Mapping[str, tuple[str, int]]) -> Iterator[Json]:
    """When single connections to other hosts of the study were first and last seen, on the machine's clock, and every
    MSS that they had."""
    for socket in watched["sockets"]:
        peer, _ = _end(socket, ends)
        if peer is not None and not socket["loopback"] and socket["connections"] == 1 and (sizes := _sizes(socket)):
            first, last = (watched["started_seconds"] + socket[f"{name}_seconds"] for name in ("first", "last"))
            yield {
                "host": host, "other": peer, "program": socket["program"], "mss_bytes": sizes,
                "first_seconds": first, "last_seconds": last,
            }  # fmt: skip


def _groups(sockets: Iterable[Json]) -> list[Json]:
    """Connections, bytes and settings by program, role and the server's port; the largest first."""
    groups: dict[tuple[object, ...], Json] = {}
    for socket in sockets:
        key = (socket["program"], socket["role"], socket["port"])
        group = groups.setdefault(
            key,
            {
                "program": socket["program"], "role": socket["role"], "port": socket["port"], "connections": 0,
                "sent_bytes": 0, "received_bytes": 0, "congestion_control": [], "nodelay": [], "mss_bytes": [],
            },
        )  # fmt: skip
        for name in ("connections", "sent_bytes", "received_bytes"):
            group[name] += socket[name]
        for name in ("congestion_control", "nodelay", "mss_bytes"):
            group[name] = list(dict.fromkeys([*group[name], *socket[name]]))
    ordered = sorted(groups.values(), key=lambda group: -(group["sent_bytes"] + group["received_bytes"]))
    return ordered[:MOST_GROUPS]


def _nodelay(outer: Mapping[str, Sequence[Json]]) -> tuple[dict[str, list[Any]], list[str]]:
    """TCP_NODELAY by "host (program)"; and what could not be read."""
    settings: dict[str, list[object]] = {}
    unread = []
    for host, sockets in outer.items():
        for program in dict.fromkeys(socket["program"] for socket in sockets):
            own_sockets = [socket for socket in sockets if socket["program"] == program]
            # A program sets it after it has connected, so the last reading of a connection is the one that holds.
            values = list(dict.fromkeys(socket["nodelay"][-1] for socket in own_sockets if socket["nodelay"]))
            if values:
                settings[f"{host} ({program})"] = values
            else:
                unread.append(
                    f"Nagle: no connection of {program or 'an unknown program'} on {host} lived long enough to be read"
                )
    return settings, unread
