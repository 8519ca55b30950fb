"""What became of datagrams, by the tables of both ends: lost, second copies, one-way delay, its variation, the order.

Every datagram has its flow and its number within it, so that each that came is matched with when it was sent. Of one
that came more than once the first counts, and one that did not come has an unlimited delay (RFC 7679 section 5.1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from framegauge.errors import BadAnswer

__all__ = ["OneWay", "one_way"]

Ints = np.ndarray[tuple[int], np.dtype[np.int64]]
Floats = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass(frozen=True)
class OneWay:
    """The datagrams of a run, in the order of flows and numbers; times since the sender's start.

    `received` is NaN for those that did not come; it is by the receiver's clock, less the sender's start.
    """

    flows: Ints
    numbers: Ints
    due: Floats
    sent: Floats
    received: Floats
    copies: int  # that came after the first
    strangers: int  # that came, and that nobody sent
    reordered: int

    @property
    def lost(self) -> int:
        """Those that did not come."""
        return int(np.isnan(self.received).sum())

    def within(self, begin: float, end: float) -> OneWay:
        """Those that became due in this time. The other counts stay those of all."""
        mask = (self.due >= begin) & (self.due <= end)
        return replace(
            self, flows=self.flows[mask], numbers=self.numbers[mask], due=self.due[mask], sent=self.sent[mask],
            received=self.received[mask],
        )  # fmt: skip

    def delays(self) -> Floats:
        """The one-way delays of those that came; they mean something only if both ends read the same clock."""
        delays: Floats = self.received - self.sent
        return delays[~np.isnan(delays)]

    def variations(self) -> Floats:
        """The size of each delay variation (RFC 3393): between datagrams of a flow with successive numbers that both
        came. That clocks differ has no effect on it."""
        delays = self.received - self.sent
        follows = (np.diff(self.flows) == 0) & (np.diff(self.numbers) == 1)
        sizes: Floats = np.abs(np.diff(delays))[follows]
        return sizes[~np.isnan(sizes)]

    def late(self) -> Floats:
        """By how much each was sent after it was due."""
        delays: Floats = self.sent - self.due
        return delays


def one_way(sent: pa.Table, came: pa.Table, started_seconds: float) -> OneWay:
    """The datagrams of both tables; `came` has times of the clock on which the sender began at `started_seconds`."""
    keys, received_keys = _keys(sent), _keys(came)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    if len(keys) and (np.diff(keys) == 0).any():
        raise BadAnswer("the datagrams that were sent: found the same number twice in a flow, expected each once")
    unique, first = np.unique(received_keys, return_index=True)
    is_sent = np.isin(unique, keys)
    received = np.full(len(keys), np.nan)
    times = came.column("received_seconds").to_numpy() - started_seconds
    received[np.searchsorted(keys, unique[is_sent])] = times[first[is_sent]]
    due, sent_seconds = (sent.column(f"{name}_seconds").to_numpy()[order] for name in ("due", "sent"))
    return OneWay(
        flows=keys >> 32,
        numbers=keys & 0xFFFFFFFF,
        due=due,
        sent=sent_seconds,
        received=received,
        copies=len(received_keys) - len(unique),
        strangers=int((~is_sent).sum()),
        reordered=_reordered(received_keys[np.sort(first[is_sent])]),
    )


def _keys(table: pa.Table) -> Ints:
    flows, numbers = (table.column(name).to_numpy().astype(np.int64) for name in ("flow", "sequence"))
    keys: Ints = (flows << 32) | numbers
    return keys


def _reordered(keys: Ints) -> int:
    """How many of these, in the order in which they came, have a number below that of one of their flow that came
    before (Type-P-Reordered, RFC 4737 section 3.3)."""
    by_flow = keys[np.argsort(keys >> 32, kind="stable")]
    # The flow is the higher part, so the greatest so far within a flow is the greatest so far of all before it, too.
    return int((by_flow[1:] < np.maximum.accumulate(by_flow)[:-1]).sum()) if len(by_flow) else 0
