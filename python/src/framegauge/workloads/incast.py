"""incast: one client asks many servers at once, and waits for all of them before it asks again.

A. Phanishayee, E. Krevat, V. Vasudevan, D. Andersen, G. Ganger, G. Gibson, S. Seshan, "Measurement and Analysis of TCP
Throughput Collapse in Cluster-based Storage Systems", FAST 2008: synchronized reads of a block that is striped over
servers. `unit` is their server request unit with a fixed size, `block` the whole that is striped.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from framegauge.errors import ProgramFailure
from framegauge.record import Record
from framegauge.testbeds.base import Host, Json, Progress
from framegauge.workloads import rr
from framegauge.workloads.base import Executed, Go, Phases, Program, Spool, side_by_side
from framegauge.workloads.traffic import GRACE_SECONDS, Data, TrafficRecord, limit_seconds, shares, whole
from framegauge.workloads.work import CLIENT, SERVER, Flow, Outcome, Step, Work

__all__ = ["Incast"]

GUESSED_BITS_PER_SECOND = 10e9
SILENCE_SECONDS = 30.0  # after which a server that owes an answer has failed: seven timeouts from 0.2 s on fit in
ROUND_SECONDS = 1.0  # that a round may take beyond its payload


class IncastRecord(TrafficRecord):
    """`rounds`: how many there were."""

    rounds: int


@dataclass(frozen=True)
class Incast(Phases):
    """Rounds in which the last host reads from the first `servers` hosts; one of `unit_bytes` and `block_bytes`.

    `nagle` None is off.
    """

    servers: int
    unit_bytes: int | None = None
    block_bytes: int | None = None
    rounds: int = 20
    request_bytes: int = 100
    sample_seconds: float = 0.01
    nagle: bool | None = None
    name: str = "incast"
    needs: ClassVar[Sequence[Program]] = ()

    @property
    def nodelay(self) -> bool:
        """Whether the sockets have TCP_NODELAY."""
        return not self.nagle

    @property
    def stripes(self) -> list[int]:
        """The bytes of each server's answer: of a block that does not divide evenly, the first have one more."""
        if self.unit_bytes is not None:
            return [self.unit_bytes] * self.servers
        size, remainder = divmod(self.block_bytes or 0, self.servers)
        return [size + (index < remainder) for index in range(self.servers)]

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """The time of all rounds on the client's link."""
        return 8.0 * sum(self.stripes) * self.rounds / (bits_per_second or GUESSED_BITS_PER_SECOND)

    @property
    def _most_seconds(self) -> float:
        """After how long a run is considered stuck."""
        return limit_seconds(sum(self.stripes) * self.rounds) + ROUND_SECONDS * self.rounds

    @contextmanager
    def prepared(self, hosts: Sequence[Host], token: str) -> Iterator[Go]:
        """Serves on all servers. Then runs the client, and closes; ProgramFailure if a server served otherwise."""
        client, plan = hosts[-1], list(zip(hosts, self.stripes, strict=False))
        closed: dict[str, Json] = {}
        with ExitStack() as stack:
            ports = [rr.serve(stack, server, token, self.nodelay, closed) for server, _ in plan]
            request = {
                "servers": [
                    {"address": server.address, "port": port, "response_bytes": stripe}
                    for (server, stripe), port in zip(plan, ports, strict=True)
                ],
                "token": token, "request_bytes": self.request_bytes, "rounds": self.rounds, "nodelay": self.nodelay,
                "silence_seconds": SILENCE_SECONDS,
            }  # fmt: skip

            def go(on_progress: Progress | None) -> Executed:
                def ask(host: Host) -> Json:
                    patience = self._most_seconds + GRACE_SECONDS
                    return host.agent.request("incast.run", request, timeout_seconds=patience, on_progress=on_progress)

                (answer,) = side_by_side([(client, ask)])
                stack.close()
                spools = [Spool(name, client.name, answer[name]) for name in ("rounds", "responses")]
                return Executed(self._record(client, plan, answer, closed), spools)

            yield go

    def _record(
        self, client: Host, plan: Sequence[tuple[Host, int]], answer: Json, closed: Mapping[str, Json]
    ) -> IncastRecord:
        """The record of a run on hosts: every server has sent what the client has received."""
        if answer["bytes"] != (total := self.rounds * sum(self.stripes)):
            raise ProgramFailure(f"incast: found {answer['bytes']} bytes at {client.name}, expected {total}")
        for server, stripe in plan:
            served, total = closed[server.name], self.rounds * (self.request_bytes + stripe)
            if (served["requests"], served["bytes"]) != (self.rounds, total):
                counts = f"{served['requests']} requests and {served['bytes']} bytes"
                raise ProgramFailure(f"incast: found {counts} at {server.name}, expected {self.rounds} and {total}")
        servers = {server.name: closed[server.name] for server, _ in plan}
        ends = {**servers, client.name: answer}
        timeouts = [end["timeouts"] for end in ends.values()]
        segments = [
            payload_bytes
            for end in servers.values()
            if (payload_bytes := end["mean_segment_payload_bytes"]) is not None
        ]
        return {
            "senders": list(servers),
            "receivers": [client.name],
            "received_bytes": {client.name: answer["bytes"]},
            "bytes": answer["bytes"],
            "transfer_bytes": min(self.stripes),
            "congestion_control": {name: end["congestion_control"] for name, end in ends.items()},
            "nodelay": {name: end["nodelay"] for name, end in ends.items()},
            "srtt_median_seconds": None,
            "mean_segment_payload_bytes": statistics.fmean(segments) if segments else None,
            "handshake_seconds": answer["handshake_seconds"],
            "refused": sum(end["refused"] for end in servers.values()),
            "active_seconds": answer["active_seconds"],
            "retransmits": sum(end["retransmits"] for end in ends.values()),
            "timeouts": None if None in timeouts else sum(timeouts),
            "rounds": self.rounds,
        }

    def work(self, hosts: Sequence[Host]) -> Work:
        """A connection to each server, for all rounds."""
        flows = [
            Flow(
                hosts[-1].name, host.name, (Step(CLIENT, self.request_bytes), Step(SERVER, stripe)),
                barrier=0, rounds=self.rounds,
            )
            for host, stripe in zip(hosts, self.stripes, strict=False)
        ]  # fmt: skip
        return Work(flows, self._most_seconds, self.sample_seconds, nodelay=self.nodelay)

    def simulated(self, hosts: Sequence[Host], done: Outcome) -> tuple[Record, Mapping[str, pa.Table]]:
        """The record, the table of rounds, and that of answers (`responses`)."""
        columns = whole(done, 2 * self.servers * self.rounds)
        requests, replies = (
            {name: values[columns["step"] == step] for name, values in columns.items()} for step in (0, 1)
        )
        # In the first round, the time in which connections are opened does not count.
        starts = np.where(requests["round"] == 0, requests["connected_seconds"], requests["start_seconds"])
        begins, ends, sums = np.full(self.rounds, np.inf), np.zeros(self.rounds), np.zeros(self.rounds, np.int64)
        np.minimum.at(begins, requests["round"], starts)
        np.maximum.at(ends, replies["round"], replies["end_seconds"])
        np.add.at(sums, replies["round"], replies["bytes"].astype(np.int64))
        rounds = pa.table(
            {
                "round": np.arange(self.rounds, dtype=np.uint32), "start_seconds": begins, "end_seconds": ends,
                "bytes": sums,
            }
        )  # fmt: skip
        # Both are in the order of flows and rounds.
        responses = pa.table(
            {
                "round": replies["round"], "flow": replies["flow"], "start_seconds": starts,
                "end_seconds": replies["end_seconds"], "bytes": replies["bytes"],
            }
        )  # fmt: skip
        client = np.full(len(replies["flow"]), len(hosts) - 1)
        data = Data(replies["flow"].astype(np.int64), client, replies["bytes"])
        active = float(ends[-1] - begins[0])
        record: IncastRecord = {**data.record(hosts, done, active, min(self.stripes)), "rounds": self.rounds}
        return record, {"rounds": rounds, "responses": responses}

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """Nothing beyond the record."""
        return {}

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """The metrics of a run.

        goodput: the payload of all rounds over their time, from the first request to the last answer. completion_time:
        the median over rounds of the time until all servers have answered. fairness and smallest_goodput: over the
        servers, each with its bytes over the time until it had answered, in all rounds together.
        """
        rounds = _columns(tables, "rounds", self.rounds)
        responses = _columns(tables, "responses", self.rounds * self.servers)
        if (flow := responses["flow"].max()) >= self.servers:
            raise ProgramFailure(f"incast: found flow {flow} in the table responses, expected 0 to {self.servers - 1}")
        times = np.bincount(responses["flow"], responses["end_seconds"] - responses["start_seconds"])
        return {
            "goodput": 8.0 * record["bytes"] / record["active_seconds"],
            "completion_time": float(np.median(rounds["end_seconds"] - rounds["start_seconds"])),
            **shares(np.bincount(responses["flow"], responses["bytes"]) / times),
        }


def _columns(tables: Mapping[str, pa.Table], name: str, rows: int) -> dict[str, np.ndarray]:
    """A table by column; ProgramFailure if it has another number of rows."""
    table = tables[name]
    if table.num_rows != rows:
        raise ProgramFailure(f"incast: found {table.num_rows} rows in the table {name}, expected {rows}")
    return {column: table.column(column).to_numpy() for column in table.column_names}
