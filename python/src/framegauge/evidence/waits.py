"""The times that frames waited in switches, as recorded by the fabric exactly, in virtual time."""

from __future__ import annotations

from typing import Any

__all__ = ["readings"]

QUANTILES = ("mean", "p50", "p99", "p999", "max")

Json = dict[str, Any]


def readings(record: Json) -> Json:
    """The waiting times in seconds of the client's frames at the port to the server, for a workload with one client and
    one server (`mixed`) on one switch. Empty if there is no single pair of ports (behind several switches), and on the
    kernel testbed, whose switch records no times."""
    fabric, work = record["measure"]["fabric"], record["workload"]
    if fabric is None or "client" not in work:
        return {}
    ends = _between(record, work["client"], work["receivers"][0])
    waits = [wait for wait in fabric["waits"] if (wait["input_port"], wait["port"]) in ends]
    if len(ends) != 1 or len(waits) != 1:
        return {}
    return {f"queue_wait_{name}_seconds": waits[0][f"{name}_seconds"] for name in QUANTILES}


def _between(record: Json, client: str, server: str) -> list[tuple[str, str]]:
    """The ports from the client to a switch, and from that switch to the server; for hosts with several NICs, the first
    ones."""
    network = record["rack"].get("network")
    if network is None:  # older agents, with one switch only, did not name its ports
        return [(f"{client}>switch", f"switch>{server}")]
    first = {host["name"]: host["nics"][0]["end"] for host in record["rack"].get("hosts", ()) if "nics" in host}
    client, server = first.get(client, client), first.get(server, server)
    return [
        (link["port"], port["port"])
        for link in network["ports"]
        for port in network["ports"]
        if link["from"] == client and port["to"] == server and link["to"] == port["from"]
    ]
