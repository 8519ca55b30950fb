"""stream: long transfers from framegauge's generator, in one direction, the other, or both at the same time."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NotRequired

import pyarrow as pa

from framegauge.loads import waits_for_all
from framegauge.networks import pacing
from framegauge.record import Record
from framegauge.testbeds.base import Host, Json, Progress, afterwards
from framegauge.workloads import sockets, streams_simulated as simulations
from framegauge.workloads.base import Executed, Go, Phases, Program, Spool, jain, pairs, side_by_side
from framegauge.workloads.streams_simulated import Part
from framegauge.workloads.transfers import answers, column, flow_rates, flow_times, of_groups, share_of_few, tables_of
from framegauge.workloads.work import Outcome, Work

__all__ = ["Stream", "busy_seconds", "request", "serve"]

SLOWEST_BITS_PER_SECOND = 1e6  # a slower transfer is considered stuck
UNSHAPED_BITS_PER_SECOND = 10e9  # a guess, for progress only
GRACE_SECONDS = 30.0
LEAST_SAMPLES = 400  # of each flow in a simulated run of a stated duration


def serve(
    stack: ExitStack, server: Host, token: str, sample_seconds: float, closed: dict[str, Json], **rest: Any
) -> int:
    """Serves streams on a host until the stack is left; returns the port. `closed` then has the answer of
    `stream.close`. `rest` overrides the usual params, or adds to them."""
    params = {"token": token, "address": server.address, "sample_seconds": sample_seconds, **rest}
    port = int(server.agent.request("stream.serve", params)["port"])
    stack.enter_context(afterwards(lambda: closed.update({server.name: server.agent.request("stream.close")})))
    return port


def request(server: Host, port: int, token: str, **rest: Any) -> Json:
    """The params of `stream.run`, with defaults for those that are not in `rest`."""
    defaults = {
        "flows": 1, "size_bytes": None, "duration_seconds": None, "repeat_seconds": 0.0, "reverse": False,
        "sample_seconds": 0.01, "pacing_bits_per_second": None,
    }  # fmt: skip
    return {"address": server.address, "port": port, "token": token, **defaults, **rest}


def busy_seconds(intervals: Iterable[tuple[float, float]]) -> float:
    """The time covered by at least one of the intervals: the length of their union."""
    total, covered_end = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, covered_end))
        covered_end = max(covered_end, end)
    return total


@dataclass(frozen=True)
class _Run:
    """One `stream.run`: client, server, NIC, direction, flows, and the name under which its spools are kept."""

    client: Host
    server: Host
    nic: int  # at both ends, from 0
    reverse: bool
    flows: int
    label: str

    @property
    def sender(self) -> Host:
        """The host that sends the data."""
        return self.server if self.reverse else self.client

    @property
    def receiver(self) -> Host:
        """The host that receives the data."""
        return self.client if self.reverse else self.server


class StreamRecord(Record):
    """`runs`: the result of each client and direction; `served`: that of each server, by host; `few`: the senders that
    the study names. `sharing` has the few, the many and those between (evidence.few), and their goodput."""

    runs: list[Json]
    served: dict[str, Json]
    few: list[str]
    sharing: NotRequired[Json]


@dataclass(frozen=True)
class Stream(Phases):
    """Streams with either `size_bytes` (one transfer of that size per flow, in rounds) or `duration_seconds`.

    `offered_bits_per_second` limits each client's payload (the kernel paces payload, so all MTUs carry the same). With
    `nics`, a client has `flows` on each of its NICs, to the server's NIC of the same number. `senders` has the number
    of flows of each host to the `receiver` (None: the last), or to that which `receivers` has for it, instead of
    `pattern` and `flows`; `few` names those whose share is compared with that of the others, joined by commas.
    `socket_buffer_bytes` and `message_bytes` are those of both ends; None: the kernel tunes buffers, calls are large.
    `pacing` of each flow is a level of that factor; `subflows` are those of each connection by MPTCP, None: plain TCP.
    """

    size_bytes: int | None = None
    duration_seconds: float | None = None
    flows: int = 1
    reverse: bool = False
    bidir: bool = False
    pattern: str = "one-to-one"
    senders: Mapping[str, int] | None = None
    receiver: str | None = None
    receivers: Mapping[str, str] | None = None
    few: str | None = None
    offered_bits_per_second: int | None = None
    nics: int = 1
    socket_buffer_bytes: int | None = None
    message_bytes: int | None = None
    pacing: str | None = None
    subflows: int | None = None
    repeat_seconds: float = 0.5
    sample_seconds: float = 0.01
    name: str = "stream"
    needs: ClassVar[Sequence[Program]] = ()

    @property
    def _is_fan_in(self) -> bool:
        return waits_for_all(self.name, {"pattern": self.pattern, "senders": self.senders})

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """The time on the wire of one client, or the requested duration."""
        if self.size_bytes is None:
            return self.duration_seconds or 0.0
        bits = 8.0 * self.size_bytes * max((self.senders or {}).values(), default=self.flows)
        return max(self.repeat_seconds, bits / (bits_per_second or UNSHAPED_BITS_PER_SECOND))

    @contextmanager
    def prepared(self, hosts: Sequence[Host], token: str) -> Iterator[Go]:
        """Serves on all servers. Then runs all clients at the same time, and closes; raises the agents' errors."""
        planned = self._plan(hosts)
        closed: dict[str, Json] = {}
        patience = GRACE_SECONDS + 4 * self.expected_seconds(None)
        patience += 8.0 * (self.size_bytes or 0) * sum(run.flows for run in planned) / SLOWEST_BITS_PER_SECOND
        with ExitStack() as stack:
            servers = {run.server.name: run.server for run in planned}
            ports = {name: self._serve(stack, host, token, closed) for name, host in servers.items()}

            def task(run: _Run, progress: Progress | None) -> Callable[[Host], Json]:
                params = self._request(run, ports[run.server.name], token)
                return lambda host: host.agent.request(
                    "stream.run", params, timeout_seconds=patience, on_progress=progress
                )

            def go(on_progress: Progress | None) -> Executed:
                # Only the first reports progress, because all progress alike.
                tasks = [(run.client, task(run, None if index else on_progress)) for index, run in enumerate(planned)]
                results = side_by_side(tasks)
                stack.close()
                return Executed(self._record(planned, results, closed), _spools(planned, results, closed))

            yield go

    def work(self, hosts: Sequence[Host]) -> Work:
        """The flows of every client; they end with their duration, or when the last round of the slowest has ended."""
        parts = self._parts(hosts)
        flows = [
            flow for part in parts for flow in simulations.flows(part, self.repeat_seconds, self._pacing(part.count))
        ]
        limit_seconds = (
            GRACE_SECONDS + self.repeat_seconds + 8.0 * (self.size_bytes or 0) * len(flows) / SLOWEST_BITS_PER_SECOND
        )
        if self.duration_seconds is None:
            return Work(flows, limit_seconds, self.sample_seconds)
        # Often enough to tell a start-up from what follows, in a run of any length (`evidence.steady`).
        return Work(flows, self.duration_seconds, min(self.sample_seconds, self.duration_seconds / LEAST_SAMPLES))

    def simulated(self, hosts: Sequence[Host], done: Outcome) -> tuple[Record, Mapping[str, pa.Table]]:
        """The record, and the tables under the names that spools have."""
        planned, parts = self._plan(hosts), self._parts(hosts)
        tables = {
            f"transfers{run.label}": simulations.transfers(part, done) for run, part in zip(planned, parts, strict=True)
        }
        answers = [
            simulations.answer(part, done, tables[f"transfers{run.label}"])
            for run, part in zip(planned, parts, strict=True)
        ]
        if self.sample_seconds > 0:
            tables |= {
                f"samples{run.label}": simulations.samples(part, done) for run, part in zip(planned, parts, strict=True)
            }
        return self._record(planned, answers, simulations.closed(parts, done)), tables

    def _parts(self, hosts: Sequence[Host]) -> list[Part]:
        """The planned runs with the numbers of their flows."""
        planned, is_multi_nic = self._plan(hosts), self.nics > 1
        firsts = itertools.accumulate((run.flows for run in planned), initial=0)
        return [
            Part(
                run.client.name, run.server.name, run.reverse, first_flow, run.flows, self.size_bytes,
                run.nic if is_multi_nic else None,
            )
            for run, first_flow in zip(planned, firsts, strict=False)
        ]  # fmt: skip

    @property
    def _sizes(self) -> dict[str, int]:
        """The requested sizes; left out by default, for older agents that do not know the keys."""
        sizes = {"socket_buffer_bytes": self.socket_buffer_bytes, "message_bytes": self.message_bytes}
        return {name: value for name, value in sizes.items() if value is not None}

    @property
    def _asked(self) -> dict[str, int]:
        """What both ends are told of their sockets, where anything is."""
        return self._sizes if self.subflows is None else {**self._sizes, "subflows": self.subflows}

    def _serve(self, stack: ExitStack, server: Host, token: str, closed: dict[str, Json]) -> int:
        """Serves on one host, on all NICs if several are used."""
        any_address = "::" if ":" in server.address else "0.0.0.0"
        address = {"address": any_address} if self.nics > 1 else {}
        return serve(stack, server, token, self.sample_seconds, closed, **address, **self._asked)

    def _request(self, run: _Run, port: int, token: str) -> Json:
        return request(
            run.server,
            port,
            token,
            address=run.server.addresses[run.nic],
            flows=run.flows,
            size_bytes=self.size_bytes,
            duration_seconds=self.duration_seconds,
            # Only sizes have rounds: with a duration there is nothing to repeat.
            repeat_seconds=self.repeat_seconds if self.size_bytes is not None else 0.0,
            reverse=run.reverse,
            sample_seconds=self.sample_seconds,
            pacing_bits_per_second=self._pacing(run.flows),
            **self._asked,
        )

    def _pacing(self, flows: int) -> int | None:
        """The rate of each of a client's flows on a NIC."""
        offered = self.offered_bits_per_second
        return pacing.bits_per_second(self.pacing) if offered is None else offered // (flows * self.nics)

    def _offered(self, planned: Sequence[_Run]) -> int | None:
        """What all clients offer together; None if they are not limited."""
        rates = [(self._pacing(run.flows) or 0) * run.flows for run in planned]
        return None if self.offered_bits_per_second is None else sum(rates)

    def _plan(self, hosts: Sequence[Host]) -> list[_Run]:
        directions = (False, True) if self.bidir else (self.reverse,)
        routes = self._talking(hosts)
        is_multiple = len(routes) * self.nics * len(directions) > 1

        def label(client: Host, server: Host, nic: int, is_reverse: bool) -> str:
            nic_label = f"-nic{nic + 1}" if self.nics > 1 else ""
            return (
                f"-{client.name}-{server.name}{nic_label}" + ("-reverse" if is_reverse else "") if is_multiple else ""
            )

        return [
            _Run(client, server, nic, is_reverse, flows, label(client, server, nic, is_reverse))
            for client, server, flows in routes
            for nic in range(self.nics)
            for is_reverse in directions
        ]

    def _talking(self, hosts: Sequence[Host]) -> list[tuple[Host, Host, int]]:
        """Client, server and number of flows of every pair."""
        if self.senders is None:
            return [(client, server, self.flows) for client, server in pairs(self.pattern, hosts)]
        by_name = {host.name: host for host in hosts}
        default, receivers = self.receiver or hosts[-1].name, self.receivers or {}
        return [(by_name[name], by_name[receivers.get(name, default)], flows) for name, flows in self.senders.items()]

    def _record(self, planned: Sequence[_Run], results: Sequence[Json], closed: Mapping[str, Json]) -> StreamRecord:
        run_results = list(zip(planned, results, strict=True))
        sending = [(run.sender.name, closed[run.server.name] if run.reverse else result) for run, result in run_results]
        received: dict[str, int] = {}
        control: dict[str, set[str]] = {}
        # Readings of sending sockets come from the end that sent: forward from `run`, in reverse from `close`.
        sender_readings = [result for run, result in zip(planned, results, strict=True) if not run.reverse]
        sender_readings += [closed[name] for name in {run.server.name: None for run in planned if run.reverse}]
        for run, result in zip(planned, results, strict=True):
            received[run.receiver.name] = received.get(run.receiver.name, 0) + result["bytes"]
            control.setdefault(run.client.name, set()).update(result["congestion_control"])
        for name, answer in closed.items():
            control.setdefault(name, set()).update(answer["congestion_control"])
        return {
            "senders": list(dict.fromkeys(run.sender.name for run in planned)),
            "receivers": list(received),
            "received_bytes": received,
            "bytes": sum(received.values()),
            "transfer_bytes": self.size_bytes,
            # One connection after the other, none in parallel, and the kernel's own window: the case that the model of
            # a new connection covers.
            "alone_bytes": self.size_bytes if sum(run.flows for run in planned) == 1 and not self._asked else None,
            "offered_bits_per_second": self._offered(planned),
            "congestion_control": {host: sorted(names) for host, names in control.items()},
            "srtt_median_seconds": _median(reading["srtt_median_seconds"] for reading in sender_readings),
            "mean_segment_payload_bytes": _mean(reading["mean_segment_payload_bytes"] for reading in sender_readings),
            "retransmits": sum(reading["retransmits"] or 0 for reading in sender_readings),
            "refused": sum(reading["refused"] for reading in closed.values()),
            "pacing": sockets.paced(sending),
            "subflows": sockets.subflows(sending),
            "nics": self.nics,
            "sizes": self._sizes,
            "sockets": sockets.sizes([*((run.client.name, result) for run, result in run_results), *closed.items()])
            if self._sizes
            else {},
            "runs": [
                {
                    "client": run.client.name, "server": run.server.name, "nic": run.nic + 1, "reverse": run.reverse,
                    "flows": run.flows, "transfers": f"transfers{run.label}", "result": result,
                }
                for run, result in zip(planned, results, strict=True)
            ],
            "served": dict(closed),
            "few": self.few.split(",") if self.few else [],
        }  # fmt: skip

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """The evidence of a run.

        `handshake_seconds`: the fastest connection set-up. `active_seconds`: the time in which transfers were under
        way, on the clock that the agents share. `received_bytes`: the bytes delivered in that time; with a duration,
        data still on its way at the end counts in neither. `last_start_seconds`: when the last connection was opened,
        on the same clock. `sharing` with the goodput of each group, where there is one. `ahead_bytes`: the
        most that a transfer delivered beyond its rate. `answers`: how many flows delivered anything.
        """
        shared = {**record["sharing"], "groups": of_groups(record, tables)} if "sharing" in record else None
        intervals, handshakes, ahead = [], [], []
        received: dict[str, int] = {}
        for run, table in tables_of(record, tables):
            base = run["result"]["started_seconds"]
            starts, connected, ends = (column(table, name) for name in ("start", "connected", "counted"))
            intervals += [(base + start, base + end) for start, end in zip(starts, ends, strict=True)]
            ahead += sockets.ahead_of(pacing.bits_per_second(self.pacing), table)
            handshakes += [ready - start for start, ready in zip(starts, connected, strict=True)]
            receiver = run["client" if run["reverse"] else "server"]
            received[receiver] = received.get(receiver, 0) + sum(table.column("counted_bytes").to_pylist())
        return {
            "handshake_seconds": min(handshakes, default=None),
            "last_start_seconds": max((start for start, _ in intervals), default=None),
            "active_seconds": busy_seconds(intervals),
            "received_bytes": received,
            "ahead_bytes": max(ahead, default=None),
            "answers": answers(record, tables),
            **({} if shared is None else {"sharing": shared}),
        }

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """The metrics of a run.

        goodput: `received_bytes` over `active_seconds`. completion_time (sizes only): the median over transfers,
        including connection set-up; where several hosts send to one, that of the slowest flow, for which the receiver
        waits. fairness: Jain's index over the flows. smallest_goodput: that of the slowest flow,
        0 if it received nothing. share_of_few: the mean goodput per flow of the few over that of the many.
        """
        values: dict[str, float] = {}
        total_bytes = sum(record["received_bytes"].values())
        if record["active_seconds"] > 0 and total_bytes > 0:
            values["goodput"] = 8.0 * total_bytes / record["active_seconds"]
        flows, times = [], []
        for _, table in tables_of(record, tables):
            flows += flow_rates(table)
            times += flow_times(table)
        if self.size_bytes is not None and times:
            median = statistics.median(itertools.chain(*times))
            values["completion_time"] = max(map(statistics.median, times)) if self._is_fan_in else median
        if len(flows) > 1 and any(flows):
            values["fairness"] = jain(flows)
            values["smallest_goodput"] = 8.0 * min(flows)
        if "sharing" in record and (share := share_of_few(record)) is not None:
            values["share_of_few"] = share
        return values


def _median(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return statistics.median(numbers) if numbers else None


def _mean(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return statistics.fmean(numbers) if numbers else None


def _spools(planned: Sequence[_Run], results: Sequence[Json], closed: Mapping[str, Json]) -> list[Spool]:
    """The spools of both ends, so that none is left behind in an agent."""
    is_single = len(planned) == 1
    rows = [
        (f"transfers{run.label}", run.client, result["transfers"]) for run, result in zip(planned, results, strict=True)
    ]
    for run, result in zip(planned, results, strict=True):
        rows.append((f"samples{run.label}" + ("-receiver" if run.reverse else ""), run.client, result["samples"]))
    for server in {run.server.name: run.server for run in planned}.values():
        backward = any(run.reverse for run in planned if run.server.name == server.name)
        name = ("samples" if backward else "samples-receiver") if is_single else f"samples-served-by-{server.name}"
        rows.append((name, server, closed[server.name]["samples"]))
    return [Spool(name, host.name, number) for name, host, number in rows if number is not None]
