"""Proof that hosts began a run without beliefs about path MTUs: record in, failures out.

A path MTU that the kernel remembers from another arm, or from before the study, bounds the segments of new connections
whatever the MTU of the interface is. And a host that probes path MTUs from the start (`tcp_mtu_probing` 2) begins each
connection at `tcp_base_mss`, so that short flows never see the MTU of the arm. The first spoils a run; the second is
named with it, because a host may be meant to be like that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from framegauge.testbeds.base import Conditions, Json

__all__ = ["BASE_MSS", "PROBING", "first_payload", "remembered_failures", "unproved_probing"]

PROBING, BASE_MSS = "net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_base_mss"
FROM_THE_START = "2"
USUAL_BASE_MSS = "1024"  # of Linux, since 4.1
TIMESTAMPS_BYTES = 12  # of the option in each segment (RFC 7323), with its padding


def remembered_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """One line for each path MTU to another host of the study that a host remembered when the run began."""
    rack: Json = record["rack"]
    addresses = {
        address: host["name"]
        for host in rack["hosts"]
        for address in (host["address"], *(nic["address"] for nic in host.get("nics", ())))
    }
    for host, reading in record["before"].items():
        for entry in reading.get("path_mtu_exceptions", ()):
            other = addresses.get(entry["destination"])
            # Elsewhere than to the study's hosts it bears on nothing; hosts that are built know nobody else.
            if other is not None or conditions.capabilities.builds_hosts:
                to = entry["destination"] if other is None else f"{other} ({entry['destination']})"
                line = f"path MTU that {host} remembered to {to} before the run: expected none, found {entry['mtu']}"
                version = "-6 " if ":" in entry["destination"] else ""
                yield f"{line} (ip {version}route flush cache forgets it)"


def _probing(record: Json) -> dict[str, str]:
    """The hosts that probe path MTUs from the start, with the MSS at which their connections begin."""
    sysctls = {host: reading["sysctls"] for host, reading in record.get("before", {}).items()}
    return {
        host: settings.get(BASE_MSS) or USUAL_BASE_MSS
        for host, settings in sysctls.items()
        if settings.get(PROBING) == FROM_THE_START
    }


def first_payload(record: Json, hosts: Iterable[str]) -> int | None:
    """The smallest payload of a full segment with which these hosts begin, in bytes, where one of them probes path MTUs
    from the start; a connection that ends before its probes are answered has no other."""
    sizes = [int(base) for host, base in _probing(record).items() if host in hosts and base.isdigit()]
    return min(sizes) - TIMESTAMPS_BYTES if sizes else None


def unproved_probing(record: Json) -> list[str]:
    """A line if hosts begin connections below the MTU of the arm, because they probe path MTUs from the start."""
    hosts = _probing(record)
    if not hosts:
        return []
    base = ", ".join(sorted(set(hosts.values())))
    return [
        f"the MTU of short flows: {', '.join(hosts)} probe path MTUs from the start ({PROBING} {FROM_THE_START}), so "
        f"connections begin at an MSS of {base} ({BASE_MSS}) at any MTU"
    ]
