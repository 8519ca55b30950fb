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
        server, client_count = hosts[-1].name, len(hosts) - 1
        flows = [Flow(hosts[user % client_count].name, server, tuple(self.steps(user))) for user in range(self.users)]
        end = self.duration_seconds + AWAITED_SECONDS
        return Work(flows, end, self.sample_seconds, nodelay=not self.nagle)

    def simulated(self, hosts: Sequence[Host], done: Outcome) -> tuple[Record, Mapping[str, pa.Table]]:
        """The record, and the table of transactions that were due in time and answered."""
        transfers = done.all_transfers
        # A message's answer is in the next row, if it has begun.
        requests = np.flatnonzero(
            (transfers["step"] % 2 == 0) & (transfers["connected_seconds"] < self.duration_seconds)
        )
        following = np.minimum(requests + 1, len(transfers["step"]) - 1)
        is_answered = (transfers["flow"][following] == transfers["flow"][requests]) & (
            transfers["step"][following] % 2 == 1
        )
        is_answered &= transfers["complete"][following] == 1
        request, response = requests[is_answered], following[is_answered]
        due, ends = transfers["connected_seconds"][request], transfers["end_seconds"][response]
        order = np.argsort(ends, kind="stable")
        columns = {
            "connection": transfers["flow"][request].astype(np.uint32), "due_seconds": due, "sent_seconds": due,
            "end_seconds": ends, "bytes": transfers["bytes"][response],
        }  # fmt: skip
        table = pa.table({name: values[order] for name, values in columns.items()})
        unfinished = int((~is_answered).sum())
        receivers = (transfers["flow"][response] % (len(hosts) - 1)).astype(np.int64)
        data = Data(np.full(len(response), len(hosts) - 1), receivers, transfers["bytes"][response])
        record: UsersRecord = {
            **data.record(hosts, done, float(max(self.duration_seconds, ends.max(initial=0.0))), None),
            "only_bulk": False,
            "unfinished": unfinished,
            "in_time": int((ends < self.duration_seconds).sum()),
            "not_measured": tail(latencies(table), unfinished)[1],
        }
        return record, {"transactions": table}

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """Nothing beyond the record."""
        return {}

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """latency_p50, _p99 and _p999: from a request to the whole answer, of all requests of the duration.
        transactions: answers within the duration, per second."""
        quantiles, _ = tail(latencies(tables["transactions"]), record["unfinished"])
        return {**quantiles, "transactions": record["in_time"] / self.duration_seconds}
