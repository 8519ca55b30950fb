"""What simulated traffic has in common: from the messages of a run to its record and metrics.

Runs may have thousands of hosts and hundreds of thousands of flows, so all of it is done by column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from framegauge.errors import ProgramFailure
from framegauge.quantities import print_seconds
from framegauge.record import Record
from framegauge.testbeds.base import Host
from framegauge.workloads.base import jain
from framegauge.workloads.work import Outcome

__all__ = ["GRACE_SECONDS", "SLOWEST_BITS_PER_SECOND", "Data", "TrafficRecord", "limit_seconds", "shares", "whole"]

GRACE_SECONDS = 30.0
SLOWEST_BITS_PER_SECOND = 1e6  # a slower run is considered stuck


class TrafficRecord(Record):
    """`timeouts`: retransmission timeouts of all connections, at both ends; None where a kernel does not count them."""

    timeouts: int | None


@dataclass(frozen=True)
class Data:
    """The messages of a run that are its data, by column; hosts are given by their places."""

    senders: np.ndarray
    receivers: np.ndarray
    bytes: np.ndarray

    def received(self, hosts: Sequence[Host]) -> dict[str, int]:
        """What each host received that received anything."""
        sums = np.zeros(len(hosts), np.int64)
        np.add.at(sums, self.receivers, self.bytes.astype(np.int64))
        return {hosts[index].name: int(sums[index]) for index in np.unique(self.receivers)}

    def record(
        self, hosts: Sequence[Host], done: Outcome, active_seconds: float, transfer_bytes: int | None
    ) -> TrafficRecord:
        """The record of a run whose data this is."""
        received = self.received(hosts)
        senders = [hosts[index].name for index in np.unique(self.senders)]
        numbers = range(len(done.counts))
        resent = done.sum("retransmits", numbers)
        fresh_segments = done.sum("segments", numbers) - resent
        payload_bytes = int(done.all_transfers["bytes"].sum())
        return {
            "senders": senders,
            "receivers": list(received),
            "received_bytes": received,
            "bytes": sum(received.values()),
            "transfer_bytes": transfer_bytes,
            "congestion_control": {name: [done.congestion_control] for name in dict.fromkeys([*senders, *received])},
            "srtt_median_seconds": None,
            # Segments are counted at both ends, so requests are in the mean.
            "mean_segment_payload_bytes": payload_bytes / fresh_segments
            if fresh_segments > 0 and payload_bytes
            else None,
            "refused": 0,
            "active_seconds": active_seconds,
            "retransmits": resent,
            "timeouts": done.sum("timeouts", numbers),
        }


def limit_seconds(payload_bytes: int) -> float:
    """After how long a run is considered stuck in which one link carries so much."""
    return GRACE_SECONDS + 8.0 * payload_bytes / SLOWEST_BITS_PER_SECOND


def whole(done: Outcome, messages: int) -> Mapping[str, np.ndarray]:
    """All transfers by column, if there are so many and all are complete; ProgramFailure otherwise."""
    transfers = done.all_transfers
    complete = int((transfers["complete"] == 1).sum())
    if complete < messages:
        expected = f"{messages} within {print_seconds(done.end_seconds)} of simulated time"
        raise ProgramFailure(f"found {complete} messages that came whole, expected {expected}")
    return transfers


def shares(rates: np.ndarray) -> dict[str, float]:
    """The metrics of how evenly something was shared, by the bytes per second of each: fairness, and the goodput of the
    slowest; none of a single one."""
    if len(rates) < 2 or not (rates > 0).any():
        return {}
    return {"fairness": jain(rates.tolist()), "smallest_goodput": 8.0 * float(rates.min())}
