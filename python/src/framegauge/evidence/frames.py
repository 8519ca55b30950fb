"""Proof of MTUs by the sizes of frames with data that the fabric took from each NIC. Record in, failures out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from framegauge.evidence.changes import opened_after, paths
from framegauge.evidence.network import through
from framegauge.evidence.nic import end_of, fabric_hosts, is_bulk, is_over_udp, taking_part
from framegauge.testbeds.base import Conditions, Json

__all__ = ["BULK_SHARE", "frame_failures"]

BULK_SHARE = 0.9  # of the full frame, which the mean frame of a bulk transfer must reach


def frame_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures in the sizes of data frames by sending NIC: too large ones, or small ones in bulk."""
    if record["measure"]["fabric"] is None:
        return
    senders, receivers = (set(record["workload"][name]) for name in ("senders", "receivers"))
    sent = [host for host in fabric_hosts(record) if host["host"] in senders]
    # Programs may send no TCP at all, which is noted with the run. Frames of datagrams are counted in `carried`.
    if not sum(host["data_frames"] for host in sent) and senders and not is_over_udp(record):
        yield "data frames on the wire: found none, expected some"
        return
    involved = taking_part(record)
    for host in fabric_hosts(record):
        for number, counts in _nics(conditions, host):
            frames = _full_frames(conditions, record, host["host"], involved, number)
            full, largest = max((max(sizes) for sizes in frames), default=0), counts["largest_frame_bytes"]
            if largest > full:
                name = end_of(host["host"], number)
                yield f"largest frame of {name}: expected at most {full} bytes at this MTU, found {largest}"
    if is_bulk(conditions, record):
        yield from _bulk(conditions, record, sent, receivers)


def _bulk(conditions: Conditions, record: Json, sent: Sequence[Json], receivers: Collection[str]) -> Iterator[str]:
    """Failures in the frames of bulk: every sender has full ones, and if all is bulk, they are full in the mean.

    A NIC may send nothing but small messages where others have the bulk; then it is enough if one of a host's NICs has
    full frames.
    """
    only_bulk = record["workload"].get("only_bulk", True)
    means: dict[int, list[tuple[int, Json]]] = {}
    for host in sent:
        failures = []
        nics = [entry for entry in _nics(conditions, host) if entry[1]["data_frames"]] or [(1, host)]
        for number, counts in nics:
            frames = _path_frames(conditions, record, host["host"], receivers, number)
            full, largest = max(entry[0] for entry in frames), counts["largest_frame_bytes"]
            # A connection from before a change keeps its segment size.
            if opened_after(conditions, record, conditions.hosts):
                full = max(full, *(entry[-1] for entry in frames))
            if largest < full:
                name = end_of(host["host"], number)
                failures.append(f"largest frame of {name}: expected {full} bytes at this MTU, found {largest}")
            means.setdefault(number, []).append((min(min(entry) for entry in frames), counts))
        if only_bulk or len(failures) == len(nics):
            yield from failures
    for number, nic_counts in means.items() if only_bulk else ():
        limit = BULK_SHARE * min(full for full, _ in nic_counts)
        count = sum(counts["data_frames"] for _, counts in nic_counts)
        mean = sum(counts["data_frame_bytes"] for _, counts in nic_counts) / count if count else 0.0
        if mean < limit:
            subject = "mean data frame" if number == 1 else "mean data frame of second NICs"
            yield f"{subject}: expected at least {limit:.0f} bytes, found {mean:.1f}"


def _nics(conditions: Conditions, host: Json) -> list[tuple[int, Json]]:
    """What the fabric counted of a host's NICs, by their numbers; of all together where their MTUs are the same."""
    nics = host.get("nics", ())
    together = conditions.mtus(host["host"]) == conditions.mtus(host["host"], 2)
    return [(1, host)] if together or len(nics) < 2 else list(enumerate(nics, 1))


def _full_frames(
    conditions: Conditions, record: Json, sender: str, others: Collection[str], number: int
) -> list[list[int]]:
    """The bytes of a full frame from a host's NIC to those of each of the others, in turn, by the smaller of two MTUs;
    of datagrams by its own, since they are sent whatever others take in."""
    around = _around(record, sender)
    if is_over_udp(record):
        return [[mtu + around for mtu in conditions.sent_mtus(sender, number)]]
    return [
        [mtu + around for mtu in paths(conditions, sender, other, number)] for other in sorted({*others} - {sender})
    ]


def _path_frames(
    conditions: Conditions, record: Json, sender: str, others: Collection[str], number: int
) -> list[list[int]]:
    """The bytes of full frames that routers in between let through, once they have reported their MTU."""
    around = _around(record, sender)
    return [
        [through(conditions, sender, other, mtu) + around for mtu in paths(conditions, sender, other, number)]
        for other in sorted({*others} - {sender})
    ]


def _around(record: Json, host: str) -> int:
    """The bytes of a frame besides its packet, by the agent's arithmetic."""
    ceiling = record["rack"]["ceilings"][host]
    return int(ceiling["frame_bytes"] - ceiling["mtu"])
