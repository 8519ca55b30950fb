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
        count, predecessors = len(self.flows.flows), _over(self.flows)
        flows = [
            Flow(
                hosts[clients[copy * count + index]].name, hosts[servers[copy * count + index]].name,
                _steps(flow.bytes, flow.reverse_bytes),
                begin_seconds=flow.start_seconds / self.speed + float(later[copy]),
                after=tuple(copy * count + flow_index for flow_index in flow.after),
                over=None if (predecessor := predecessors[index]) is None else copy * count + predecessor,
            )
            for copy in range(self.copies)
            for index, flow in enumerate(self.flows.flows)
        ]  # fmt: skip
        last = max(flow.begin_seconds for flow in flows)
        payload = sum(flow.bytes + flow.reverse_bytes for flow in self.flows.flows) * self.copies
        return Work(flows, last + limit_seconds(payload), self.sample_seconds)

    def simulated(self, hosts: Sequence[Host], done: Outcome) -> tuple[Record, Mapping[str, pa.Table]]:
        """The record, and the table of flows with what was recorded of each (`replayed`)."""
        flows = self.flows.flows
        forward_bytes, reverse_bytes = (
            np.tile(np.array([getattr(flow, name) for flow in flows], np.int64), self.copies)
            for name in ("bytes", "reverse_bytes")
        )
        transfers = whole(done, int((forward_bytes > 0).sum() + (reverse_bytes > 0).sum()))
        clients, servers = self._ends(hosts)
        flow = transfers["flow"].astype(np.int64)
        # A flow without bytes of the client has one step, which is the server's.
        backwards = (transfers["step"] == 1) | (forward_bytes[flow] == 0)
        data = Data(
            np.where(backwards, servers[flow], clients[flow]), np.where(backwards, clients[flow], servers[flow]),
            transfers["bytes"],
        )  # fmt: skip
        starts, ends = np.full(len(forward_bytes), np.inf), np.zeros(len(forward_bytes))
        np.minimum.at(starts, flow, transfers["start_seconds"])
        np.maximum.at(ends, flow, transfers["end_seconds"])
        recorded = np.tile([np.nan if item.end_seconds is None else item.end_seconds for item in flows], self.copies)
        recorded = recorded - np.tile([item.start_seconds for item in flows], self.copies)
        slowdown, is_missing = (ends - starts) / recorded, np.isnan(recorded)
        copy, indexes = np.divmod(np.arange(len(forward_bytes)), len(flows))
        replayed = pa.table(
            {
                "copy": copy.astype(np.uint32), "flow": indexes.astype(np.uint32),
                "client": [hosts[item].name for item in clients], "server": [hosts[item].name for item in servers],
                "recorded_client": [flows[item].client for item in indexes],
                "recorded_server": [flows[item].server for item in indexes],
                "recorded_start_seconds": np.tile([item.start_seconds for item in flows], self.copies),
                "recorded_completion_seconds": pa.array(recorded, mask=is_missing),
                "after": pa.array([item.after for item in flows] * self.copies, pa.list_(pa.uint32())),
                "connection": [item.connection for item in flows] * self.copies,
                "start_seconds": starts, "end_seconds": ends, "bytes": forward_bytes, "reverse_bytes": reverse_bytes,
                "slowdown": pa.array(slowdown, mask=is_missing),
            }
        )  # fmt: skip
        record: ReplayRecord = {
            **data.record(hosts, done, float(ends.max() - starts.min()), None),
            "sha256": self.flows.sha256,
            "slowdown_median": None if is_missing.all() else float(np.median(slowdown[~is_missing])),
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
        offsets = np.repeat(np.arange(self.copies) * group, len(clients))
        return np.tile(clients, self.copies) + offsets, np.tile(servers, self.copies) + offsets


def places(recording: Recording, hosts: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The places of clients and servers of all flows among these hosts.

    Ends with the name of a host are on it. The others are on the hosts without such, in the order in which they appear,
    and on all in turn where these do not suffice. A flow whose ends fall together goes to the next host.
    """
    named_hosts = {name: index for index, name in enumerate(hosts) if name}
    by_name = {name: named_hosts[name] for name in recording.names if name in named_hosts}
    occupied = set(by_name.values())
    free = [index for index in range(len(hosts)) if index not in occupied]
    turns = [*free, *range(len(hosts))]
    for number, name in enumerate(name for name in recording.names if name not in by_name):
        host_index = turns[number] if number < len(free) else (number - len(free)) % len(hosts)
        by_name[name] = host_index
    clients, servers = (
        np.array([by_name[getattr(flow, side)] for flow in recording.flows]) for side in ("client", "server")
    )
    return clients, np.where(clients == servers, (servers + 1) % len(hosts), servers)


def _over(recording: Recording) -> list[int | None]:
    """Of each flow, the place of the one before it over the same connection; None if it opens one."""
    latest: dict[str, int] = {}
    predecessors: list[int | None] = []
    for index, flow in enumerate(recording.flows):
        predecessors.append(latest.get(flow.connection) if flow.connection else None)
        latest[flow.connection] = index
    return predecessors


def _steps(forward_bytes: int, reverse_bytes: int) -> tuple[Step, ...]:
    return tuple(Step(side, size) for side, size in ((CLIENT, forward_bytes), (SERVER, reverse_bytes)) if size)
