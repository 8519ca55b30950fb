"""The MTUs of a level of the factor `mtu`: of hosts, of the storage network, of routes; and what they have to fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from framegauge.files.types import ROUTES, STORAGE, Problem
from framegauge.study.network_rules import SMALLEST_IPV6_MTU
from framegauge.study.testbed import Testbed

__all__ = ["host_mtus", "mtu_problems", "route_mtu", "storage_mtu"]

SMALLEST_ROUTE_MTU = 576  # what every host takes in (RFC 791 section 3.1)

Level = int | Mapping[str, int]
Where = tuple[str | int, ...]


def host_mtus(level: Level, names: list[str]) -> dict[str, int]:
    """The MTU of every host at a level; KeyError if the level has none for a host."""
    if not isinstance(level, Mapping):
        return dict.fromkeys(names, level)
    return {name: level[name] if name in level else level["default"] for name in names}


def storage_mtu(level: Level, names: Sequence[str]) -> int | None:
    """The MTU of the storage network at a level; None if it is that of its hosts, which have these names."""
    return level.get(STORAGE) if isinstance(level, Mapping) and STORAGE not in names else None


def route_mtu(level: Level, names: Sequence[str]) -> int | None:
    """The MTU at which hosts with these names hold all their routes; None if routes have that of their interface."""
    return level.get(ROUTES) if isinstance(level, Mapping) and ROUTES not in names else None


def mtu_problems(
    bed: Testbed, levels: Sequence[Level], has_changes: bool = False, overlays: Sequence[object] = ()
) -> Iterator[Problem]:
    """Problems with levels: hosts that are not there or have none, and MTUs that the network or IPv6 does not allow.
    `has_changes`: the study makes some while it runs; `overlays`: levels of that factor."""
    names = bed.host_names
    for index, level in enumerate(levels):
        path = ("factors", "mtu", "levels", index)
        if isinstance(level, Mapping):
            strange = [name for name in level if name not in (*names, "default", STORAGE, ROUTES)]
            absent = [name for name in names if name not in level and "default" not in level]
            if strange or absent:
                expected = f"an MTU for each of {names[0]} to {names[-1]}" + (
                    "" if len(names) == 2 else ", or a default"
                )
                yield Problem(path, dict(level), expected)
                continue
        yield from _of_storage(bed, (*path, STORAGE), storage_mtu(level, names))
        yield from _of_routes(bed, (*path, ROUTES), level, "changes" if has_changes else _first(overlays))
        # What some hosts have above that of the port is lost only towards hosts that have it, too.
        yield from _fits(bed, ("factors", "mtu"), min(host_mtus(level, names).values()))


def _of_storage(bed: Testbed, path: Where, mtu: int | None) -> Iterator[Problem]:
    """Problems with the MTU of a storage network of its own."""
    if mtu is None:
        return
    if bed.capabilities.is_virtual:
        yield Problem(path, mtu, "no such key on testbed simulator, which simulates one NIC per host")
    if bed.nics_of_hosts < 2:
        expected = "no such key unless hosts have a second NIC (topology: {rack: {nics: 2}} gives each two)"
        yield Problem(path, mtu, expected)
    yield from _fits(bed, path, mtu)


def _first(overlays: Sequence[object]) -> str | None:
    return next((f"overlay {overlay}" for overlay in overlays if overlay not in (None, "none")), None)


def _of_routes(bed: Testbed, path: Where, level: Level, beside: str | None) -> Iterator[Problem]:
    """Problems with the MTU of routes: it is to keep packets small, so no interface may have less, and what sets routes
    `beside` it would overrule it."""
    mtu, names = route_mtu(level, bed.host_names), bed.host_names
    if mtu is None:
        return
    if not bed.capabilities.names_hosts:
        yield Problem(path, mtu, f"no such key on testbed {bed.kind}: routes are held on a rack only")
    if beside is not None:
        yield Problem(path, mtu, f"no such key with {beside}, which has routes of its own")
    second = storage_mtu(level, names)
    most = min([*host_mtus(level, names).values(), *([] if second is None else [second])])
    least = SMALLEST_IPV6_MTU if bed.family == 6 else SMALLEST_ROUTE_MTU
    if not least <= mtu <= most:
        yield Problem(path, mtu, f"{least} to {most}, the smallest MTU of this level")


def _fits(bed: Testbed, path: Where, mtu: int) -> Iterator[Problem]:
    if bed.family == 6 and mtu < SMALLEST_IPV6_MTU:
        yield Problem(path, mtu, f"at least {SMALLEST_IPV6_MTU} with family: 6 (RFC 8200)")
    if bed.capabilities.has_fabric and mtu > bed.link.port_mtu:
        expected = f"at most link.port_mtu {bed.link.port_mtu}: the switch drops larger frames"
        yield Problem(path, mtu, expected)
