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

    def _run(self, client: str, asked: Json) -> Json:
        rack, server = self._rack, self._rack.host_at(asked["address"])
        flows, numbers, due = _schedule(asked)
        count, size = len(due), asked["size_bytes"]
        line = 8 * (size + HEADERS_BYTES) / (rack.up["link"]["bits_per_second"] or 10e9)
        random = np.random.default_rng(rack.number)
        delay = (rack.up["link"]["rtt_seconds"] / 2 + line) / rack.noise * (1 + random.exponential(0.05, count))
        came = STARTED_SECONDS + due + delay
        order = np.argsort(came, kind="stable")
        rows = {"flow": pa.array(flows, pa.uint32()), "sequence": pa.array(numbers, pa.uint32())}
        table = pa.table({**rows, "received_seconds": came})
        self._came, self._bytes = table.take(pa.array(order)), count * size
        family = rack.up["family"]
        rack.cast(client, server, count, fragments(size, rack.mtus[client], family))
        rack.elapsed = max(rack.elapsed, float(asked["duration_seconds"]) + 0.01)
        return {
            "sent": count,
            "bytes": count * size,
            "dropped_by_host": 0,
            "active_seconds": asked["duration_seconds"],
            "started_seconds": STARTED_SECONDS,
            "clock": CLOCK,
            "datagrams": self._spool(pa.table({**rows, "due_seconds": due, "sent_seconds": due})),
        }

    def _close(self) -> Json:
        none = {"flow": pa.array([], pa.uint32()), "sequence": pa.array([], pa.uint32())}
        came = pa.table({**none, "received_seconds": pa.array([], pa.float64())}) if self._came is None else self._came
        self._came = None
        found = {"received": len(came), "bytes": self._bytes, "refused": 0, "clock": CLOCK}
        return {**found, "datagrams": self._spool(came)}


def _schedule(asked: Json) -> tuple[Any, Any, Any]:
    """Flow, number and time of each datagram, in the order in which they are due (crates/traffic/src/datagrams.rs)."""
    gap, spurt, pause = 1 / asked["rate_per_second"], asked["spurt_seconds"], asked["pause_seconds"]
    flows = np.repeat(np.arange(asked["flows"]), int(asked["duration_seconds"] / gap) + 1)
    numbers = np.tile(np.arange(int(asked["duration_seconds"] / gap) + 1), asked["flows"])
    cycle = gap if spurt is None else spurt + pause
    due = numbers * gap + flows * cycle / asked["flows"]
    if spurt is not None:
        due += np.floor(numbers * gap / spurt) * pause
    kept = due < asked["duration_seconds"]
    order = np.argsort(due[kept], kind="stable")
    return flows[kept][order], numbers[kept][order], due[kept][order]
