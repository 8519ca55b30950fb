"""Whether every datagram of the workload `datagrams` is accounted for, and cut as the MTU says. Record in, lines out.

    sent  =  received  +  lost in the network  +  dropped by the receiving host

The ends count datagrams themselves, and so do their kernels; both must say the same. What the network lost, the ports
of its switches have dropped, frame by frame. The number of fragments follows from the MTU (RFC 791 section 2.3, RFC
8200 section 4.5); that the wire carried as many frames as the kernels made fragments is a balance of `conservation`.
"""

from __future__ import annotations

from collections.abc import Iterator

from framegauge.evidence.network import through
from framegauge.evidence.nic import deltas, overlay_bytes
from framegauge.networks.fragments import IP_BYTES, UDP_BYTES, fragments
from framegauge.testbeds.base import Conditions, Json

__all__ = ["datagram_failures", "fragment_failures", "readings", "unproved_mtu"]


def datagram_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """Balances that do not close; nothing of another workload. On hosts that others use, only the ends' own counts."""
    counts = record["workload"].get("datagrams")
    if counts is None:
        return
    if counts["strangers"]:
        yield f"datagrams that {counts['server']} received and {counts['client']} never sent: {counts['strangers']}"
    if not conditions.capabilities.is_private:
        return
    client, server = counts["client"], counts["server"]
    arrived = counts["received"] + counts["copies"] + record["workload"]["came"]["refused"]
    yield from _unequal(
        f"datagrams sent by the kernel of {client}", _udp(record, client, "OutDatagrams"), counts["sent"]
    )
    yield from _unequal(f"datagrams taken in by the kernel of {server}", _udp(record, server, "InDatagrams"), arrived)
    if conditions.overlay is not None:
        return  # the kernel's counts of fragments are those of two layers
    places = _places(record)
    for name, count in places.items():
        if count < 0:
            yield f"datagrams {name.replace('_', ' ')}: found {count}, expected 0 or more"
    fabric = record["measure"]["fabric"]
    if fabric is None:
        return
    missing, dropped = _missing_frames(record), sum(_lost(port) for port in fabric["ports"])
    # Beside bulk the drops are also those of its segments; a link that delivers frames twice makes fewer missing.
    is_alone = record["workload"].get("transport") == "udp" and not counts["copies"]
    if missing > dropped or (is_alone and missing != dropped):
        relation = "is not the ports' drops" if is_alone else "is more than the ports dropped"
        yield f"frames of datagrams that did not reach {server}: {missing} {relation}: {dropped}"


def fragment_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures of the number of fragments of all datagrams: by the MTU of the sender, or what routers reported."""
    counts = record["workload"].get("datagrams")
    if counts is None or not conditions.capabilities.is_private or conditions.overlay is not None:
        return
    sent, client = counts["sent"], counts["client"]
    mtus = [mtu - overlay_bytes(record, client) for mtu in conditions.sent_mtus(client)]
    mtus += [through(conditions, client, counts["server"], mtu) for mtu in mtus]
    numbers = [fragments(counts["size_bytes"], mtu, conditions.family) for mtu in mtus]
    packets = _packets(record, client)
    if not sent * min(numbers) <= packets <= sent * max(numbers):
        bounds = str(min(numbers)) if min(numbers) == max(numbers) else f"{min(numbers)} to {max(numbers)}"
        yield f"packets of {sent} datagrams of {client}: expected {bounds} each at this MTU, found {packets}"


def unproved_mtu(conditions: Conditions, record: Json) -> Iterator[str]:
    """That nothing on the wire shows the MTU, where no datagram fills a packet and no bulk runs beside."""
    counts = record["workload"].get("datagrams")
    if counts is None or record["workload"].get("transport") != "udp":
        return
    smallest_mtu = min(conditions.mtus(counts["client"]))
    if fragments(counts["size_bytes"], smallest_mtu, conditions.family) == 1:
        packet = counts["size_bytes"] + IP_BYTES[conditions.family] + UDP_BYTES
        yield f"MTU on the wire: it was read; datagrams in one packet each show only that it is {packet} or more"


def readings(record: Json) -> Json:
    """What became of a run's datagrams, for its line: where they were lost, in what order they came, and how many
    packets each took on the wire."""
    counts = record["workload"].get("datagrams")
    if counts is None:
        return {}
    names = ("sent", "received", "lost", "copies", "reordered", "dropped_by_host", "late_p99_seconds")
    placed = {name: counts[name] for name in names}
    placed |= {"lost_in_network": None, "dropped_by_receiver": None, "packets_per_datagram": None}
    if "counters_after" in record and counts["sent"] == _udp(record, counts["client"], "OutDatagrams"):
        placed |= _places(record)
        placed["packets_per_datagram"] = _packets(record, counts["client"]) / counts["sent"] if counts["sent"] else None
    return {"datagrams": placed}


def _unequal(name: str, kernel: int, ours: int) -> Iterator[str]:
    if kernel != ours:
        yield f"{name}: {kernel} is not the number that its program counted: {ours}"


def _udp(record: Json, host: str, name: str) -> int:
    """A counter of UDP of both versions of IP, which the kernel counts apart."""
    nstat = deltas(record, host, "nstat")
    return int(nstat.get(f"Udp{name}", 0)) + int(nstat.get(f"Udp6{name}", 0))


def _ip(record: Json, host: str, name: str) -> int:
    nstat = deltas(record, host, "nstat")
    return int(nstat.get(f"Ip{name}", 0)) + int(nstat.get(f"Ip6{name}", 0))


def _places(record: Json) -> dict[str, int]:
    """Where the datagrams were lost that did not come: `InErrors` are those that a socket had no room for, or whose
    checksum was wrong."""
    counts = record["workload"]["datagrams"]
    dropped = _udp(record, counts["server"], "InErrors")
    return {"lost_in_network": counts["lost"] - dropped, "dropped_by_receiver": dropped}


def _packets(record: Json, client: str) -> int:
    """The packets that a host's datagrams went in."""
    return _udp(record, client, "OutDatagrams") + _ip(record, client, "FragCreates") - _ip(record, client, "FragOKs")


def _missing_frames(record: Json) -> int:
    """The frames of datagrams that left the sender and did not reach the receiver: fragments that arrived, and the
    datagrams that came whole."""
    counts = record["workload"]["datagrams"]
    server = counts["server"]
    undivided = _udp(record, server, "InDatagrams") + _udp(record, server, "InErrors") - _ip(record, server, "ReasmOKs")
    return _packets(record, counts["client"]) - undivided - _ip(record, server, "ReasmReqds")


def _lost(port: Json) -> int:
    return int(port["dropped_frames"] + port.get("lost_frames", 0))
