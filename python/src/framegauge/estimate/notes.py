"""What limits the figures of a host, one line each. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.estimate import gains
from framegauge.estimate.host import Ends, Host
from framegauge.estimate.load import Load
from framegauge.estimate.opaque import UNREAD, shown, text, whose_interface

__all__ = ["LITTLE", "notes", "opaque", "says_too_little"]

LITTLE = 0.01  # of goodput and of CPU time: a gain that no larger MTU is worth

Json = Mapping[str, Any]


def says_too_little(host: Host, load: Load) -> bool:
    """Whether an interface carried more than the speed that it says it has, as virtual NICs do."""
    speed = host.speeds.get(load.interface)
    used = max(8 * carried / host.readings["seconds"] * load.times for carried in load.bytes)
    return speed is not None and used > gains.FULL_LINK * speed


def opaque(host: Host) -> Iterator[Json]:
    """What nothing is known of, by interface and kind."""
    for load in host.loads:
        yield from shown(load.interface, load.opaque, sum(load.bytes), host.readings["tunnels"])


def _of_opaque(load: Load, kinds: Sequence[Json]) -> str:
    """That nothing is known of a part of the load, what it probably is, and where to look."""
    if any(kind["class"] == UNREAD for kind in kinds):
        return (
            f"{load.interface}: {kinds[0]['share']:.0%} of the bytes are of no connection of this host, such as those "
            "of tunnels, containers and what it forwards, and headers were not read: what a larger MTU brings to them "
            "is not known; read headers (CAP_NET_RAW)"
        )
    ends = [name for kind in kinds for name in kind["tunnel_interfaces"]]
    where = f"estimate at {' and '.join(ends) or whose_interface(kinds)}, " if whose_interface(kinds) else ""
    if any(kind["layer"] for kind in kinds):
        where += "whose MTU has to be raised as well, "
    named = "; ".join(map(text, kinds)) or "a tunnel that encrypts, QUIC, pieces of datagrams"
    return (
        f"{load.interface}: {load.opaque_share:.0%} of the bytes are in packets that fill the MTU and have no TCP that "
        f"can be read ({named}): what a larger MTU brings to them is not known; "
        f"{where}{'or ' if where else ''}measure it by a study"
    )


def _smaller(load: Load) -> Iterator[str]:
    """That full segments are smaller than the MTU permits."""
    for group in load.groups:
        if group.headers is not None:
            yield (
                f"{load.interface}: full segments have {group.full_bytes} bytes, where its MTU permits "
                f"{load.mtu - group.headers}: a smaller MTU or MSS elsewhere is the limit, and is taken to be raised "
                "as well"
            )


def notes(host: Host, ends: Ends, targets: int) -> Iterator[str]:
    """What limits these figures, of so many larger MTUs, one line each."""
    readings = host.readings
    if readings["sample_error"] is not None:
        yield f"no headers were sampled: {readings['sample_error']}"
    for entry in readings["interfaces"]:
        if entry["nic_error"] is not None and entry["sent"]["packets"] + entry["received"]["packets"]:
            yield f"{entry['interface']}: {entry['nic_error']}"
        if entry["mtu"] != entry["mtu_after"]:
            yield f"{entry['interface']}: the MTU changed from {entry['mtu']} to {entry['mtu_after']} meanwhile"
    for load in host.loads:
        if load.opaque_share >= LITTLE:
            yield _of_opaque(load, [entry for entry in opaque(host) if entry["interface"] == load.interface])
        yield from _smaller(load)
        if load.unseen_share >= LITTLE:
            yield (
                f"{load.interface}: {load.unseen_share:.0%} of the packets acknowledge data that did not pass here: "
                "what a larger MTU brings to that is not known; estimate at the interface that it passes, too"
            )
        if not host.speeds.get(load.interface):
            yield f"{load.interface}: its speed is not known, so that no link bounds the goodput (--rate)"
        elif says_too_little(host, load):
            yield f"{load.interface}: it carried more than the speed that it says it has (--rate)"
    if host.cpu_is_full:
        yield "a CPU was full: if there are packets to save, nothing bounds the goodput but the link"
    if any(entry["retransmitted_bytes"] for entry in readings["connections"]):
        yield "segments were lost: what fewer packets change about time-outs is not bounded but by the link"
    if host.delayed and readings["connections"]:
        yield (
            f"acknowledgements were delayed ({host.delayed}): what senders of several segments lost by waiting, "
            f"{host.delayed * gains.DELAYED_SECONDS:.1f} s at most, may be saved whole"
        )
    if alone := sum((entry["remote"], entry["local"]) not in ends for entry in readings["connections"]):
        yield (
            f"connections whose other end was not asked ({alone}): how long that was busy is not known, and what "
            "waiting for its delayed acknowledgements costs is not in the bound of goodput"
        )
    if (free := max(map(host.elsewhere, range(targets)))) >= LITTLE:
        yield (
            "connections without a socket here, as those of containers, virtual machines and what this host forwards, "
            f"have {free:.0%} of the segments: how long they were busy is not known, so that nothing bounds their "
            "goodput but the link; estimate where they end"
        )
    if readings["more_connections"]:
        yield f"{readings['more_connections']} more connections are not in the figures of goodput"
    if any(
        entry["open"] and entry["nodelay"] is None and any(entry["sent"]["between"]) for entry in host.sampled.values()
    ):
        for entry in readings["unread"]:
            yield f"Nagle's algorithm: the sockets of {entry['program']} could not be read ({entry['why']})"
