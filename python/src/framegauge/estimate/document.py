"""The estimate of hosts as a document, from their readings: what a larger MTU brings at most. Pure.

Every figure has its kind: a `reading` of what a kernel or NIC counted, a `measurement` of packets, or a `bound` that
was computed from these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from framegauge.estimate import fitting, gains
from framegauge.estimate.gains import Gain
from framegauge.estimate.host import BOUND, MEASUREMENT, READING, Ends, Host, cpu
from framegauge.estimate.load import SAMPLE, Load, after, loads
from framegauge.estimate.notes import LITTLE, notes, opaque, says_too_little
from framegauge.estimate.windows import Senders, senders

__all__ = ["LITTLE", "SCHEMA", "UNKNOWN", "estimate"]

SCHEMA = 1
# The answers for a host and an MTU.
NO_TRAFFIC, ALREADY, NOT_POSSIBLE, NO, MAYBE = "no traffic", "already", "not possible", "do not", "worth a study"
UNKNOWN = "cannot tell"

Json = dict[str, Any]
Readings = Mapping[str, Any]


def estimate(
    readings: Mapping[str, Readings],
    target_mtus: Sequence[int],
    bits_per_second: float | None = None,
    lost: Mapping[str, str] = MappingProxyType({}),
    interrupted: bool = False,
) -> Json:
    """The document. `readings`: by host, what `estimate.end` answered (pipe/README.md) for the same `target_mtus`, in
    the same order; `bits_per_second`: the speed of every link, where interfaces do not know it, or say something else;
    `lost`: why hosts have no readings."""
    problems = {name: fitting.problem(entry, target_mtus) for name, entry in readings.items()}
    fit = {name: entry for name, entry in readings.items() if problems[name] is None}
    known = senders(fit.values())
    lost = {**lost, **{name: f"its readings do not fit together: {why}" for name, why in problems.items() if why}}
    hosts = [_host(name, entry, target_mtus, bits_per_second, known) for name, entry in fit.items()]
    ends = {
        (entry["local"], entry["remote"]): (host, entry) for host in hosts for entry in host.readings["connections"]
    }
    return {
        "schema": SCHEMA,
        "target_mtus": list(target_mtus),
        "hosts": [_document(host, target_mtus, ends) for host in hosts],
        "total": [_total(hosts, target, place, ends) for place, target in enumerate(target_mtus)],
        "lost": [{"host": name, "why": why} for name, why in lost.items()],
        "interrupted": interrupted,
    }


def _host(name: str, readings: Readings, targets: Sequence[int], bits_per_second: float | None, known: Senders) -> Host:
    sample = readings["sample"] or {"interfaces": []}
    sampled = {
        (entry["local"], entry["remote"]): entry for part in sample["interfaces"] for entry in part["connections"]
    }
    host_loads = loads(readings, targets, known)
    speeds = {entry["interface"]: bits_per_second or entry["bits_per_second"] for entry in readings["interfaces"]}
    return Host(name, readings, host_loads, speeds, sampled)


def _document(host: Host, targets: Sequence[int], ends: Ends) -> Json:
    readings = host.readings
    return {
        "host": host.name,
        "seconds": readings["seconds"],
        "source": host.loads[0].source if host.loads else None,
        "sample": _sample(readings),
        "interfaces": [_interface(interface, host) for interface in readings["interfaces"]],
        "merged": _merged(host),
        "cpu": cpu(readings),
        "limits": _limits(readings),
        "targets": [_target(host, target, place, ends) for place, target in enumerate(targets)],
        "nagle": [_nagle(host, target, place) for place, target in enumerate(targets)],
        "opaque": list(opaque(host)),
        "notes": list(notes(host, ends, len(targets))),
    }


def _sample(readings: Readings) -> Json | None:
    sample = readings["sample"]
    if sample is None:
        return None
    packets = sum(interface[way]["packets"] for interface in sample["interfaces"] for way in ("sent", "received"))
    return {
        "kind": MEASUREMENT, "packets": packets, "windows": sample["windows"], "full_windows": sample["full_windows"],
        "window_seconds": sample["window_seconds"], "cpu_seconds": sample["cpu_seconds"],
    }  # fmt: skip


def _interface(interface: Readings, host: Host) -> Json:
    seconds = host.readings["seconds"]
    load = next((candidate for candidate in host.loads if candidate.interface == interface["interface"]), None)
    result = {
        "kind": READING,
        **{key: interface[key] for key in ("interface", "mtu", "maximum_mtu", "driver")},
        "bits_per_second": host.speeds[interface["interface"]],
        "nic_histogram": interface["nic"] is not None
        and bool(interface["nic"]["sent"] or interface["nic"]["received"]),
        "nic_error": interface["nic_error"],
        "full_share": None if load is None else {"kind": _kind(load), "value": load.full_share},
    }
    for way in ("sent", "received"):
        counted = interface[way]
        result[way] = {
            "packets_per_second": counted["packets"] / seconds, "bits_per_second": 8 * counted["bytes"] / seconds,
        }  # fmt: skip
    return result


def _kind(load: Load) -> str:
    return MEASUREMENT if load.source == SAMPLE else READING


def _merged(host: Host) -> Json | None:
    """How many packets the host sees as one, of those received (GRO) and sent (TSO, GSO)."""
    known = [load for load in host.loads if load.aggregates is not None]
    if known:
        ratios = []
        for place in (0, 1):
            seen = sum(load.aggregates[place] for load in known if load.aggregates is not None)
            ratios.append(sum(load.packets[place] for load in known) / seen if seen else None)
        return {"kind": MEASUREMENT, "received_ratio": ratios[1], "sent_ratio": ratios[0]}
    # The kernel counts by ECN as many packets as an aggregate was made of, and aggregates as one (RFC 3168, RFC 4293).
    counters = host.readings["counters"]
    packets = sum(
        counters.get(f"{family}In{word}Pkts", 0)
        for family in ("IpExt", "Ip6")
        for word in ("NoECT", "ECT0", "ECT1", "CE")
    )
    seen = counters.get("IpInReceives", 0) + counters.get("Ip6InReceives", 0)
    return {"kind": READING, "received_ratio": packets / seen, "sent_ratio": None} if seen and packets else None


def _limits(readings: Readings) -> Json:
    """What held connections up, by the time of those that were there throughout and sent, weighted by what they
    sent."""
    known = [
        connection for connection in readings["connections"] if connection["throughout"] and connection["sent_bytes"]
    ]
    total = sum(connection["sent_bytes"] for connection in known)
    seconds = readings["seconds"]

    def share(key: str) -> float | None:
        if not total:
            return None
        return float(
            sum(connection["sent_bytes"] / total * min(1.0, connection[key] / seconds) for connection in known)
        )

    busy = share("busy_seconds")
    return {
        "kind": READING,
        "connections": len(readings["connections"]) + readings["more_connections"],
        "throughout": len(known),
        "application_share": None if busy is None else 1 - busy,
        "receiver_share": share("receiver_limited_seconds"),
        "buffer_share": share("buffer_limited_seconds"),
        "resent_bytes": sum(connection["retransmitted_bytes"] for connection in readings["connections"]),
    }


def _target(host: Host, target: int, place: int, ends: Ends) -> Json:
    figures = _figures([host], target, place, ends)
    return {**figures, "answer": _answer([host], target, figures)}


def _total(hosts: Sequence[Host], target: int, place: int, ends: Ends) -> Json:
    figures = _figures(hosts, target, place, ends)
    return {**figures, "answer": _answer(hosts, target, figures)}


def _figures(hosts: Sequence[Host], target: int, place: int, ends: Ends) -> Json:
    """Packets, header bytes, goodput and CPU time of hosts together. Packets between two of them count at both."""
    before = likely = least = most = saved_bytes = 0.0
    for host in hosts:
        seconds, link = host.readings["seconds"], host.readings["link_bytes"]
        for load in host.loads:
            result = after(load, target)
            before, likely = before + result.before / seconds, likely + result.after / seconds
            least, most = least + result.least / seconds, most + result.most / seconds
            saved_bytes += (result.before - result.after) / seconds * (load.header_bytes + link)
    return {
        "mtu": target,
        "packets": {
            "kind": BOUND,
            "before_per_second": before,
            "after_per_second": {"estimate": likely, "least": least, "most": most},
            "ratio": {
                "estimate": before / likely if likely else 1.0,
                "least": before / most if most else 1.0,
                "most": before / least if least else 1.0,
            },
        },
        "header_bytes_saved_per_second": {"kind": BOUND, "estimate": saved_bytes},
        "goodput": _goodput(hosts, target, place, ends),
        "cpu": {"kind": BOUND, "at_most": _cpu_gain(hosts, target)},
    }


def _cpu_gain(hosts: Sequence[Host], target: int) -> float | None:
    """That of the host that saves most. A program that makes packets itself, as a tunnel of user space does, saves
    time of its own with each: of what is opaque nothing bounds that."""
    if any(_is_opaque(host, target) for host in hosts):
        return None
    return max((gains.cpu_gain(host.readings, host.loads, target) for host in hosts), default=0.0)


def _goodput(hosts: Sequence[Host], target: int, place: int, ends: Ends) -> Json:
    """The least of two bounds: of the time of connections, and of the room that links have."""
    bounds = [_goodput_of(host, target, place, ends) for host in hosts]
    payload = [sum(sum(load.payload) * load.times for load in host.loads) for host in hosts]
    total = sum(payload)
    frames = max((gains.frames_gain(entry.loads, target, entry.readings["link_bytes"]) for entry in hosts), default=0.0)
    at_most = math.inf if any(_is_opaque(host, target) for host in hosts) else 0.0
    for share, (bound, _) in zip(payload, bounds, strict=True):
        at_most += share / total * bound if total and share else 0.0
    return {
        "kind": BOUND,
        "at_most": None if math.isinf(at_most) else at_most,
        "by": max(zip(payload, bounds, strict=True), key=lambda entry: entry[0])[1][1] if bounds else "time",
        "frames_at_most": frames,
    }


def _goodput_of(host: Host, target: int, place: int, ends: Ends) -> tuple[float, str]:
    link = host.readings["link_bytes"]
    time = gains.goodput_gain(_connection_gains(host, target, place, ends))
    links = gains.links_gain(host.loads, host.speeds, host.readings["seconds"], target, link)
    # Connections that nobody told of are as free as their bytes on the link allow.
    if (free := host.elsewhere(place)) >= LITTLE:
        time = (1 - free) * time + free * (math.inf if links is None else links)
    if links is not None and links < time:
        return links, "link"
    return time, "time"


def _connection_gains(host: Host, target: int, place: int, ends: Ends) -> Iterator[Gain]:
    mtu, speed = max((entry.mtu for entry in host.loads), default=0), _speed(host)
    link, seconds = host.readings["link_bytes"], host.readings["seconds"]
    rounds = gains.rounds_by_size(host.readings, target)
    for entry in host.readings["connections"]:
        sampled = host.sampled.get((entry["local"], entry["remote"]))
        alike = rounds.get(sampled["full_bytes"] if sampled is not None else 0, {"sent": 1, "received": 1})
        local_side, remote_side = gains.sides(entry, sampled, place, mtu, target, alike)
        remote_side = replace(remote_side, stalled_seconds=host.delayed * gains.DELAYED_SECONDS)
        full = host.cpu_may_be_freed(target)
        if (other_end := ends.get((entry["remote"], entry["local"]))) is not None:
            peer, connection = other_end
            time_ratio = seconds / peer.readings["seconds"]
            local_side = replace(local_side, stalled_seconds=peer.delayed * gains.DELAYED_SECONDS * time_ratio)
            remote_side = replace(
                remote_side,
                busy_seconds=connection["busy_seconds"] * time_ratio,
                lost=connection["retransmitted_bytes"] > 0,
            )
            full = full or peer.cpu_may_be_freed(target)
        yield gains.connection_gain(seconds, entry["throughout"], (local_side, remote_side), link, speed, full)


def _speed(host: Host) -> float | None:
    """The fastest interface that carries something, by which every connection may go; None unless all are known."""
    speeds = [host.speeds.get(load.interface) for load in host.loads if not says_too_little(host, load)]
    return (
        max((speed for speed in speeds if speed), default=None)
        if len(speeds) == len(host.loads) and all(speeds)
        else None
    )


def _answer(hosts: Sequence[Host], target: int, figures: Json) -> str:
    busy = [load for host in hosts for load in host.loads]
    if not busy:
        return NO_TRAFFIC
    if all(load.mtu >= target for load in busy):
        return ALREADY
    carrying = {(host.name, load.interface) for host in hosts for load in host.loads}
    most = [
        interface["maximum_mtu"]
        for host in hosts
        for interface in host.readings["interfaces"]
        if (host.name, interface["interface"]) in carrying and interface["maximum_mtu"] is not None
    ]
    if any(maximum < target for maximum in most):
        return NOT_POSSIBLE
    if any(_is_opaque(host, target) for host in hosts):
        return UNKNOWN
    bounds = (figures["goodput"]["at_most"], figures["cpu"]["at_most"])
    return NO if all(bound is not None and bound < LITTLE for bound in bounds) else MAYBE


def _is_opaque(host: Host, target: int) -> bool:
    """Whether so much of a load is opaque that nothing bounds what a larger MTU brings to it."""
    return any(load.mtu < target and max(load.opaque_share, load.unseen_share) >= LITTLE for load in host.loads)


def _nagle(host: Host, target: int, place: int) -> Json:
    """Sockets whose messages are more than one segment now and one afterwards. With Nagle's algorithm (RFC 896) such a
    message waits for the acknowledgement of the one before, which its receiver may hold back (RFC 1122 4.2.3.2)."""
    exposed, unread = [], 0
    for connection in host.sampled.values():
        messages = connection["sent"]["between"][place]
        if not messages:
            continue
        if connection["open"] and connection["nodelay"] is None:
            unread += 1
        if connection["nodelay"] is False:
            exposed.append(
                {
                    **{key: connection[key] for key in ("process", "program", "local", "remote")},
                    "messages": messages, "of_messages": connection["sent"]["messages"],
                }
            )  # fmt: skip
    exposed.sort(key=lambda connection: -connection["messages"])
    is_known = host.readings["sample"] is not None
    return {
        "kind": MEASUREMENT,
        "mtu": target,
        "is_known": is_known,
        "sockets": exposed,
        "unread_sockets": unread,
    }
