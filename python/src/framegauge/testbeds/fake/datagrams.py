"""Datagrams of the invented rack: all arrive, half an RTT and their own time on the line after they were due."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from framegauge.networks.fragments import fragments
from framegauge.testbeds.base import Json
from framegauge.testbeds.fake.model import STARTED_SECONDS, BuiltRack

__all__ = ["FakeDatagrams"]

PORT = 40003
HEADERS_BYTES = 66  # of a frame, its wire overhead among them, and of UDP over IPv4
CLOCK = "invented"


class FakeDatagrams:
    """The datagrams of one rack, to one receiver."""

    def __init__(self, rack: BuiltRack, spool: Callable[[pa.Table], int]) -> None:
        self._rack, self._spool = rack, spool
        self._came: pa.Table | None = None
        self._bytes = 0

    def methods(self, host: str, asked: Json) -> dict[str, Callable[[], Json]]:
        """The methods that a host answers."""
        return {
            "datagrams.serve": lambda: {"port": PORT},
            "datagrams.run": lambda: self._run(host, asked),
            "datagrams.close": self._close,
        }

    def _run(self, client: str, params: Json) -> Json:
        rack, server = self._rack, self._rack.host_at(params["address"])
        flows, numbers, due = _schedule(params)
        count, size = len(due), params["size_bytes"]
        line = 8 * (size + HEADERS_BYTES) / (rack.up["link"]["bits_per_second"] or 10e9)
        random = np.random.default_rng(rack.number)
        delay = (rack.up["link"]["rtt_seconds"] / 2 + line) / rack.noise * (1 + random.exponential(0.05, count))
        received_seconds = STARTED_SECONDS + due + delay
        order = np.argsort(received_seconds, kind="stable")
        rows = {"flow": pa.array(flows, pa.uint32()), "sequence": pa.array(numbers, pa.uint32())}
        table = pa.table({**rows, "received_seconds": received_seconds})
        self._came, self._bytes = table.take(pa.array(order)), count * size
        family = rack.up["family"]
        rack.cast(client, server, count, fragments(size, rack.mtus[client], family))
        rack.elapsed = max(rack.elapsed, float(params["duration_seconds"]) + 0.01)
        return {
            "sent": count,
            "bytes": count * size,
            "dropped_by_host": 0,
            "active_seconds": params["duration_seconds"],
            "started_seconds": STARTED_SECONDS,
            "clock": CLOCK,
            "datagrams": self._spool(pa.table({**rows, "due_seconds": due, "sent_seconds": due})),
        }

    def _close(self) -> Json:
        empty = {"flow": pa.array([], pa.uint32()), "sequence": pa.array([], pa.uint32())}
        received = (
            pa.table({**empty, "received_seconds": pa.array([], pa.float64())}) if self._came is None else self._came
        )
        self._came = None
        counts = {"received": len(received), "bytes": self._bytes, "refused": 0, "clock": CLOCK}
        return {**counts, "datagrams": self._spool(received)}


def _schedule(params: Json) -> tuple[Any, Any, Any]:
    """Flow, number and time of each datagram, in the order in which they are due (crates/traffic/src/datagrams.rs)."""
    gap, spurt, pause = 1 / params["rate_per_second"], params["spurt_seconds"], params["pause_seconds"]
    flows = np.repeat(np.arange(params["flows"]), int(params["duration_seconds"] / gap) + 1)
    numbers = np.tile(np.arange(int(params["duration_seconds"] / gap) + 1), params["flows"])
    cycle = gap if spurt is None else spurt + pause
    due = numbers * gap + flows * cycle / params["flows"]
    if spurt is not None:
        due += np.floor(numbers * gap / spurt) * pause
    mask = due < params["duration_seconds"]
    order = np.argsort(due[mask], kind="stable")
    return flows[mask][order], numbers[mask][order], due[mask][order]
