"""How long frames waited in switches for those of others, as the fabric tells it: in virtual time, so exactly."""

from __future__ import annotations

from typing import Any

__all__ = ["readings"]

QUANTILES = ("mean", "p50", "p99", "p999", "max")

Json = dict[str, Any]


def readings(record: Json) -> Json:
    """Of a workload with one client and one server (`mixed`): how long the client's frames waited at the port to the
    server, in seconds. Nothing on the kernel testbed, whose switch keeps no times."""
    fabric, done = record["measure"]["fabric"], record["workload"]
    if fabric is None or "client" not in done:
        return {}
    link, port = f"{done['client']}>switch", f"switch>{done['receivers'][0]}"
    for wait in fabric["waits"]:
        if (wait["port"], wait["input_port"]) == (port, link):
            return {f"queue_wait_{name}_seconds": wait[f"{name}_seconds"] for name in QUANTILES}
    return {}
