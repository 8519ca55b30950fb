"""How far hosts are from each other: the number of links between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Distances"]


class Distances:
    """The hops (links) of the shortest paths of a network, given as its links FROM, TO."""

    def __init__(self, links: Iterable[tuple[str, str]]) -> None:
        neighbours: dict[str, set[str]] = {}
        for node, peer in links:
            neighbours.setdefault(node, set()).add(peer)
            neighbours.setdefault(peer, set()).add(node)
        self._beside = {name: sorted(peers) for name, peers in neighbours.items()}
        # Most hosts have one link and lie on no path between others, and many share a switch.
        self._known: dict[tuple[str, ...], Mapping[str, int]] = {}

    def between(self, one: str, other: str) -> int | None:
        """The hops between two hosts; None if no path is known."""
        if one == other:
            return 0
        begins, ends = self._beside.get(one, []), self._beside.get(other, [])
        if other in begins:
            return 1
        from_here = self._from(tuple(begins))
        return min((from_here[name] + 2 for name in ends if name in from_here), default=None)

    def _from(self, begins: tuple[str, ...]) -> Mapping[str, int]:
        """The hops from the nearest of these to everything with more than one link."""
        if begins in self._known:
            return self._known[begins]
        distances = dict.fromkeys(begins, 0)
        pending = deque(begins)
        while pending:
            name = pending.popleft()
            for neighbour in self._inner(self._beside[name]):
                if neighbour not in distances:
                    distances[neighbour] = distances[name] + 1
                    pending.append(neighbour)
        self._known[begins] = distances
        return distances

    def _inner(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if len(self._beside[name]) > 1]
