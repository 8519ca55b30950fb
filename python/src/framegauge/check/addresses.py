"""Which addresses of two hosts are probed: those of the interfaces that route to each other. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Address", "Ends", "Route", "candidates", "choose"]

MOST_ADDRESSES = 256


@dataclass(frozen=True)
class Address:
    """An address of a host, and where it is."""

    address: str
    prefix_length: int
    family: int
    interface: str

    def joins(self, other: Address) -> bool:
        """Whether both are in one subnet."""
        try:
            net = ipaddress.ip_network(f"{self.address}/{self.prefix_length}", strict=False)
            return self.family == other.family and ipaddress.ip_address(other.address) in net
        except ValueError:  # what a host calls an address need not be one
            return False


@dataclass(frozen=True)
class Route:
    """How a host would send to an address: `source` is None if it has no way."""

    source: str | None
    interface: str | None = None
    route_mtu_bytes: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class Ends:
    """The addresses between which a pair is probed."""

    source: str
    destination: str
    interface: str | None
    error: str | None = None


def candidates(facts: Mapping[str, Any], family: int, interface: str | None = None) -> list[Address]:
    """Addresses of a host that may be probed, in its own order; of one interface if it is named. Others are asked for
    their way to each, so no host has more than a few hundred."""
    addresses = [
        Address(entry["address"], entry["prefix_length"], entry["family"], device["name"])
        for device in facts["interfaces"]
        if interface in (None, device["name"])
        for entry in device["addresses"]
        if entry["family"] == family
    ]
    return addresses[:MOST_ADDRESSES]


def choose(
    own: Sequence[Address],
    others: Sequence[Address],
    routes: Mapping[str, Route],
    back: Mapping[str, Route],
) -> Ends | None:
    """The ends for probing from `own` to `others`; None if either has no address.

    `routes` are the ways from here to each of `others`, `back` those from there to each of `own`. Best is an
    address from which the far end would answer, then one in a subnet of this host, then the first.
    """
    known = {address.address: address for address in own}
    best: tuple[tuple[bool, bool, bool, int], Ends] | None = None
    for place, other in enumerate(others):
        route = routes.get(other.address, Route(None, error="no answer"))
        leaves = known.get(route.source or "")
        if leaves is None and own:
            # An interface was named that routing would not take: packets leave from its address all the same.
            leaves = next((address for address in own if address.joins(other)), own[0])
        if leaves is None:
            continue
        answers = back.get(leaves.address, Route(None)).source == other.address
        score = (route.source is not None, answers, leaves.joins(other), -place)
        error = None if route.source is not None else route.error
        ends = Ends(leaves.address, other.address, route.interface or leaves.interface, error)
        if best is None or score > best[0]:
            best = score, ends
    return None if best is None else best[1]
