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
    meant = [each for each in cases if each.interface in each.links]
    return [asdict(advice) for case in meant for rule in (_docker, _pods, _overlays) for advice in rule(case)]


def _docker(case: Case) -> Iterator[Advice]:
    """The daemon's default, then each bridge of a network of its own, which has its own option."""
    named = [each for each in _links(case) if DOCKER.fullmatch(each.name)]
    if not named and docker.DAEMON not in case.files:
        return
    target = case.target
    configured, bridge = docker.configured(case.files), case.links.get(docker.BRIDGE)
    now = configured[0] if configured else None if bridge is None else bridge.mtu
    if now != target:
        how = f'"mtu": {target} in {docker.DAEMON}, then restart dockerd: docker0 and what is made from then on have it'
        yield Advice(case.host, "Docker's default network (docker0)", now, target, how)
    for each in named:
        if each.name != docker.BRIDGE and each.mtu != target:
            how = f"make its network anew: docker network create -o com.docker.network.driver.mtu={target} NAME"
            yield Advice(case.host, f"Docker's network {each.name}", each.mtu, target, how)
    inner = target - devices.OVERHEADS["vxlan"]
    how = f"docker network create -d overlay -o com.docker.network.driver.mtu={inner} NAME: VXLAN takes the difference"
    if any(each.name == "docker_gwbridge" for each in named):
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
    takes = max((devices.overhead(case, each) or 0 for each in devices.overlays(case)), default=0)
    if takes and (mtu is None or pods.mtu is None):
        mtu = case.target - takes
    if mtu is None or pods.mtu == mtu or pods.plugin == "cilium-cni":
        return
    what = f"pods of containerd or CRI-O ({pods.plugin}, {pods.path})"
    yield Advice(case.host, what, pods.mtu, mtu, pods.advice(mtu))


def _overlays(case: Case) -> Iterator[Advice]:
    """Interfaces of overlays, which their agents make: they are told so that the numbers can be compared."""
    for each in devices.overlays(case):
        takes = devices.overhead(case, each)
        if takes is None or each.mtu == case.target - takes:
            continue
        how = "its agent sets it when it starts again, from the interface or from the setting of its network"
        if case.target < case.before:
            how = f"before the hosts: ip link set dev {each.name} mtu {case.target - takes}; then {how}"
        yield Advice(case.host, f"the overlay's interface {each.name}", each.mtu, case.target - takes, how)


def _links(case: Case) -> list[Link]:
    listed: list[Any] = [case.links.get(name) for name in case.links.names()]
    return [each for each in listed if each is not None]
