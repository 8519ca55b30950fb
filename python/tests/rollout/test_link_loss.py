"""Which links go down when their MTU changes, by the drivers' names."""

from __future__ import annotations

from typing import Any

import pytest
from rollout.test_neighbours import host

from framegauge.rollout import preflight
from framegauge.rollout.model import Asked, Finding
from framegauge.rollout.preflight import link_loss

Json = dict[str, Any]


def facts(driver: str | None, *, kind: str | None = None, **more: Any) -> Json:
    made = host(1, **more)
    made["check"]["interfaces"][0] |= {"driver": driver, "kind": kind}
    return made


def asked(mtu: int = 9000, **more: Any) -> Asked:
    return Asked((("a",),), {"a": "eth1"}, mtu, **more)


def told(given: Json, **more: Any) -> list[Finding]:
    return [each for each in preflight.findings({"a": given}, asked(**more)) if each.what == "link_loss"]


@pytest.mark.parametrize(("driver", "seconds"), [("igb", 3.0), ("ixgbe", 3.0), ("veth", 0), (None, 0), ("ena", 0)])
def test_drivers_that_restart_a_nic(driver: str | None, seconds: float) -> None:
    assert link_loss.predicted({"a": facts(driver)}, asked()) == ({"a": seconds} if seconds else {})


def test_what_it_means_is_told_and_a_short_lease_is_refused() -> None:
    [note] = told(facts("igb"))
    assert (note.severity, note.found) == (
        "note",
        "a link that may be down for 3 s when its MTU changes (eth1: igb calls igb_down() and igb_up())",
    )
    [refused] = told(facts("igb"), lease_seconds=10.0)
    assert (refused.severity, refused.remedy[:25]) == ("refused", "a lease of 12 s or more: ")
    assert told(facts("igb"), mtu=1500) == [], "nothing changes"


def test_ports_of_a_bond_follow_it() -> None:
    bond = facts("bonding", kind="bond")
    bond["links"][0]["linkinfo"] = {"info_kind": "bond"}
    bond["links"].append({"ifname": "eno1", "ifindex": 3, "mtu": 1500, "flags": ["UP"], "master": "eth1"})
    port = {
        **bond["check"]["interfaces"][0],
        "name": "eno1",
        "index": 3,
        "driver": "ice",
        "kind": None,
        "addresses": [],
    }
    bond["check"]["interfaces"].append(port)
    assert link_loss.predicted({"a": bond}, asked()) == {"a": 3.0}


def test_the_user_knows_better() -> None:
    assert link_loss.predicted({"a": facts("veth")}, asked(link_loss_seconds=5.0)) == {"a": 5.0}
    assert link_loss.predicted({"a": facts("igb")}, asked(link_loss_seconds=0.0)) == {}
