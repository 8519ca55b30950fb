"""The traffic of the invented rack: streams, requests and synchronized reads. It starts no programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from framegauge.testbeds.base import Json
from framegauge.testbeds.fake.model import STARTED_SECONDS, BuiltRack, FakeError
from framegauge.testbeds.fake.readings import ceilings

__all__ = ["FakeTraffic"]

STREAM_PORT, RR_PORT = 40001, 40002
TUNED_BUFFERS_BYTES = (87_040, 131_072)  # to send and to receive, the kernel's initial sizes
LARGE_CALL_BYTES = 262_144  # without a message size
LIMIT_BYTES = 16_384  # the sabotaged limit of socket buffers
SAMPLE_SECONDS = 0.01
SERVER_SECONDS = 2e-5  # a server's time for a response


class FakeTraffic:
    """The traffic of one rack, in rounds of equal length: handshake, slow start, then a fair share of the ceiling."""

    def __init__(self, rack: BuiltRack, fault: Callable[[str], bool], spool: Callable[[pa.Table], int]) -> None:
        self.rack, self._fault, self._spool = rack, fault, spool

    def methods(self, host: str, asked: Json) -> dict[str, Callable[[], Json]]:
        """The methods that a host answers."""
        return {
            "stream.serve": lambda: self._serve_stream(host, asked),
            "stream.run": lambda: self._stream(host, asked),
            "stream.close": lambda: self._close_stream(host),
            "rr.serve": lambda: self._serve_rr(host, asked),
            "rr.run": lambda: self._rr(host, asked),
            "rr.close": lambda: self._close_rr(host),
            "incast.run": lambda: self._incast(host, asked),
            "sockets.read": lambda: {"sockets": []},  # no connection is older than its run
        }

    def _serve_stream(self, host: str, params: Json) -> Json:
        self.rack.serving[host] = params
        return {"port": STREAM_PORT}

    def _sockets_of(self, params: Json) -> Json:
        """Socket readings: buffers as a kernel keeps them, and calls of the requested size."""
        buffer, message = params.get("socket_buffer_bytes"), params.get("message_bytes") or LARGE_CALL_BYTES
        send, receive = TUNED_BUFFERS_BYTES if buffer is None else (2 * buffer, 2 * buffer)
        return {
            "send_buffer_bytes": min(send, 2 * LIMIT_BYTES) if self._fault("capped") else send,
            "receive_buffer_bytes": receive,
            "largest_call_bytes": LARGE_CALL_BYTES if self._fault("calls") else message,
        }

    def _congestion_control(self) -> str:
        return "reno" if self._fault("congestion_control") else str(self.rack.up["congestion_control"])

    def _rate(self, sender: str, receiver: str, sharers: int, seconds: float = 0.0, nic: int = 0) -> float:
        """The bits per second of one host's payload by a NIC among `sharers` of a link, this long after the start."""
        mtu = self.rack.payload(sender, receiver, seconds, nic) + self.rack.headers
        ceiling = ceilings(self.rack.up, mtu)["goodput_bits_per_second"] or 2e10 * mtu / (mtu + 2000)
        return float(ceiling * 0.999 * self.rack.noise * (1.1 if self._fault("ceiling") else 1) / sharers)

    def _sharers(self, server: str) -> int:
        """The number of clients of a server, which follows from the serving hosts."""
        names, serving = self.rack.names, len(self.rack.serving)
        if len(names) == 2 or (serving == 1 and server != names[-1]):
            return 1
        return len(names) - (1 if serving == len(names) else serving)

    @property
    def _rtt(self) -> float:
        return float(self.rack.up["link"]["rtt_seconds"] * (0.5 if self._fault("rtt") else 1))

    def _one_transfer(self, size: int, rate: float, payload: int) -> float:
        doublings = max(0.0, math.log2(min(size, rate * self._rtt / 8 + 1) / (10 * payload)))
        return self._rtt * (2 + doublings) + 8 * size / rate

    def _stream(self, client: str, params: Json) -> Json:
        if self._fault("lost_stream"):
            raise FakeError(-32007, "the far end of the stream went away", {"what": "stream"})
        rack, (server, nic) = self.rack, self.rack.place(params["address"])
        if rack.is_black_hole(client, server):
            raise FakeError(-32007, "the far end of the stream is silent", {"what": "stream"})
        flows, size = params["flows"], params["size_bytes"]
        payload, pace = rack.payload(client, server, nic=nic), params["pacing_bits_per_second"]
        if size is None:
            rate = self._rate(client, server, self._sharers(server), nic=nic)
            rate = min(rate, (pace or rate) * flows)
            lengths = [float(params["duration_seconds"])]
            size = int(rate * lengths[0] / 8) // flows
        else:
            lengths = self._rounds(client, server, size * flows, params["repeat_seconds"], pace and pace * flows, nic)
        rounds, total_bytes = len(lengths), size * flows * len(lengths)
        sender, receiver = (server, client) if params["reverse"] else (client, server)
        segments = 0
        for moment, count in self._opened(lengths):
            rack.connect(client, server, count * flows, nic, moment)
            segments += rack.move(sender, receiver, size * flows * count, 1, nic, moment)
        rack.elapsed = max(rack.elapsed, sum(lengths) + 0.01)
        samples = _samples(lengths, flows, self._rtt, size, payload)
        readings: Json = {
            "retransmits": 0,
            "srtt_median_seconds": self._rtt + 0.001,
            "mean_segment_payload_bytes": total_bytes / segments,
            "path_mtu": [payload + rack.headers],
            "sender_mss_bytes": [payload],
            **(
                {}
                if (of_each := params.get("subflows")) is None
                else {"subflows": [1 if self._fault("subflows") else of_each]}
            ),
            "max_pacing_bits_per_second": [None if pace is None or self._fault("pacing") else pace // 8 * 8],
        }
        quiet: Json = {name: [] if isinstance(value, list) else None for name, value in readings.items()}
        if params["reverse"]:
            rack.sending[server] = {**readings, "samples": self._spool(samples)}
        return {
            "rounds": rounds,
            "bytes": total_bytes,
            "active_seconds": sum(lengths),
            "started_seconds": STARTED_SECONDS,
            "congestion_control": [rack.up["congestion_control"]],
            **self._sockets_of(params),
            "transfers": self._spool(_transfers(lengths, flows, self._rtt + 1e-6, size)),
            **({**quiet, "samples": None} if params["reverse"] else {**readings, "samples": self._spool(samples)}),
        }

    def _rounds(
        self, client: str, server: str, size: int, repeat_seconds: float, pace: int | None, nic: int
    ) -> list[float]:
        """The duration of each round, at the MTUs in force when it begins, and at most at the pace of all flows."""
        lengths: list[float] = []
        while not lengths or sum(lengths) < repeat_seconds:
            now = sum(lengths)
            rate = self._rate(client, server, self._sharers(server), now, nic)
            rate = min(rate, pace or rate)
            lengths.append(self._one_transfer(size, rate, self.rack.payload(client, server, now, nic)))
        return lengths

    def _opened(self, lengths: Sequence[float]) -> list[tuple[float, int]]:
        """Groups of successive rounds with the same MTUs: the start of the first, and their number."""
        groups: list[tuple[float, int]] = []
        for number in range(len(lengths)):
            now = sum(lengths[:number])
            if groups and all(self.rack.mtus_at(groups[-1][0], nic) == self.rack.mtus_at(now, nic) for nic in (0, 1)):
                groups[-1] = (groups[-1][0], groups[-1][1] + 1)
            else:
                groups.append((now, 1))
        return groups

    def _close_stream(self, host: str) -> Json:
        """The serving end's answer; it has sending sockets only in reverse."""
        defaults: Json = {"retransmits": 0, "srtt_median_seconds": None, "mean_segment_payload_bytes": None}
        defaults |= {"path_mtu": [], "sender_mss_bytes": [], "max_pacing_bits_per_second": [], "samples": None}
        readings = self.rack.sending.pop(host, defaults)
        return {
            "bytes": 0,
            "connections": 1,
            "refused": 0,
            "congestion_control": [self._congestion_control()],
            **self._sockets_of(self.rack.serving.get(host, {})),
            **readings,
        }

    def _serve_rr(self, host: str, params: Json) -> Json:
        self.rack.nodelay[host] = params["nodelay"]
        return {"port": RR_PORT}

    def _rr(self, client: str, params: Json) -> Json:
        """Latencies of RTT, server time and both messages on the line, with a tail; Nagle delays messages in two
        writes."""
        rack, server = self.rack, self.rack.host_at(params["address"])
        random = np.random.default_rng((params["seed"], rack.number))
        seconds, line = params["duration_seconds"], self._rate(client, server, 1)
        latency = self._rtt + SERVER_SECONDS + 8 * (params["request_bytes"] + params["response_bytes"]) / line
        latency += 0.04 if params["header_bytes"] and not params["nodelay"] else 0.0
        rate = params["rate_per_second"] or params["connections"] / latency / 1.1
        count = max(1, int(rate * seconds))
        due = np.arange(count) * (seconds / count)
        delays = latency / rack.noise * (1 + random.exponential(0.05, count))
        rack.connect(client, server, params["connections"])
        rack.move(client, server, params["request_bytes"], count)
        rack.move(server, client, params["response_bytes"], count)
        rack.elapsed = max(rack.elapsed, seconds + 0.01)
        table = pa.table(
            {
                "connection": np.arange(count) % params["connections"],
                "due_seconds": due,
                "sent_seconds": due,
                "end_seconds": due + delays,
            }
        )
        return {
            "requests": count,
            "bytes": count * (params["request_bytes"] + params["response_bytes"]),
            "active_seconds": seconds,
            "started_seconds": STARTED_SECONDS,
            "congestion_control": [rack.up["congestion_control"]],
            "nodelay": [params["nodelay"]],
            "late_requests": 0,
            "unfinished_requests": 0,
            "transactions": self._spool(table),
        }

    def _incast(self, client: str, params: Json) -> Json:
        """Rounds of an RTT and the answers on the client's link, which carries those of all servers one after the
        other."""
        rack, rounds = self.rack, params["rounds"]
        begin = end = self._rtt + SERVER_SECONDS
        ends = []
        for entry in params["servers"]:
            server, size = rack.host_at(entry["address"]), entry["response_bytes"]
            rack.connect(client, server, 1)
            rack.move(client, server, params["request_bytes"], rounds)
            rack.move(server, client, size, rounds)
            rack.answered[server] = {"requests": rounds, "bytes": rounds * (params["request_bytes"] + size)}
            end += 8 * size / self._rate(server, client, 1)
            ends.append(end)
        rack.elapsed = max(rack.elapsed, rounds * end + 0.01)
        sizes = [entry["response_bytes"] for entry in params["servers"]]
        begins = np.arange(rounds) * end
        flows = np.repeat(np.arange(len(ends), dtype=np.uint32), rounds)
        return {
            "bytes": rounds * sum(sizes),
            "active_seconds": rounds * end,
            "started_seconds": STARTED_SECONDS,
            "handshake_seconds": begin,
            "congestion_control": [rack.up["congestion_control"]],
            "nodelay": [params["nodelay"]],
            "retransmits": 0,
            "timeouts": 0,
            "rounds": self._spool(_spans(np.arange(rounds), None, begins, begins + end, np.full(rounds, sum(sizes)))),
            "responses": self._spool(
                _spans(
                    np.tile(np.arange(rounds), len(ends)), flows, np.tile(begins, len(ends)),
                    np.tile(begins, len(ends)) + np.repeat(ends, rounds), np.repeat(sizes, rounds),
                )
            ),
        }  # fmt: skip

    def _close_rr(self, host: str) -> Json:
        return {
            "requests": 0, "bytes": 0, "connections": 1, "refused": 0,
            "congestion_control": [self._congestion_control()],
            "nodelay": [self.rack.nodelay[host] != self._fault("nodelay")],
            "retransmits": 0, "timeouts": 0, "mean_segment_payload_bytes": None,
            **self.rack.answered.pop(host, {}),
        }  # fmt: skip


def _spans(
    rounds: np.ndarray, flows: np.ndarray | None, begins: np.ndarray, ends: np.ndarray, sizes: np.ndarray
) -> pa.Table:
    """Rounds, or answers by flow, with their times and bytes."""
    return pa.table(
        {
            "round": pa.array(rounds, pa.uint32()), **({} if flows is None else {"flow": flows}),
            "start_seconds": begins, "end_seconds": ends, "bytes": pa.array(sizes, pa.uint64()),
        }
    )  # fmt: skip


def _samples(lengths: Sequence[float], flows: int, rtt: float, size: int, payload: int) -> pa.Table:
    """The samples of sending sockets, every SAMPLE_SECONDS and at the end of each transfer; they share one queue
    evenly."""
    parts, begin = [], 0.0
    for index, length in enumerate(lengths):
        elapsed = np.append(np.arange(SAMPLE_SECONDS, length, SAMPLE_SECONDS), length)
        times = np.tile(elapsed, flows)
        of_flow = np.repeat(np.arange(flows), len(elapsed))
        parts.append(np.stack([begin + times, np.full(len(times), index), of_flow, times, size * times / length]))
        begin += length
    seconds, number, flow, elapsed, acked = np.concatenate(parts, axis=1)
    cwnd = np.minimum(10 * 2 ** np.minimum(elapsed / 0.01, 6), 100)
    return pa.table(
        {
            "time_seconds": seconds,
            "round": pa.array(number, pa.uint32()),
            "flow": pa.array(flow, pa.uint32()),
            "srtt_seconds": np.full(len(seconds), rtt + 0.001),
            "cwnd_segments": pa.array(cwnd, pa.uint32(), safe=False),
            "mss_bytes": pa.array(np.full(len(seconds), payload), pa.uint32()),
            "bytes_acked": pa.array(acked, pa.uint64(), safe=False),
        }
    )


def _transfers(lengths: Sequence[float], flows: int, connect: float, size: int) -> pa.Table:
    times = [sum(lengths[:index]) for index in range(len(lengths))]
    rows = [
        {
            "round": index, "flow": flow, "start_seconds": times[index], "connected_seconds": times[index] + connect,
            "end_seconds": times[index] + span, "bytes": size, "retransmits": 0, "counted_seconds": times[index] + span,
            "counted_bytes": size,
        }
        for index, span in enumerate(lengths)
        for flow in range(flows)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows)
