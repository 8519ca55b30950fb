"""What a change of MTUs did to a workload that went on: before it and after it, by client and by host. Record in,
readings out.

`before` is from the first answer to the first change, `after` from the last change to the end, both in the whole
windows in which clients count (`course`). In between is the switch itself, whose longest time without an answer is the
stall. Of hosts, packets and CPU are read once a second (`marks`), and those readings count that lie wholly before or
after, while all clients were at work; of CPU what an idle host uses is taken off, as from its cost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from framegauge.networks.topologies import node_of
from framegauge.testbeds.base import Json

__all__ = ["readings"]

SETTLES_SECONDS = 1.0  # after the last change, in which a stall still counts as its own
KEEPS_SECONDS = 0.1  # for which a connection with an old MSS may be seen after it has ended
ROUNDING = 1e-6  # of sums of times, in seconds
MOST_KEPT = 50  # connections, that readings list


def readings(record: Json) -> dict[str, Any]:
    """`switch`, for runs whose hosts' MTUs were changed under a workload that counts in windows."""
    work = record["workload"]
    courses = {host: client["course"] | {"begun": client["began_seconds"]} for host, client in _clients(work)}
    changes = [change for change in record.get("changes", ()) if change["error"] is None and "host" in change["set"]]
    # A link that the change of an MTU took down is part of the switch until it is up again.
    link_changes = [change for change in record.get("changes", ()) if change["error"] is None and "up" in change["set"]]
    moments = [change["made_seconds"] for change in (*changes, *link_changes)]
    switched = {node_of(change["set"]["host"]) for change in changes if "mtu" in change["set"]}
    if not courses or not switched:
        return {}
    first, last, begun = min(moments), max(moments), record["begun_seconds"]
    return {
        "switch": {
            "begun_seconds": first,
            "ended_seconds": last,
            "clients": [
                {
                    "host": host,
                    "switched": host in switched,
                    "before": _rates(course, begun, -float("inf"), first),
                    "after": _rates(course, begun, last, float("inf")),
                    "usual_gap_seconds": _longest(course, begun, -float("inf"), first),
                    "stall_seconds": _longest(course, begun, first, last + SETTLES_SECONDS),
                }
                for host, course in courses.items()
            ],
            "hosts": list(_hosts(record, courses, (first, last), switched)),
            "kept": list(_kept(work, begun + first, begun + last))[:MOST_KEPT],
        }
    }


def _clients(work: Mapping[str, Any]) -> Iterator[tuple[str, Json]]:
    for key in ("iscsi", "nfs", "ceph"):
        for host, client in work.get(key, {}).get("clients", {}).items():
            if "course" in client:
                yield host, client


def _hosts(
    record: Json, courses: Mapping[str, Json], switch: tuple[float, float], switched: Collection[str]
) -> Iterator[Json]:
    """What each host carried and used before and after."""
    marks: Sequence[Json] = record.get("marks", ())
    starts = [course["begun"] - record["begun_seconds"] for course in courses.values()]
    durations = [course["window_seconds"] * (len(course["answered"]) - 1) for course in courses.values()]
    end = min(start + seconds for start, seconds in zip(starts, durations, strict=True))
    for host in marks[0] if marks else ():
        host_marks = [mark[host] for mark in marks if host in mark]
        idle = record["cpu_idle"][host]
        yield {
            "host": host,
            "switched": host in switched,
            "before": _used(host_marks, max(starts), switch[0], idle),
            "after": _used(host_marks, switch[1], end, idle),
        }


def _used(marks: Sequence[Json], least: float, most: float, idle: Json) -> Json | None:
    """Packets and seconds of CPU per second between two moments, by the marks in between; None with too few."""
    inside = [mark for mark in marks if least <= mark["at_seconds"] <= most]
    if len(inside) < 2:
        return None
    first, last = inside[0], inside[-1]
    seconds = last["at_seconds"] - first["at_seconds"]
    parts = [idle[name]["cpu_seconds"] for name in ("programs", "receive_path") if idle[name] is not None]
    alone = sum(parts) / idle["elapsed_seconds"] if idle["elapsed_seconds"] > 0 else 0.0
    return {
        "seconds": seconds,
        "packets_per_second": (last["packets"] - first["packets"]) / seconds,
        "cpu_seconds_per_second": max(0.0, (last["cpu_seconds"] - first["cpu_seconds"]) / seconds - alone),
    }


def _rates(course: Json, begun: float, least: float, most: float) -> Json | None:
    """What was answered in the whole windows between two moments; None if there is no such window."""
    window, start = course["window_seconds"], course["begun"] - begun
    inside = [
        place
        for place in range(len(course["answered"]) - 1)  # the last one is not whole
        if start + place * window >= least - ROUNDING and start + (place + 1) * window <= most + ROUNDING
    ]
    if not inside:
        return None
    answered = sum(course["answered"][place] for place in inside)
    latency = sum(course["latency_seconds"][place] for place in inside)
    return {
        "seconds": len(inside) * window,
        "operations_per_second": answered / (len(inside) * window),
        "mean_latency_seconds": latency / answered if answered else None,
        "packets_per_second": _packets(course["packets"], least - start, most - start),
    }


def _packets(counts: Sequence[tuple[float, int]], least: float, most: float) -> float | None:
    """The packets per second of a client's host between two moments, by the counts in between; None with too few."""
    inside = [count for count in counts if least <= count[0] <= most]
    if len(inside) < 2:
        return None
    (first, fewer), (last, more) = inside[0], inside[-1]
    return (more - fewer) / (last - first) if last > first else None


def _longest(course: Json, begun: float, least: float, most: float) -> float | None:
    """The longest time without an answer that touches the time between two moments; None if none that is kept does."""
    touching = [
        gap["seconds"]
        for gap in course["gaps"]
        if gap["begun_seconds"] - begun < most and gap["begun_seconds"] + gap["seconds"] - begun > least
    ]
    return max(touching, default=None)


def _kept(work: Mapping[str, Any], began: float, ended: float) -> Iterator[Json]:
    """The connections that went on after the last change with an MSS of before the first, and for how long.

    One that was opened again while the last host was still to come has the new MSS.
    """
    lifetimes: Sequence[Json] = work.get("lifetimes", ())
    old = {mss for lifetime in lifetimes if lifetime["first_seconds"] < began for mss in lifetime["mss_bytes"][:1]}
    for lifetime in lifetimes:
        if (
            lifetime["first_seconds"] < ended
            and lifetime["last_seconds"] > ended + KEEPS_SECONDS
            and old.intersection(lifetime["mss_bytes"][-1:])
        ):
            yield {
                "host": lifetime["host"],
                "other": lifetime["other"],
                "mss_bytes": lifetime["mss_bytes"],
                "seconds": lifetime["last_seconds"] - ended,
            }
