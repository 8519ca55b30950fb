"""Tables that every simulated run has, whatever its workload: one of its flows, and one of what each flow completed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from framegauge.networks.paths import Distances
from framegauge.networks.topologies import node_of
from framegauge.workloads.work import Outcome, Work

__all__ = ["completions", "flows"]


def completions(done: Outcome) -> pa.Table:
    """A row for each round of each flow, such as a transfer or a request with its answer, in the order of flows and
    rounds. Bytes and retransmits are those of both ways; a round that the end of the run cut off is not complete."""
    transfers = done.all_transfers
    begins = _begins(transfers["flow"], transfers["round"])
    # Each message has what its ends have sent again in the round so far.
    resent = sum(
        np.maximum.reduceat(transfers[f"{side}_retransmits"].astype(np.uint64), begins) for side in ("client", "server")
    )
    return pa.table(
        {
            "flow": transfers["flow"][begins].astype(np.uint32),
            "round": transfers["round"][begins].astype(np.uint32),
            "start_seconds": np.minimum.reduceat(transfers["start_seconds"], begins),
            "connected_seconds": transfers["connected_seconds"][begins],
            "end_seconds": np.maximum.reduceat(transfers["end_seconds"], begins),
            "bytes": np.add.reduceat(transfers["bytes"].astype(np.uint64), begins),
            "retransmits": resent,
            "complete": np.minimum.reduceat(transfers["complete"].astype(np.uint32), begins) == 1,
        }
    )


def _begins(*keys: np.ndarray) -> np.ndarray:
    """Where rows begin that have other keys than the row before."""
    changes = np.ones(len(keys[0]), bool)
    changes[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.flatnonzero(changes)


def flows(work: Work, done: Outcome, rounds: pa.Table, network: Mapping[str, Any]) -> pa.Table:
    """A row for each flow, in their order: who, how far apart, when, how much, and what was sent again.

    `active_seconds` is the time of its rounds together, without the pauses between them, and goodput what it carried
    in that time, both ways. A flow that never began has no times and no goodput.
    """
    pairs = [(node_of(item.client), node_of(item.server)) for item in work.flows]
    distances = Distances((node_of(port["from"]), node_of(port["to"])) for port in network["ports"])
    column = {name: rounds.column(name).to_numpy(zero_copy_only=False) for name in rounds.column_names}
    count, flow = len(work.flows), column["flow"]
    starts, ends = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(starts, flow, column["start_seconds"])
    np.maximum.at(ends, flow, column["end_seconds"])
    began = np.isfinite(starts)
    amounts = np.bincount(flow, column["bytes"], count)
    active = np.bincount(flow, column["end_seconds"] - column["start_seconds"], count)
    unknown = active <= 0
    goodput = np.divide(8.0 * amounts, active, out=np.zeros(count), where=~unknown)
    counts = {
        name: pa.array([item[name] for item in done.counts], pa.uint64())
        for name in ("connections", "segments", "retransmits", "timeouts")
    }
    return pa.table(
        {
            "flow": pa.array(np.arange(count, dtype=np.uint32)),
            "client": [item.client for item in work.flows],
            "server": [item.server for item in work.flows],
            "hops": pa.array([distances.between(*ends) for ends in pairs], pa.uint32()),
            "rounds": pa.array(np.bincount(flow, column["complete"], count).astype(np.uint32)),
            "start_seconds": pa.array(starts, mask=~began),
            "end_seconds": pa.array(ends, mask=~began),
            "active_seconds": pa.array(active),
            "bytes": pa.array(amounts.astype(np.uint64)),
            "goodput_bits_per_second": pa.array(goodput, mask=unknown),
            **counts,
        }
    )
