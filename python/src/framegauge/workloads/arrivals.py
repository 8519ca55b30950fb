"""arrivals: new flows at random times between random hosts, whatever becomes of those before (an open loop).

The usual load of simulations of data centres: M. Alizadeh et al., "pFabric: Minimal Near-Optimal Datacenter Transport",
SIGCOMM 2013. Arrivals are a Poisson process. The offered load is the mean payload that a host's link is asked to carry,
as a share of its rate: each host's link, in and out (any-to-any), that of the last host (many-to-one), or those of the
sending half (half-to-half).

Beside them there may be long streams, each as large as a host's link carries in the time in which flows arrive, so that
they last for all of it. Their goodput is what came of them until then.

The slowdown of a flow is its time over the ideal time on an empty network, one that does not depend on what a study
compares: 1.5 RTT, one to open the connection and half of one for the data to come, and the payload at the rate of the
host's link, without headers. The RTT is that between the two hosts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from framegauge.errors import ProgramFailure
from framegauge.files.distributions import Distribution
from framegauge.networks.paths import Distances
from framegauge.networks.topologies import drawn_links, node_of
from framegauge.quantities import print_seconds
from framegauge.record import Record
from framegauge.testbeds.base import Host, Json
from framegauge.workloads.draws import Draws
from framegauge.workloads.rr import quantile
from framegauge.workloads.traffic import Data, TrafficRecord, shares
from framegauge.workloads.work import CLIENT, Flow, Outcome, Step, Work

__all__ = ["MOST_UNFINISHED", "Arrivals", "Drawn", "flows_per_second"]

MOST_UNFINISHED = 0.01  # of all flows of a run
SMALL_BYTES, LARGE_BYTES = 100_000, 10_000_000
CLASSES = ("small", "medium", "large")
SLOWDOWNS = {"slowdown_p50": 0.5, "slowdown_p99": 0.99}
TIMES, SIZES, SOURCES, TARGETS = range(4)  # what is drawn


def flows_per_second(load: float, bits_per_second: int, mean_bytes: float, pattern: str, hosts: int) -> float:
    """How many flows arrive for a load, on average: see above for whose links it is of."""
    links = {"any-to-any": hosts, "many-to-one": 1, "half-to-half": hosts // 2}[pattern]
    return load * bits_per_second * links / (8.0 * mean_bytes)


@dataclass(frozen=True)
class Drawn:
    """The flows of a run by column, in the order of their arrival; hosts are given by their places."""

    begin_seconds: np.ndarray
    bytes: np.ndarray
    sources: np.ndarray
    targets: np.ndarray


class ArrivalsRecord(TrafficRecord):
    """`flows` that arrived, and `unfinished`, those that had not ended; `by_size` has the metrics of each class,
    `streams` the payload per second of each long stream."""

    flows: int
    unfinished: int
    by_size: dict[str, Json]
    streams: list[float]


@dataclass(frozen=True)
class Arrivals:
    """Flows that arrive for `duration_seconds`; after `within_seconds` more, those that have not ended are given up."""

    sizes: Distribution
    load: float
    bits_per_second: int
    rtt_seconds: float
    topology: Mapping[str, Any] = field(default_factory=lambda: {"kind": "rack"})
    duration_seconds: float = 0.1
    pattern: str = "any-to-any"
    streams: int = 0
    within_seconds: float = 10.0
    sample_seconds: float = 0.01
    seed: int = 1
    name: str = "arrivals"

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """The time in which flows arrive."""
        return self.duration_seconds

    def drawn(self, hosts: int) -> Drawn:
        """The flows between so many hosts."""
        rate = flows_per_second(self.load, self.bits_per_second, self.sizes.mean, self.pattern, hosts)
        draws = Draws(self.seed)
        begins = draws.sums(TIMES, 1.0 / rate, self.duration_seconds)[:-1]
        count, half = len(begins), hosts // 2
        sizes = self.sizes.at(draws.even(SIZES, count))
        if self.pattern == "many-to-one":
            sources, targets = draws.below(SOURCES, count, hosts - 1), np.full(count, hosts - 1)
        elif self.pattern == "half-to-half":
            sources, targets = draws.below(SOURCES, count, half), half + draws.below(TARGETS, count, hosts - half)
        else:
            sources, targets = draws.below(SOURCES, count, hosts), draws.below(TARGETS, count, hosts - 1)
            targets = targets + (targets >= sources)  # any but itself
        return Drawn(begins, sizes, sources, targets)

    def lasting(self, hosts: int) -> list[tuple[int, int]]:
        """The hosts of each long stream, by their places: in turn, as the pattern has them."""
        numbers, half = range(self.streams), hosts // 2
        if self.pattern == "many-to-one":
            return [(number % (hosts - 1), hosts - 1) for number in numbers]
        if self.pattern == "half-to-half":
            return [(number % half, half + number % (hosts - half)) for number in numbers]
        return [(number % hosts, (number + half) % hosts) for number in numbers]

    def ideal_seconds(self, hosts: Sequence[str], flows: Drawn) -> np.ndarray:
        """The time of each flow on an empty network: see above. The RTT is divided equally among links."""
        # Hosts with several NICs are as far from each other by any of them.
        links = [(node_of(one), node_of(other)) for one, other in drawn_links(self.topology, hosts)]
        distances, names = Distances(links), set(hosts)
        # Hosts of one switch are as far from all others; two of them are two links apart.
        edges = [*links, *((peer, node) for node, peer in links)]
        leaf_hosts = {switch: host for host, switch in edges if host in names}.values()
        diameter = max(2, *(distances.between(node, peer) or 0 for node in leaf_hosts for peer in leaf_hosts))
        ends = zip(flows.sources.tolist(), flows.targets.tolist(), strict=True)
        hops = np.array([distances.between(hosts[source], hosts[target]) for source, target in ends], float)
        return 1.5 * self.rtt_seconds * hops / diameter + 8.0 * flows.bytes / self.bits_per_second

    def work(self, hosts: Sequence[Host]) -> Work:
        """A connection for each flow, from when it arrives."""
        drawn, names = self.drawn(len(hosts)), [host.name for host in hosts]
        columns = (drawn.begin_seconds, drawn.bytes, drawn.sources, drawn.targets)
        flows = [
            Flow(names[source], names[target], (Step(CLIENT, size),), begin_seconds=begin)
            for begin, size, source, target in zip(*(column.tolist() for column in columns), strict=True)
        ]
        stream_bytes = max(1, int(self.bits_per_second * self.duration_seconds / 8))
        flows += [
            Flow(names[sender], names[receiver], (Step(CLIENT, stream_bytes),))
            for sender, receiver in self.lasting(len(hosts))
        ]
        return Work(flows, self.duration_seconds + self.within_seconds, self.sample_seconds)

    def simulated(self, hosts: Sequence[Host], done: Outcome) -> tuple[Record, Mapping[str, pa.Table]]:
        """The record, and the table of flows (`arrivals`), in which hosts are numbered from 1; ProgramFailure if there
        were none, or too many had not ended."""
        drawn, transfers = self.drawn(len(hosts)), done.all_transfers
        count, numbers = len(drawn.bytes), transfers["flow"].astype(np.int64)
        is_ended = (transfers["complete"] == 1) & (numbers < count)
        finished_flows = numbers[is_ended]
        unfinished = count - len(finished_flows)
        if not count:
            raise ProgramFailure(f"found no flow in {print_seconds(self.duration_seconds)}, expected one or more")
        if unfinished > MOST_UNFINISHED * count:
            limit = print_seconds(self.within_seconds)
            raise ProgramFailure(
                f"found {unfinished} of {count} flows that had not ended {limit} after the last could arrive, "
                f"expected at most {100 * MOST_UNFINISHED:g} %"
            )
        ends = np.full(count, math.nan)
        ends[finished_flows] = transfers["end_seconds"][is_ended]
        ideal = self.ideal_seconds([host.name for host in hosts], drawn)
        classes = (drawn.bytes >= SMALL_BYTES).astype(np.int8) + (drawn.bytes > LARGE_BYTES)
        missing = np.isnan(ends)
        flows = pa.table(
            {
                "from": (drawn.sources + 1).astype(np.uint32), "to": (drawn.targets + 1).astype(np.uint32),
                "bytes": drawn.bytes, "class": pa.DictionaryArray.from_arrays(classes, list(CLASSES)),
                "start_seconds": drawn.begin_seconds, "end_seconds": pa.array(ends, mask=missing),
                "ideal_seconds": ideal,
                "slowdown": pa.array((ends - drawn.begin_seconds) / ideal, mask=missing),
            }
        )  # fmt: skip
        pairs = np.array(self.lasting(len(hosts)), np.int64).reshape(-1, 2)
        sources, targets = (
            np.concatenate([of_flows, pairs[:, index]])[numbers]
            for index, of_flows in enumerate((drawn.sources, drawn.targets))
        )
        data = Data(sources, targets, transfers["bytes"])
        start_seconds = 0.0 if self.streams else drawn.begin_seconds[0]
        streams = self._carried(done, count)
        record: ArrivalsRecord = {
            **data.record(hosts, done, float(done.end_seconds - start_seconds), None),
            "flows": count,
            "unfinished": unfinished,
            "streams": streams,
            "not_measured": _judged(flows)[1] | self._unseen(streams),
            "by_size": {name: _by_class(flows, classes == index) for index, name in enumerate(CLASSES)},
        }
        return record, {"arrivals": flows}

    def _carried(self, done: Outcome, first_flow: int) -> list[float]:
        """The payload per second of each long stream until flows arrive no more; empty if one was not sampled."""
        rates = []
        for number in range(first_flow, first_flow + self.streams):
            samples = done.sampled(number)
            mask = samples["time_seconds"] <= self.duration_seconds * (1 + 1e-9)
            if not mask.any() or samples["time_seconds"][mask][-1] <= 0:
                return []
            rates.append(float(samples["server_bytes"][mask][-1] / samples["time_seconds"][mask][-1]))
        return rates

    def _unseen(self, streams: Sequence[float]) -> dict[str, str]:
        """Why there is no goodput of the long streams, if there should be."""
        lacks = self.streams and not streams
        return {"goodput": "a long stream was not sampled: choose a smaller sample"} if lacks else {}

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """Nothing beyond the record."""
        return {}

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """The metrics of a run.

        completion_time: the mean over the flows, from the arrival to the last byte; none if one had not ended.
        slowdown_p50 and slowdown_p99: what that share of flows does not exceed (nearest rank); a flow that had not
        ended is slower than all others.
        goodput, fairness and smallest_goodput: of the long streams, if there are any.
        """
        rates = np.array(record.get("streams", []))
        of_streams = {"goodput": 8.0 * float(rates.sum()), **shares(rates)} if len(rates) else {}
        return {**_judged(tables["arrivals"])[0], **of_streams}


def _judged(flows: pa.Table) -> tuple[dict[str, float], dict[str, str]]:
    """The metrics of flows, and the reasons for missing ones."""
    begins, ends, slowdowns = (
        flows.column(name).to_numpy() for name in ("start_seconds", "end_seconds", "slowdown")
    )  # fmt: skip
    missing = int(np.isnan(ends).sum())
    ratios = slowdowns[~np.isnan(slowdowns)].tolist()
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    if missing or not len(ends):
        reasons["completion_time"] = f"{missing} of {len(ends)} flows of a run had not ended"
    else:
        values["completion_time"] = float((ends - begins).mean())
    for name, share in SLOWDOWNS.items():
        if (value := quantile(ratios, share, missing)) is not None:
            values[name] = value
        elif len(ends) < round(1 / (1 - share)):
            reasons[name] = f"a run has {len(ends)} flows, but {share:.0%} needs {1 / (1 - share):.0f}"
        else:
            reasons[name] = f"{missing} of {len(ends)} flows of a run had not ended"
    return values, reasons


def _by_class(flows: pa.Table, mask: np.ndarray) -> Json:
    rows = flows.filter(pa.array(mask))
    return {"flows": rows.num_rows, "unfinished": rows.column("end_seconds").null_count, **_judged(rows)[0]}
