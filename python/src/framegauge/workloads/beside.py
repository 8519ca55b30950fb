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
    bulk_spools = [
        Spool(f"bulk-{host.name}", host.name, answer["transfers"]) for host, answer in zip(bulk, sent, strict=True)
    ]
    extra = [(f"samples-{host.name}", host.name, answer["samples"]) for host, answer in zip(bulk, sent, strict=True)]
    extra.append((f"samples-{server.name}-served", server.name, streamed["samples"]))
    return bulk_spools + [Spool(name, host, number) for name, host, number in extra if number is not None]


def record(bulk: Sequence[Host], sent: Sequence[Json], server: Host, streamed: Json) -> Json:
    """What the bulk adds to a record; `congestion_control` has sets, to which others may add."""
    starts = [answer["started_seconds"] for answer in sent]
    ends = [answer["started_seconds"] + answer["active_seconds"] for answer in sent]
    control: dict[str, set[str]] = {}
    for host, answer in zip(bulk, sent, strict=True):
        control.setdefault(host.name, set()).update(answer["congestion_control"])
    control.setdefault(server.name, set()).update(streamed["congestion_control"])
    srtt = sorted(answer["srtt_median_seconds"] for answer in sent if answer["srtt_median_seconds"] is not None)
    return {
        "senders": [host.name for host in bulk],
        "receivers": [server.name],
        "bytes": sum(answer["bytes"] for answer in sent),
        "transfer_bytes": None,
        "active_seconds": max(ends) - min(starts),
        "sent": [{"host": host.name, "result": answer} for host, answer in zip(bulk, sent, strict=True)],
        "congestion_control": control,
        "pacing": sockets.paced((host.name, answer) for host, answer in zip(bulk, sent, strict=True)),
        "srtt_median_seconds": srtt[len(srtt) // 2] if srtt else None,
        "retransmits": sum(answer["retransmits"] or 0 for answer in sent),
    }


def answers(record: Json, tables: Mapping[str, pa.Table]) -> dict[str, Json]:
    """How many flows of bulk each host sent, and how many delivered anything."""
    return {
        f"{entry['host']} to {record['receivers'][0]}": delivered(entry["host"], [tables[f"bulk-{entry['host']}"]])
        for entry in record["sent"]
    }


def metrics(record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
    """Goodput and fairness of the streams: the bytes of all at the end of their duration, over the time that they
    took."""
    total_bytes, starts, ends = 0, [], []
    for entry in record["sent"]:
        table, base = tables[f"bulk-{entry['host']}"], entry["result"]["started_seconds"]
        total_bytes += sum(table.column("counted_bytes").to_pylist())
        starts += [base + start for start in table.column("start_seconds").to_pylist()]
        ends += [base + end for end in table.column("counted_seconds").to_pylist()]
    active = max(ends) - min(starts) if ends else 0.0
    values: dict[str, float] = {}
    if total_bytes and active > 0:
        values["goodput"] = 8.0 * total_bytes / active
    flows = [rate for entry in record["sent"] for rate in flow_rates(tables[f"bulk-{entry['host']}"])]
    if len(flows) > 1 and any(flows):
        values["fairness"] = jain(flows)
    return values
