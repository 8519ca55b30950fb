"""shuffle: every host fetches from every other, a few at a time, as the reducers of MapReduce do.

J. Dean, S. Ghemawat, "MapReduce: Simplified Data Processing on Large Clusters", OSDI 2004. Hadoop's reducers fetch with
`mapreduce.reduce.shuffle.parallelcopies` threads (5), each from one host at a time, which it draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from framegauge.record import Record
from framegauge.testbeds.base import Host, Json
from framegauge.workloads import fetches
from framegauge.workloads.draws import Draws
from framegauge.workloads.fetches import Fetch
from framegauge.workloads.traffic import Data, TrafficRecord, limit_seconds, shares, whole
from framegauge.workloads.work import CLIENT, SERVER, Flow, Outcome, Step, Work

__all__ = ["Shuffle"]

GUESSED_HOSTS = 10
ORDER = 0  # what is drawn
FETCHED = ("to", "from", "bytes", "start_seconds", "end_seconds")
GUESSED_BITS_PER_SECOND = 10e9


class ShuffleRecord(TrafficRecord):
    """`fetchers`: the hosts that fetched. `entrances` (evidence.few), and what follows for fetches of theirs."""

    fetchers: list[str]


@dataclass(frozen=True)
class Shuffle:
    """A fetch of `size_bytes` by `reduces` hosts (None: all) from every other, `at_once` of a host at a time.

    Of all hosts, or of the `workers`, in as many parts, the last of each part fetches. `order`: "turn" (each begins
    with the host after it), or "random", from the seed.
    """

    size_bytes: int
    at_once: int = 5
    request_bytes: int = 100
    sample_seconds: float = 0.01
    reduces: int | None = None
    order: str = "turn"
    workers: Sequence[str] | None = None
    seed: int = 0
    name: str = "shuffle"

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """The time of some hosts' fetches on a link: how many hosts there are is not known here."""
        return 8.0 * self.size_bytes * GUESSED_HOSTS / (bits_per_second or GUESSED_BITS_PER_SECOND)

    def work(self, hosts: Sequence[Host]) -> Work:
        """A connection for each fetch: those of the first host that fetches, then those of the next."""
        steps = (Step(CLIENT, self.request_bytes), Step(SERVER, self.size_bytes))
        fetchers, servers = self._pairs(hosts)
        peer_count = len(self._workers(hosts)) - 1
        flows = [
            Flow(
                hosts[receiver].name, hosts[server].name, steps,
                after=(index - self.at_once,) if index % peer_count >= self.at_once else (),
            )
            for index, (receiver, server) in enumerate(zip(fetchers.tolist(), servers.tolist(), strict=True))
        ]  # fmt: skip
        return Work(flows, limit_seconds(self.size_bytes * peer_count), self.sample_seconds)

    def _workers(self, hosts: Sequence[Host]) -> np.ndarray:
        """The places of those hosts that take part."""
        return np.array(
            [index for index, host in enumerate(hosts) if self.workers is None or host.name in self.workers]
        )

    def _pairs(self, hosts: Sequence[Host]) -> tuple[np.ndarray, np.ndarray]:
        """Who fetches, and from whom, in the order of fetches: the places of hosts."""
        workers = self._workers(hosts)
        count = len(workers)
        reduces = count if self.reduces is None else min(self.reduces, count)
        fetchers = (np.arange(1, reduces + 1) * count // reduces - 1)[:, None]
        turns = np.broadcast_to(np.arange(count - 1), (reduces, count - 1))
        if self.order == "random":
            turns = np.argsort(Draws(self.seed).even(ORDER, turns.size).reshape(turns.shape), axis=1)
        servers = (fetchers + turns + 1) % count
        return workers[np.broadcast_to(fetchers, turns.shape).ravel()], workers[servers.ravel()]

    def simulated(self, hosts: Sequence[Host], done: Outcome) -> tuple[Record, Mapping[str, pa.Table]]:
        """The record, and the table of fetches, in which hosts are numbered from 1."""
        fetchers, servers = self._pairs(hosts)
        columns = whole(done, 2 * len(fetchers))
        requests, responses = (
            {name: values[columns["step"] == step] for name, values in columns.items()} for step in (0, 1)
        )
        number = responses["flow"].astype(np.int64)
        receiver, server = fetchers[number], servers[number]
        # Both are in the order of flows.
        table = pa.table(
            {
                "to": (receiver + 1).astype(np.uint32), "from": (server + 1).astype(np.uint32),
                "start_seconds": requests["start_seconds"], "end_seconds": responses["end_seconds"],
                "bytes": responses["bytes"],
            }
        )  # fmt: skip
        active = float(responses["end_seconds"].max() - requests["start_seconds"].min())
        fields = Data(server, receiver, responses["bytes"]).record(hosts, done, active, self.size_bytes)
        record: ShuffleRecord = {**fields, "links": len(fields["receivers"]), "fetchers": fields["receivers"]}
        return record, {"fetches": table}

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """What fetches of each distance got, and the few beside the many, where the network tells these apart."""
        if "entrances" not in record:
            return {}
        names = record["entrances"]["hosts"]
        columns = (tables["fetches"].column(name).to_pylist() for name in FETCHED)
        done = [
            Fetch(names[receiver - 1], names[server - 1], size, end - start)
            for receiver, server, size, start, end in zip(*columns, strict=True)
        ]
        return fetches.evidence(done, record["entrances"]["receivers"])

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """The metrics of a run.

        completion_time: until the last host has everything. goodput: all payload over that time. fairness and
        smallest_goodput: over the hosts, each with what it fetched over the time until it had everything. share_of_few:
        what a fetch of the few got, over that of the many.
        """
        columns = {name: tables["fetches"].column(name).to_numpy() for name in tables["fetches"].column_names}
        (receivers, hosts), start = np.unique(columns["to"], return_inverse=True), float(columns["start_seconds"].min())
        ends = np.zeros(len(receivers))
        np.maximum.at(ends, hosts, columns["end_seconds"])
        return {
            "completion_time": record["active_seconds"],
            "goodput": 8.0 * record["bytes"] / record["active_seconds"],
            **shares(np.bincount(hosts, columns["bytes"]) / (ends - start)),
            **fetches.metrics(record),
        }
