"""Whether a workload worked at all: who got nothing of what was sent, and what the switch's ports say of why.

That nothing gets through is what the study found, and no fault of the run: with hosts of several MTUs on one network,
or a link that is smaller than its hosts, some of what they send cannot arrive. Record in, lines out.

A workload says of each client how much it asked, and how much was answered (`Record.answers`). That one client of
several got nothing may have another reason where all share a queue (`may_starve`): then only ports that dropped frames
for their size make it a result. A run that failed, as one does whose transfer never ends, is one by such ports alone
(`failed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from framegauge.networks.topologies import node_of
from framegauge.testbeds.base import Json

__all__ = ["dropped", "failed", "giants", "shut", "since", "unanswered"]

MOST_PORTS = 3  # that a line names
GIANT = "giant"  # the reason of a drop (pipe/README.md)
OPERATIONS = "operations answered"
COUNTED = ("received_frames", "sent_frames", "lost_frames", "giant_frames")  # of a port, without what waits in it

Giants = Mapping[str, int]  # frames that were too large, by port


def unanswered(record: Json, drops: pa.Table | None = None) -> Iterator[str]:
    """A line for each client that asked and was answered nothing, with the ports at it, or else any, that dropped
    frames larger than their MTU. `drops`: those of the fabric, one by one."""
    answers = record["workload"].get("answers", {})
    lines = list(dropped(record, drops))
    has_no_answers = not any(answer["answered"] for answer in answers.values())
    for name, answer in answers.items():
        if not answer["asked"] or answer["answered"]:
            continue
        if lines or has_no_answers or not answer.get("may_starve"):
            noun = answer.get("what", OPERATIONS)
            near = dropped(record, drops, near=answer.get("host", name))
            yield "; ".join([f"{name}: 0 of {answer['asked']} {noun}", *near])


def failed(record: Json, text: str, ports: Sequence[Json], drops: Callable[[], pa.Table | None]) -> str | None:
    """Why a run did not work whose workload failed with this error, by the ports that dropped frames for their size
    since it began, or else by those that let nothing through of what was tried again; None if there are none, so that
    it is only an error. `drops` has those of the fabric, as far as it was measured."""
    counts = giants(ports)
    if counts:
        dropped_frames = drops()
        lines = list(_told(record, counts, _sizes(dropped_frames) if dropped_frames is not None else {}))
    else:
        tried = [port for port in _closed(ports) if port["received_frames"] > 1]
        lines = list(_shut(tried, drops() if tried else None))
    return "; ".join([text, *lines]) if lines else None


def since(before: Sequence[Json], after: Sequence[Json]) -> list[Json]:
    """The counters of ports since they had other values; of a port that was not there, as they are."""
    old = {port["port"]: port for port in before}
    return [
        {**port, **{name: port[name] - old.get(port["port"], {}).get(name, 0) for name in COUNTED if name in port}}
        for port in after
    ]


def giants(ports: Sequence[Json]) -> dict[str, int]:
    """The frames that ports dropped because they were too large, of those that did."""
    return {port["port"]: port["giant_frames"] for port in ports if port.get("giant_frames")}


def dropped(record: Json, drops: pa.Table | None = None, near: str | None = None) -> Iterator[str]:
    """What ports dropped for its size: those at the host `near`, or else any."""
    fabric = record["measure"]["fabric"]
    counts = giants(fabric["ports"] if fabric is not None else ())
    near_counts = {port: count for port, count in counts.items() if near in [node_of(end) for end in _ends(port)]}
    return _told(record, near_counts or counts, _sizes(drops) if counts and drops is not None else {})


def shut(record: Json, drops: pa.Table | None = None) -> Iterator[str]:
    """The ports that let nothing through of what came to them, with why, as far as the fabric's drops say so."""
    fabric = record["measure"]["fabric"]
    return _shut(_closed(fabric["ports"] if fabric is not None else ()), drops)


def _closed(ports: Sequence[Json]) -> list[Json]:
    return [port for port in ports if port.get("received_frames") and not _passed(port)]


def _shut(ports: Sequence[Json], drops: pa.Table | None) -> Iterator[str]:
    for port in ports[:MOST_PORTS]:
        count, name = port["received_frames"], port["port"]
        frames = "the 1 frame" if count == 1 else f"all {count} frames"
        reasons = ", ".join(_reasons(drops, name)) if drops is not None else ""
        yield f"port {name} dropped {frames} that came to it{f' ({reasons})' if reasons else ''}"


def _passed(port: Json) -> int:
    """The frames that left a port and were not lost behind it, and those that still wait in it."""
    return int(port["sent_frames"] - port["lost_frames"] + port["queued_frames"])


def _reasons(drops: pa.Table, port: str) -> list[str]:
    rows = drops.filter(pc.and_(pc.equal(drops.column("port"), port), pc.equal(drops.column("action"), "dropped")))
    return sorted(set(rows.column("reason").to_pylist()))


def _told(record: Json, counts: Giants, sizes: Mapping[str, int]) -> Iterator[str]:
    """Each port with its MTU, how many frames it dropped, and their largest size, as far as these are known."""
    network: Mapping[str, Any] = record.get("rack", {}).get("network") or {"ports": ()}
    mtus = {entry["port"]: entry["mtu"] for entry in network["ports"] if entry.get("mtu") is not None}
    for port, count in list(counts.items())[:MOST_PORTS]:
        mtu = f" (MTU {mtus[port]})" if port in mtus else ""
        frames = "1 frame that is" if count == 1 else f"{count} frames that are"
        largest = f", of up to {sizes[port]} bytes" if port in sizes else ""
        yield f"port {port}{mtu} dropped {frames} too large for it{largest}"


def _ends(port: str) -> list[str]:
    return port.partition("#")[0].split(">")


def _sizes(drops: pa.Table) -> dict[str, int]:
    """The largest frame that each port dropped for its size."""
    large = drops.filter(pc.equal(drops.column("reason"), GIANT)).group_by("port").aggregate([("frame_bytes", "max")])
    return dict(zip(large.column("port").to_pylist(), large.column("frame_bytes_max").to_pylist(), strict=True))
