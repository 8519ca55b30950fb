"""What containers are to have after their hosts, in numbers, from the readings of a host."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rollout.test_neighbours import host

from framegauge.rollout import text
from framegauge.rollout.model import Asked
from framegauge.rollout.owners.docker import DAEMON
from framegauge.rollout.preflight.containers import afterwards

Json = dict[str, Any]


def told(*links: Json, files: dict[str, str] | None = None, mtu: int = 9000) -> list[tuple[str, int | None, int]]:
    facts = host(1, files=files or {})
    facts["links"] += links
    asked = Asked((("a",),), {"a": "eth1"}, mtu)
    return [(each["what"], each["now"], each["mtu"]) for each in afterwards({"a": facts}, asked)]


def link(name: str, mtu: int, kind: str, index: int = 9) -> Json:
    return {"ifname": name, "ifindex": index, "mtu": mtu, "flags": ["UP"], "linkinfo": {"info_kind": kind}}


def cni(**plugin: Any) -> dict[str, str]:
    return {"/etc/cni/net.d/10-net.conflist": json.dumps({"name": "net", "plugins": [plugin]})}


def test_a_host_without_containers_needs_nothing() -> None:
    assert told() == []


def test_docker() -> None:
    bridges = [link("docker0", 1500, "bridge"), link("br-0123456789ab", 1500, "bridge", 10)]
    assert told(*bridges) == [
        ("Docker's default network (docker0)", 1500, 9000),
        ("Docker's network br-0123456789ab", 1500, 9000),
    ]
    assert told(*bridges[:1], files={DAEMON: '{"mtu": 1450}'}) == [("Docker's default network (docker0)", 1450, 9000)]
    assert told(*bridges[:1], files={DAEMON: '{"mtu": 9000}'}) == []
    # A gateway bridge is Swarm's: its overlay is VXLAN, which takes 50 (RFC 7348).
    assert ("Docker Swarm's overlay networks", None, 8950) in told(
        *bridges, link("docker_gwbridge", 1500, "bridge", 11)
    )


@pytest.mark.parametrize(
    ("files", "links", "mtu"),
    [
        (cni(type="bridge", bridge="cni0", mtu=1500), (), 9000),
        (cni(type="calico", mtu=1450), (link("vxlan.calico", 1450, "vxlan"),), 8950),
        (cni(type="calico", mtu=1480), (link("tunl0", 1480, "ipip"),), 8980),
        (cni(type="flannel"), (link("flannel.1", 1450, "vxlan"),), 8950),
        (cni(type="calico"), (link("wireguard.cali", 1420, "wireguard"),), 8920),
    ],
)
def test_pods_less_what_their_overlay_takes(files: dict[str, str], links: tuple[Json, ...], mtu: int) -> None:
    [pods] = [each for each in told(*links, files=files) if each[0].startswith("pods of containerd")]
    assert pods[2] == mtu


def test_what_cannot_be_read_gives_no_advice() -> None:
    assert told(files={"/etc/cni/net.d/10-net.conflist": "{"}) == []


def test_the_plan_tells_it_in_lines() -> None:
    facts = host(1)
    facts["links"].append(link("docker0", 1500, "bridge"))
    advice = afterwards({"a": facts}, Asked((("a",),), {"a": "eth1"}, 9000))
    plan = {
        "question": "?", "findings": [], "changes": [], "steps": [], "hosts": {}, "afterwards": advice, "link_loss_seconds": {},
        "asked": {"waves": [], "interfaces": {}, "scope": "all", "target_mtu": 9000, "lease_seconds": 60.0, "probes": 3},
    }  # fmt: skip
    lines = list(text.plan_lines(plan))
    assert lines[-2:] == [
        "  a: Docker's default network (docker0): 1500 → 9000",
        '     "mtu": 9000 in /etc/docker/daemon.json, then restart dockerd: docker0 and what is made from then on have it',
    ]
