"""users: they ask, wait for the answer, think, and ask again, each over a connection of its own (a closed loop).

The model of an interactive system: with N users, a mean time Z to think and a mean response time R, it does
X = N / (Z + R) transactions per second, whatever else holds (E. Lazowska, J. Zahorjan, G. Graham, K. Sevcik,
"Quantitative System Performance", 1984, chapter 3: the response time law).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from framegauge.files.distributions import Distribution
from framegauge.record import Record
from framegauge.testbeds.base import Host, Json
from framegauge.workloads.draws import Draws
from framegauge.workloads.rr import AWAITED_SECONDS, latencies, tail
from framegauge.workloads.traffic import Data, TrafficRecord
from framegauge.workloads.work import CLIENT, SERVER, Flow, Outcome, Step, Work

__all__ = ["Users"]

THOUGHTS, SIZES = range(2)  # what is drawn of each user


class UsersRecord(TrafficRecord):
    """`unfinished`: requests that were due in time, and not answered. `in_time`: answers that came within it."""

    unfinished: int
    in_time: int


@dataclass(frozen=True)
class Users:
    """Users of the last host, on the other hosts in turn. `nagle` None is off."""

    users: int
    mean_think_seconds: float
    responses: Distribution
    request_bytes: int = 200
    duration_seconds: float = 2.0
    sample_seconds: float = 0.01
    nagle: bool | None = None
    seed: int = 1
    name: str = "users"

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """The requested duration."""
        return self.duration_seconds

    def steps(self, user: int) -> Iterator[Step]:
        """The messages of a user, who thinks first: until the time to think alone is longer than the duration."""
        draws = Draws(self.seed)
        thoughts, sizes = (2 * user + purpose for purpose in (THOUGHTS, SIZES))
        # The last request is due after the duration, however fast the answers are.
        waits = np.diff(draws.sums(thoughts, self.mean_think_seconds, self.duration_seconds), prepend=0.0)
        for wait, size in zip(waits.tolist(), self.responses.at(draws.even(sizes, len(waits))).tolist(), strict=True):
            yield Step(CLIENT, self.request_bytes, think_seconds=wait)
            yield Step(SERVER, size)

    def work(self, hosts: Sequence[Host]) -> Work:
        """A connection for each user."""
        server, others = hosts[-1].name, len(hosts) - 1
        flows = [Flow(hosts[user % others].name, server, tuple(self.steps(user))) for user in range(self.users)]
        end = self.duration_seconds + AWAITED_SECONDS
        return Work(flows, end, self.sample_seconds, nodelay=not self.nagle)

    def simulated(self, hosts: Sequence[Host], done: Outcome) -> tuple[Record, Mapping[str, pa.Table]]:
        """The record, and the table of transactions that were due in time and answered."""
        found = done.all_transfers
        # A message's answer is in the next row, if it has begun.
        asked = np.flatnonzero((found["step"] % 2 == 0) & (found["connected_seconds"] < self.duration_seconds))
        following = np.minimum(asked + 1, len(found["step"]) - 1)
        answered = (found["flow"][following] == found["flow"][asked]) & (found["step"][following] % 2 == 1)
        answered &= found["complete"][following] == 1
        request, response = asked[answered], following[answered]
        due, ends = found["connected_seconds"][request], found["end_seconds"][response]
        order = np.argsort(ends, kind="stable")
        columns = {
            "connection": found["flow"][request].astype(np.uint32), "due_seconds": due, "sent_seconds": due,
            "end_seconds": ends, "bytes": found["bytes"][response],
        }  # fmt: skip
        table = pa.table({name: values[order] for name, values in columns.items()})
        unfinished = int((~answered).sum())
        places = (found["flow"][response] % (len(hosts) - 1)).astype(np.int64)
        data = Data(np.full(len(response), len(hosts) - 1), places, found["bytes"][response])
        told: UsersRecord = {
            **data.record(hosts, done, float(max(self.duration_seconds, ends.max(initial=0.0))), None),
            "only_bulk": False,
            "unfinished": unfinished,
            "in_time": int((ends < self.duration_seconds).sum()),
            "not_measured": tail(latencies(table), unfinished)[1],
        }
        return told, {"transactions": table}

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """Nothing beyond the record."""
        return {}

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """latency_p50, _p99 and _p999: from a request to the whole answer, of all requests of the duration.
        transactions: answers within the duration, per second."""
        found, _ = tail(latencies(tables["transactions"]), record["unfinished"])
        return {**found, "transactions": record["in_time"] / self.duration_seconds}
