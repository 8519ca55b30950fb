"""incast: one client asks many servers at once, and waits for all of them before it asks again.

A. Phanishayee, E. Krevat, V. Vasudevan, D. Andersen, G. Ganger, G. Gibson, S. Seshan, "Measurement and Analysis of TCP
Throughput Collapse in Cluster-based Storage Systems", FAST 2008: synchronized reads of a block that is striped over
servers. `unit` is their server request unit with a fixed size, `block` the whole that is striped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from framegauge.record import Record
from framegauge.testbeds.base import Host, Json
from framegauge.workloads.traffic import Data, TrafficRecord, limit_seconds, shares, whole
from framegauge.workloads.work import CLIENT, SERVER, Flow, Outcome, Step, Work

__all__ = ["Incast"]

GUESSED_BITS_PER_SECOND = 10e9


class IncastRecord(TrafficRecord):
    """`rounds`: how many there were."""

    rounds: int


@dataclass(frozen=True)
class Incast:
    """Rounds in which the last host reads from the first `servers` hosts; one of `unit_bytes` and `block_bytes`."""

    servers: int
    unit_bytes: int | None = None
    block_bytes: int | None = None
    rounds: int = 20
    request_bytes: int = 100
    sample_seconds: float = 0.01
    name: str = "incast"

    @property
    def stripes(self) -> list[int]:
        """The bytes of each server's answer: of a block that does not divide evenly, the first have one more."""
        if self.unit_bytes is not None:
            return [self.unit_bytes] * self.servers
        each, more = divmod(self.block_bytes or 0, self.servers)
        return [each + (place < more) for place in range(self.servers)]

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """The time of all rounds on the client's link."""
        return 8.0 * sum(self.stripes) * self.rounds / (bits_per_second or GUESSED_BITS_PER_SECOND)

    def work(self, hosts: Sequence[Host]) -> Work:
        """A connection to each server, for all rounds."""
        flows = [
            Flow(
                hosts[-1].name, host.name, (Step(CLIENT, self.request_bytes), Step(SERVER, stripe)),
                barrier=0, rounds=self.rounds,
            )
            for host, stripe in zip(hosts, self.stripes, strict=False)
        ]  # fmt: skip
        return Work(flows, limit_seconds(sum(self.stripes) * self.rounds), self.sample_seconds)

    def simulated(self, hosts: Sequence[Host], done: Outcome) -> tuple[Record, Mapping[str, pa.Table]]:
        """The record, the table of rounds, and that of answers (`responses`)."""
        found = whole(done, 2 * self.servers * self.rounds)
        asked, answered = ({name: values[found["step"] == step] for name, values in found.items()} for step in (0, 1))
        # In the first round, the time in which connections are opened does not count.
        begun = np.where(asked["round"] == 0, asked["connected_seconds"], asked["start_seconds"])
        begins, ends, amounts = np.full(self.rounds, np.inf), np.zeros(self.rounds), np.zeros(self.rounds, np.int64)
        np.minimum.at(begins, asked["round"], begun)
        np.maximum.at(ends, answered["round"], answered["end_seconds"])
        np.add.at(amounts, answered["round"], answered["bytes"].astype(np.int64))
        rounds = pa.table(
            {
                "round": np.arange(self.rounds, dtype=np.uint32), "start_seconds": begins, "end_seconds": ends,
                "bytes": amounts,
            }
        )  # fmt: skip
        # Both are in the order of flows and rounds.
        responses = pa.table(
            {
                "round": answered["round"], "flow": answered["flow"], "start_seconds": begun,
                "end_seconds": answered["end_seconds"], "bytes": answered["bytes"],
            }
        )  # fmt: skip
        client = np.full(len(answered["flow"]), len(hosts) - 1)
        data = Data(answered["flow"].astype(np.int64), client, answered["bytes"])
        size = self.stripes[0] if len(set(self.stripes)) == 1 else None
        record: IncastRecord = {
            **data.record(hosts, done, float(ends[-1] - begins[0]), size), "rounds": self.rounds,
        }  # fmt: skip
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
        begins, ends = (tables["rounds"].column(f"{name}_seconds").to_numpy() for name in ("start", "end"))
        responses = {name: tables["responses"].column(name).to_numpy() for name in tables["responses"].column_names}
        times = np.bincount(responses["flow"], responses["end_seconds"] - responses["start_seconds"])
        return {
            "goodput": 8.0 * record["bytes"] / record["active_seconds"],
            "completion_time": float(np.median(ends - begins)),
            **shares(np.bincount(responses["flow"], responses["bytes"]) / times),
        }
