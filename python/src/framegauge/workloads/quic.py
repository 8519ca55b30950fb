"""quic: long transfers by QUIC from framegauge's generator, one way; the transport finds the path MTU by itself."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from framegauge.record import Record
from framegauge.testbeds.base import Host, Json, Progress, afterwards
from framegauge.workloads.base import Executed, Go, Phases, Program, Spool, jain
from framegauge.workloads.stream import GRACE_SECONDS, SLOWEST_BITS_PER_SECOND, UNSHAPED_BITS_PER_SECOND, busy_seconds
from framegauge.workloads.transfers import answers, column, flow_rates, flow_times, tables_of

__all__ = ["Quic"]

TRANSFERS = "transfers"
# Of the answers of `quic.run` and `quic.close`: what an end sent and found.
ENDS = (
    "calls", "refused_calls", "received", "received_aggregates", "settled_bytes", "probes", "lost_probes",
    "black_holes", "lost_packets",
)  # fmt: skip


class QuicRecord(Record):
    """`runs`: that of the client, as those of streams; `quic`: what both ends sent, and what they found."""

    runs: list[Json]
    quic: Json


@dataclass(frozen=True)
class Quic(Phases):
    """QUIC from the first host to the last, with either `size_bytes` (in rounds) or `duration_seconds`.

    `plpmtud`: path MTUs are looked for up to that of the route; else datagrams have 1200 bytes at most. `gso` and
    `gro`: whether the kernel is handed several datagrams at once, and hands over several; None: if it can.
    """

    size_bytes: int | None = None
    duration_seconds: float | None = None
    flows: int = 1
    repeat_seconds: float = 0.5
    plpmtud: bool = True
    congestion_control: str = "cubic"
    gso: bool | None = None
    gro: bool | None = None
    name: str = "quic"
    needs: ClassVar[Sequence[Program]] = ()

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """The time on the wire, or the requested duration."""
        if self.size_bytes is None:
            return self.duration_seconds or 0.0
        bits = 8.0 * self.size_bytes * self.flows
        return max(self.repeat_seconds, bits / (bits_per_second or UNSHAPED_BITS_PER_SECOND))

    @contextmanager
    def prepared(self, hosts: Sequence[Host], token: str) -> Iterator[Go]:
        """Serves; then runs the transfers, and closes. Raises the agents' errors."""
        client, server = hosts[0], hosts[-1]
        settings = {
            "plpmtud": self.plpmtud, "congestion_control": self.congestion_control, "gso": self.gso, "gro": self.gro,
        }  # fmt: skip
        closed: dict[str, Json] = {}
        patience = GRACE_SECONDS + 4 * self.expected_seconds(None)
        patience += 8.0 * (self.size_bytes or 0) * self.flows / SLOWEST_BITS_PER_SECOND
        with ExitStack() as stack:
            serve = {"token": token, "address": server.address, "settings": settings}
            served = server.agent.request("quic.serve", serve)
            stack.enter_context(afterwards(lambda: closed.update({server.name: server.agent.request("quic.close")})))
            params = {
                "address": server.address, "port": served["port"], "token": token, "key": served["key"],
                "flows": self.flows, "size_bytes": self.size_bytes, "duration_seconds": self.duration_seconds,
                "repeat_seconds": self.repeat_seconds if self.size_bytes is not None else 0.0, "settings": settings,
            }  # fmt: skip

            def go(on_progress: Progress | None) -> Executed:
                result = client.agent.request("quic.run", params, timeout_seconds=patience, on_progress=on_progress)
                stack.close()
                record = self._record(client.name, server.name, result, closed[server.name])
                return Executed(record, [Spool(TRANSFERS, client.name, result["transfers"])])

            yield go

    def _record(self, client: str, server: str, result: Json, served: Json) -> QuicRecord:
        ends = {name: _end(answer) for name, answer in ((client, result), (server, served))}
        rtts = result["rtt_seconds"]
        return {
            "senders": [client],
            "receivers": [server],
            "received_bytes": {server: result["bytes"]},
            "bytes": result["bytes"],
            "transfer_bytes": self.size_bytes,
            "congestion_control": {client: sorted(result["congestion_control"])},
            "srtt_median_seconds": statistics.median(rtts) if rtts else None,
            "mean_segment_payload_bytes": None,
            "refused": served["refused"],
            "transport": "quic",
            "batched": {name: datagrams(end) - end["calls"] for name, end in ends.items()},
            "runs": [
                {
                    "client": client, "server": server, "reverse": False, "flows": self.flows, "transfers": TRANSFERS,
                    "result": result,
                }
            ],
            "quic": {
                "client": client, "server": server, "ends": ends, "written_bytes": result["written_bytes"],
                "confirmed_bytes": result["bytes"], "served_bytes": served["bytes"], "plpmtud": self.plpmtud,
                "gso": self.gso, "gro": self.gro,
            },
        }  # fmt: skip

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """The evidence of a run, as that of a stream: when transfers were under way, and what was delivered then."""
        intervals, handshakes, total_bytes = [], [], 0
        for run, table in tables_of(record, tables):
            base = run["result"]["started_seconds"]
            starts, connected, ends = (column(table, name) for name in ("start", "connected", "counted"))
            intervals += [(base + start, base + end) for start, end in zip(starts, ends, strict=True)]
            handshakes += [connect - start for start, connect in zip(starts, connected, strict=True)]
            total_bytes += sum(table.column("counted_bytes").to_pylist())
        return {
            "handshake_seconds": min(handshakes, default=None),
            "last_start_seconds": max((start for start, _ in intervals), default=None),
            "active_seconds": busy_seconds(intervals),
            "received_bytes": {record["quic"]["server"]: total_bytes},
            "answers": answers(record, tables),
        }

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """goodput: the bytes that were confirmed over the time in which transfers were under way. completion_time
        (sizes only): the median over transfers, with the handshake. fairness, smallest_goodput: of several flows."""
        values: dict[str, float] = {}
        total_bytes = sum(record["received_bytes"].values())
        if record["active_seconds"] > 0 and total_bytes > 0:
            values["goodput"] = 8.0 * total_bytes / record["active_seconds"]
        for _, table in tables_of(record, tables):
            flows = flow_rates(table)
            if self.size_bytes is not None:
                values["completion_time"] = statistics.median(
                    [seconds for times in flow_times(table) for seconds in times]
                )
            if len(flows) > 1 and any(flows):
                values["fairness"] = jain(flows)
                values["smallest_goodput"] = 8.0 * min(flows)
        return values


def _end(answer: Json) -> Json:
    """What an end sent and found, with its datagrams as pairs of payload and number."""
    pairs = [[row["payload_bytes"], row["count"]] for row in answer["sizes"]]
    return {**{key: answer[key] for key in ENDS}, "sizes": pairs}


def datagrams(end: Mapping[str, Any]) -> int:
    """The datagrams that an end sent."""
    return sum(count for _, count in end["sizes"])
