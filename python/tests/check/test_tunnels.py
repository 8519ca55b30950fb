"""What a check through a tunnel proves for each peer, from documents whose answer is known."""

from __future__ import annotations

import json
from typing import Any

from helpers.check_lab import Lab
from jsonschema import Draft202012Validator

from framegauge.check.judgement import schema
from framegauge.check.tunnels import Encapsulated, lines, of_document

Json = dict[str, Any]
WIREGUARD = Encapsulated(("wireguard",), 9000, 8940)


def told(lab: Lab, asked: Encapsulated = WIREGUARD) -> tuple[Json, list[str]]:
    document = {**lab.document(), "target_mtu": asked.inner_mtu}
    inside = of_document(document, asked)
    Draft202012Validator(json.loads(json.dumps(schema.json_schema()["properties"]["encapsulation"]))).validate(inside)
    return inside, list(lines(inside))


def tunnel(lab: Lab, **more: Any) -> Lab:
    for name in lab.hosts:
        lab.device(name).update({"name": "wg0", "kind": "wireguard", "mtu": 8940, "overhead_bytes": None, **more})
    for pair in lab.pairs.values():
        pair["interface"] = lab.device(pair["source"])["name"]
    return lab


def test_each_peer_has_a_line() -> None:
    inside, said = told(tunnel(Lab((2,))))
    assert said == [
        "Inside of wireguard: an underlay of 9000 leaves 8940 (overhead 60)",
        "a → b (IPv4): 8940 proved through wg0",
        "b → a (IPv4): 8940 proved through wg0",
    ]
    assert all(peer["is_tunnel"] for peer in inside["peers"])


def test_a_peer_with_another_underlay_is_not_proved() -> None:
    """Behind IPv6, which takes 20 more."""
    lab = tunnel(Lab((3,)))
    lab.fault(lab.some(lambda a, b: "c" in (a, b)), mtu=8920)
    _, said = told(lab)
    assert "a → b (IPv4): 8940 proved through wg0" in said
    [line] = [each for each in said if each.startswith("a → c")]
    assert line.startswith("a → c (IPv4): 8940 not proved through wg0: ")
    assert line.endswith("8920 at most")


def test_an_interface_that_is_no_tunnel_proves_nothing_of_one() -> None:
    _, said = told(tunnel(Lab((2,)), name="eth0", kind=None))
    assert said[1] == "a → b (IPv4): 8940 proved"
    assert said[2] == (
        "   they leave by eth0, which is no tunnel: whether these packets were encapsulated is not known (name HOST%IFACE, "
        "the tunnel's)"
    )


def test_readings_that_do_not_fit_are_told() -> None:
    vxlan = Encapsulated(("vxlan",), 9000, 8950)
    _, said = told(tunnel(Lab((2,)), name="vx0", kind="vxlan", mtu=8930, overhead_bytes=70), vxlan)
    assert said[2:4] == [
        "   vx0 takes 70 by its attributes, not the 50 of vxlan",
        "   vx0 itself has an MTU of 8930: it takes no more, whatever the underlay carries",
    ]
