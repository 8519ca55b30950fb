"""rr: requests and responses of stated sizes, in a closed loop or at a stated rate.

In a closed loop the next request waits for the last response, so a stall delays the requests that would have met it,
and the tail looks better than it is for users. At a stated rate a request's latency counts from when it was due.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from framegauge.errors import ProgramFailure
from framegauge.quantities import print_seconds
from framegauge.record import Record
from framegauge.testbeds.base import Host, Json, Progress, afterwards
from framegauge.workloads.base import Executed, Go, Phases, Program, Spool, pairs, side_by_side
from framegauge.workloads.work import CLIENT, SERVER, Flow, Outcome, Requests, Step, Work

__all__ = ["QUANTILES", "RequestResponse", "answers", "latencies", "quantile", "serve", "tail"]

GRACE_SECONDS = 30.0
AWAITED_SECONDS = 2.0  # for which responses are awaited after the duration (crates/traffic/src/rr.rs)
COLUMNS = ("connection", "due_seconds", "sent_seconds", "end_seconds")  # of the table of transactions
QUANTILES = {"latency_p50": 0.5, "latency_p99": 0.99, "latency_p999": 0.999}


def serve(stack: ExitStack, server: Host, token: str, nodelay: bool, closed: dict[str, Json]) -> int:
    """Answers requests on a host until the stack is left; returns the port. `closed` then has `rr.close`'s answer."""
    params = {"token": token, "address": server.address, "nodelay": nodelay}
    port = int(server.agent.request("rr.serve", params)["port"])
    stack.enter_context(afterwards(lambda: closed.update({server.name: server.agent.request("rr.close")})))
    return port


def quantile(values: Sequence[float], share: float, unfinished: int = 0) -> float | None:
    """The value that `share` of all do not exceed (nearest rank); unfinished requests count as slower than all others.

    None if there are too few values for the share, or if the rank falls among the unfinished.
    """
    total = len(values) + unfinished
    rank = math.ceil(share * total)
    if total < round(1 / (1 - share)) or not 1 <= rank <= len(values):
        return None
    return sorted(values)[rank - 1]


def latencies(table: pa.Table, begin: float = -math.inf, end: float = math.inf) -> list[float]:
    """The latencies in seconds, from due time to response, of requests that were due between the two times."""
    due, ends = (table.column(f"{name}_seconds").to_pylist() for name in ("due", "end"))
    return [end_time - due_time for due_time, end_time in zip(due, ends, strict=True) if begin <= due_time <= end]


def answers(results: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    """How many requests each client made, and how many were answered, by its name and result."""
    return {
        client: {
            "asked": result["requests"] + result["unfinished_requests"],
            "answered": result["requests"],
            "what": "requests answered",
            "may_starve": True,
        }
        for client, result in results
    }


def tail(values: Sequence[float], unfinished: int) -> tuple[dict[str, float], dict[str, str]]:
    """The latency metrics, and the reasons for missing ones."""
    quantiles, reasons = {}, {}
    for name, share in QUANTILES.items():
        value = quantile(values, share, unfinished)
        if value is not None:
            quantiles[name] = value
        elif len(values) + unfinished < round(1 / (1 - share)):
            reasons[name] = (
                f"a run has {len(values) + unfinished} requests, but {share:.1%} needs {1 / (1 - share):.0f}"
            )
        else:
            reasons[name] = f"{unfinished} of {len(values) + unfinished} requests of a run were not answered"
    return quantiles, reasons


class RequestRecord(Record):
    """`clients`: the result of each; `served`: that of the server."""

    clients: list[Json]
    served: Json


@dataclass(frozen=True)
class RequestResponse(Phases):
    """Requests and responses. `rate_per_second` is that of each client over all its connections; None: closed loop.

    Every message longer than `header_bytes` (above 0) is sent by two writes. `nagle` None is off.
    """

    request_bytes: int = 100
    response_bytes: int = 1000
    header_bytes: int = 0
    connections: int = 1
    rate_per_second: float | None = None
    arrivals: str = "uniform"
    duration_seconds: float = 1.0
    pattern: str = "one-to-one"
    nagle: bool | None = None
    seed: int = 1
    name: str = "rr"
    needs: ClassVar[Sequence[Program]] = ()

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """The requested duration."""
        return self.duration_seconds

    @property
    def nodelay(self) -> bool:
        """Whether the sockets have TCP_NODELAY."""
        return not self.nagle

    def request(self, server: Host, port: int, token: str, index: int = 0, **rest: Any) -> Json:
        """The params of `rr.run` for the client with this index."""
        return {
            "address": server.address, "port": port, "token": token, "connections": self.connections,
            "request_bytes": self.request_bytes, "response_bytes": self.response_bytes,
            "header_bytes": self.header_bytes, "rate_per_second": self.rate_per_second,
            "arrivals": self.arrivals, "seed": self.seed + index, "duration_seconds": self.duration_seconds,
            "nodelay": self.nodelay, **rest,
        }  # fmt: skip

    @contextmanager
    def prepared(self, hosts: Sequence[Host], token: str) -> Iterator[Go]:
        """Serves on one host. Then runs all clients at the same time, and closes."""
        planned = pairs(self.pattern, hosts)
        clients, server, closed = [client for client, _ in planned], planned[0][1], dict[str, Json]()
        with ExitStack() as stack:
            port = serve(stack, server, token, self.nodelay, closed)

            def go(on_progress: Progress | None) -> Executed:
                def ask(index: int, host: Host) -> Json:
                    return host.agent.request(
                        "rr.run",
                        self.request(server, port, token, index),
                        timeout_seconds=self.duration_seconds + GRACE_SECONDS,
                        on_progress=None if index else on_progress,
                    )

                results = side_by_side([(client, partial(ask, index)) for index, client in enumerate(clients)])
                stack.close()
                spools = [
                    Spool("transactions" if len(clients) == 1 else f"transactions-{client.name}", client.name, number)
                    for client, number in zip(clients, (result["transactions"] for result in results), strict=True)
                ]
                return Executed(self._record(clients, server, results, closed[server.name]), spools)

            yield go

    def work(self, hosts: Sequence[Host]) -> Work:
        """A closed loop on each connection of each client, or its requests at the rate."""
        sizes = ((CLIENT, self.request_bytes), (SERVER, self.response_bytes))
        steps = tuple(Step(side, size, self.header_bytes if size > self.header_bytes else 0) for side, size in sizes)
        planned = pairs(self.pattern, hosts)
        closed, end = self.rate_per_second is None, self.duration_seconds + AWAITED_SECONDS
        flows = [
            Flow(client.name, server.name, steps, until_seconds=self.duration_seconds)
            if closed
            else Flow(client.name, server.name, steps, requests=index)
            for index, (client, server) in enumerate(planned)
            for _ in range(self.connections)
        ]
        if self.rate_per_second is None:
            return Work(flows, end, nodelay=self.nodelay)
        requests = [
            Requests(self.rate_per_second, self.arrivals, self.seed + index, self.duration_seconds)
            for index in range(len(planned))
        ]
        # The duration begins when all connections are open.
        return Work(flows, end + AWAITED_SECONDS, nodelay=self.nodelay, requests=requests)

    def simulated(self, hosts: Sequence[Host], done: Outcome) -> tuple[Record, Mapping[str, pa.Table]]:
        """The record, and the transactions of each client."""
        planned = pairs(self.pattern, hosts)
        answers, tables = [], {}
        for index, (client, _) in enumerate(planned):
            first_flow = index * self.connections
            answer, table = self.simulated_client(done, range(first_flow, first_flow + self.connections), index)
            answers.append(answer)
            tables["transactions" if len(planned) == 1 else f"transactions-{client.name}"] = table
        clients, server = [client for client, _ in planned], planned[0][1]
        return self._record(clients, server, answers, self.simulated_server(done)), tables

    def simulated_server(self, done: Outcome) -> Json:
        """The answer of `rr.close`, as far as a record has it."""
        return {"congestion_control": [done.congestion_control], "nodelay": [self.nodelay], "refused": 0}

    def simulated_client(self, done: Outcome, numbers: Sequence[int], index: int = 0) -> tuple[Json, pa.Table]:
        """The answer of `rr.run`, without spools, and its transactions, of the client with this index and these flows.
        In a closed loop the first request of a connection is due once it is open."""
        is_open = self.rate_per_second is not None
        state = done.requests[index] if is_open else {"started_seconds": 0.0, "late": 0, "unfinished": 0}
        if (started := state["started_seconds"]) is None:
            duration = print_seconds(done.end_seconds)
            raise ProgramFailure(f"rr: found connections that were not open after {duration}, expected {len(numbers)}")
        due_column = "start_seconds" if is_open else "connected_seconds"
        parts: dict[str, list[np.ndarray]] = {name: [] for name in COLUMNS}
        for position, number in enumerate(numbers):
            rows = done.of_flow(number)
            is_complete = rows["complete"] == 1
            is_request, is_response = (is_complete & (rows["step"] == step) for step in (0, 1))
            count = int(is_response.sum())
            parts["connection"].append(np.full(count, position, np.uint32))
            parts["due_seconds"].append(rows[due_column][is_request][:count] - started)
            parts["sent_seconds"].append(rows["connected_seconds"][is_request][:count] - started)
            parts["end_seconds"].append(rows["end_seconds"][is_response] - started)
        columns = {name: np.concatenate(values) for name, values in parts.items()}
        order = np.argsort(columns["end_seconds"], kind="stable")
        ordered = {name: values[order] for name, values in columns.items()}
        requests = len(order)
        last_end = float(ordered["end_seconds"][-1]) if requests else 0.0
        answer = {
            "requests": requests,
            "bytes": requests * (self.request_bytes + self.response_bytes),
            "active_seconds": max(self.duration_seconds, last_end),
            "started_seconds": started,
            "congestion_control": [done.congestion_control],
            "nodelay": [self.nodelay],
            "late_requests": state["late"],
            "unfinished_requests": state["unfinished"],
        }
        return answer, pa.table(ordered)

    def _record(self, clients: Sequence[Host], server: Host, results: Sequence[Json], closed: Json) -> RequestRecord:
        total = self.request_bytes + self.response_bytes
        response_bytes = [result["bytes"] * self.response_bytes // total for result in results]
        request_bytes = sum(result["bytes"] for result in results) - sum(response_bytes)
        names = [client.name for client in clients]
        starts = [result["started_seconds"] for result in results]
        ends = [result["started_seconds"] + result["active_seconds"] for result in results]
        return {
            # Data goes both ways; the larger message determines the main direction.
            "senders": [server.name] if self.response_bytes >= self.request_bytes else names,
            "receivers": names if self.response_bytes >= self.request_bytes else [server.name],
            "received_bytes": {server.name: request_bytes, **dict(zip(names, response_bytes, strict=True))},
            "bytes": sum(result["bytes"] for result in results),
            "transfer_bytes": max(self.request_bytes, self.response_bytes),
            "only_bulk": False,
            "congestion_control": {
                **{name: result["congestion_control"] for name, result in zip(names, results, strict=True)},
                server.name: closed["congestion_control"],
            },
            "nodelay": {
                **{name: result["nodelay"] for name, result in zip(names, results, strict=True)},
                server.name: closed["nodelay"],
            },
            "srtt_median_seconds": None,
            "mean_segment_payload_bytes": None,
            "active_seconds": max(ends) - min(starts),
            "refused": closed["refused"],
            "clients": [{"client": name, "result": result} for name, result in zip(names, results, strict=True)],
            "served": closed,
        }

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """The latencies that the run does not have, with the reasons; `answers`: what got through at all."""
        return {
            "not_measured": tail(_all(tables.values()), self._unfinished(record))[1],
            "answers": answers((client["client"], client["result"]) for client in record["clients"]),
        }

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """latency_p50, _p99 and _p999: from when a request was due. transactions: answered requests per second."""
        values, _ = tail(_all(tables.values()), self._unfinished(record))
        requests = sum(client["result"]["requests"] for client in record["clients"])
        if requests and record["active_seconds"] > 0:
            values["transactions"] = requests / record["active_seconds"]
        return values

    def _unfinished(self, record: Json) -> int:
        # A closed loop always ends with one request per connection under way, which is not a failure.
        if self.rate_per_second is None:
            return 0
        return sum(int(client["result"]["unfinished_requests"]) for client in record["clients"])


def _all(tables: Iterable[pa.Table]) -> list[float]:
    return [latency for table in tables if "due_seconds" in table.column_names for latency in latencies(table)]
