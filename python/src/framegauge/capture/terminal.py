"""What a capture came to, as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from framegauge.capture import files
from framegauge.capture.run import Captured
from framegauge.printable import one_line
from framegauge.quantities import print_bytes

__all__ = ["document", "lines"]

Json = dict[str, Any]
# Of a host's document, all but what is long.
SHORT = (
    "host", "file", "seconds", "packets", "wire_bytes", "dropped_packets", "kept_packets", "given_up_packets",
    "cut_packets", "cpu_seconds", "watch_cpu_seconds", "interfaces", "trouble",
)  # fmt: skip


def document(found: Captured) -> Json:
    """The document of --json."""
    return {
        "schema": files.SCHEMA,
        "folder": str(found.folder),
        "interrupted": found.interrupted,
        "trouble": found.trouble,
        "hosts": [{key: host[key] for key in SHORT} for host in found.hosts.values()],
        "lost": [{"host": name, "why": reason} for name, reason in found.lost.items()],
    }


def lines(found: Captured) -> Iterator[str]:
    """For people."""
    for name, host in found.hosts.items():
        yield (
            f"{found.folder / host['file']}: {host['kept_packets']:,} packets of {name} in {host['seconds']:.1f} s, "
            f"of {host['packets']:,} ({print_bytes(host['wire_bytes'])} on the wire)"
        )
        yield f"  {_cost(host)}"
        if host["dropped_packets"]:
            drops = ", ".join(
                f"{interface['dropped_packets']:,} on {one_line(interface['interface'], 60)}"
                for interface in host["interfaces"]
                if interface["dropped_packets"]
            )
            yield f"  dropped at the tap for want of room: {drops}"
        if host["given_up_packets"]:
            yield f"  the ring was full: the oldest {host['given_up_packets']:,} packets gave way (--most keeps more)"
        if host["cut_packets"]:
            yield f"  left out: {host['cut_packets']:,} packets of long before the trouble"
        if host["trouble"] is not None:
            yield f"  {files.trouble_line(host['trouble'])}"
    if found.hosts:
        yield f"what is wrong: framegauge diagnose {found.folder}"


def _cost(host: Json) -> str:
    """What the capture cost the host: the time of the agent's two threads. What the kernel does for each packet is
    counted with the programs that send and receive, and is not in it."""
    cost = f", {host['cpu_seconds'] / host['packets'] * 1e9:.0f} ns a packet" if host["packets"] else ""
    drops = "no packet dropped" if not host["dropped_packets"] else f"{host['dropped_packets']:,} packets dropped"
    return (
        f"cost: {host['cpu_seconds']:.3f} s of a CPU to capture{cost}, {host['watch_cpu_seconds']:.3f} s to watch the "
        f"kernel; {drops}"
    )
