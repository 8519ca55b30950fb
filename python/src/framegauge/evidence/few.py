"""Who the few are in a run: the senders whose share is compared with that of the many. Record in, groups out.

They follow from the network that the testbed built (`networks.entrances`), or the study names them. Without a network,
as on the kernel's own link, they must be named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from framegauge.evidence.bonds import members
from framegauge.evidence.nic import HEADERS_BYTES
from framegauge.metrics import SHARE_OF_FEW
from framegauge.networks.entrances import FEW, MANY, Group, entrances, groups
from framegauge.testbeds.base import Conditions, Json

__all__ = ["readings", "sharing"]

MOST_FETCHERS = 64  # each looks for the paths of all hosts, which every record keeps
NOT_KNOWN = "the input ports of the last switch are not known"
ALIKE = "all flows come by one input port, or by input ports with equally many flows"

FLOOR_SEGMENTS = 0.5  # of a group that received less: what is observed comes in whole segments


def sharing(conditions: Conditions, record: Json) -> dict[str, Any]:
    """What the record of a stream of several hosts has besides, if all send to one or the few are named: `sharing`, or
    why there is none. Of hosts that fetch, `entrances`, from which the workload makes it.

    `groups`: the few, those between and the many, with their senders and number of flows. `floor_bytes`: what a group
    counts as having received that received less: half a full segment.
    """
    work = record["workload"]
    if "fetchers" in work:
        return _entrances(conditions, record)
    runs: list[Json] = work["runs"] if "few" in work else []
    flows: dict[str, int] = {}
    for run in runs:
        flows[run["client"]] = flows.get(run["client"], 0) + run["flows"]
    receivers = list(dict.fromkeys(run["server"] for run in runs))
    if len(flows) < 2 or (len(receivers) > 1 and not work["few"]) or any(run["reverse"] for run in runs):
        return {}
    sides, why = _groups(conditions, record, flows, receivers[0])
    if not sides:
        return {"not_measured": {**work.get("not_measured", {}), SHARE_OF_FEW: why}}
    payload = min(conditions.mtu[host] for host in (*flows, *receivers)) - HEADERS_BYTES[conditions.family]
    entries = [{"name": side.name, "senders": list(side.senders), "flows": side.flows} for side in sides]
    return {"sharing": {"groups": entries, "floor_bytes": FLOOR_SEGMENTS * payload}}


def _groups(
    conditions: Conditions, record: Json, flows: Mapping[str, int], receiver: str
) -> tuple[Sequence[Group], str]:
    """The groups, or why there are none."""
    if few := record["workload"]["few"]:
        many = [host for host in flows if host not in few]
        sides = ((FEW, few), (MANY, many))
        return [Group(name, hosts, sum(flows[host] for host in hosts)) for name, hosts in sides], ""
    network = record["rack"].get("network")
    if network is None:
        return [], f"{NOT_KNOWN}: name the few (few: [h1])"
    if record["workload"].get("nics", 1) > 1 or members(conditions) > 1:
        return [], "hosts send by several NICs: name the few (few: [h1])"
    links = ((port["from"], port["to"], port["port"]) for port in network["ports"])
    host_groups = groups(flows, entrances(links, conditions.hosts, receiver))
    return host_groups, ALIKE


def _entrances(conditions: Conditions, record: Json) -> dict[str, Any]:
    """`entrances`: all hosts, and for each one that fetches the others by `groups` (the few, those between and the
    many, if each sends one flow) and by the number of `links` to it; or why nothing is said of the few."""
    work = record["workload"]
    network, fetchers = record["rack"].get("network"), work["fetchers"]
    links = [(port["from"], port["to"], port["port"]) for port in network["ports"]] if network is not None else []
    by_receiver: dict[str, Json] = {}
    for receiver in fetchers if len(fetchers) <= MOST_FETCHERS else ():
        ways = entrances(links, conditions.hosts, receiver)
        if sides := groups(dict.fromkeys(ways, 1), ways) if ways else []:
            far: dict[str, list[str]] = {}
            for host, way in ways.items():
                far.setdefault(str(way.hops), []).append(host)
            by_receiver[receiver] = {"groups": {side.name: list(side.senders) for side in sides}, "links": far}
    if by_receiver and members(conditions) == 1:
        return {"entrances": {"hosts": list(conditions.hosts), "receivers": by_receiver}}
    why = NOT_KNOWN if network is None or members(conditions) > 1 else ALIKE
    if len(fetchers) > MOST_FETCHERS:
        why = f"more than {MOST_FETCHERS} hosts fetch"
    return {"not_measured": {**work.get("not_measured", {}), SHARE_OF_FEW: why}}


def readings(record: Json) -> dict[str, Any]:
    """`few`: who they were, beside how many flows, and whether half a segment stands for less (`floored`)."""
    shared = record["workload"].get("sharing")
    if shared is None:
        return {}
    by_name = {group["name"]: group for group in shared["groups"]}
    few, many = by_name[FEW], by_name[MANY]
    floored = any(group.get("floored", False) for group in (few, many))
    summary = {"senders": few["senders"], "flows": few["flows"], "many": many["flows"], "floored": floored}
    return {"few": summary}
