"""QUIC of the invented rack: discovery settles at the smaller MTU at once, and the link is full."""

from __future__ import annotations

import math
from collections.abc import Callable

import pyarrow as pa

from framegauge.testbeds.base import Json
from framegauge.testbeds.fake.model import STARTED_SECONDS, BuiltRack
from framegauge.testbeds.fake.readings import ceilings

__all__ = ["FakeQuic"]

PORT = 40004
BASE_BYTES = 1200
HEADERS_BYTES = {4: 28, 6: 48}
OWN_BYTES = 34  # of a datagram: packet header, stream frame, tag
SEGMENTS = 10  # of a call with GSO
ACK_EVERY, ACK_BYTES = 10, 40


class FakeQuic:
    """The transfers of one rack, to one server."""

    def __init__(self, rack: BuiltRack, spool: Callable[[pa.Table], int]) -> None:
        self._rack, self._spool = rack, spool
        self._served: Json = {}

    def methods(self, host: str, asked: Json) -> dict[str, Callable[[], Json]]:
        """The methods that a host answers."""
        return {
            "quic.serve": self._serve,
            "quic.run": lambda: self._run(host, asked),
            "quic.close": self._close,
        }

    def _serve(self) -> Json:
        self._served = {"bytes": 0, "connections": 0, **_end([], 0, [])}
        return {"port": PORT, "key": "30"}

    def _run(self, client: str, params: Json) -> Json:
        rack, flows, server = self._rack, params["flows"], self._rack.host_at(params["address"])
        mtu = min(rack.mtus[client], rack.mtus[server])
        headers, is_plpmtud = HEADERS_BYTES[rack.up["family"]], params["settings"]["plpmtud"]
        settled = max(BASE_BYTES, mtu - headers) if is_plpmtud else BASE_BYTES
        line = ceilings(rack.up, mtu)["goodput_bits_per_second"] or 1e10
        rate = 0.97 * rack.noise * line * min(1.0, settled / (mtu - headers))
        size, seconds = params["size_bytes"], params["duration_seconds"]
        rtt = rack.up["link"]["rtt_seconds"]
        if size is None:
            lengths, size = [seconds], int(rate * seconds / 8) // flows
        else:
            length = 2 * rtt + 8 * size * flows / rate
            lengths = [length] * max(1, math.ceil(params["repeat_seconds"] / length))
        total_bytes = size * flows * len(lengths)
        count = math.ceil(total_bytes / (settled - OWN_BYTES))
        acks = max(1, count // ACK_EVERY)
        self._count(client, server, count, settled + headers, SEGMENTS if params["settings"]["gso"] else 1)
        self._count(server, client, acks, ACK_BYTES + headers, 1)
        rack.elapsed = max(rack.elapsed, sum(lengths) + 0.01)
        ends = [settled] * flows * len(lengths)
        self._served = {
            "bytes": total_bytes,
            "connections": len(ends),
            **_end([[ACK_BYTES, acks]], acks, [BASE_BYTES] * len(ends)),
        }
        calls = math.ceil(count / SEGMENTS) if params["settings"]["gso"] else count
        return {
            "rounds": len(lengths), "bytes": total_bytes, "written_bytes": total_bytes, "active_seconds": sum(lengths),
            "started_seconds": STARTED_SECONDS, "congestion_control": [params["settings"]["congestion_control"]],
            "transfers": self._spool(_transfers(lengths, flows, rtt + 1e-6, size)),
            **_end([[settled, count]], calls, ends),
        }  # fmt: skip

    def _count(self, sender: str, receiver: str, count: int, packet_bytes: int, per_call: int) -> None:
        """Counts datagrams, of which the kernel is handed so many at once."""
        rack = self._rack
        rack.cast(sender, receiver, count, 1)
        rack.udp[sender]["UdpOutDatagrams"] -= count - math.ceil(count / per_call)
        rack.batched[sender] += count - math.ceil(count / per_call)
        rack.read_bytes[sender] += count * (packet_bytes + 14)

    def _close(self) -> Json:
        return {"refused": 0, **self._served}


def _end(sizes: list[list[int]], calls: int, settled: list[int]) -> Json:
    zero_keys = (
        "refused_calls", "received", "received_aggregates", "probes", "lost_probes", "black_holes", "lost_packets",
    )  # fmt: skip
    return {
        "sizes": [{"payload_bytes": size, "count": count} for size, count in sizes if count],
        "calls": calls,
        **dict.fromkeys(zero_keys, 0),
        "settled_bytes": settled,
        "rtt_seconds": [],
    }


def _transfers(lengths: list[float], flows: int, connect: float, size: int) -> pa.Table:
    """Rounds of flows that begin and end together."""
    rows = [
        {
            "round": index, "flow": flow, "start_seconds": begin, "connected_seconds": begin + connect,
            "end_seconds": begin + length, "bytes": size, "counted_seconds": begin + length, "counted_bytes": size,
        }
        for index, length in enumerate(lengths)
        for begin in [sum(lengths[:index])]
        for flow in range(flows)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows)
