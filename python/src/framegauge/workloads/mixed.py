"""mixed: requests and responses alongside bulk streams to the same server, to see their effect on latency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from framegauge.record import Record
from framegauge.testbeds.base import Host, Json, Progress
from framegauge.workloads import beside, rr, streams_simulated as simulations
from framegauge.workloads.base import Executed, Go, Phases, Program, Spool, side_by_side
from framegauge.workloads.streams_simulated import Part
from framegauge.workloads.work import Flow, Outcome, Work

__all__ = ["Mixed"]


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
        return self.duration_seconds + beside.WARM_UP_SECONDS + beside.TAIL_SECONDS

    def _asking(self) -> rr.RequestResponse:
        return rr.RequestResponse(
            self.request_bytes, self.response_bytes, self.header_bytes, self.connections, self.rate_per_second,
            self.arrivals, self.duration_seconds + beside.WARM_UP_SECONDS, nagle=self.nagle, seed=self.seed,
        )  # fmt: skip

    @contextmanager
    def prepared(self, hosts: Sequence[Host], token: str) -> Iterator[Go]:
        """Serves both. Then runs both generators at the same time; the streams run a little longer."""
        client, server, bulk, request_load = hosts[0], hosts[-1], self._bulk(hosts), self._asking()
        seconds = self.expected_seconds(None)
        closed: dict[str, Json] = {}
        streamed: dict[str, Json] = {}
        with ExitStack() as stack:
            send = beside.served(stack, server, token, streamed, self.bulk_flows, seconds, self._pacing)
            requests = request_load.request(server, rr.serve(stack, server, token, request_load.nodelay, closed), token)

            def go(on_progress: Progress | None) -> Executed:
                def ask(host: Host) -> Json:
                    patience = seconds + beside.GRACE_SECONDS
                    return host.agent.request("rr.run", requests, timeout_seconds=patience, on_progress=on_progress)

                client_answer, *bulk_answers = side_by_side([(client, ask), *((host, send) for host in bulk)])
                stack.close()
                ends = closed[server.name], streamed[server.name]
                spools = [Spool("transactions", client.name, client_answer["transactions"])]
                spools += beside.spools(bulk, bulk_answers, server, ends[1])
                return Executed(self._record(client, server, bulk, client_answer, bulk_answers, *ends), spools)

            yield go

    @property
    def _pacing(self) -> int | None:
        """The rate of each bulk flow."""
        return beside.pace(self.bulk_flows, self.bulk_bits_per_second, self.pacing)

    def work(self, hosts: Sequence[Host]) -> Work:
        """The connections of the requests first, then the bulk, which lasts to the end."""
        request_work = self._asking().work([hosts[0], hosts[-1]])
        bulk = [flow for part in self._parts(hosts) for flow in simulations.flows(part, 0.0, self._pacing)]
        flows: list[Flow] = [*request_work.flows, *bulk]
        return Work(flows, self.expected_seconds(None), nodelay=request_work.nodelay, requests=request_work.requests)

    def simulated(self, hosts: Sequence[Host], done: Outcome) -> tuple[Record, Mapping[str, pa.Table]]:
        """The record, the transactions, and the transfers of each host with bulk."""
        request_load, parts = self._asking(), self._parts(hosts)
        client_answer, transactions = request_load.simulated_client(done, range(self.connections))
        bulk = {f"bulk-{part.client}": simulations.transfers(part, done) for part in parts}
        bulk_answers = [simulations.answer(part, done, table) for part, table in zip(parts, bulk.values(), strict=True)]
        server = hosts[-1]
        streamed = simulations.closed(parts, done)[server.name]
        server_answer = request_load.simulated_server(done)
        record = self._record(hosts[0], server, self._bulk(hosts), client_answer, bulk_answers, server_answer, streamed)
        return record, {"transactions": transactions, **bulk}

    def _parts(self, hosts: Sequence[Host]) -> list[Part]:
        """The bulk of each host, with the numbers of its flows: they come after the connections of the requests."""
        return [
            Part(host.name, hosts[-1].name, False, self.connections + index * self.bulk_flows, self.bulk_flows, None)
            for index, host in enumerate(self._bulk(hosts))
        ]

    def _bulk(self, hosts: Sequence[Host]) -> list[Host]:
        return beside.senders(hosts, self.bulk_hosts)

    def _record(
        self,
        client: Host,
        server: Host,
        bulk: Sequence[Host],
        client_answer: Json,
        bulk_answers: Sequence[Json],
        server_answer: Json,
        streamed: Json,
    ) -> MixedRecord:
        fields = beside.record(bulk, bulk_answers, server, streamed)
        # The window in which everything was under way, on the clock that the agents share.
        begin = max(answer["started_seconds"] for answer in (client_answer, *bulk_answers)) + beside.WARM_UP_SECONDS
        end = min(answer["started_seconds"] + answer["active_seconds"] for answer in (client_answer, *bulk_answers))
        control: dict[str, set[str]] = fields.pop("congestion_control")
        control.setdefault(client.name, set()).update(client_answer["congestion_control"])
        control.setdefault(server.name, set()).update(server_answer["congestion_control"])
        record: MixedRecord = {
            **fields,  # type: ignore[typeddict-item]
            "received_bytes": {server.name: fields["bytes"]},
            "only_bulk": False,
            "window_seconds": [begin - client_answer["started_seconds"], end - client_answer["started_seconds"]],
            "client": client.name,
            "asked": client_answer,
            "congestion_control": {host: sorted(names) for host, names in control.items()},
            "nodelay": {client.name: client_answer["nodelay"], server.name: server_answer["nodelay"]},
            "mean_segment_payload_bytes": None,
            "refused": server_answer["refused"] + streamed["refused"],
            "served": {"rr": server_answer, "stream": streamed},
        }
        return record

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """The latencies that the run does not have, with the reasons; `answers`: what got through at all."""
        return {
            "not_measured": self._tail(record, tables)[1],
            "answers": {**rr.answers([(record["client"], record["asked"])]), **beside.answers(record, tables)},
        }

    def _values(self, record: Json, tables: Mapping[str, pa.Table]) -> list[float]:
        begin, end = record["window_seconds"]
        return rr.latencies(tables["transactions"], begin, end)

    def _tail(self, record: Json, tables: Mapping[str, pa.Table]) -> tuple[dict[str, float], dict[str, str]]:
        open_loop = self.rate_per_second is not None
        unfinished = int(record["asked"]["unfinished_requests"]) if open_loop else 0
        return rr.tail(self._values(record, tables), unfinished)

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """Latencies and transactions of rr while all streams are active; goodput and fairness of the streams."""
        values = self._tail(record, tables)[0]
        begin, end = record["window_seconds"]
        count = len(self._values(record, tables))
        if count and end > begin:
            values["transactions"] = count / (end - begin)
        return values | beside.metrics(record, tables)
