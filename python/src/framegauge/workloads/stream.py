"""stream: one long transfer a flow, from our own generator; the first host asks, the second serves."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from framegauge.testbeds.base import Host, Json, Progress
from framegauge.workloads.base import Executed, Spool

__all__ = ["Stream"]

SLOWEST_BITS_PER_SECOND = 1e6  # slower than this is taken for stuck
UNSHAPED_BITS_PER_SECOND = 10e9  # a guess, for progress only
GRACE_SECONDS = 30.0


@dataclass(frozen=True)
class Stream:
    """Exactly one of `size_bytes` (a transfer of that size a flow, in rounds) and `duration_seconds`."""

    size_bytes: int | None = None
    duration_seconds: float | None = None
    flows: int = 1
    reverse: bool = False
    repeat_seconds: float = 0.5
    sample_seconds: float = 0.01
    name: str = "stream"

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """The time on the wire, or the time that is asked for."""
        if self.size_bytes is None:
            return self.duration_seconds or 0.0
        bits = 8.0 * self.size_bytes * self.flows
        return max(self.repeat_seconds, bits / (bits_per_second or UNSHAPED_BITS_PER_SECOND))

    def run(self, hosts: Sequence[Host], token: str, on_progress: Progress | None) -> Executed:
        """Serve on the second host, run on the first, close; errors are the agents'."""
        client, server = hosts[0], hosts[1]
        serving = server.agent.request(
            "stream.serve", {"token": token, "address": server.address, "sample_seconds": self.sample_seconds}
        )
        patience = GRACE_SECONDS + 4 * self.expected_seconds(None)
        patience += 8.0 * (self.size_bytes or 0) * self.flows / SLOWEST_BITS_PER_SECOND
        try:
            result = client.agent.request(
                "stream.run",
                {
                    "address": server.address,
                    "port": serving["port"],
                    "token": token,
                    "flows": self.flows,
                    "size_bytes": self.size_bytes,
                    "duration_seconds": self.duration_seconds,
                    # Rounds are for sizes: with a duration there is nothing to repeat.
                    "repeat_seconds": self.repeat_seconds if self.size_bytes is not None else 0.0,
                    "reverse": self.reverse,
                    "sample_seconds": self.sample_seconds,
                },
                timeout_seconds=patience,
                on_progress=on_progress,
            )
        finally:
            closed = server.agent.request("stream.close")
        # What sending sockets said comes from the end that sent.
        sent = closed if self.reverse else result
        sender, receiver = (server, client) if self.reverse else (client, server)
        record: Json = {
            "client": client.name,
            "server": server.name,
            "sender": sender.name,
            "receiver": receiver.name,
            "congestion_control": {
                client.name: result["congestion_control"],
                server.name: closed["congestion_control"],
            },
            "bytes": result["bytes"],
            "transfer_bytes": self.size_bytes,
            "srtt_median_seconds": sent["srtt_median_seconds"],
            "mean_segment_payload_bytes": sent["mean_segment_payload_bytes"],
            "refused": closed["refused"],
            "result": result,
            "served": closed,
        }
        # Taken from both ends, so that no spool is left behind in an agent.
        spools = [
            Spool(name, host.name, answer[key])
            for name, host, answer, key in (
                ("transfers", client, result, "transfers"),
                ("samples", sender, sent, "samples"),
                ("samples-receiver", receiver, result if self.reverse else closed, "samples"),
            )
            if answer.get(key) is not None
        ]
        return Executed(record, spools)

    def evidence(self, tables: Mapping[str, pa.Table]) -> Json:
        """`handshake_seconds`: the fastest connection set-up of the run."""
        transfers = tables.get("transfers")
        if transfers is None or not transfers.num_rows:
            return {"handshake_seconds": None}
        pairs = zip(*(transfers.column(f"{name}_seconds").to_pylist() for name in ("start", "connected")), strict=True)
        return {"handshake_seconds": min(connected - start for start, connected in pairs)}

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """goodput: bytes over the time in which rounds were active. completion_time (sizes only): the
        median over the transfers of the run, connection set-up included."""
        result = record["result"]
        found: dict[str, float] = {}
        if result["active_seconds"] > 0 and result["bytes"] > 0:
            found["goodput"] = 8.0 * result["bytes"] / result["active_seconds"]
        transfers = tables.get("transfers")
        if self.size_bytes is not None and transfers is not None and transfers.num_rows:
            starts = transfers.column("start_seconds").to_pylist()
            ends = transfers.column("end_seconds").to_pylist()
            times = [end - start for start, end in zip(starts, ends, strict=True)]
            found["completion_time"] = statistics.median(times)
        return found
