"""mixed: requests and responses alongside bulk streams to the same server, to see their effect on latency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from framegauge.networks import pacing
from framegauge.record import Record
from framegauge.testbeds.base import Host, Json, Progress
from framegauge.workloads import rr, sockets, stream, streams_simulated as simulations
from framegauge.workloads.base import Executed, Go, Phases, Program, Spool, jain, side_by_side
from framegauge.workloads.streams_simulated import Part
from framegauge.workloads.transfers import flow_rates
from framegauge.workloads.work import Flow, Outcome, Work

__all__ = ["Mixed"]

WARM_UP_SECONDS = 0.5  # until the streams have left slow start and filled their queue
TAIL_SECONDS = 0.2  # by which the streams outlast the requests


class MixedRecord(Record):
    """`window_seconds`: when everything was under way, from the first request; `asked`, `sent` and `served`: the
    results of the client, of each host with bulk, and of the servers."""

    window_seconds: list[float]
    client: str
    asked: Json
    sent: list[Json]
    served: dict[str, Json]


@dataclass(frozen=True)
class Mixed(Phases):
    """rr from the first host to the last, and bulk from `bulk_hosts` of the others (None: all) to the last, too.

    On a pair the first host sends both. `bulk_bits_per_second` limits each host's payload; None: unlimited. `pacing` is
    how each flow of the bulk is paced otherwise, a level of the factor. Only the
    time in which everything was under way counts, without requests before the end of the streams' warm-up.
    """

    request_bytes: int = 100
    response_bytes: int = 1000
    header_bytes: int = 0
    connections: int = 1
    rate_per_second: float | None = None
    arrivals: str = "uniform"
    duration_seconds: float = 1.0
    bulk_flows: int = 1
    bulk_bits_per_second: int | None = None
    bulk_hosts: int | None = None
    pacing: str | None = None
    nagle: bool | None = None
    seed: int = 1
    name: str = "mixed"
    needs: ClassVar[Sequence[Program]] = ()

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """The requested duration, with the warm-up and the tail."""
        return self.duration_seconds + WARM_UP_SECONDS + TAIL_SECONDS

    def _asking(self) -> rr.RequestResponse:
        return rr.RequestResponse(
            self.request_bytes, self.response_bytes, self.header_bytes, self.connections, self.rate_per_second,
            self.arrivals, self.duration_seconds + WARM_UP_SECONDS, nagle=self.nagle, seed=self.seed,
        )  # fmt: skip

    @contextmanager
    def prepared(self, hosts: Sequence[Host], token: str) -> Iterator[Go]:
        """Serves both. Then runs both generators at the same time; the streams run a little longer."""
        server, asking = hosts[-1], self._asking()
        answered: dict[str, Json] = {}
        streamed: dict[str, Json] = {}
        with ExitStack() as stack:
            stream_port = stream.serve(stack, server, token, 0.0, streamed)
            rr_port = rr.serve(stack, server, token, asking.nodelay, answered)
            load = stream.request(
                server, stream_port, token, flows=self.bulk_flows, duration_seconds=self.expected_seconds(None),
                sample_seconds=0.0, pacing_bits_per_second=self._pacing,
            )  # fmt: skip

            def go(on_progress: Progress | None) -> Executed:
                asked, sent = self._side_by_side(hosts, asking.request(server, rr_port, token), load, on_progress)
                stack.close()
                return self._executed(hosts, asked, sent, answered[server.name], streamed[server.name])

            yield go

    @property
    def _pacing(self) -> int | None:
        """The rate of each bulk flow."""
        offered = self.bulk_bits_per_second
        return pacing.bits_per_second(self.pacing) if offered is None else offered // self.bulk_flows

    def work(self, hosts: Sequence[Host]) -> Work:
        """The connections of the requests first, then the bulk, which lasts to the end."""
        asking = self._asking().work([hosts[0], hosts[-1]])
        bulk = [flow for part in self._parts(hosts) for flow in simulations.flows(part, 0.0, self._pacing)]
        flows: list[Flow] = [*asking.flows, *bulk]
        return Work(flows, self.expected_seconds(None), nodelay=asking.nodelay, requests=asking.requests)

    def simulated(self, hosts: Sequence[Host], done: Outcome) -> tuple[Record, Mapping[str, pa.Table]]:
        """The record, the transactions, and the transfers of each host with bulk."""
        asking, parts = self._asking(), self._parts(hosts)
        asked, transactions = asking.simulated_client(done, range(self.connections))
        bulk = {f"bulk-{part.client}": simulations.transfers(part, done) for part in parts}
        sent = [simulations.answer(part, done, table) for part, table in zip(parts, bulk.values(), strict=True)]
        server = hosts[-1]
        streamed = simulations.closed(parts, done)[server.name]
        answered = asking.simulated_server(done)
        record = self._record(hosts[0], server, self._bulk(hosts), asked, sent, answered, streamed)
        return record, {"transactions": transactions, **bulk}

    def _parts(self, hosts: Sequence[Host]) -> list[Part]:
        """The bulk of each host, with the numbers of its flows: they come after the connections of the requests."""
        return [
            Part(host.name, hosts[-1].name, False, self.connections + index * self.bulk_flows, self.bulk_flows, None)
            for index, host in enumerate(self._bulk(hosts))
        ]

    def _bulk(self, hosts: Sequence[Host]) -> list[Host]:
        """The hosts that send the bulk: those between the first and the last, or the first."""
        return list(hosts[1:-1])[: self.bulk_hosts] or [hosts[0]]

    def _side_by_side(
        self, hosts: Sequence[Host], requests: Json, load: Json, on_progress: Progress | None
    ) -> tuple[Json, list[Json]]:
        """The answers of the requests' client, and of the senders of bulk."""
        patience = self.expected_seconds(None) + stream.GRACE_SECONDS

        def send(host: Host) -> Json:
            return host.agent.request("stream.run", load, timeout_seconds=patience)

        def ask(host: Host) -> Json:
            return host.agent.request("rr.run", requests, timeout_seconds=patience, on_progress=on_progress)

        asked, *sent = side_by_side([(hosts[0], ask), *((host, send) for host in self._bulk(hosts))])
        return asked, sent

    def _executed(
        self, hosts: Sequence[Host], asked: Json, sent: Sequence[Json], answered: Json, streamed: Json
    ) -> Executed:
        client, server, bulk = hosts[0], hosts[-1], self._bulk(hosts)
        record = self._record(client, server, bulk, asked, sent, answered, streamed)
        spools = [Spool("transactions", client.name, asked["transactions"])]
        spools += [
            Spool(f"bulk-{host.name}", host.name, one["transfers"]) for host, one in zip(bulk, sent, strict=True)
        ]
        extra = [(host.name, one["samples"]) for host, one in zip(bulk, sent, strict=True)]
        extra.append((f"{server.name}-served", streamed["samples"]))
        spools += [
            Spool(f"samples-{name}", name.removesuffix("-served"), number)
            for name, number in extra
            if number is not None
        ]
        return Executed(record, spools)

    def _record(
        self,
        client: Host,
        server: Host,
        bulk: Sequence[Host],
        asked: Json,
        sent: Sequence[Json],
        answered: Json,
        streamed: Json,
    ) -> MixedRecord:
        # The window in which everything was under way, on the clock that the agents share.
        begin = max(one["started_seconds"] for one in (asked, *sent)) + WARM_UP_SECONDS
        ends = [one["started_seconds"] + one["active_seconds"] for one in (asked, *sent)]
        amount = sum(one["bytes"] for one in sent)
        starts = [one["started_seconds"] for one in sent]
        control: dict[str, set[str]] = {client.name: set(asked["congestion_control"])}
        for host, one in zip(bulk, sent, strict=True):
            control.setdefault(host.name, set()).update(one["congestion_control"])
        control.setdefault(server.name, set()).update(answered["congestion_control"], streamed["congestion_control"])
        srtt = sorted(one["srtt_median_seconds"] for one in sent if one["srtt_median_seconds"] is not None)
        return {
            "senders": [host.name for host in bulk],
            "receivers": [server.name],
            "received_bytes": {server.name: amount},
            "bytes": amount,
            "transfer_bytes": None,
            "only_bulk": False,
            "active_seconds": max(ends[1:]) - min(starts),
            "window_seconds": [begin - asked["started_seconds"], min(ends) - asked["started_seconds"]],
            "client": client.name,
            "asked": asked,
            "sent": [{"host": host.name, "result": one} for host, one in zip(bulk, sent, strict=True)],
            "congestion_control": {host: sorted(names) for host, names in control.items()},
            "pacing": sockets.paced((host.name, one) for host, one in zip(bulk, sent, strict=True)),
            "nodelay": {client.name: asked["nodelay"], server.name: answered["nodelay"]},
            "srtt_median_seconds": srtt[len(srtt) // 2] if srtt else None,
            "mean_segment_payload_bytes": None,
            "retransmits": sum(one["retransmits"] or 0 for one in sent),
            "refused": answered["refused"] + streamed["refused"],
            "served": {"rr": answered, "stream": streamed},
        }

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """The latencies that the run does not have, with the reasons."""
        return {"not_measured": self._tail(record, tables)[1]}

    def _values(self, record: Json, tables: Mapping[str, pa.Table]) -> list[float]:
        begin, end = record["window_seconds"]
        return rr.latencies(tables["transactions"], begin, end)

    def _tail(self, record: Json, tables: Mapping[str, pa.Table]) -> tuple[dict[str, float], dict[str, str]]:
        open_loop = self.rate_per_second is not None
        unfinished = int(record["asked"]["unfinished_requests"]) if open_loop else 0
        return rr.tail(self._values(record, tables), unfinished)

    def _delivered(self, record: Json, tables: Mapping[str, pa.Table]) -> tuple[int, float]:
        """The bytes of all streams at the end of their duration, and the time that they took."""
        amount, starts, ends = 0, [], []
        for one in record["sent"]:
            table, base = tables[f"bulk-{one['host']}"], one["result"]["started_seconds"]
            amount += sum(table.column("counted_bytes").to_pylist())
            starts += [base + start for start in table.column("start_seconds").to_pylist()]
            ends += [base + end for end in table.column("counted_seconds").to_pylist()]
        return amount, max(ends) - min(starts) if ends else 0.0

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """Latencies and transactions of rr while all streams are active; goodput and fairness of the streams."""
        found = self._tail(record, tables)[0]
        begin, end = record["window_seconds"]
        count = len(self._values(record, tables))
        if count and end > begin:
            found["transactions"] = count / (end - begin)
        amount, active = self._delivered(record, tables)
        if amount and active > 0:
            found["goodput"] = 8.0 * amount / active
        flows = [rate for one in record["sent"] for rate in flow_rates(tables[f"bulk-{one['host']}"])]
        if len(flows) > 1 and any(flows):
            found["fairness"] = jain(flows)
        return found
