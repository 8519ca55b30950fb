"""Who else is in the subnet of a change: told of the tables that hosts keep, as iproute2 and lldpcli print them."""

from __future__ import annotations

from typing import Any

from framegauge.rollout import preflight, transition
from framegauge.rollout.model import Asked, Finding
from framegauge.rollout.preflight import survey
from framegauge.rollout.routes import FREE, Held, Route, Value

Json = dict[str, Any]
BOX, BOX_MAC = "10.1.0.9", "02:00:00:00:00:09"


def host(number: int, *, neighbours: list[Json] = [], mtu: int = 1500, **more: Any) -> Json:  # noqa: B006
    """A host with eth1 in 10.1.0.0/24."""
    address = {"address": f"10.1.0.{number}", "prefix_length": 24, "family": 4}
    interface = {
        "name": "eth1", "index": 2, "mtu": mtu, "up": True, "driver": None, "maximum_mtu": None, "kind": None,
        "parent": None, "overhead_bytes": None, "addresses": [address],
    }  # fmt: skip
    link = {"ifname": "eth1", "ifindex": 2, "mtu": mtu, "flags": ["UP"], "address": f"02:00:00:00:00:0{number}"}
    check = {"interfaces": [interface], "sysctls": {}, "path_mtu_cache": [], "mss_clamps": {"rules": [], "error": None}}
    return {
        "check": check, "links": [link], "routes": [], "routes6": [], "ovs": None, "session": "", "programs": [],
        "udhcpc": [], "files": {}, "unreadable": [], "neighbours": neighbours, "fdb": [], "lldp": None, "locked": [], **more,
    }  # fmt: skip


def entry(address: str, mac: str, *states: str, dev: str = "eth1") -> Json:
    """As `ip -j neigh` prints it."""
    return {"dst": address, "dev": dev, "lladdr": mac, "state": list(states or ("REACHABLE",))}


def told(*hosts: Json, what: str = "neighbour", mtu: int = 9000, **more: Any) -> list[Finding]:
    names = "abc"[: len(hosts)]
    asked = Asked((tuple(names),), dict.fromkeys(names, "eth1"), mtu, **more)
    return [each for each in preflight.findings(dict(zip(names, hosts, strict=True)), asked) if each.what == what]


def test_a_neighbour_that_is_none_of_the_hosts_refuses_a_raise() -> None:
    """A storage box that stays at 1500 and is in use; what is sent to it by UDP would be lost."""
    table = [entry(BOX, BOX_MAC), entry("10.1.0.2", "02:00:00:00:00:02")]
    [refused] = told(host(1, neighbours=table), host(2, neighbours=[entry(BOX, BOX_MAC, "STALE")]))
    assert (refused.severity, refused.where) == ("refused", "a/eth1")
    assert refused.found == (
        "a neighbour in its subnet that is none of these hosts: 10.1.0.9 (02:00:00:00:00:09), its MTU is not known "
        "(a/eth1: REACHABLE; b/eth1: STALE)"
    )
    assert "on a, b: ip route add 10.1.0.9/32 dev eth1 mtu lock 1500 (undo: ip route del)" in refused.remedy
    assert not told(host(1, neighbours=table, mtu=9000), host(2, mtu=9000), mtu=1500), "lowered hosts send less"
    [forced] = told(host(1, neighbours=table), host(2), forced=frozenset({"neighbour"}))
    assert forced.severity == "warning"


def test_hosts_of_the_file_and_entries_of_others_are_no_neighbours() -> None:
    """Also by another address of their own, by names that are gone, on another interface, and in other subnets."""
    table = [
        entry("10.1.0.77", "02:00:00:00:00:02"),
        entry("10.1.0.8", "02:00:00:00:00:08", "FAILED"),
        entry(BOX, BOX_MAC, dev="eth0"),
        entry("192.0.2.1", BOX_MAC),
    ]
    assert not told(host(1, neighbours=table), host(2))


def test_a_host_that_has_the_new_mtu_already_is_no_stranger_to_the_others() -> None:
    """Three of four hosts were raised by hand: the file names them all, and the fourth may follow."""
    table = [entry("10.1.0.2", "02:00:00:00:00:02"), entry("10.1.0.77", "02:00:00:00:00:03")]
    raised = [host(number, mtu=9000, neighbours=[entry("10.1.0.1", "02:00:00:00:00:01")]) for number in (2, 3)]
    assert not told(host(1, neighbours=table), *raised)
    [refused] = told(host(1, neighbours=[*table, entry(BOX, BOX_MAC)]), *raised)
    assert BOX in refused.found
    assert "(a/eth1: REACHABLE)" in refused.found
    assert not told(host(1), host(2, mtu=9000, neighbours=[entry(BOX, BOX_MAC)])), (
        "what sends large already is not ours"
    )


def test_a_route_that_keeps_packets_small_is_enough_if_every_host_has_it() -> None:
    route = {"dst": BOX, "dev": "eth1", "scope": "link", "metrics": [{"mtu": 1500}]}
    kept = {"neighbours": [entry(BOX, BOX_MAC)], "routes": [route], "locked": [[BOX, "eth1"]]}
    assert not told(host(1, **kept), host(2, **kept))
    [refused] = told(host(1, **kept), host(2))
    assert refused.where == "b/eth1", "it has no entry now, and may send all the same"
    [free] = told(host(1, **{**kept, "locked": []}), host(2, **kept))
    assert free.where == "a/eth1", "a roll-out releases what is not locked"
    assert not told(host(1, **kept), host(2, **kept), what="route"), "it is there on purpose"
    smaller = {**kept, "routes": [{**route, "metrics": [{"mtu": 1400}]}], "locked": []}
    assert not told(host(1, **smaller), host(2, **smaller))


def test_a_neighbour_that_answered_packets_of_the_new_mtu_is_none_to_worry_about() -> None:
    table = [entry(BOX, BOX_MAC)]
    assert not told(host(1, neighbours=table, answered={BOX: 9000}), host(2, answered={BOX: 9000}))
    [refused] = told(host(1, neighbours=table, answered={BOX: 1500}), host(2, answered={BOX: 1500}))
    assert "answers packets of 1500, more was not asked" in refused.found


def test_a_router_is_a_warning_unless_every_route_is_raised() -> None:
    table = [entry("10.1.0.254", "02:00:00:00:00:fe")]
    routes = [{"dst": "default", "gateway": "10.1.0.254", "dev": "eth1"}]
    [warned] = told(host(1, neighbours=table, routes=routes), host(2))
    assert warned.severity == "warning"
    assert warned.found.startswith("a router in its subnet")
    [refused] = told(host(1, neighbours=table, routes=routes), host(2), scope="all")
    assert refused.severity == "refused"


def test_many_neighbours_are_told_in_a_few_lines() -> None:
    table = [entry(f"10.1.0.{number}", f"02:00:00:00:01:{number:02x}") for number in range(10, 40)]
    listed = told(host(1, neighbours=table), host(2))
    assert len(listed) == 9
    assert listed[-1].found.startswith("22 more neighbours that are none of these hosts (10.1.0.18 ")


def test_stations_behind_a_bridges_ports_are_told() -> None:
    bridge = host(1, mtu=1500)
    bridge["links"] = [
        {"ifname": "eth1", "ifindex": 2, "mtu": 1500, "flags": ["UP"], "address": "02:00:00:00:00:01",
         "linkinfo": {"info_kind": "bridge"}},
        {"ifname": "eno1", "ifindex": 3, "mtu": 9000, "flags": ["UP"], "master": "eth1", "address": "02:00:00:00:00:01"},
        {"ifname": "vnet0", "ifindex": 4, "mtu": 9000, "flags": ["UP"], "master": "eth1", "address": "02:00:00:00:00:aa",
         "linkinfo": {"info_kind": "tun"}},
    ]  # fmt: skip
    bridge["fdb"] = [
        {"mac": "52:54:00:00:00:01", "ifname": "vnet0", "master": "eth1", "flags": [], "state": ""},
        {"mac": "52:54:00:00:00:02", "ifname": "eno1", "master": "eth1", "flags": [], "state": ""},
        {"mac": "02:00:00:00:00:aa", "ifname": "vnet0", "master": "eth1", "flags": [], "state": "permanent"},
    ]
    [warned] = told(bridge, host(2))
    assert warned.found == ("1 stations behind the port vnet0 of eth1 that are none of these hosts (52:54:00:00:00:01)")


def test_what_a_switch_says_of_its_port() -> None:
    port = {"id": [{"type": "ifname", "value": "Eth1/7"}], "mfs": [{"value": "1522"}]}
    document = {"lldp": [{"interface": [{"name": "eth1", "chassis": [{"name": [{"value": "sw1"}]}], "port": [port]}]}]}
    [warned] = told(host(1, lldp=document), host(2), what="switch")
    assert warned.found == "its switch sw1, port Eth1/7, which says that it takes frames of 1522 (LLDP)"
    port["mfs"] = [{"value": "9216"}]
    assert not told(host(1, lldp=document), host(2), what="switch")
    for broken in (None, [], {"lldp": 7}, {"lldp": [{"interface": [{"port": "x"}]}]}):
        assert not told(host(1, lldp=broken), host(2), what="switch")


def test_locked_routes_are_read_of_what_ip_prints() -> None:
    text = "10.1.0.9 dev eth1 scope link mtu lock 1500 \nfd00::9 dev eth1 metric 1024 mtu lock 1500 pref medium\n"
    part = f"@@ {len(text)} locked\n{text}\n@@ 0 end\n\n"
    assert survey.parsed(part.encode(), "a")["locked"] == [["10.1.0.9", "eth1"], ["fd00::9", "eth1"]]


def test_a_roll_out_leaves_a_locked_route_to_one_host_as_it_is() -> None:
    subnet = "10.1.0.0/24"
    routes = (Route(4, subnet, True, FREE), Route(4, f"{BOX}/32", True, Held(1500, True)))
    settings = {
        "mtu:eth1": "1500",
        "routes4:eth1": str(Value(FREE, {f"{BOX}/32": Held(1500, True)})),
        "routes6:eth1": "0",
    }
    link = transition.Link("eth1", 1500, routes, settings)
    asked = Asked((("a",), ("b",)), {"a": "eth1", "b": "eth1"}, 9000)
    one, _ = transition.changes(asked, {"a": [link], "b": [link]})
    assert one.after["routes4:eth1"] == f"1500 {subnet}=0 {BOX}/32=1500!"
