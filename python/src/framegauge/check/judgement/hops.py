"""Where on its way a large packet was lost, from small and large packets with limited TTLs.

A hop that answers a large packet has received it. Silence proves nothing by itself: a router may limit how often it
answers. So the loss lies behind the last hop that answered a large one, and no later than the next hop that answers
small ones and never a large one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from framegauge.check.judgement.document import Hop, Mesh, Pair, Trace

__all__ = ["Node", "Segment", "hidden_text", "last_arrival", "locate", "only_bad", "passages", "told_by_trace"]

_ARRIVED = ("expired", "delivered", "too_big")


@dataclass(frozen=True, order=True)
class Node:
    """A host that was checked, by its name, or a router, by the address that it answers from."""

    is_host: bool
    name: str

    def text(self, mesh: Mesh) -> str:
        """For people; a router that is one of the hosts is named."""
        if self.is_host:
            return f"host {self.name}"
        owner = mesh.owners.get(self.name)
        return f"router {self.name}" if owner is None else f"router {self.name} (host {owner})"


@dataclass(frozen=True, order=True)
class Segment:
    """Large packets passed `after` and never reached `before`; `hidden` hops between them answer nothing."""

    after: Node
    before: Node
    hidden: int = 0

    @property
    def host(self) -> tuple[str, str] | None:
        """The host at one end and its direction, if exactly one end is a host."""
        if self.after.is_host == self.before.is_host:
            return None
        return (self.after.name, "sending") if self.after.is_host else (self.before.name, "receiving")

    @property
    def ends(self) -> tuple[Node, Node]:
        """Both ends in an order of their own: the same for both directions."""
        return min(self.after, self.before), max(self.after, self.before)

    @property
    def is_between_routers(self) -> bool:
        """Whether neither end is a host: then no host is to blame."""
        return not self.after.is_host and not self.before.is_host

    def text(self, mesh: Mesh) -> str:
        """For people."""
        return f"between {self.after.text(mesh)} and {self.before.text(mesh)}{hidden_text(self.hidden)}"


def hidden_text(count: int) -> str:
    """That hops were passed of which nobody knows the name."""
    hops = f" ({count} hops between them answer nothing)" if count > 1 else ""
    return " (a hop between them answers nothing)" if count == 1 else hops


def locate(pair: Pair, trace: Trace) -> list[Segment]:
    """Where the flow may lose large packets, the likeliest first; empty if it does not, or the hops do not say.

    The first begins at the last hop that is known to have received a large packet. The others lie behind it: a
    router that did not answer may have passed the packet on all the same.
    """
    last = last_arrival(trace)
    if last >= 0 and trace.hops[last].large in ("delivered", "too_big"):
        return []
    after = Node(True, pair.source) if last < 0 else _node(pair, trace.hops[last])
    segments: list[Segment] = []
    for index in range(last + 1, len(trace.hops)):
        hop = trace.hops[index]
        before = _node(pair, hop) if hop.small in ("expired", "delivered") and hop.large == "silent" else None
        if after is None or before is None or before == after:
            continue
        segments.append(Segment(after, before, index - last - 1))
        after, last = before, index
    return segments


def told_by_trace(trace: Trace) -> tuple[str | None, int | None] | None:
    """Who said during the trace that the packet is too big, and what it said."""
    return next(((hop.large_address, hop.told_mtu) for hop in trace.hops if hop.large == "too_big"), None)


def passages(pair: Pair) -> Iterator[Segment]:
    """Between which neighbours large packets of the pair have passed; hops that answer nothing are counted."""
    for trace in pair.traces:
        before, last = Node(True, pair.source), -1
        for index, hop in enumerate(trace.hops[: last_arrival(trace) + 1]):
            here = _node(pair, hop)
            if here is not None:
                yield Segment(before, here, index - last - 1)
                before, last = here, index


def only_bad(pairs: Iterable[Pair]) -> list[str]:
    """Addresses on the way of every bad flow and of no good one: where flows part, that is the bad branch."""
    bad: list[set[str]] = []
    good: set[str] = set()
    for pair in pairs:
        for trace in pair.traces:
            seen = {hop.address for hop in trace.hops if hop.address is not None and hop.small == "expired"}
            if trace.bad:
                bad.append(seen)
            else:
                good |= seen
    return sorted(set.intersection(*bad) - good) if bad and good else []


def last_arrival(trace: Trace) -> int:
    """The index of the last hop that is known to have received a large packet; -1 if none is."""
    return max((index for index, hop in enumerate(trace.hops) if hop.large in _ARRIVED), default=-1)


def _node(pair: Pair, hop: Hop) -> Node | None:
    if "delivered" in (hop.small, hop.large):
        return Node(True, pair.destination)
    return None if hop.address is None else Node(False, hop.address)
