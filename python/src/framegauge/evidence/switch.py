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
    courses = {host: one["course"] | {"begun": one["began_seconds"]} for host, one in _clients(work)}
    made = [each for each in record.get("changes", ()) if each["error"] is None and "host" in each["set"]]
    # A link that the change of an MTU took down is part of the switch until it is up again.
    links = [each for each in record.get("changes", ()) if each["error"] is None and "up" in each["set"]]
    moments = [each["made_seconds"] for each in (*made, *links)]
    switched = {node_of(each["set"]["host"]) for each in made if "mtu" in each["set"]}
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
        for host, one in work.get(key, {}).get("clients", {}).items():
            if "course" in one:
                yield host, one


def _hosts(
    record: Json, courses: Mapping[str, Json], switch: tuple[float, float], switched: Collection[str]
) -> Iterator[Json]:
    """What each host carried and used before and after."""
    marks: Sequence[Json] = record.get("marks", ())
    starts = [course["begun"] - record["begun_seconds"] for course in courses.values()]
    whole = [course["window_seconds"] * (len(course["answered"]) - 1) for course in courses.values()]
    most = min(start + seconds for start, seconds in zip(starts, whole, strict=True))
    for host in marks[0] if marks else ():
        mine = [each[host] for each in marks if host in each]
        idle = record["cpu_idle"][host]
        yield {
            "host": host,
            "switched": host in switched,
            "before": _used(mine, max(starts), switch[0], idle),
            "after": _used(mine, switch[1], most, idle),
        }


def _used(marks: Sequence[Json], least: float, most: float, idle: Json) -> Json | None:
    """Packets and seconds of CPU per second between two moments, by the marks in between; None with too few."""
    inside = [each for each in marks if least <= each["at_seconds"] <= most]
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
    inside = [each for each in counts if least <= each[0] <= most]
    if len(inside) < 2:
        return None
    (first, fewer), (last, more) = inside[0], inside[-1]
    return (more - fewer) / (last - first) if last > first else None


def _longest(course: Json, begun: float, least: float, most: float) -> float | None:
    """The longest time without an answer that touches the time between two moments; None if none that is kept does."""
    touching = [
        each["seconds"]
        for each in course["gaps"]
        if each["begun_seconds"] - begun < most and each["begun_seconds"] + each["seconds"] - begun > least
    ]
    return max(touching, default=None)


def _kept(work: Mapping[str, Any], began: float, ended: float) -> Iterator[Json]:
    """The connections that went on after the last change with an MSS of before the first, and for how long.

    One that was opened again while the last host was still to come has the new MSS.
    """
    lifetimes: Sequence[Json] = work.get("lifetimes", ())
    old = {mss for each in lifetimes if each["first_seconds"] < began for mss in each["mss_bytes"][:1]}
    for each in lifetimes:
        if (
            each["first_seconds"] < ended
            and each["last_seconds"] > ended + KEEPS_SECONDS
            and old.intersection(each["mss_bytes"][-1:])
        ):
            yield {
                "host": each["host"],
                "other": each["other"],
                "mss_bytes": each["mss_bytes"],
                "seconds": each["last_seconds"] - ended,
            }
