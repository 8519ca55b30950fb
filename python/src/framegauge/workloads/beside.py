"""Bulk streams beside a workload of small messages: who sends them, and what they came to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

import pyarrow as pa

from framegauge.networks import pacing
from framegauge.testbeds.base import Host, Json
from framegauge.workloads import sockets, stream
from framegauge.workloads.base import Spool, jain
from framegauge.workloads.transfers import delivered, flow_rates

__all__ = [
    "GRACE_SECONDS",
    "TAIL_SECONDS",
    "WARM_UP_SECONDS",
    "answers",
    "metrics",
    "pace",
    "record",
    "senders",
    "served",
    "spools",
]

WARM_UP_SECONDS = 0.5  # until the streams have left slow start and filled their queue
TAIL_SECONDS = 0.2  # by which the streams outlast the small messages
GRACE_SECONDS = 30.0


def senders(hosts: Sequence[Host], most: int | None) -> list[Host]:
    """The hosts that send the bulk: those between the first and the last, `most` at most, or the first."""
    return list(hosts[1:-1])[:most] or [hosts[0]]


def pace(flows: int, offered: int | None, level: str | None) -> int | None:
    """The rate of each bulk flow: its part of what a host offers, or that of a level of the factor `pacing`."""
    return pacing.bits_per_second(level) if offered is None else offered // flows


def served(
    stack: ExitStack, server: Host, token: str, closed: dict[str, Json], flows: int, seconds: float, rate: int | None
) -> Callable[[Host], Json]:
    """Serves the bulk until the stack is left, and returns what a host does that sends it for so long. `closed` then
    has the answer of `stream.close`."""
    port = stream.serve(stack, server, token, 0.0, closed)
    load = stream.request(
        server, port, token, flows=flows, duration_seconds=seconds, sample_seconds=0.0, pacing_bits_per_second=rate
    )
    return lambda host: host.agent.request("stream.run", load, timeout_seconds=seconds + GRACE_SECONDS)


def spools(bulk: Sequence[Host], sent: Sequence[Json], server: Host, streamed: Json) -> list[Spool]:
    """Those of the hosts with bulk and of their server, so that none is left behind in an agent."""
    found = [Spool(f"bulk-{host.name}", host.name, one["transfers"]) for host, one in zip(bulk, sent, strict=True)]
    extra = [(f"samples-{host.name}", host.name, one["samples"]) for host, one in zip(bulk, sent, strict=True)]
    extra.append((f"samples-{server.name}-served", server.name, streamed["samples"]))
    return found + [Spool(name, host, number) for name, host, number in extra if number is not None]


def record(bulk: Sequence[Host], sent: Sequence[Json], server: Host, streamed: Json) -> Json:
    """What the bulk adds to a record; `congestion_control` has sets, to which others may add."""
    starts = [one["started_seconds"] for one in sent]
    ends = [one["started_seconds"] + one["active_seconds"] for one in sent]
    control: dict[str, set[str]] = {}
    for host, one in zip(bulk, sent, strict=True):
        control.setdefault(host.name, set()).update(one["congestion_control"])
    control.setdefault(server.name, set()).update(streamed["congestion_control"])
    srtt = sorted(one["srtt_median_seconds"] for one in sent if one["srtt_median_seconds"] is not None)
    return {
        "senders": [host.name for host in bulk],
        "receivers": [server.name],
        "bytes": sum(one["bytes"] for one in sent),
        "transfer_bytes": None,
        "active_seconds": max(ends) - min(starts),
        "sent": [{"host": host.name, "result": one} for host, one in zip(bulk, sent, strict=True)],
        "congestion_control": control,
        "pacing": sockets.paced((host.name, one) for host, one in zip(bulk, sent, strict=True)),
        "srtt_median_seconds": srtt[len(srtt) // 2] if srtt else None,
        "retransmits": sum(one["retransmits"] or 0 for one in sent),
    }


def answers(record: Json, tables: Mapping[str, pa.Table]) -> dict[str, Json]:
    """How many flows of bulk each host sent, and how many delivered anything."""
    return {
        f"{one['host']} to {record['receivers'][0]}": delivered(one["host"], [tables[f"bulk-{one['host']}"]])
        for one in record["sent"]
    }


def metrics(record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
    """Goodput and fairness of the streams: the bytes of all at the end of their duration, over the time that they
    took."""
    amount, starts, ends = 0, [], []
    for one in record["sent"]:
        table, base = tables[f"bulk-{one['host']}"], one["result"]["started_seconds"]
        amount += sum(table.column("counted_bytes").to_pylist())
        starts += [base + start for start in table.column("start_seconds").to_pylist()]
        ends += [base + end for end in table.column("counted_seconds").to_pylist()]
    active = max(ends) - min(starts) if ends else 0.0
    found: dict[str, float] = {}
    if amount and active > 0:
        found["goodput"] = 8.0 * amount / active
    flows = [rate for one in record["sent"] for rate in flow_rates(tables[f"bulk-{one['host']}"])]
    if len(flows) > 1 and any(flows):
        found["fairness"] = jain(flows)
    return found
