"""RDMA over Ethernet (RoCE): the path MTU of a port, and what the MTU of its interface leaves for it. Readings only.

A port uses one of five path MTUs, the largest that its interface's MTU has room for when the port comes up. `levels` of
`check.facts` tell from which MTU on Linux offers each. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Port", "ports_of"]

Json = Mapping[str, Any]
ETHERNET = "Ethernet"


@dataclass(frozen=True)
class Port:
    """A port on an interface. `active`: the path MTU in use; None: not known, for `why`. `levels`: (path MTU, the MTU
    of the interface from which on it is offered), from the smallest on."""

    name: str
    interface: str
    mtu: int
    active: int | None
    why: str
    levels: Sequence[tuple[int, int]]

    def offered(self, mtu: int) -> int | None:
        """The path MTU that an interface with this MTU leaves; None: not even the smallest."""
        return max((path for path, least in self.levels if least <= mtu), default=None)

    @property
    def largest(self) -> tuple[int, int]:
        """The largest path MTU that there is, and the MTU that it needs."""
        return self.levels[-1]

    def wrong(self, target: int) -> str | None:
        """What is to be known of it before the MTU becomes `target`, in one sentence; None where nothing changes."""
        now, then = self.offered(self.mtu), self.offered(target)
        has = f"{self.name} on {self.interface} with MTU {self.mtu}"
        if self.active is None:
            if now == then:
                return None
            return (
                f"{has}: its path MTU is not known ({self.why}); an MTU of {self.mtu} leaves {now or 'none'}, "
                f"{target} {then or 'none'}"
            )
        if self.active > (now or 0):
            return (
                f"{has} uses a path MTU of {self.active}, for which Linux asks an MTU of {self.needed(self.active)}: "
                "its packets may be dropped as giants"
            )
        if now is not None and self.active < now:
            return (
                f"{has} uses a path MTU of {self.active}, although {now} fits: the port or its programs set it, or it "
                "came up before the MTU was raised"
            )
        return None if then == now else f"{has} uses a path MTU of {self.active}; {self._then(target, then)}"

    def _then(self, target: int, then: int | None) -> str:
        path, least = self.largest
        if then == path:
            return f"{path} fits from {least} on, and there is no larger one: {target} does no more for RDMA"
        return f"{then or 'none'} fits an MTU of {target}, and {path}, the largest, needs {least}"

    def needed(self, path_mtu: int) -> int:
        """The MTU of the interface from which on a path MTU is offered."""
        return next((least for path, least in self.levels if path >= path_mtu), self.levels[-1][1])


def ports_of(facts: Json | None) -> Iterator[Port]:
    """The ports on Ethernet of which the interface is known, in the answer of `check.facts`."""
    for port in (facts or {}).get("rdma") or ():
        if port["link_layer"] in (None, ETHERNET) and port["interface"] and port["mtu"] and port["levels"]:
            levels = sorted((level["path_mtu"], level["mtu"]) for level in port["levels"])
            yield Port(
                f"RDMA port {port['device']}/{port['port']}", port["interface"], port["mtu"], port["active_mtu"],
                port["error"] or "", levels,
            )  # fmt: skip
