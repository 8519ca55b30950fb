"""What an undo leaves as it is because of what was raised since."""

from __future__ import annotations

from framegauge.rollout import standing
from framegauge.rollout.model import Json

BEFORE = {"mtu:eth0": "1500", "mtu:eth0.7": "1500", "routes4:eth0": "0"}


def told(**mtus: int) -> Json:
    """A host with VLANs, one of them in another, as `check.facts` tells it."""
    known = {"eth0": (None, None), "eth0_7": ("vlan", "eth0"), "eth0_8": ("vlan", "eth0"), "q": ("vlan", "eth0_7"),
             "vx0": ("vxlan", "eth0_7")}  # fmt: skip
    return {
        "interfaces": [
            {"name": name.replace("_", "."), "kind": kind, "parent": parent and parent.replace("_", "."),
             "mtu": mtus.get(name, 1500)}
            for name, (kind, parent) in known.items()
        ]
    }  # fmt: skip


def test_what_a_vlan_stands_on_goes_back_with_it() -> None:
    now = told(eth0=9000, eth0_7=9000)
    assert standing.needed_by(now, "eth0.7", BEFORE) == {}
    # A tunnel does not go with what carries it: it is refused, or fits.
    assert standing.needed_by(told(eth0=9000, eth0_7=9000, vx0=8950), "eth0.7", BEFORE) == {}


def test_it_stays_if_another_vlan_was_raised_since() -> None:
    now = told(eth0=9000, eth0_7=9000, eth0_8=4200)
    assert standing.needed_by(now, "eth0.7", BEFORE) == {"eth0": "eth0.8 with 4200"}


def test_what_carries_what_stays_stays_too() -> None:
    before = BEFORE | {"mtu:m0": "1500"}
    now = told(eth0=9000, eth0_7=9000, q=9000)
    assert standing.needed_by(now, "m0", before) == {"eth0.7": "q with 9000", "eth0": "eth0.7 with 9000"}


def test_what_stands_on_a_bridge_that_follows_keeps_its_port() -> None:
    now = told(eth0=9000, eth0_7=9000, q=4200)
    for each in now["interfaces"]:
        each["parent"] = "br0" if each["name"] == "q" else each["parent"]
    now["interfaces"].append({"name": "br0", "kind": "bridge", "parent": None, "mtu": 9000})
    before = BEFORE | {"mtu:br0": "1500"}
    assert standing.needed_by(now, "eth0.7", before) == {"br0": "q with 4200"}
    along = {"eth0": ["eth0.7", "br0", "q"], "br0": ["q"]}
    assert standing.needed_by(now, "eth0.7", before, along) == {"br0": "q with 4200", "eth0": "q with 4200"}
