"""replay: recorded flows again, on another network, or on many hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from framegauge.files.recordings import Recording
from framegauge.record import Record
from framegauge.testbeds.base import Host, Json
from framegauge.workloads.traffic import Data, TrafficRecord, limit_seconds, whole
from framegauge.workloads.work import CLIENT, SERVER, Flow, Outcome, Step, Work

__all__ = ["Replay", "places"]


class ReplayRecord(TrafficRecord):
    """`sha256`: of the recording. `slowdown_median`: of simulated by recorded completion time, where it is known."""

    sha256: str
    slowdown_median: float | None


@dataclass(frozen=True)
class Replay:
    """The flows of a recording by each of `copies` groups of hosts; `speed` divides their starts.

    The client of a flow sends its bytes, and when these have arrived, the server its own. A flow has a connection of
    its own, or goes on over that of the flow before it with the same `connection`. Each copy but the first begins later
    by up to `shift_seconds`, drawn evenly.
    """

    flows: Recording
    recording: str
    ends: str = "spread"
    copies: int = 1
    speed: float = 1.0
    shift_seconds: float = 0.0
    sample_seconds: float = 0.01
    seed: int = 0
    name: str = "replay"

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """The time of the recording; a flow may begin later than it did."""
        del bits_per_second
        return max(flow.end_seconds or flow.start_seconds for flow in self.flows.flows) / self.speed

    def work(self, hosts: Sequence[Host]) -> Work:
        """The flows of the first copy in the order of the recording, then those of the next."""
        clients, servers = self._ends(hosts)
        later = np.random.default_rng(self.seed).uniform(0.0, self.shift_seconds, self.copies)
        later[0] = 0.0
        count, before = len(self.flows.flows), _over(self.flows)
        found = [
            Flow(
                hosts[clients[copy * count + place]].name, hosts[servers[copy * count + place]].name,
                _steps(flow.bytes, flow.reverse_bytes),
                begin_seconds=flow.start_seconds / self.speed + float(later[copy]),
                after=tuple(copy * count + each for each in flow.after),
                over=None if (over := before[place]) is None else copy * count + over,
            )
            for copy in range(self.copies)
            for place, flow in enumerate(self.flows.flows)
        ]  # fmt: skip
        last = max(flow.begin_seconds for flow in found)
        payload = sum(flow.bytes + flow.reverse_bytes for flow in self.flows.flows) * self.copies
        return Work(found, last + limit_seconds(payload), self.sample_seconds)

    def simulated(self, hosts: Sequence[Host], done: Outcome) -> tuple[Record, Mapping[str, pa.Table]]:
        """The record, and the table of flows with what was recorded of each (`replayed`)."""
        flows = self.flows.flows
        sent, back = (
            np.tile(np.array([getattr(flow, name) for flow in flows], np.int64), self.copies)
            for name in ("bytes", "reverse_bytes")
        )
        found = whole(done, int((sent > 0).sum() + (back > 0).sum()))
        clients, servers = self._ends(hosts)
        flow = found["flow"].astype(np.int64)
        # A flow without bytes of the client has one step, which is the server's.
        backwards = (found["step"] == 1) | (sent[flow] == 0)
        data = Data(
            np.where(backwards, servers[flow], clients[flow]), np.where(backwards, clients[flow], servers[flow]),
            found["bytes"],
        )  # fmt: skip
        starts, ends = np.full(len(sent), np.inf), np.zeros(len(sent))
        np.minimum.at(starts, flow, found["start_seconds"])
        np.maximum.at(ends, flow, found["end_seconds"])
        recorded = np.tile([np.nan if each.end_seconds is None else each.end_seconds for each in flows], self.copies)
        recorded = recorded - np.tile([each.start_seconds for each in flows], self.copies)
        slowdown, unknown = (ends - starts) / recorded, np.isnan(recorded)
        copy, place = np.divmod(np.arange(len(sent)), len(flows))
        replayed = pa.table(
            {
                "copy": copy.astype(np.uint32), "flow": place.astype(np.uint32),
                "client": [hosts[each].name for each in clients], "server": [hosts[each].name for each in servers],
                "recorded_client": [flows[each].client for each in place],
                "recorded_server": [flows[each].server for each in place],
                "recorded_start_seconds": np.tile([each.start_seconds for each in flows], self.copies),
                "recorded_completion_seconds": pa.array(recorded, mask=unknown),
                "after": pa.array([each.after for each in flows] * self.copies, pa.list_(pa.uint32())),
                "connection": [each.connection for each in flows] * self.copies,
                "start_seconds": starts, "end_seconds": ends, "bytes": sent, "reverse_bytes": back,
                "slowdown": pa.array(slowdown, mask=unknown),
            }
        )  # fmt: skip
        record: ReplayRecord = {
            **data.record(hosts, done, float(ends.max() - starts.min()), None),
            "sha256": self.flows.sha256,
            "slowdown_median": None if unknown.all() else float(np.median(slowdown[~unknown])),
        }
        return record, {"replayed": replayed}

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """Nothing beyond the record."""
        return {}

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """The metrics of a run.

        goodput: all payload over the time from the first start to the last end. completion_time: the mean over the
        flows of the time from the start to the last byte.
        """
        starts, ends = (tables["replayed"].column(f"{name}_seconds").to_numpy() for name in ("start", "end"))
        return {
            "goodput": 8.0 * record["bytes"] / record["active_seconds"],
            "completion_time": float(np.mean(ends - starts)),
        }

    def _ends(self, hosts: Sequence[Host]) -> tuple[np.ndarray, np.ndarray]:
        """The places of the hosts of all flows: clients and servers."""
        group = len(hosts) // self.copies
        names = tuple(host.name for host in hosts[:group])
        clients, servers = places(self.flows, names if self.copies == 1 else ("",) * group)
        first = np.repeat(np.arange(self.copies) * group, len(clients))
        return np.tile(clients, self.copies) + first, np.tile(servers, self.copies) + first


def places(recording: Recording, hosts: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The places of clients and servers of all flows among these hosts.

    Ends with the name of a host are on it. The others are on the hosts without such, in the order in which they appear,
    and on all in turn where these do not suffice. A flow whose ends fall together goes to the next host.
    """
    known = {name: place for place, name in enumerate(hosts) if name}
    found = {name: known[name] for name in recording.names if name in known}
    taken = set(found.values())
    free = [place for place in range(len(hosts)) if place not in taken]
    turns = [*free, *range(len(hosts))]
    for number, name in enumerate(name for name in recording.names if name not in found):
        at = turns[number] if number < len(free) else (number - len(free)) % len(hosts)
        found[name] = at
    clients, servers = (
        np.array([found[getattr(flow, side)] for flow in recording.flows]) for side in ("client", "server")
    )
    return clients, np.where(clients == servers, (servers + 1) % len(hosts), servers)


def _over(recording: Recording) -> list[int | None]:
    """Of each flow, the place of the one before it over the same connection; None if it opens one."""
    last: dict[str, int] = {}
    found: list[int | None] = []
    for place, flow in enumerate(recording.flows):
        found.append(last.get(flow.connection) if flow.connection else None)
        last[flow.connection] = place
    return found


def _steps(sent: int, back: int) -> tuple[Step, ...]:
    return tuple(Step(side, size) for side, size in ((CLIENT, sent), (SERVER, back)) if size)
