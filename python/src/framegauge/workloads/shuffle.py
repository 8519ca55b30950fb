"""shuffle: every host fetches from every other, a few at a time, as the reducers of MapReduce do.

J. Dean, S. Ghemawat, "MapReduce: Simplified Data Processing on Large Clusters", OSDI 2004. Hadoop's reducers fetch with
`mapreduce.reduce.shuffle.parallelcopies` threads (5), each from one host at a time.
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

__all__ = ["Shuffle"]

GUESSED_HOSTS = 10
GUESSED_BITS_PER_SECOND = 10e9


@dataclass(frozen=True)
class Shuffle:
    """A fetch of `size_bytes` by every host from every other, `at_once` of a host at a time."""

    size_bytes: int
    at_once: int = 5
    request_bytes: int = 100
    sample_seconds: float = 0.01
    name: str = "shuffle"

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """The time of some hosts' fetches on a link: how many hosts there are is not known here."""
        return 8.0 * self.size_bytes * GUESSED_HOSTS / (bits_per_second or GUESSED_BITS_PER_SECOND)

    def work(self, hosts: Sequence[Host]) -> Work:
        """A connection for each fetch: those of the first host, then those of the next."""
        steps, others = (Step(CLIENT, self.request_bytes), Step(SERVER, self.size_bytes)), len(hosts) - 1
        flows = [
            Flow(
                host.name, hosts[(place + turn + 1) % len(hosts)].name, steps,
                after=(place * others + turn - self.at_once,) if turn >= self.at_once else (),
            )
            for place, host in enumerate(hosts)
            for turn in range(others)
        ]  # fmt: skip
        return Work(flows, limit_seconds(self.size_bytes * others), self.sample_seconds)

    def simulated(self, hosts: Sequence[Host], done: Outcome) -> tuple[Record, Mapping[str, pa.Table]]:
        """The record, and the table of fetches, in which hosts are numbered from 1."""
        others = len(hosts) - 1
        found = whole(done, 2 * others * len(hosts))
        asked, answered = ({name: values[found["step"] == step] for name, values in found.items()} for step in (0, 1))
        place, turn = np.divmod(answered["flow"].astype(np.int64), others)
        server = (place + turn + 1) % len(hosts)
        # Both are in the order of flows.
        fetches = pa.table(
            {
                "to": (place + 1).astype(np.uint32), "from": (server + 1).astype(np.uint32),
                "start_seconds": asked["start_seconds"], "end_seconds": answered["end_seconds"],
                "bytes": answered["bytes"],
            }
        )  # fmt: skip
        active = float(answered["end_seconds"].max() - asked["start_seconds"].min())
        record: TrafficRecord = {
            **Data(server, place, answered["bytes"]).record(hosts, done, active, self.size_bytes), "links": len(hosts),
        }  # fmt: skip
        return record, {"fetches": fetches}

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """Nothing beyond the record."""
        return {}

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """The metrics of a run.

        completion_time: until the last host has everything. goodput: all payload over that time. fairness and
        smallest_goodput: over the hosts, each with what it fetched over the time until it had everything.
        """
        fetches = {name: tables["fetches"].column(name).to_numpy() for name in tables["fetches"].column_names}
        hosts, first = fetches["to"].astype(np.int64) - 1, float(fetches["start_seconds"].min())
        ends = np.zeros(hosts.max() + 1)
        np.maximum.at(ends, hosts, fetches["end_seconds"])
        return {
            "completion_time": record["active_seconds"],
            "goodput": 8.0 * record["bytes"] / record["active_seconds"],
            **shares(np.bincount(hosts, fetches["bytes"]) / (ends - first)),
        }
