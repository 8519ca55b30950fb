"""The paths between the user's own hosts: their routes, and the packet sizes that they carry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from framegauge.check import plan as check_plan, run as check
from framegauge.errors import AgentLost, Refused
from framegauge.testbeds.base import Host, Place

__all__ = ["narrow", "ways"]


def ways(hosts: Sequence[tuple[Host, str | None]], family: int | None) -> dict[str, Place]:
    """The interface (the named one, if any) and address that each host uses to reach the others; `family` None: over
    IPv4, if it can, or IPv6."""
    prepared = check_plan.prepare(_members(hosts), _asked(1500, family))
    _demand_all(prepared.errors)
    places: dict[str, Place] = {}
    pairs: dict[tuple[str, str], str | None] = {}
    for path in prepared.paths:
        if path.ends is None or path.ends.error is not None or path.ends.interface is None:
            error = path.ends.error if path.ends is not None else None
            pairs.setdefault((path.source, path.destination), error or f"no IPv{path.family} route")
        else:
            pairs[path.source, path.destination] = None
            places.setdefault(path.source, Place(path.ends.interface, path.ends.source))
    for (source, destination), reason in pairs.items():
        if reason is not None:
            raise Refused(f"{source}: found {reason} to {destination}, expected a route")
    return {host.name: places[host.name] for host, _ in hosts}


def narrow(hosts: Sequence[tuple[Host, str | None]], family: int, mtu: Mapping[str, int]) -> Iterator[str]:
    """One line for each path that does not carry packets of the smaller MTU of its ends, by a check of every pair."""
    request = _asked(max(mtu.values()), family)
    prepared = check_plan.prepare(_members(hosts), request)
    pairs = check.run(prepared, request).document["pairs"]
    # The loss of a host is no information about the path to it.
    _demand_all(prepared.errors)
    for pair in pairs:
        least = min(mtu[pair[end]] for end in ("source", "destination"))
        path_mtu = pair["path_mtu_bytes"]
        if path_mtu is None or path_mtu < least:
            finding = "that they do not pass" if path_mtu is None else f"that at most {path_mtu} bytes pass"
            yield f"packets of {least} bytes from {pair['source']} to {pair['destination']}: found {finding}"


def _demand_all(errors: Mapping[str, str]) -> None:
    for name, reason in errors.items():
        raise AgentLost(reason if reason.startswith(name) else f"{name}: {reason}")


def _members(hosts: Sequence[tuple[Host, str | None]]) -> list[check_plan.Member]:
    return [check_plan.Member(host, interface) for host, interface in hosts]


def _asked(mtu: int, family: int | None) -> check_plan.Asked:
    return check_plan.Asked(
        target_mtu=mtu,
        families=None if family is None else (family,),
        flows=1,
        bits_per_second=float("inf"),
        exact=True,
        blame=False,
    )
