"""Streams in a simulation: the flows of each `stream.run`, and the answers that the two ends would have given.

A flow begins with the client's greeting, and one of a stated size ends with the server's confirmation, as those of the
generator do (crates/traffic/src/stream.rs). In the tables of transfers, neither counts as data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from framegauge.errors import ProgramFailure
from framegauge.quantities import print_seconds
from framegauge.testbeds.base import Json
from framegauge.workloads.work import CLIENT, SERVER, Flow, Outcome, Step, middle

__all__ = ["CONFIRMATION_BYTES", "GREETING_BYTES", "Part", "answer", "closed", "flows", "samples", "transfers"]

GREETING_BYTES = 48  # crates/traffic/src/hello.rs
CONFIRMATION_BYTES = 8
NONE: Mapping[str, Any] = {"retransmits": None, "srtt_median_seconds": None, "mean_segment_payload_bytes": None}


@dataclass(frozen=True)
class Part:
    """The flows of one `stream.run`: from the number `first` on, `count` of them, between the hosts' NICs `nic`."""

    client: str
    server: str
    reverse: bool
    first: int
    count: int
    size_bytes: int | None
    nic: int | None = None

    @property
    def ends(self) -> tuple[str, str]:
        """The NICs of client and server, by their number from 0; their hosts, if only one of each is used."""
        number = "" if self.nic is None else f".{self.nic + 1}"
        return f"{self.client}{number}", f"{self.server}{number}"

    @property
    def numbers(self) -> range:
        """The numbers of the flows."""
        return range(self.first, self.first + self.count)

    @property
    def data_step(self) -> int:
        """The step that is the data: in reverse, the second."""
        return 1 if self.reverse else 0

    @property
    def retransmits(self) -> str:
        """The column with what the sender of the data sent again, from the begin of a round to the end of a step."""
        return "server_retransmits" if self.reverse else "client_retransmits"

    @property
    def last_step(self) -> int:
        """The step whose end is that of the transfer."""
        return 0 if self.size_bytes is None and not self.reverse else 1


def flows(part: Part, repeat_seconds: float, pacing_bits_per_second: int | None) -> list[Flow]:
    """The flows of a part; those that transfer a size begin their rounds together (crates/traffic/src/stream.rs)."""
    size = part.size_bytes
    steps: tuple[Step, ...]
    if part.reverse:
        steps = (Step(CLIENT, GREETING_BYTES), Step(SERVER, size, closes=size is not None))
    elif size is None:
        steps = (Step(CLIENT, None, GREETING_BYTES),)
    else:
        steps = (Step(CLIENT, GREETING_BYTES + size, GREETING_BYTES, closes=True), Step(SERVER, CONFIRMATION_BYTES))
    repeat_until = None if size is None else repeat_seconds
    flow = Flow(
        *part.ends, steps,
        new_until_seconds=repeat_until,
        pacing_bits_per_second=pacing_bits_per_second,
        barrier=None if size is None or part.count == 1 else part.first,
    )  # fmt: skip
    return [flow] * part.count


def transfers(part: Part, done: Outcome) -> pa.Table:
    """The table `transfers` of a `stream.run`; ProgramFailure if a transfer of a stated size did not end."""
    rows = [_transfers(part, done, index, number) for index, number in enumerate(part.numbers)]
    columns = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
    order = np.argsort(columns["end_seconds"], kind="stable")
    ordered = {name: values[order] for name, values in columns.items()}
    return pa.table(
        {
            **{name: pa.array(values) for name, values in ordered.items()},
            "counted_seconds": ordered["end_seconds"],
            "counted_bytes": ordered["bytes"],
        }
    )


def _transfers(part: Part, done: Outcome, index: int, number: int) -> dict[str, np.ndarray]:
    rows = done.of_flow(number)
    data, last_rows = (
        {name: values[rows["step"] == step] for name, values in rows.items()}
        for step in (part.data_step, part.last_step)
    )
    first_rows = {name: values[rows["step"] == 0] for name, values in rows.items()}
    if part.size_bytes is None:
        return _lasting(part, done, index, number, first_rows, data)
    if not len(last_rows["round"]) or len(last_rows["round"]) < len(first_rows["round"]) or not rows["complete"].all():
        expected = f"{part.size_bytes} bytes within {print_seconds(done.end_seconds)} of simulated time"
        raise ProgramFailure(f"{part.client} to {part.server}: found a transfer without end, expected {expected}")
    rounds = len(last_rows["round"])
    return {
        "round": first_rows["round"].astype(np.uint32),
        "flow": np.full(rounds, index, np.uint32),
        "start_seconds": first_rows["start_seconds"],
        "connected_seconds": first_rows["connected_seconds"],
        "end_seconds": last_rows["end_seconds"],
        "bytes": np.full(rounds, part.size_bytes, np.uint64),
        "retransmits": last_rows[part.retransmits],
    }


def _lasting(
    part: Part,
    done: Outcome,
    index: int,
    number: int,
    first: Mapping[str, np.ndarray],
    data: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """The one row of a flow that lasts as long as the run; if it was never connected, it carried nothing."""
    received_bytes = int(data["bytes"][0]) if len(data["bytes"]) else 0
    connected = float(first["connected_seconds"][0]) if len(first["round"]) else done.end_seconds
    return {
        "round": np.zeros(1, np.uint32),
        "flow": np.full(1, index, np.uint32),
        "start_seconds": np.array([float(first["start_seconds"][0]) if len(first["round"]) else 0.0]),
        "connected_seconds": np.array([connected]),
        "end_seconds": np.array([done.end_seconds]),
        "bytes": np.array([max(0, received_bytes - (0 if part.reverse else GREETING_BYTES))], np.uint64),
        "retransmits": data[part.retransmits][:1] if len(data["bytes"]) else np.zeros(1, np.uint64),
    }


def samples(part: Part, done: Outcome) -> pa.Table:
    """The table `samples` of a sending end: as far as the model has what a kernel tells."""
    arrays: dict[str, list[np.ndarray]] = {}
    payload = done.payload(part.client, part.server)
    for index, number in enumerate(part.numbers):
        rows, begins = done.sampled(number), done.of_flow(number)
        starts = begins["start_seconds"][begins["step"] == 0]
        received = rows["client_bytes" if part.reverse else "server_bytes"].astype(np.int64)
        count = len(received)
        columns = {
            "time_seconds": rows["time_seconds"],
            "round": np.maximum(np.searchsorted(starts, rows["time_seconds"], "right") - 1, 0).astype(np.uint32),
            "flow": np.full(count, index, np.uint32),
            "srtt_seconds": rows["srtt_seconds"],
            "cwnd_segments": rows["cwnd_segments"],
            "mss_bytes": np.full(count, payload, np.uint32),
            "unacked_segments": rows["in_flight_segments"],
            "bytes_acked": np.maximum(0, received - (0 if part.reverse else GREETING_BYTES)).astype(np.uint64),
        }
        for name, values in columns.items():
            arrays.setdefault(name, []).append(values)
    return pa.table({name: np.concatenate(parts) for name, parts in arrays.items()})


def answer(part: Part, done: Outcome, table: pa.Table) -> Json:
    """The answer of `stream.run`, without spools; in reverse, what its sender would say is left to `closed`."""
    ends, starts = table.column("end_seconds").to_numpy(), table.column("start_seconds").to_numpy()
    return {
        "rounds": int(table.column("round").to_numpy().max()) + 1,
        "bytes": int(table.column("bytes").to_numpy().sum()),
        "active_seconds": float(ends.max() - starts.min()),
        "started_seconds": 0.0,
        "congestion_control": [done.congestion_control],
        **(NONE if part.reverse else _sender([part], done)),
        "transfers": None,
        "samples": None,
    }


def closed(parts: Sequence[Part], done: Outcome) -> dict[str, Json]:
    """The answer of `stream.close` of every server, without spools."""
    by_server: dict[str, list[Part]] = {}
    for part in parts:
        by_server.setdefault(part.server, []).append(part)
    return {
        server: {
            "bytes": 0,
            "connections": done.sum("connections", [number for part in server_parts for number in part.numbers]),
            "refused": 0,
            "congestion_control": [done.congestion_control],
            **(_sender(sending, done) if (sending := [part for part in server_parts if part.reverse]) else NONE),
            "samples": None,
        }
        for server, server_parts in by_server.items()
    }


def _resent(part: Part, done: Outcome) -> int:
    """What the sender of the data sent again until its transfers ended, as a kernel's sockets tell it then."""
    flows = [done.of_flow(number) for number in part.numbers]
    return sum(int(rows[part.retransmits][rows["step"] == part.last_step].sum()) for rows in flows)


def _sender(parts: Sequence[Part], done: Outcome) -> Json:
    """What sending sockets say. Segments are counted at both ends, so greetings and confirmations are in the mean."""
    numbers = [number for part in parts for number in part.numbers]
    resent = done.sum("retransmits", numbers)
    fresh_segments = done.sum("segments", numbers) - resent
    payload_bytes = sum(int(done.of_flow(number)["bytes"].sum()) for number in numbers)
    times = np.concatenate([done.sampled(number)["srtt_seconds"] for number in numbers])
    return {
        "retransmits": sum(_resent(part, done) for part in parts),
        "srtt_median_seconds": middle(times[times > 0]),
        "mean_segment_payload_bytes": payload_bytes / fresh_segments if fresh_segments > 0 and payload_bytes else None,
    }
