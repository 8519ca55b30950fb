"""What containers need once their hosts are raised, in numbers: Docker, containerd and the networks of a CNI. Pure.

Containers keep the MTU with which they were made, so that nothing breaks if they are left as they are; they only gain
nothing. An overlay inside takes its own part: pods behind VXLAN on hosts with 9000 have 8950.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from framegauge.rollout.model import Asked, Json
from framegauge.rollout.owners import cni, docker
from framegauge.rollout.owners.model import Trouble
from framegauge.rollout.preflight import devices
from framegauge.rollout.preflight.case import Case
from framegauge.rollout.preflight.links import Link

__all__ = ["Advice", "afterwards"]

DOCKER = re.compile(r"docker0|br-[0-9a-f]{12}|docker_gwbridge")


@dataclass(frozen=True)
class Advice:
    """Something to set after the hosts: `what` it is for, its MTU now (None: not told), the MTU that it is to have, and
    how."""

    host: str
    what: str
    now: int | None
    mtu: int
    how: str


def afterwards(facts: Mapping[str, Json], asked: Asked) -> list[Json]:
    """The advice for every host that runs containers, in the order of the waves."""
    cases = [Case(name, asked.interfaces[name], asked, facts[name]) for name in asked.hosts if name in facts]
    present_cases = [candidate for candidate in cases if candidate.interface in candidate.links]
    return [asdict(advice) for case in present_cases for rule in (_docker, _pods, _overlays) for advice in rule(case)]


def _docker(case: Case) -> Iterator[Advice]:
    """The daemon's default, then each bridge of a network of its own, which has its own option."""
    bridges = [link for link in _links(case) if DOCKER.fullmatch(link.name)]
    if not bridges and docker.DAEMON not in case.files:
        return
    target = case.target
    configured, bridge = docker.configured(case.files), case.links.get(docker.BRIDGE)
    now = configured[0] if configured else None if bridge is None else bridge.mtu
    if now != target:
        how = f'"mtu": {target} in {docker.DAEMON}, then restart dockerd: docker0 and what is made from then on have it'
        yield Advice(case.host, "Docker's default network (docker0)", now, target, how)
    for link in bridges:
        if link.name != docker.BRIDGE and link.mtu != target:
            how = f"make its network anew: docker network create -o com.docker.network.driver.mtu={target} NAME"
            yield Advice(case.host, f"Docker's network {link.name}", link.mtu, target, how)
    inner = target - devices.OVERHEADS["vxlan"]
    how = f"docker network create -d overlay -o com.docker.network.driver.mtu={inner} NAME: VXLAN takes the difference"
    if any(link.name == "docker_gwbridge" for link in bridges):
        yield Advice(case.host, "Docker Swarm's overlay networks", None, inner, how)


def _pods(case: Case) -> Iterator[Advice]:
    """The configuration of the CNI, which containerd and CRI-O read: they have no MTU of their own."""
    try:
        pods = cni.pods(case.files)
    except Trouble:
        return  # a finding of its own
    if pods is None:
        return
    mtu = pods.beneath(case.before, case.target)
    overhead = max((devices.overhead(case, overlay) or 0 for overlay in devices.overlays(case)), default=0)
    if overhead and (mtu is None or pods.mtu is None):
        mtu = case.target - overhead
    if mtu is None or pods.mtu == mtu or pods.plugin == "cilium-cni":
        return
    what = f"pods of containerd or CRI-O ({pods.plugin}, {pods.path})"
    yield Advice(case.host, what, pods.mtu, mtu, pods.advice(mtu))


def _overlays(case: Case) -> Iterator[Advice]:
    """Interfaces of overlays, which their agents make: they are told so that the numbers can be compared."""
    for link in devices.overlays(case):
        overhead = devices.overhead(case, link)
        if overhead is None or link.mtu == case.target - overhead:
            continue
        how = "its agent sets it when it starts again, from the interface or from the setting of its network"
        if case.target < case.before:
            how = f"before the hosts: ip link set dev {link.name} mtu {case.target - overhead}; then {how}"
        yield Advice(case.host, f"the overlay's interface {link.name}", link.mtu, case.target - overhead, how)


def _links(case: Case) -> list[Link]:
    links: list[Any] = [case.links.get(name) for name in case.links.names()]
    return [link for link in links if link is not None]
