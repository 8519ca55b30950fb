"""What each host did in a run, and what CPU time that took: what a model of its costs is fitted to. Record in."""

from __future__ import annotations

from collections.abc import Iterator

from framegauge.estimate.model import Work
from framegauge.evidence import costs, scheduling
from framegauge.evidence.nic import deltas
from framegauge.evidence.remembered import TIMESTAMPS_BYTES
from framegauge.testbeds.base import Json

__all__ = ["not_modelled", "works"]

HEADERS_BYTES = {4: 14 + 20 + 20, 6: 14 + 40 + 20}  # Ethernet without what the wire adds, IP (RFC 791, 8200), TCP


def not_modelled(record: Json) -> str | None:
    """Why a run says nothing of what packets take; None if it does."""
    if not record.get("cpu"):
        return "CPU time was not metered"
    if record["conditions"].get("lro"):
        return "LRO was on, whose aggregates are one packet to a kernel"
    if record["conditions"].get("overlay"):
        return "an overlay was on, whose headers take time of their own"
    shared = scheduling.of_run(record)
    if shared is None:
        return "no agent says how long CPUs were somebody else's"
    if shared.is_shared:
        return f"the machine was busy: other programs used {shared.others:.0%} of the hosts' CPUs"
    if any(reading.get("polls") is None for reading in record["cpu"].values()):
        return "no thread polls the hosts' interfaces, so that their receive path has no CPU time of its own"
    return None


def works(record: Json, block: int) -> Iterator[Work]:
    """One for each host of a run that `not_modelled` has nothing against. Acknowledgements count as all packets do."""
    conditions = record["conditions"]
    headers = HEADERS_BYTES[conditions["family"]] + TIMESTAMPS_BYTES
    sides = {"sends": record["workload"]["senders"], "receives": record["workload"]["receivers"]}
    for host, reading in record["cpu"].items():
        seconds = costs.used(record, host, "cpu_seconds")
        side = " and ".join(name for name, hosts in sides.items() if host in hosts)
        if seconds is None or not side:
            continue
        counts, nstat = deltas(record, host, "interface"), deltas(record, host, "nstat")
        yield Work(
            arm=f"{side}, MTU {conditions['mtu'][host]}, GRO {_on(conditions['gro'])}, TSO {_on(conditions['tso'])}",
            block=block,
            seconds=seconds,
            wakeups=reading["polls"],
            packets=counts["rx_packets"],
            aggregates=nstat.get("IpInReceives", 0) + nstat.get("Ip6InReceives", 0),
            received_bytes=max(0, counts["rx_bytes"] - headers * counts["rx_packets"]),
            sent_aggregates=counts["tx_packets"],
            sent_bytes=max(0, counts["tx_bytes"] - headers * counts["tx_packets"]),
        )


def _on(value: object) -> str:
    return "on" if value else "off"
