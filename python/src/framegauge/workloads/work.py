"""Work that is known beforehand: who sends what to whom, and what came of it where it was simulated.

A workload that is a `Known` says all of it in one pure method, from the same plan that it runs on real hosts, in the
terms of a scenario (crates/simulator/src/spec.rs). A simulation does it whole, in virtual time, and the workload turns
the outcome into the record and the tables that it has on real hosts, from which all metrics follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from framegauge.record import Record
from framegauge.testbeds.base import Host, Json
from framegauge.workloads.base import Workload

__all__ = ["CLIENT", "SERVER", "Flow", "Known", "Outcome", "Requests", "Step", "Work", "middle"]

CLIENT, SERVER = "client", "server"


@dataclass(frozen=True)
class Step:
    """One message over a connection, sent by `side`; `size_bytes` None: without end.

    The sender thinks before it writes, from when it has the message before, or the connection is there. Its first call
    writes `first_write_bytes`, such as a greeting. `closes`: its sender writes nothing after it, and says so at once.
    """

    side: str
    size_bytes: int | None
    first_write_bytes: int = 0
    closes: bool = False
    think_seconds: float = 0.0

    def as_json(self) -> Json:
        """The step as part of a scenario."""
        document: Json = {"from": self.side, "bytes": self.size_bytes}
        for name in ("first_write_bytes", "closes", "think_seconds"):
            if value := getattr(self, name):
                document[name] = value
        return document


@dataclass(frozen=True)
class Flow:
    """The work of one connection, opened at `begin_seconds`, or when all flows of `after` have ended if that is later:
    flows before it, by their place among all. `over` is one of these, too: it goes on over the connection of that flow,
    which has the same ends.

    Its steps are repeated over it for so many `rounds`, or as long as a round begins before `until_seconds`, or over
    new connections until `new_until_seconds`, or whenever one of the work's `requests` with that number is due; one of
    the four at most. Flows of the same `barrier` begin every round but the first together, when all of them have ended
    the one before.
    """

    client: str
    server: str
    steps: tuple[Step, ...]
    until_seconds: float | None = None
    new_until_seconds: float | None = None
    pacing_bits_per_second: int | None = None
    barrier: int | None = None
    rounds: int | None = None
    requests: int | None = None
    begin_seconds: float = 0.0
    after: tuple[int, ...] = ()
    over: int | None = None

    def as_json(self) -> Json:
        """The flow as part of a scenario."""
        document: Json = {
            "client": self.client,
            "server": self.server,
            "steps": [step.as_json() for step in self.steps],
        }
        for name in ("rounds", "until_seconds", "new_until_seconds", "requests"):
            if (limit := getattr(self, name)) is not None:
                document["repeat"] = {name: limit}
        for name in ("begin_seconds", "after"):
            if setting := getattr(self, name):
                document[name] = setting
        for name in ("pacing_bits_per_second", "barrier", "over"):
            if (value := getattr(self, name)) is not None:
                document[name] = value
        return document


@dataclass(frozen=True)
class Requests:
    """Requests of a client at a rate: its flows' connections carry them, once all of these are open, for a duration."""

    rate_per_second: float
    arrivals: str
    seed: int
    duration_seconds: float

    def as_json(self) -> Json:
        """The requests as part of a scenario."""
        return asdict(self)


@dataclass(frozen=True)
class Work:
    """All flows of a run. It ends with the last of them, at `end_seconds` at the latest. `nodelay`: of all sockets."""

    flows: Sequence[Flow]
    end_seconds: float
    sample_seconds: float = 0.0
    nodelay: bool = False
    requests: Sequence[Requests] = ()


@dataclass(frozen=True)
class Outcome:
    """What a simulation made of a `Work`.

    `transfers` has a row for each message (flow, round, step, start, connected, end, bytes, complete, and what
    each end has sent again in the round), `samples` the
    state of each flow's connection in turn, `counts` the counters of each flow. `mtu` is that of each host, `headers`
    what IP, TCP and its options take of it. `requests` are those of the work: `started_seconds`, and how many were
    `late` and `unfinished`.
    """

    transfers: pa.Table
    samples: pa.Table
    counts: Sequence[Mapping[str, int]]
    end_seconds: float
    congestion_control: str
    mtu: Mapping[str, int]
    headers_bytes: int
    requests: Sequence[Mapping[str, Any]] = ()

    def payload(self, one: str, other: str) -> int:
        """The payload of a full segment between two hosts."""
        return min(self.mtu[one], self.mtu[other]) - self.headers_bytes

    @property
    def all_transfers(self) -> Mapping[str, np.ndarray]:
        """The transfers of all flows, by column, in the order of flows, rounds and steps."""
        return self._transfers[0]

    def of_flow(self, number: int) -> Mapping[str, np.ndarray]:
        """The transfers of a flow, by column, in the order of rounds and steps."""
        return _part(self._transfers, number)

    def sampled(self, number: int) -> Mapping[str, np.ndarray]:
        """The samples of a flow, by column, in the order of time."""
        return _part(self._samples, number)

    def sum(self, name: str, numbers: Sequence[int]) -> int:
        """A counter of several flows together."""
        return sum(int(self.counts[number][name]) for number in numbers)

    @cached_property
    def _transfers(self) -> tuple[Mapping[str, np.ndarray], np.ndarray]:
        return _by_flow(self.transfers, ("step", "round"), len(self.counts))

    @cached_property
    def _samples(self) -> tuple[Mapping[str, np.ndarray], np.ndarray]:
        return _by_flow(self.samples, ("time_seconds",), len(self.counts))


def _by_flow(table: pa.Table, within: Sequence[str], flows: int) -> tuple[Mapping[str, np.ndarray], np.ndarray]:
    """The columns of a table in the order of flows, and where each flow begins; `within`: the least key first."""
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    order = np.lexsort((*(columns[name] for name in within), columns["flow"]))
    ordered = {name: values[order] for name, values in columns.items()}
    return ordered, np.searchsorted(ordered["flow"], np.arange(flows + 1))


def _part(table: tuple[Mapping[str, np.ndarray], np.ndarray], number: int) -> Mapping[str, np.ndarray]:
    columns, bounds = table
    return {name: values[bounds[number] : bounds[number + 1]] for name, values in columns.items()}


@runtime_checkable
class Known(Workload, Protocol):
    """A workload whose work is known beforehand."""

    def work(self, hosts: Sequence[Host]) -> Work:
        """What `run` does on these hosts. Pure: nothing is asked of them."""
        ...

    def simulated(self, hosts: Sequence[Host], done: Outcome) -> tuple[Record, Mapping[str, pa.Table]]:
        """The record and the tables as `run` has them, of what a simulation made of `work`; ProgramFailure if it is
        not whole."""
        ...


def middle(values: Any) -> float | None:
    """The median of values, None without any."""
    return float(np.median(values)) if len(values) else None
