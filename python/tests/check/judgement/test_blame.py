"""Every case of the lab, and every kind of the catalogue, from what a check would have measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from helpers.check_lab import TARGET, Hops, Lab, interface

from framegauge.check.judgement import remedies, schema
from framegauge.check.judgement.findings import CATALOGUE

VALID = jsonschema.Draft202012Validator(schema.json_schema())
R1, R2 = "10.1.0.254", "10.2.0.254"


def kinds(lab: Lab) -> list[str]:
    document = lab.document()
    VALID.validate(document)
    closed = {
        tuple(pair) for each in document["findings"] if CATALOGUE[each["kind"]].is_fault for pair in each["pairs"]
    }
    assert {key for key, pair in lab.pairs.items() if pair["verdict"] not in ("carries_target", "unknown")} <= closed
    return [each["kind"] for each in document["findings"]]


def only(lab: Lab, kind: str) -> dict:
    """The one fault that there is."""
    assert [each for each in kinds(lab) if CATALOGUE[each].is_fault] == [kind]
    return lab.faults()[0]


@pytest.mark.parametrize("subnets", [(2,), (3,), (2, 2), (1, 1), (16,), (5, 5, 5)])
@pytest.mark.parametrize("families", [(4,), (6,), (4, 6)])
def test_a_healthy_mesh_has_no_finding(subnets, families):
    lab = Lab(subnets, families)
    assert kinds(lab) == []
    assert lab.document()["verdict"] == "carries_target"


def test_a_router_that_says_so_is_named_once():
    lab = Lab((2, 2))
    keys = lab.some(lambda a, b: a in "ab" and b in "cd")
    found = only(lab.fault(keys, 1500, "too_small", told=[(R1, 1500)]), "router_too_small")
    assert found["where"] == f"router {R1}"
    assert len(found["pairs"]) == 4
    assert "1500" in found["evidence"]
    assert "The other direction carries 9000" in found["evidence"]


def test_of_equal_paths_the_one_that_a_router_refused_packets_for_is_raised():
    lab = Lab((1, 1)).fault(
        [("a", "b", 4)], 1500, "too_small", bad=16, told=[(R1, 1500)],
        hops=[(R1, "expired"), ("10.9.1.2", "too_big"), ("", "silent")],
    )  # fmt: skip
    lab.pairs["a", "b", 4]["traces"][0]["hops"][1]["large"] |= {"address": R1, "mtu_bytes": 1500}
    found = only(lab, "router_too_small")
    assert ["ip -o route get 10.9.1.2 " in each["run"] for each in found["commands"]] == [True]
    assert "Only some flows from a to b take that link, 16 of 32 (50%)" in found["summary"]


def test_a_router_whose_errors_are_rare_is_no_promise_that_tcp_adapts():
    lab = Lab((2, 2)).fault([("a", "c", 4)], 1500, told=[(R1, 1500)])
    lab.pairs["a", "c", 4]["told_by"][0]["flows"] = 3
    found = only(lab, "router_too_small")
    assert "they reached 3 of 32 flows whose packets were lost" in found["summary"]
    assert "TCP adapts to the smaller size" not in found["summary"]


def test_packets_in_fragments_are_not_what_a_host_refused():
    lab = Lab((2, 2))
    keys = lab.some(lambda a, b: a in "ab" and b in "cd")
    lab.fault(keys, 1500, "too_small")
    for key in keys:
        lab.pairs[key]["flows"]["fragmented"] = 32
    found = only(lab, "fragmented_on_the_way")
    assert len(found["pairs"]) == 4
    assert "above 1500 bytes: 128 of 128 flows" in found["evidence"]
    assert "DF" in found["ask"]


def test_a_router_that_says_so_beside_fragments_keeps_its_finding():
    lab = Lab((2, 2)).fault([("a", "c", 4)], 1500, "too_small", told=[(R1, 1500)])
    lab.fault([("b", "d", 4)], 1500, "too_small")
    lab.pairs["b", "d", 4]["flows"]["fragmented"] = 1
    assert sorted(each["kind"] for each in lab.faults()) == ["fragmented_on_the_way", "router_too_small"]


def test_less_than_a_router_admits_is_another_cause():
    lab = Lab((1, 1)).fault(
        [("a", "b", 4)], 1500, told=[(R1, 4000)], hops=[(R1, "expired"), (R2, "silent"), ("", "silent")]
    )
    assert sorted(each["kind"] for each in lab.faults()) == ["router_drops_silently", "router_too_small"]


def test_a_silent_routed_link_is_placed_by_traces_and_both_explanations_are_given():
    lab = Lab((1, 1)).fault([("a", "b", 4)], hops=[(R1, "expired"), (R2, "silent"), ("", "silent")])
    found = only(lab, "router_drops_silently")
    assert found["where"] == f"between router {R1} and router {R2}, towards {R2}"
    assert found["hosts"] == []
    assert "its ICMP errors are filtered" in found["evidence"]
    assert "the far side" in found["evidence"]
    assert "The other direction" in found["evidence"]
    assert "nft" in found["fix"]


def test_one_silent_router_does_not_outweigh_many_traces_that_agree():
    # Three traces lose the packet behind R2; a fourth one only did not hear R2, and allows that link, too.
    lab = Lab((4, 1))
    agree = [(R1, "expired"), (R2, "expired"), ("10.3.0.254", "silent"), ("", "silent")]
    for source in "abc":
        lab.fault([(source, "e", 4)], hops=agree)
    lab.fault([("d", "e", 4)], hops=[(R1, "expired"), (R2, "silent"), ("10.3.0.254", "silent"), ("", "silent")])
    found = only(lab, "router_drops_silently")
    assert found["where"].startswith(f"between router {R2} and router 10.3.0.254")
    assert len(found["pairs"]) == 4


def test_traces_that_agree_outweigh_one_that_allows_more():
    lab = Lab((3, 1, 1))
    for source in "abc":
        lab.fault(
            [(source, "e", 4)],
            hops=[("10.9.0.254", "expired"), (R2, "expired"), ("10.3.0.254", "silent"), ("", "silent")],
        )
    # From another side: whether R2 received it is not known from this trace, nor from any other.
    lab.fault([("d", "e", 4)], hops=[(R1, "expired"), (R2, "silent"), ("10.3.0.254", "silent"), ("", "silent")])
    assert len(only(lab, "router_drops_silently")["pairs"]) == 4


def test_parallel_paths_behind_a_hop_that_never_answers_are_one_cause():
    lab = Lab((2, 1, 1))
    for key, router in ((("a", "c", 4), R2), (("b", "d", 4), "10.3.0.254")):
        partial(
            lab, [(R1, "expired"), (None, "silent"), (router, "silent"), ("", "silent")],
            [(R1, "expired"), (None, "silent"), (router, "expired"), ("", "delivered")], [key],
        )  # fmt: skip
    found = only(lab, "member_too_small")
    assert found["where"] == f"between router {R1} and {R2} and 10.3.0.254 (a hop between them answers nothing)"


def test_a_refusal_that_is_no_silence_places_nothing():
    lab = Lab((1, 1)).fault([("a", "b", 4)], hops=[(R1, "expired"), (R2, "unreachable"), ("", "unreachable")])
    assert only(lab, "one_direction_only")["where"] == "unknown link: a to b (IPv4)"


def test_one_traced_pair_places_the_others_between_the_same_subnets():
    lab = Lab((3, 1))
    lab.fault(lab.some(lambda a, b: b == "d"))
    lab.fault([("a", "d", 4)], hops=[(R1, "expired"), (R2, "silent"), ("", "silent")])
    found = only(lab, "router_drops_silently")
    assert len(found["pairs"]) == 3
    assert "2 pairs of these subnets without a trace" in found["evidence"]


def test_hidden_hops_are_said_to_be_hidden():
    lab = Lab((1, 1)).fault([("a", "b", 4)], hops=[(R1, "expired"), (None, "silent"), (R2, "silent"), ("", "silent")])
    assert "a hop between them answers nothing" in only(lab, "router_drops_silently")["where"]


def test_a_late_answer_refutes_earlier_silence():
    # The first router limits how often it answers; the second one did receive the large packet.
    lab = Lab((1, 1)).fault([("a", "b", 4)], hops=[(R1, "silent"), (R2, "expired"), ("", "silent")])
    found = only(lab, "switch_or_nic_too_small")
    assert found["where"] == f"between router {R2} and host b, receiving"


def test_a_router_beside_a_host_may_be_the_small_one_if_nobody_hears_it():
    """RFC 2923, section 2.1: with its errors filtered, its silence is that of a switch port."""
    hops: Hops = [(R1, "expired"), (R2, "expired"), ("", "silent")]
    found = only(Lab((1, 1)).fault([("a", "b", 4)], hops=hops), "switch_or_nic_too_small")
    assert f"Router {R2} may have the smaller MTU on that link as well" in found["summary"]
    [look] = [each for each in found["commands"] if each["on"].startswith(f"router {R2}")]
    assert "ip -o route get 10.2.0.1 " in look["run"]
    # What a host sends is lost before a router could say anything.
    hops = [(R1, "silent"), (R2, "silent"), ("", "silent")]
    found = only(Lab((1, 1)).fault([("a", "b", 4)], hops=hops), "switch_or_nic_too_small")
    assert "as well, if ICMP errors are filtered" not in found["summary"]


def test_a_router_that_is_read_to_have_room_is_not_suspected():
    lab = Lab((1, 1, 1))
    lab.hosts["c"]["facts"]["interfaces"].append(interface("eth1", R2))
    lab.fault([("a", "b", 4)], hops=[(R1, "expired"), (R2, "expired"), ("", "silent")])
    found = only(lab, "switch_or_nic_too_small")
    assert "as well, if ICMP errors are filtered" not in found["summary"]


def test_hops_that_do_not_answer_leave_it_unknown():
    lab = Lab((1, 1)).fault(Lab((1, 1)).pairs, hops=[(None, "silent"), (None, "silent"), (None, "silent")])
    found = only(lab, "black_hole")
    assert found["where"].startswith("unknown link: a to b and b to a")
    assert "No hop on the path answered" in found["evidence"]
    assert "eth0 of a has an MTU of 9000" in found["evidence"]


@pytest.mark.parametrize("direction", ["receiving", "sending", "sending and receiving"])
def test_a_row_or_column_names_the_host(direction):
    lab = Lab((4,))
    lab.fault(lab.some(lambda a, b: (b == "c" and "receiving" in direction) or (a == "c" and "sending" in direction)))
    found = only(lab, "switch_or_nic_too_small")
    assert (found["where"], found["hosts"]) == (f"host c, {direction}", ["c"])
    assert "eth0 has an MTU of 9000, but packets above 1500 bytes are lost" in found["evidence"]
    assert "eth0" in found["fix"]


def test_a_host_whose_whole_row_fails_may_be_alone_behind_a_link_or_drop_them_by_a_rule():
    lab = Lab((3,)).fault(Lab((3,)).some(lambda a, b: "c" in (a, b)))
    found = only(lab, "switch_or_nic_too_small")
    assert "a link between switches that only its paths use" in found["summary"]
    assert "a rule of its own firewall" in found["summary"]
    assert "nft list ruleset | grep -n length" in [each["run"] for each in found["commands"]]


def test_two_bad_hosts_of_sixteen_are_both_named_and_nobody_else():
    lab = Lab((16,), (4, 6))
    lab.fault(lab.some(lambda a, b: {"c", "k"} & {a, b} != set()), 1504)
    assert [each["hosts"] for each in lab.faults()] == [["c"], ["k"]]
    assert all(len(each["pairs"]) == 60 for each in lab.faults())


def test_two_hosts_alone_accuse_nobody():
    lab = Lab((2,)).fault(Lab((2,)).pairs)
    found = only(lab, "black_hole")
    assert "Both hosts and every link between them are possible causes" in found["evidence"]


def test_where_everything_fails_nobody_is_accused():
    lab = Lab((6,))
    assert only(lab.fault(lab.pairs), "black_hole")["hosts"] == list("abcdef")


def test_where_everything_fails_in_two_subnets_the_way_between_them_is_not_accused():
    lab = Lab((3, 3))
    assert only(lab.fault(lab.pairs), "black_hole")["hosts"] == list("abcdef")


def test_one_direction_of_two_hosts():
    found = only(Lab((2,)).fault([("a", "b", 4)]), "one_direction_only")
    assert "unknown" in found["where"]


def test_one_family_of_two_hosts():
    lab = Lab((2,), (4, 6))
    found = only(lab.fault(lab.some(lambda a, b: True, 6)), "one_family_only")
    assert "IPv4 between the same hosts carries 9000" in found["evidence"]


def test_a_path_below_what_ipv6_allows_is_called_that():
    assert "below 1280" in only(Lab((2,), (6,)).fault([("a", "b", 6)], 1200), "one_direction_only")["evidence"]


def test_a_host_whose_interface_is_small_is_one_cause_in_both_directions():
    lab = Lab((3,), (4, 6))
    lab.device("b")["mtu"] = 1500
    lab.fault(lab.some(lambda a, b: a == "b"), 1500, "too_small", told=[(None, 1500)])
    lab.fault(lab.some(lambda a, b: b == "b"), 1504)
    found = only(lab, "host_interface_too_small")
    assert found["where"] == "host b, interface eth0"
    assert found["fix"].startswith("ip link set dev eth0 mtu 9000")
    assert len(found["pairs"]) == 8
    assert "mtu_differs" not in kinds(lab)


def small_network(small: str) -> Lab:
    """Hosts a to c in one subnet, those of `small` with 1500, and d behind a router."""
    lab = Lab((3, 1), (4, 6))
    for name in small:
        lab.device(name)["mtu"] = 1500
    lab.fault(lab.some(lambda a, _: a in small), 1500, "too_small", told=[(None, 1500)])
    return lab.fault(lab.some(lambda a, b: b in small and a not in small), 1504)


def test_a_network_that_is_small_as_a_whole_is_one_cause():
    found = only(small_network("abc"), "host_interface_too_small")
    assert found["where"] == "hosts a, b and c, network 10.1.0.0/24 and fd00:1::/64"
    assert (found["hosts"], len(found["pairs"])) == (["a", "b", "c"], 24)
    assert [(each["run"], each["on"]) for each in found["commands"]] == [
        ("ip link set dev eth0 mtu 9000", "hosts a, b and c")
    ]
    # Where one of its hosts has more, the network is not what is small.
    assert [each["where"] for each in small_network("ab").faults()] == [
        "host a, interface eth0", "host b, interface eth0",
    ]  # fmt: skip


def test_a_router_of_a_small_network_is_no_cause_of_its_own():
    lab, router = small_network("abc"), "10.9.0.1"
    lab.hosts["a"]["facts"]["interfaces"].append(interface("eth1", router))
    beyond = lab.some(lambda a, b: a == "d" and b in "bc", 4)
    lab.fault(beyond, 1500, "too_small", told=[(router, 1500)])
    assert only(lab, "host_interface_too_small")["hosts"] == ["a", "b", "c"]
    # One that says less has another small link.
    lab.fault(beyond, 1400, "too_small", told=[(router, 1400)])
    assert sorted(each["kind"] for each in lab.faults()) == ["host_interface_too_small", "router_too_small"]


def test_a_router_that_leads_to_a_small_host_is_the_other_end_of_one_link():
    lab = Lab((1, 1))
    lab.device("b")["mtu"] = 1500
    lab.fault([("b", "a", 4)], 1500, "too_small", told=[(None, 1500)])
    lab.fault([("a", "b", 4)], 1500, "too_small", told=[(R1, 1500)], hops=[(R1, "expired"), ("", "too_big")])
    last = lab.pairs["a", "b", 4]["traces"][0]["hops"][-1]
    last["large"] |= {"address": R1, "mtu_bytes": 1500}
    found = only(lab, "host_interface_too_small")
    assert f"Router {R1}, which leads there, has 1500 on that link as well" in found["summary"]
    assert "without an error" not in found["summary"]
    assert [each["on"] for each in found["commands"]] == [f"router {R1}, if it runs Linux", "host b"]
    # One with another router behind it has a link of its own.
    last["small"] = {"outcome": "expired", "address": R2}
    assert sorted(each["kind"] for each in lab.faults()) == ["host_interface_too_small", "router_too_small"]


def test_a_pod_and_its_end_at_the_node_are_one_link():
    lab = Lab((1, 1))
    lab.device("b").update(mtu=1450, name="eth0")
    lab.device("b")["addresses"][0]["prefix_length"] = 32
    lab.hosts["a"]["facts"]["interfaces"].append(interface("cali1", "192.0.2.1", 1450, addresses=[], kind="veth"))
    lab.fault(lab.pairs, 1450, "too_small", told=[(None, 1450)])
    lab.pairs["a", "b", 4]["interface"] = "cali1"
    found = only(lab, "host_interface_too_small")
    assert (found["hosts"], len(found["pairs"])) == (["a", "b"], 2)
    # A node's NIC is no such end, whatever it sends to.
    lab.hosts["a"]["facts"]["interfaces"][-1]["kind"] = None
    assert len(lab.faults()) == 2


def test_what_crosses_a_tunnel_with_a_small_underlay_is_no_cause_of_its_own():
    lab = Lab((1, 1, 1, 1))
    for name, number in (("a", 1), ("b", 2)):
        tunnel = interface("vx0", f"10.7.0.{number}", 8950, kind="vxlan", overhead_bytes=50, parent="eth0")
        lab.hosts[name]["facts"]["interfaces"].append(tunnel)
    # Behind a is c, behind b is d.
    inside = [("a", "d", 4), ("c", "d", 4), ("c", "b", 4)]
    hops = [(lab.address("a"), "expired"), (lab.address("b"), "silent"), ("", "silent")]
    lab.fault(inside[:1], 1450).fault(inside[1:2], 1450, hops=hops).fault(inside[2:], 1450, hops=[hops[0], hops[2]])
    lab.pairs["a", "d", 4]["interface"] = "vx0"
    lab.pairs["b", "c", 4]["interface"] = "vx0"
    lab.fault([("b", "c", 4)], 1450)
    found = only(lab, "overlay_overhead")
    assert {tuple(pair) for pair in found["pairs"]} == {*inside, ("b", "c", 4)}
    assert "What crosses the tunnel loses the same sizes" in found["summary"]
    # What loses another size has another cause.
    lab.fault(inside[1:2], 1400, hops=hops)
    assert len(lab.faults()) == 2


def test_hosts_that_have_the_target_are_not_told_to_come_down_to_the_others():
    lab = small_network("ab")
    assert "mtu_differs" not in kinds(lab)
    lab.device("c")["mtu"] = 9100
    assert "mtu_differs" in kinds(lab)


def test_of_two_small_routers_on_a_path_the_smaller_comes_first():
    far = "10.9.0.254"
    for told in ([(R1, 4000), (far, 1500)], [(far, 1500), (R1, 4000)]):
        lab = Lab((1, 1)).fault([("a", "b", 4)], 1500, "too_small", told=told)
        assert [each["where"] for each in lab.faults()] == [f"router {far}", f"router {R1}"]


def bridged(lab: Lab, name: str, *ports: tuple[str, int]) -> None:
    """The host's address is that of a bridge of 9000."""
    lab.device(name).update(name="br0", kind="bridge", driver="bridge")
    for port, mtu in ports:
        lab.hosts[name]["facts"]["interfaces"].append(interface(port, "192.0.2.1", mtu, addresses=[]))
    for pair in lab.pairs.values():
        pair["interface"] = "br0" if pair["source"] == name else pair["interface"]


def test_a_bridge_whose_ports_are_all_smaller_is_the_cause():
    lab = Lab((2,)).fault(Lab((2,)).pairs, 1504)
    bridged(lab, "a", ("eth0", 1500))
    found = only(lab, "host_interface_too_small")
    assert (found["hosts"], found["where"]) == (["a"], "host a, eth0 below bridge br0")
    assert "ip link set dev eth0 mtu 9000" in [each["run"] for each in found["commands"]]
    # One that is large enough may be the one in use.
    bridged(lab, "a", ("eth1", 9000))
    assert only(lab, "black_hole")


def test_only_what_is_read_to_be_a_port_of_a_bridge_is_one():
    lab = Lab((2,)).fault(Lab((2,)).pairs, 1504)
    bridged(lab, "a", ("bond0", 9000), ("bond0.5", 1500), ("eth9", 9000))
    held = lab.hosts["a"]["facts"]["interfaces"]
    for each in held:
        each["master"] = "br0" if each["name"] == "bond0.5" else None
    held[2]["parent"], held[1]["mtu"] = "bond0", 1500
    found = only(lab, "host_interface_too_small")
    assert found["where"] == "host a, bond0.5 below bridge br0"
    assert "none of its ports has 9000" in found["summary"]
    commands = ["ip link set dev bond0 mtu 9000", "ip link set dev bond0.5 mtu 9000"]
    assert [each["run"] for each in found["commands"]] == commands
    # No other can be in use, however large.
    held[2]["master"], held[3]["master"] = None, "br0"
    assert only(lab, "black_hole")
    # Of a bridge that is too small itself the ports come first, each by its name.
    held[2]["master"], held[3]["master"] = "br0", None
    held[0]["mtu"] = 1500
    lab.fault([("a", "b", 4)], 1500, "too_small", told=[(None, 1500)])
    found = only(lab, "host_interface_too_small")
    assert [each["run"] for each in found["commands"]] == [*commands, "ip link set dev br0 mtu 9000"]


def test_what_stands_on_a_device_of_another_namespace_is_raised_after_it():
    lab = Lab((2,)).fault([("b", "a", 4)], 1500, "too_small", told=[(None, 1500)])
    lab.device("b").update(mtu=1500, kind="macvlan")
    [command] = only(lab, "host_interface_too_small")["commands"]
    assert command["purpose"].startswith("after the device that it stands on, in another network namespace, has 9000")


def test_a_guest_is_raised_after_the_port_that_it_may_be_behind():
    lab = Lab((3,))
    bridged(lab, "a", ("eth0", 9000), ("vnet0", 1500))
    lab.device("c")["mtu"] = 1500
    lab.fault(lab.some(lambda a, b: a == "c"), 1500, "too_small", told=[(None, 1500)])
    lab.fault(lab.some(lambda a, b: b == "c"), 1504)
    found = only(lab, "host_interface_too_small")
    assert [(each["run"], each["on"]) for each in found["commands"]][1:] == [
        ("ip link set dev vnet0 mtu 9000", "host a"), ("ip link set dev eth0 mtu 9000", "host c"),
    ]  # fmt: skip
    # Raised alone, it sends what the port drops. The host of the bridge itself sends a few bytes more.
    lab.device("c")["mtu"] = 9000
    lab.fault(lab.some(lambda a, b: "c" in (a, b)), 1504).fault([("b", "c", 4)], 1500)
    found = only(lab, "switch_or_nic_too_small")
    assert (found["hosts"], found["where"]) == (["c"], "host c, sending and receiving")
    assert "it may be vnet0 (1500) that is too small" in found["summary"]
    assert ("ip link set dev vnet0 mtu 9000", "host a") in [(each["run"], each["on"]) for each in found["commands"]]


def test_less_than_a_host_admits_is_another_cause():
    lab = Lab((3,))
    lab.device("b")["mtu"] = 4000
    lab.fault(lab.some(lambda a, b: a == "b"), 1500, told=[(None, 4000)])
    assert sorted(each["kind"] for each in lab.faults()) == ["host_interface_too_small", "switch_or_nic_too_small"]


def test_a_vlan_needs_its_parent_raised_first():
    lab = Lab((2,))
    facts = lab.hosts["a"]["facts"]
    facts["interfaces"][0] |= {"mtu": 1500, "kind": "vlan", "parent": "eth 9;", "name": "eth0"}
    facts["interfaces"].append(interface("eth 9;", "192.0.2.1", 1500))
    lab.fault([("a", "b", 4)], 1500, "too_small", told=[(None, 1500)])
    found = only(lab, "host_interface_too_small")
    assert [(each["run"], each["on"]) for each in found["commands"]] == [
        ("ip link set dev 'eth 9;' mtu 9000", "host a"),
        ("ip link set dev eth0 mtu 9000", "host a"),
    ]
    assert found["fix"].startswith("ip link set dev 'eth 9;' mtu 9000  # on host a\nip link set dev eth0 mtu 9000")


def test_a_device_that_cannot():
    lab = Lab((3,))
    lab.device("b").update(mtu=4078, maximum_mtu=4078)
    lab.fault(lab.some(lambda a, b: a == "b"), 4078, "too_small", told=[(None, 4078)])
    assert "--mtu 4078" in only(lab, "nic_maximum_too_small")["fix"]


def test_a_lost_too_big_is_told_apart_where_others_heard_it():
    lab = Lab((2, 1))
    lab.fault([("a", "c", 4)], 1500, "too_small", told=[(R1, 1500)])
    lab.fault([("b", "c", 4)], 1500, hops=[(R1, "expired"), (R2, "silent"), ("", "silent")])
    assert sorted(each["kind"] for each in lab.faults()) == ["icmp_filtered", "router_too_small"]
    assert lab.faults()[0]["pairs"] + lab.faults()[1]["pairs"] == [["b", "c", 4], ["a", "c", 4]]


def partial(lab: Lab, hops_bad, hops_good, keys, bad=8) -> Lab:
    lab.fault(keys, bad=bad, hops=hops_bad)
    for key in keys:
        lab.pairs[key]["traces"].append(lab.trace(lab.pairs[key], hops_good, False))
    return lab


def test_a_bad_member_of_equal_cost_paths_is_placed_by_traces():
    lab = partial(
        Lab((2, 2)), [(R1, "expired"), ("10.9.3.1", "silent"), ("", "silent")],
        [(R1, "expired"), ("10.9.1.1", "expired"), ("", "delivered")], [("a", "c", 4), ("b", "d", 4)],
    )  # fmt: skip
    found = only(lab, "member_too_small")
    assert found["where"] == f"between router {R1} and router 10.9.3.1, towards 10.9.3.1"
    assert "16 of 64 (25%)" in found["evidence"]


def test_a_bad_member_is_placed_by_the_hops_that_only_bad_flows_share():
    lab = partial(
        Lab((2, 2)), [(R1, "silent"), ("10.9.3.1", "silent")],
        [(R1, "expired"), ("10.9.1.1", "expired"), ("", "delivered")], [("a", "c", 4)],
    )  # fmt: skip
    # The trace itself blames the first link; good flows of the same pair passed it, so that was another silence.
    assert "10.9.3.1" in only(lab, "member_too_small")["where"]


@pytest.mark.parametrize(
    ("kind", "mtu", "member", "runs"),
    [
        ("bond", 9000, 1500, ["ip link set dev eth1 mtu 9000"]),
        ("bond", 9000, 9000, ["ip -d link show master bond0"]),
        (None, 9000, 1500, []),
    ],
)  # fmt: skip
def test_a_bond_that_has_the_mtu_is_not_given_it_again(kind: str | None, mtu: int, member: int, runs: list[str]):
    lab = Lab((6,))
    lab.fault(lab.some(lambda a, b: b == "d"), bad=9)
    lab.device("d").update(name="bond0", kind=kind, mtu=mtu, master=None)
    ports = [interface("eth1", "192.0.2.1", member, addresses=[], master="bond0" if kind else None)]
    lab.hosts["d"]["facts"]["interfaces"] += ports
    found = only(lab, "member_too_small")
    assert [each["run"] for each in found["commands"]] == runs
    assert bool(found["advice"]) == (member == 9000 or kind is None)


def test_a_bond_whose_members_are_all_smaller_is_the_cause():
    lab = Lab((3,))
    lab.fault(lab.some(lambda a, b: "c" in (a, b)), 1504)
    lab.device("c").update(name="bond0", kind="bond", master=None)
    for name in ("eth1", "eth2"):
        port = interface(name, "192.0.2.1", 1500, addresses=[], master="bond0")
        lab.hosts["c"]["facts"]["interfaces"].append(port)
    found = only(lab, "host_interface_too_small")
    runs = [each["run"] for each in found["commands"]]
    assert runs == ["ip link set dev eth1 mtu 9000", "ip link set dev eth2 mtu 9000"]
    assert found["summary"].startswith("Bond bond0 of host c has an MTU of 9000, and none of its ports has 9000")


def test_a_bundle_at_a_host_is_told_by_its_column():
    lab = Lab((6,))
    lab.fault(lab.some(lambda a, b: b == "d"), bad=9)
    found = only(lab, "member_too_small")
    assert found["where"] == "one link of the bundle at host d, receiving"
    assert "45 of 160 (28%)" in found["evidence"]


def test_parallel_paths_without_a_trace_stay_unplaced():
    lab = Lab((2, 2)).fault([("a", "c", 4)], bad=8)
    assert only(lab, "member_too_small")["where"] == "one of the parallel paths between 10.1.0.0/24 and 10.2.0.0/24"


def test_two_subnets_without_a_trace():
    lab = Lab((3, 3))
    lab.fault(lab.some(lambda a, b: a in "abc" and b in "def"))
    found = only(lab, "router_drops_silently")
    assert found["where"] == "somewhere between 10.1.0.0/24 and 10.2.0.0/24, towards 10.2.0.0/24"


def test_a_router_port_towards_a_subnet_is_not_blamed_on_its_hosts():
    lab = Lab((1, 3))
    lab.fault(lab.some(lambda a, b: a == "a"), hops=[(R1, "expired"), ("", "silent")])
    found = only(lab, "router_drops_silently")
    assert found["where"] == f"between router {R1} and 10.2.0.0/24, towards the hosts"


@pytest.mark.parametrize(("size", "count"), [(1500, 1), (1504, 1), (1400, 2)])
def test_both_directions_of_a_routers_link_with_a_subnet_are_one_cause(size: int, count: int):
    """The router answers by another address each way; of another size the other direction has another cause."""
    lab = Lab((1, 3))
    lab.fault(lab.some(lambda a, b: a == "a"), 1500, hops=[(R1, "expired"), ("", "silent")])
    lab.fault(lab.some(lambda a, b: b == "a"), size, hops=[(R2, "silent"), ("", "silent")])
    found = lab.faults()
    assert len(found) == count
    if count == 1:
        assert found[0]["kind"] == "router_drops_silently"
        assert found[0]["where"] == f"between routers {R1} and {R2} and 10.2.0.0/24, towards the hosts and from them"
        assert len(found[0]["pairs"]) == 6


def test_hosts_of_one_subnet_share_the_answer_that_a_router_gave_for_one_of_them():
    """A router limits how often it answers: for the others it answered small packets only."""
    lab = Lab((1, 3))
    lab.fault(lab.some(lambda a, b: (a, b) == ("a", "b")), hops=[(R1, "expired"), ("", "silent")])
    lab.fault(lab.some(lambda a, b: a == "a" and b in "cd"), hops=[(R1, "silent"), ("", "silent")])
    found = only(lab, "router_drops_silently")
    assert found["where"] == f"between router {R1} and 10.2.0.0/24, towards the hosts"
    assert len(found["pairs"]) == 3


def overlay(lab: Lab, tunnel_mtu: int) -> None:
    for name in lab.hosts:
        lab.device(name).update(name="vx0", kind="vxlan", mtu=tunnel_mtu, parent="eth1", overhead_bytes=50, driver=None)
        lab.hosts[name]["facts"]["interfaces"].append(interface("eth1", f"192.0.2.{ord(name[0])}"))
    for pair in lab.pairs.values():
        pair |= {"interface": "vx0", "route_mtu_bytes": tunnel_mtu, "tcp": None}


def test_an_overlay_on_a_small_underlay_is_reckoned_back():
    lab = Lab((2,))
    overlay(lab, 8950)
    lab.fault(lab.pairs, 1454, told=[(None, 8950)])
    found = only(lab, "overlay_overhead")
    assert "up to 1454 bytes arrive: with 50 bytes of overhead that is 1504 bytes in the underlay" in found["evidence"]
    assert "mtu 9050" in found["fix"]


def test_an_overlay_whose_hosts_have_room_has_its_small_underlay_between_them():
    lab = Lab((2,))
    overlay(lab, TARGET)
    for host in lab.hosts.values():
        host["facts"]["interfaces"][1]["mtu"] = TARGET + 50
    found = only(lab.fault(lab.pairs, 1450), "overlay_overhead")
    assert "what is small lies between them" in found["summary"]
    assert {each["run"] for each in found["commands"]} == {"ip link set dev vx0 mtu 1450"}


def test_an_overlay_that_is_as_large_as_it_can_be():
    lab = Lab((3,))
    overlay(lab, 8950)
    lab.fault(lab.pairs, 8950, "too_small", told=[(None, 8950)])
    assert "needs an underlay MTU of 9050" in only(lab, "overlay_overhead")["evidence"]


def test_a_stale_cache_and_a_route_are_told_apart():
    lab = Lab((2,))
    lab.pairs["a", "b", 4]["route_mtu_bytes"] = 1400
    assert kinds(lab) == ["route_mtu_too_small"]
    lab.hosts["a"]["facts"]["path_mtu_cache"] = [{"destination": lab.address("b"), "mtu": 1400, "family": 4}]
    assert kinds(lab) == ["stale_path_mtu"]
    assert lab.document()["verdict"] == "carries_target"


def test_a_clamped_mss_hides_the_fault_of_the_path():
    lab = Lab((1, 1)).fault(Lab((1, 1)).pairs, 1500)
    for pair in lab.pairs.values():
        pair["tcp"] = {
            "connected": True,
            "mss_bytes": 1348,
            "peer_announced_mss_bytes": 8948,
            "route_mtu_bytes": 9000,
            "error": None,
        }
    found = next(each for each in lab.blame() if each["kind"] == "mss_clamped")
    assert "This hides faults of the path" in found["evidence"]
    assert "1400" in found["evidence"]


def test_a_clamped_mss_on_a_good_path_is_no_fault():
    lab = Lab((2,), (4, 6))
    for pair in lab.pairs.values():
        pair["tcp"] = {
            "connected": True,
            "mss_bytes": 1428,
            "peer_announced_mss_bytes": 8948,
            "route_mtu_bytes": 9000,
            "error": None,
        }
    assert kinds(lab) == ["mss_clamped"]
    assert {pair[2] for pair in lab.blame()[0]["pairs"]} == {4, 6}
    assert lab.document()["verdict"] == "carries_target"


def with_clamps(*rules: tuple[str, str, str, str, int | None], families: tuple[int, ...] = (4,)) -> dict[str, Any]:
    """What is found where TCP gets 1348 of a to b and c, and these hosts have these rules."""
    lab = Lab((3,), families)
    for host, family, chain, to, size in rules:
        clamps = lab.hosts[host]["facts"].setdefault("mss_clamps", {"rules": [], "error": None})
        clamps["rules"].append({"family": family, "table": "fg", "chain": chain, "to": to, "mss_bytes": size})
    for key in lab.some(lambda a, _: a == "a"):
        lab.pairs[key]["tcp"] |= {"mss_bytes": 1348, "peer_announced_mss_bytes": 8948, "route_mtu_bytes": 9000}
    assert set(kinds(lab)) == {"mss_clamped"}
    return {each["where"]: each for each in lab.blame()}


BETWEEN = "on the path to hosts b and c, or at that end"


def test_the_rule_of_an_end_that_clamps_is_named():
    found = with_clamps(("b", "inet", "out", "size", 1360), ("b", "inet", "out2", "size", 1200))
    assert found.keys() == {"host b", "on the path to host c, or at that end"}, "the rule of b explains nothing to c"
    own = found["host b"]
    assert own["pairs"] == [["a", "b", 4]]
    assert "Chain out of table inet fg on host b sets 1360." in own["evidence"]
    assert [(each["run"], each["on"]) for each in own["commands"]] == [
        ("nft --handle list chain inet fg out", "host b"),
        ("nft delete rule inet fg out handle N", "host b"),
    ]
    assert own["ask"] is None
    assert found["on the path to host c, or at that end"]["ask"] is not None


def test_a_clamp_of_iptables_has_the_commands_of_iptables():
    lab = Lab((2,))
    line = "-A POSTROUTING -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1360"
    rule = {"family": "ip", "table": "mangle", "chain": "POSTROUTING", "to": "size", "mss_bytes": 1360, "line": line}
    lab.hosts["a"]["facts"]["mss_clamps"] = {"rules": [rule], "error": None}
    for key in lab.some(lambda a, _: a == "a"):
        lab.pairs[key]["tcp"] |= {"mss_bytes": 1348, "peer_announced_mss_bytes": 8948, "route_mtu_bytes": 9000}
    [found] = lab.blame()
    assert (found["kind"], found["where"], found["ask"]) == ("mss_clamped", "host a", None)
    assert [each["run"] for each in found["commands"]] == [
        "iptables -t mangle -S POSTROUTING", f"iptables -t mangle -D {line.removeprefix('-A ')}",
    ]  # fmt: skip


def test_a_tunnel_of_a_program_that_clamps_is_no_rule_to_look_for():
    lab = Lab((2,))
    for name in "ab":
        lab.device(name).update(name="tun0", kind="tun")
    for pair in lab.pairs.values():
        pair["interface"] = "tun0"
        pair["tcp"] |= {"mss_bytes": 1388, "peer_announced_mss_bytes": 8948, "route_mtu_bytes": 9000}
    [found] = lab.blame()
    assert (found["kind"], found["where"], found["commands"], found["ask"]) == (
        "mss_clamped", "tunnel tun0 of hosts a and b", [], None,
    )  # fmt: skip
    assert "mssfix" in found["advice"]
    # A rule that sets just this is the one.
    rule = {"family": "ip", "table": "fg", "chain": "out", "to": "size", "mss_bytes": 1400}
    lab.hosts["a"]["facts"]["mss_clamps"] = {"rules": [rule], "error": None}
    assert [each["where"] for each in lab.blame()] == ["host a"]


@pytest.mark.parametrize(("fragments", "kind", "is_told"), [(64, "tun", True), (63, "tun", False), (64, None, False)])
def test_pieces_of_outer_packets_may_be_what_is_lost(fragments: int, kind: str | None, is_told: bool):
    lab = Lab((2,)).fault([("a", "b", 4)], 1472)
    lab.device("a").update(kind=kind)
    lab.hosts["a"]["fragments_created"] = {"ipv4": fragments, "ipv6": 0}
    found = only(lab, "one_direction_only")
    assert (f"host a made {fragments} fragments" in found["summary"]) == is_told


def test_a_rule_of_the_sender_explains_all_its_pairs():
    (found,) = with_clamps(("a", "ip", "in", "size", 1348)).values()
    assert (found["where"], len(found["pairs"])) == ("host a", 2)


@pytest.mark.parametrize(
    ("family", "to", "size"),
    [
        ("ip6", "size", 1360),
        ("ip", "size", 1347),
        ("ip", "size", 1389),
        ("ip", "route_mtu", None),
        ("ip", "size", None),
    ],
)
def test_a_rule_that_cannot_be_it_is_not_named(family: str, to: str, size: int | None):
    assert with_clamps(("a", family, "in", to, size)) == with_clamps()
    assert with_clamps().keys() == {BETWEEN}


def test_a_rule_of_which_nft_does_not_tell_the_size_may_be_it():
    found = with_clamps(("a", "ip", "POSTROUTING", "unknown", None))
    text = "Chain POSTROUTING of table ip fg on host a may do it: nft does not show the size that it sets."
    assert text in found[BETWEEN]["evidence"]
    assert "TCPMSS" in found[BETWEEN]["fix"]
    (known,) = with_clamps(("a", "ip", "X", "unknown", None), ("a", "ip", "in", "size", 1360)).values()
    assert (known["where"], "Chain X" in known["evidence"]) == ("host a", False)


def test_an_mss_that_the_way_back_explains_is_not_clamped():
    lab = Lab((1, 1)).fault([("b", "a", 4)], 1500, "too_small", told=[(R2, 1500)])
    lab.pairs["a", "b", 4]["tcp"] |= {"mss_bytes": 1448, "peer_announced_mss_bytes": 1460}
    assert kinds(lab) == ["router_too_small"]


def without_tcp(lab: Lab) -> None:
    for pair in lab.pairs.values():
        pair["tcp"] = None


def test_a_host_that_differs_is_named():
    lab = Lab((4,))
    lab.device("b")["mtu"] = 9216
    without_tcp(lab)
    assert kinds(lab) == ["mtu_differs"]
    assert lab.blame()[0]["hosts"] == ["b"]


def test_two_hosts_that_differ_are_both_named():
    lab = Lab((2,))
    lab.device("b")["mtu"] = 9216
    without_tcp(lab)
    assert lab.blame()[0]["hosts"] == ["a", "b"]
    assert "ip link set dev eth0 mtu 9216" in lab.blame()[0]["fix"]


def test_hosts_in_other_subnets_may_differ():
    lab = Lab((2, 2))
    lab.device("c")["mtu"] = lab.device("d")["mtu"] = 9216
    without_tcp(lab)
    assert kinds(lab) == []


def test_a_tunnel_that_was_fitted_to_the_wrong_device():
    lab = Lab((2,))
    lab.hosts["a"]["facts"]["interfaces"] += [
        interface("vx0", "10.8.0.1", 1450, overhead_bytes=50, parent="eth0", kind="vxlan"),
        interface("eth9", "10.7.0.1", 1500),
    ]
    assert kinds(lab) == ["tunnel_mtu_mismatch"]
    assert "It fits eth9 (1500)" in lab.blame()[0]["evidence"]


LEVELS = [{"path_mtu": size, "mtu": size + 96} for size in (256, 512, 1024, 2048, 4096)]


def rdma(lab: Lab, active: int | None, mtu: int, name: str = "a") -> None:
    """A port of RDMA, as an agent reads it from a sysfs that was made up."""
    lab.device(name)["mtu"] = mtu
    lab.hosts[name]["facts"]["rdma"] = [
        {"device": "mlx5_0", "port": 1, "link_layer": "Ethernet", "state": "4: ACTIVE", "interface": "eth0", "mtu": mtu,
         "active_mtu": active, "error": None if active else "ibv_devinfo is not installed", "levels": LEVELS}
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("active", "mtu", "words"),
    [
        (1024, 9000, "uses a path MTU of 1024, although 4096 fits"),
        (4096, 1500, "for which Linux asks an MTU of 4192: its packets may be dropped as giants"),
        (1024, 1500, "4096 fits from 4192 on, and there is no larger one: 9000 does no more for RDMA"),
        (None, 1500, "not known (ibv_devinfo is not installed); an MTU of 1500 leaves 1024, 9000 4096"),
    ],
)
def test_the_path_mtu_of_rdma_beside_that_of_the_interface(active, mtu, words):
    lab = Lab((2,))
    rdma(lab, active, mtu)
    [noted] = [each for each in lab.blame() if each["kind"] == "rdma_path_mtu"]
    assert words in noted["evidence"]
    assert noted["hosts"] == ["a"]


def test_rdma_that_has_the_largest_path_mtu_is_no_finding():
    lab = Lab((2,))
    rdma(lab, 4096, 9000)
    assert kinds(lab) == []


def test_sysctls_that_matter():
    lab = Lab((4,))
    lab.hosts["a"]["facts"]["sysctls"]["net.ipv4.ip_no_pmtu_disc"] = "1"
    lab.fault(lab.some(lambda a, b: b == "c"))
    assert kinds(lab) == ["switch_or_nic_too_small", "tcp_probing_off", "path_mtu_discovery_off"]


@pytest.mark.parametrize("share", [0.01, 0.05, 0.15])
def test_loss_is_never_a_fault(share):
    lab = Lab((4,))
    for pair in lab.pairs.values():
        pair["controls"] = {"sent": 1000, "lost": int(1000 * share)}
    assert kinds(lab) == ["plain_loss"]
    assert lab.document()["verdict"] == "carries_target"


def test_loss_of_one_host_is_placed():
    lab = Lab((4,))
    for key in lab.some(lambda a, b: b == "c"):
        lab.pairs[key]["controls"]["lost"] = 9
    assert (lab.blame()[0]["where"], lab.blame()[0]["hosts"]) == ("host c, receiving", ["c"])


def test_a_host_that_nobody_reaches():
    lab = Lab((4,))
    lab.device("b")["up"] = False
    lab.fault(lab.some(lambda a, b: "b" in (a, b)), None, "unreachable")
    found = only(lab, "unreachable")
    assert found["hosts"] == ["b"]
    assert found["fix"].startswith("ip link set dev eth0 up")


@pytest.mark.parametrize(("text", "begins"), [("fd00::1 says no", "fd00::1 says"), ("host b is down", "Host b is")])
def test_a_sentence_leaves_an_address_as_it_is(text: str, begins: str):
    assert remedies.sentence(text).startswith(begins)


def test_a_host_without_a_carrier_is_not_told_to_put_its_interface_up():
    lab = Lab((4,))
    lab.device("b").update(up=False, enabled=True)
    lab.fault(lab.some(lambda a, b: "b" in (a, b)), None, "unreachable")
    found = only(lab, "unreachable")
    assert "On host b eth0 is up without a carrier." in found["summary"]
    assert [each["run"] for each in found["commands"]] == ["ip -d link show dev eth0"]
    assert "the port at the other end of eth0 of host b" in found["advice"]


def test_a_kernel_without_a_route_has_lost_it_with_its_interface():
    lab = Lab((2,)).fault([("a", "b", 4), ("b", "a", 4)], None, "unreachable")
    lab.pairs["b", "a", 4] |= {"said": "Network is unreachable", "controls": {"sent": 0, "lost": 0}, "interface": None}
    lab.device("b").update(up=False, enabled=False)
    found = only(lab, "unreachable")
    assert found["where"] == "routes of host b (IPv4)"
    assert "On host b eth0 is down." in found["summary"]
    assert found["commands"][0]["run"] == "ip link set dev eth0 up"


def test_an_interface_that_no_pair_goes_by_may_be_down():
    """As ports of a NIC that are not in use: putting them up changes nothing."""
    lab = Lab((4,))
    lab.hosts["b"]["facts"]["interfaces"].append(interface("eth7", "192.0.2.7", up=False))
    lab.fault(lab.some(lambda a, b: "b" in (a, b)), None, "unreachable")
    found = only(lab, "unreachable")
    assert "eth7" not in found["summary"] + found["fix"]
    assert "a firewall that lets in others alone looks the same" in found["summary"]


def test_a_pair_without_reachability_accuses_nobody():
    lab = Lab((3,)).fault([("a", "b", 4)], None, "unreachable")
    found = only(lab, "unreachable")
    assert found["where"] == "a to b (IPv4)"
    assert "a firewall that lets in others alone looks the same" in found["summary"]


def one_ended(lab, keys, **more):
    for key in keys:
        lab.pairs[key] |= {"method": "one_ended", "direction": None, "said": None} | more
    return lab


def test_one_end_does_not_know_the_direction_and_accuses_no_host():
    lab = Lab((4,))
    keys = lab.some(lambda a, b: b == "c")
    tcp = {"connected": True, "mss_bytes": 1448, "peer_announced_mss_bytes": 1460, "error": None}
    one_ended(lab.fault(keys, 1500), keys, direction="unknown", tcp=tcp)
    found = only(lab, "direction_unknown")
    assert "Run an agent at the far end" in found["fix"]
    assert "MSS of 1460: a hint" in found["evidence"]
    # A filter may drop large echoes alone, and a route of their size would limit a TCP that works.
    assert "Of TCP this proves nothing" in found["summary"]
    assert not found["commands"]
    assert len(found["pairs"]) == 3
    # With agents at both ends the same sizes name the host.
    assert only(Lab((4,)).fault(keys, 1500), "switch_or_nic_too_small")["hosts"] == ["c"]


def test_echoes_in_pieces_are_a_matter_of_the_way_back():
    lab = Lab((2,))
    keys = [("a", "b", 4)]
    one_ended(lab.fault(keys, 1500, "too_small"), keys, direction="back", reply_fragment_bytes=1500)
    assert "on the return path" in only(lab, "reply_fragmented")["where"]
    assert "second limit" not in only(lab, "reply_fragmented")["evidence"]
    lab.pairs["a", "b", 4]["fragmented_bytes"] = 1504
    assert "No echo of 9000 bytes returned at all: there is a second limit" in only(lab, "reply_fragmented")["evidence"]


def test_answers_that_are_cut_short_leave_the_way_there():
    lab = Lab((2,))
    one_ended(lab.fault([("a", "b", 4)], 1500), [("a", "b", 4)], direction="out", reply_cut_bytes=92)
    assert "towards the target" in only(lab, "black_hole")["where"]


def test_a_router_speaks_of_the_way_there_to_one_end_too():
    lab = Lab((2,))
    keys = [("a", "b", 4)]
    one_ended(lab.fault(keys, 1500, "too_small", told=[("10.1.0.254", 1500)]), keys, direction="out")
    only(lab, "router_too_small")


def test_what_one_end_could_not_tell_says_why():
    lab = Lab((2,))
    one_ended(lab.fault([("a", "b", 4)], None, "unknown"), [("a", "b", 4)], said="no echo came back, but TCP connects")
    found = lab.blame()
    assert [each["kind"] for each in found] == ["could_not_tell"]
    assert found[0]["evidence"].startswith("No echo came back, but TCP connects.")
    lab = one_ended(Lab((2,)).fault([("a", "b", 4)], None, "unreachable"), [("a", "b", 4)])
    assert "TCP was not answered" not in only(lab, "unreachable")["evidence"]


def test_lost_echoes_are_loss_or_a_limit():
    lab = one_ended(Lab((2,)), [("a", "b", 4)], controls={"sent": 40, "lost": 4})
    found = lab.blame()
    assert [each["kind"] for each in found] == ["plain_loss"]
    assert "limits how often it answers" in found[0]["evidence"]


def test_unknown_pairs_and_hosts_that_could_not_take_part():
    lab = Lab((3,))
    lab.hosts["c"] |= {"facts": None, "error": "no agent: permission denied"}
    for key in lab.some(lambda a, b: "c" in (a, b) or a == "a"):
        lab.fault([key], None, "unknown")
    assert kinds(lab) == ["could_not_tell", "host_unavailable"]
    assert lab.document()["verdict"] == "could_not_tell"
    assert lab.blame()[0]["pairs"] == [["a", "b", 4]]


def test_a_source_and_a_sink_together():
    lab = Lab((6,))
    lab.fault(lab.some(lambda a, b: b == "c"), 1500)
    lab.fault(lab.some(lambda a, b: a == "e"), 4000)
    lab.fault([("e", "c", 4)], 1500)
    assert [(each["where"]) for each in lab.faults()] == ["host c, receiving", "host e, sending"]


def test_two_limits_in_one_column_are_two_causes():
    lab = Lab((6,))
    lab.fault(lab.some(lambda a, b: b == "c"), 4000)
    lab.fault([("a", "c", 4)], 1500)
    assert [each["kind"] for each in lab.faults()] == ["switch_or_nic_too_small", "one_direction_only"]


def test_every_kind_has_a_test_here():
    text = Path(__file__).read_text()
    assert [kind for kind in CATALOGUE if f'"{kind}"' not in text] == []


def test_the_target_is_what_the_lab_says():
    assert Lab().document()["target_mtu"] == TARGET


def test_no_command_gives_an_interface_the_mtu_that_it_has():
    """The other end of its link is small: of a router, say."""
    lab = Lab((1, 1)).fault([("a", "b", 4)], hops=[(R1, "silent"), (R2, "expired"), ("", "silent")])
    found = only(lab, "switch_or_nic_too_small")
    assert found["hosts"] == ["b"]
    assert not [each for each in found["commands"] if " mtu " in each["run"]]


def test_below_1280_no_route_of_ipv6_is_a_way_around():
    lab = Lab((2,), (4, 6)).fault(Lab((2,), (4, 6)).pairs, 1124)
    runs = [command["run"] for each in lab.document()["findings"] for command in each["commands"]]
    assert any("route replace" in run and run.endswith("mtu 1124") for run in runs)
    assert not any(run.startswith("ip -6 route replace") for run in runs)
    assert "sysctl -w net.ipv4.tcp_mtu_probing=1" in runs


def test_the_ipv6_mtu_of_an_interface_is_named_and_no_route():
    lab = Lab((1, 1), (4, 6))
    lab.hosts["a"]["facts"]["sysctls"]["net.ipv6.conf.eth0.mtu"] = "1500"
    lab.pairs["a", "b", 6]["route_mtu_bytes"] = 1500
    [found] = lab.blame()
    assert found["kind"] == "route_mtu_too_small"
    assert [each["run"] for each in found["commands"]] == ["sysctl -w net.ipv6.conf.eth0.mtu=9000"]
    assert "for IPv6 alone" in found["evidence"]


def test_a_host_that_announces_less_than_its_route_allows_is_named():
    """As `advmss` of a route does."""
    lab = Lab((1, 1))
    lab.pairs["b", "a", 4]["tcp"] |= {"mss_bytes": 1448, "peer_announced_mss_bytes": 1448}
    [found] = lab.blame()
    assert (found["kind"], found["where"]) == ("mss_clamped", "routes of host a")
    assert [(each["on"], each["purpose"]) for each in found["commands"]] == [("host a", "look for advmss")]
    assert "an MSS of 1448, or 1460 with timestamps, in its SYNs" in found["summary"]
    for announced, syn in ((8948, 1460), (8960, 1448)):
        lab.pairs["b", "a", 4]["tcp"] |= {"announced_mss_bytes": announced, "route_mtu_bytes": 9000}
        assert f"announces an MSS of {syn} in its SYNs" in lab.blame()[0]["summary"]


@pytest.mark.parametrize(
    ("kind", "layer"),
    [("tun", "openvpn"), ("wireguard", "wireguard"), ("xfrm", "esp-tunnel"), ("ppp", "pppoe"), ("l2tp_eth", "l2tpv3")],
)
def test_a_tunnel_whose_headers_nothing_tells_is_not_raised_alone(kind, layer):
    """Its packets of 9000 bytes would be larger outside, and no switch has its port."""
    lab = Lab((2,))
    lab.device("b").update({"mtu": 1500, "kind": kind, "name": "tun0"})
    lab.fault(lab.some(lambda a, b: b == "b"), 1504)
    lab.fault(lab.some(lambda a, b: a == "b"), 1500, "too_small", told=[(None, 1500)])
    found = only(lab, "host_interface_too_small")
    assert found["commands"] == []
    assert found["fix"].startswith(f"# Do not raise tun0 alone: it is a tunnel ({kind})")
    assert f"framegauge wire --encap {layer} --mtu" in found["fix"]
    assert "switch port" not in found["ask"]
    assert "It must be more than 9000 bytes" in found["ask"]
    # A program's NIC, as that of a virtual machine, is raised as any other.
    lab.device("b")["kind"] = "tap"
    assert [each["run"] for each in only(lab, "host_interface_too_small")["commands"]] == [
        "ip link set dev tun0 mtu 9000"
    ]


def test_the_ports_of_a_bridge_come_before_it():
    lab = Lab((2,))
    lab.device("b").update({"mtu": 1500, "kind": "bridge"})
    lab.fault(lab.some(lambda a, b: b == "b"), 1504)
    lab.fault(lab.some(lambda a, b: a == "b"), 1500, "too_small", told=[(None, 1500)])
    found = only(lab, "host_interface_too_small")
    assert [each["run"] for each in found["commands"]] == [
        "ip link show master eth0", "ip link set dev eth0 mtu 9000",
    ]  # fmt: skip
    assert "first raise each port that has less than 9000" in found["commands"][0]["purpose"]


def test_a_tunnel_that_may_be_the_small_port_of_a_bridge_comes_with_its_overhead():
    """VXLAN over IPv6 on an underlay of 9000: 8930, and a bridge alone at 9000 would be a black hole."""
    lab = Lab((2,))
    lab.device("b").update({"mtu": 8930, "kind": "bridge"})
    lab.hosts["b"]["facts"]["interfaces"] += [
        interface("vx0", "10.8.0.1", 8930, overhead_bytes=70, parent="eth9", kind="vxlan"),
        interface("eth9", "10.9.0.1"),
        interface("vx1", "10.8.1.1", 1430, overhead_bytes=70, parent="eth9", kind="vxlan"),
    ]
    lab.fault(lab.some(lambda a, b: b == "b"), 8930)
    lab.fault(lab.some(lambda a, b: a == "b"), 8930, "too_small", told=[(None, 8930)])
    found = only(lab, "host_interface_too_small")
    assert [each["run"] for each in found["commands"]] == [
        "ip link show master eth0", "ip link set dev eth9 mtu 9070", "ip link set dev vx0 mtu 9000",
        "ip link set dev eth0 mtu 9000",
    ]  # fmt: skip
    assert found["commands"][1]["purpose"] == "if vx0 is a port: with 70 bytes of overhead"


@pytest.mark.parametrize(("below", "kind"), [(1500, "overlay_overhead"), (9000, "router_too_small")])
def test_an_error_in_the_name_of_the_far_end_is_the_sender_s_own_tunnel(below: int, kind: str):
    """Linux's tunnels answer so for what a bridge gives them (`skb_tunnel_check_pmtu`); another size has another cause."""
    lab = Lab((2,))
    lab.hosts["a"]["facts"]["interfaces"] += [
        interface("vx0", "10.8.0.1", 1500, overhead_bytes=50, parent="eth9", kind="vxlan"),
        interface("eth9", "10.9.0.1", below),
    ]
    far = lab.pairs["a", "b", 4]["destination_address"]
    lab.fault([("a", "b", 4)], 1450, "too_small", told=[(far, 1450)])
    [found] = [each for each in lab.blame() if CATALOGUE[each["kind"]].is_fault]
    assert found["kind"] == kind
    if kind == "overlay_overhead":
        assert "in the name of the far end" in found["summary"]
        assert [each["run"] for each in found["commands"]] == [
            "ip link set dev eth9 mtu 9050", "ip link set dev vx0 mtu 9000", "ip link set dev vx0 mtu 1450",
        ]  # fmt: skip


def test_a_limit_of_the_rate_both_ways_is_one_finding():
    lab = Lab((2,))
    for key in lab.pairs:
        lab.pairs[key]["slowly"] = {"flows": 12, "bytes_per_second": 250_000}
    assert kinds(lab) == ["rate_limited"]


def test_what_arrives_when_asked_slowly_is_a_limit_of_the_rate():
    lab = Lab((2,))
    lab.pairs["a", "b", 4]["slowly"] = {"flows": 12, "bytes_per_second": 250_000}
    lab.pairs["b", "a", 4]["slowly"] = {"flows": 0, "bytes_per_second": None}
    lab.pairs["a", "b", 4]["controls"] = {"sent": 64, "lost": 20}
    lab.pairs["b", "a", 4]["controls"] = {"sent": 64, "lost": 20}
    assert kinds(lab) == ["rate_limited"], "why small packets are lost as well"
    [found] = lab.blame()
    assert found["pairs"] == [["a", "b", 4]]
    assert "12 flows" in found["summary"]
    assert "2 Mb/s" in found["summary"]
    assert lab.document()["verdict"] == "carries_target"


def test_losses_that_do_not_depend_on_size_are_said_to_be_such():
    lab = Lab((2,))
    pair = lab.pairs["a", "b", 4]
    pair |= {"verdict": "unknown", "path_mtu_bytes": None, "slowly": {"flows": 0, "bytes_per_second": None}}
    pair["flows"] |= {"unknown": 2, "path_mtus_bytes": {"9000": 30}}
    [found] = lab.blame()
    assert found["kind"] == "could_not_tell"
    assert "do not depend on size" in found["evidence"]
    assert "--rate" in found["advice"]


def test_a_report_that_packets_disprove_is_false_and_no_limit():
    lab = Lab((1, 1))
    lab.pairs["a", "b", 4]["told_by"] = [{"address": R1, "mtu_bytes": 552, "flows": 32}]
    assert kinds(lab) == ["false_too_big"]
    [found] = lab.blame()
    assert "packets of 9000 bytes arrive all the same" in found["evidence"]
    assert "TCP believes it" in found["evidence"]


def test_a_false_report_does_not_hide_a_true_one():
    lab = Lab((1, 1)).fault([("a", "b", 4)], 1500, "too_small", told=[(R1, 552), (R2, 1500)])
    assert kinds(lab) == ["router_too_small", "false_too_big"]
    assert [each["where"] for each in lab.blame()] == [f"router {R2}", f"router {R1}"]


def test_a_router_that_names_more_than_it_lets_pass_is_wrong_by_the_difference():
    lab = Lab((1, 1)).fault([("a", "b", 4)], 1438, "too_small", told=[(R1, 1442)])
    found = only(lab, "router_too_small")
    assert "wrong by 4: packets above 1438 bytes are refused as well" in found["summary"]


def drop(family: int = 4, certain: bool = True, handle: int | None = 5) -> dict[str, Any]:
    rule = {"ip_version": family, "family": "inet", "table": "fw", "chain": "in", "handle": handle, "certain": certain}
    return {"rules": [rule], "error": None}


LOST = [(R1, "expired"), (R2, "silent"), ("", "silent")]


def by_length(hook: str = "input", **more: Any) -> dict[str, Any]:
    rule = {
        "ip_version": 4, "family": "inet", "table": "fw", "chain": "c", "hook": hook, "device": None, "handle": 7,
        "line": None, "program": "nft", "above_bytes": 1500, "to_bytes": None, "certain": True, **more,
    }  # fmt: skip
    return {"rules": [rule], "error": None}


LINE = '-A INPUT -m comment --comment "a $(b)" -m length --length 1501:65535 -j DROP'


@pytest.mark.parametrize(
    ("host", "rules", "commands"),
    [
        ("b", by_length(), ["nft --handle list chain inet fw c", "nft delete rule inet fw c handle 7"]),
        ("b", by_length("ingress", family="netdev", device="eth0"), ["nft --handle list chain netdev fw c",
                                                                     "nft delete rule netdev fw c handle 7"]),
        ("a", by_length("postrouting", handle=None), ["nft --handle list chain inet fw c"]),
        ("b", by_length(family="ip", table="filter", handle=None, line=LINE, program="iptables"),
         ["iptables -t filter -S c", "iptables -t filter -D INPUT -m comment --comment 'a $(b)' -m length --length "
                                     "1501:65535 -j DROP"]),
    ],
)  # fmt: skip
def test_a_rule_that_drops_just_what_is_lost_is_the_cause(host: str, rules: dict[str, Any], commands: list[str]):
    lab = Lab((2,)).fault([("a", "b", 4)])
    lab.hosts[host]["facts"]["length_filters"] = rules
    found = only(lab, "dropped_by_rule")
    assert (found["hosts"], [each["run"] for each in found["commands"]]) == ([host], commands)


@pytest.mark.parametrize(
    "rules",
    [
        by_length(certain=False), by_length("output"), by_length(ip_version=6), by_length(above_bytes=1400),
        by_length(device="eth7"), by_length(to_bytes=4000),
    ],
)  # fmt: skip
def test_a_rule_for_other_packets_or_sizes_explains_no_loss(rules: dict[str, Any]):
    lab = Lab((2,)).fault([("a", "b", 4)])
    lab.hosts["b"]["facts"]["length_filters"] = rules
    found = only(lab, "one_direction_only")
    for told in (found["evidence"], found["summary"]):
        assert ("handle 7 of chain c in table inet fw on host b" in told) == (not rules["rules"][0]["certain"])


def test_a_bridge_between_two_hosts_that_drops_by_length_is_no_bundle():
    lab = Lab((3,)).fault([("a", "b", 4), ("b", "a", 4)])
    lab.device("c").update(name="br0", kind="bridge")
    lab.hosts["c"]["facts"]["length_filters"] = by_length("forward", family="bridge")
    found = only(lab, "dropped_by_rule")
    assert (found["where"], "that it bridges" in found["summary"]) == ("the firewall of host c", True)
    # One that depends on more than the size is told beside the bundle; one for packets that are routed is not met.
    lab.hosts["c"]["facts"]["length_filters"] = by_length("forward", family="bridge", certain=False)
    assert "A rule may drop some packets above 1500 bytes" in only(lab, "member_too_small")["summary"]
    lab.hosts["c"]["facts"]["length_filters"] = by_length("forward")
    assert only(lab, "member_too_small")


def test_a_host_that_forwards_may_drop_by_a_rule():
    lab = Lab((1, 1)).fault([("a", "b", 4)], hops=LOST)
    lab.hosts["r"] = {"name": "r", "addresses": [R1], "error": None, "facts": {
        "interfaces": [interface("eth0", R1)], "length_filters": by_length("forward"),
    }}  # fmt: skip
    assert only(lab, "dropped_by_rule")["where"] == "the firewall of host r"


def test_a_host_that_drops_errors_itself_is_named_with_its_rule_and_no_router():
    lab = Lab((1, 1)).fault([("a", "b", 4)], hops=LOST)
    lab.hosts["a"]["facts"]["error_filters"] = drop()
    found = only(lab, "icmp_filtered")
    assert (found["where"], found["hosts"]) == ("the firewall of host a", ["a"])
    assert "handle 5 of chain in in table inet fw" in found["evidence"]
    assert {each["on"] for each in found["commands"]} == {"host a"}
    assert found["commands"][0]["run"].startswith("nft insert rule inet fw in icmp type")


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        ({"line": "-A INPUT -p icmp -j DROP"}, "-A INPUT -p icmp -j DROP of table filter of iptables"),
        ({}, "the policy of chain INPUT in table filter of iptables"),
    ],
)
def test_a_rule_of_iptables_that_drops_errors_is_named_with_its_own_commands(rule: dict[str, Any], what: str):
    lab = Lab((1, 1)).fault([("a", "b", 4)], hops=LOST)
    own = {"family": "ip", "table": "filter", "chain": "INPUT", "handle": None, "line": None, "program": "iptables"}
    lab.hosts["a"]["facts"]["error_filters"] = {"rules": [{**drop()["rules"][0], **own, **rule}], "error": None}
    found = only(lab, "icmp_filtered")
    assert what in found["evidence"]
    assert [each["run"] for each in found["commands"]] == [
        "iptables -t filter -I INPUT -p icmp --icmp-type fragmentation-needed -j ACCEPT",
        "iptables -t filter -S INPUT",
    ]


@pytest.mark.parametrize("rules", [drop(6), drop(certain=False)])
def test_a_rule_for_other_packets_or_of_some_explains_nothing(rules: dict[str, Any]):
    lab = Lab((1, 1)).fault([("a", "b", 4)], hops=LOST)
    lab.hosts["a"]["facts"]["error_filters"] = rules
    found = only(lab, "router_drops_silently")
    assert ("may drop ICMP errors" in found["evidence"]) == (not rules["rules"][0]["certain"])


def test_within_a_subnet_no_rule_keeps_errors_away():
    lab = Lab((3,))
    lab.fault(lab.some(lambda a, b: b == "c"))
    lab.hosts["a"]["facts"]["error_filters"] = drop()
    assert only(lab, "switch_or_nic_too_small")["hosts"] == ["c"]


@pytest.mark.parametrize(
    ("kind", "overhead", "runs"),
    [
        ("vxlan", 50, ["ip link set dev eth0 mtu 9050", "ip link set dev t0 mtu 9000"]),
        ("wireguard", None, ["ip -d link show dev t0"]),
        ("bridge", None, ["ip link set dev v0 mtu 9000", "ip link set dev t0 mtu 9000"]),
    ],
)  # fmt: skip
def test_a_host_that_forwards_raises_what_is_below_its_small_interface_first(
    kind: str, overhead: int | None, runs: list[str]
):
    lab = Lab((1, 1)).fault([("a", "b", 4)], 1450, "too_small", told=[(R1, 1450)])
    held = [
        interface("eth0", R1, 9000, master=None),
        interface("t0", "10.8.0.1", 1450, kind=kind, overhead_bytes=overhead, parent="eth0" if overhead else None),
        *([interface("v0", "192.0.2.1", 1500, addresses=[], kind="veth", master="t0")] if kind == "bridge" else []),
    ]
    lab.hosts["r"] = {"name": "r", "addresses": [R1], "error": None, "facts": {"interfaces": held}}
    found = only(lab, "router_too_small")
    assert [each["run"] for each in found["commands"]] == runs


def test_what_a_tunnel_tells_its_own_kernel_is_no_route_and_no_advmss():
    """A node of pods: what it sends to others' pods goes through the tunnel, and their answers to its own address do not."""
    lab = Lab((1, 1))
    tunnel = interface("vx0", "10.8.0.1", 9000, kind="vxlan", overhead_bytes=50, parent="eth0")
    lab.hosts["b"]["facts"]["interfaces"].append(tunnel)
    lab.pairs["b", "a", 4] |= {"interface": "vx0", "route_mtu_bytes": 8950}
    lab.pairs["a", "b", 4]["tcp"] |= {"peer_announced_mss_bytes": 8898, "mss_bytes": 8898}
    lab.pairs["b", "a", 4]["tcp"] |= {"route_mtu_bytes": 8950}
    lab.pairs["b", "a", 4] |= {"path_mtu_bytes": 9000}
    assert not {"route_mtu_too_small", "mss_clamped"} & set(kinds(lab))
    # Any other size is told by something else.
    lab.pairs["b", "a", 4]["route_mtu_bytes"] = 8000
    assert "route_mtu_too_small" in kinds(lab)


@pytest.mark.parametrize(("below", "kind"), [(9050, "host_interface_too_small"), (9000, "overlay_overhead")])
def test_a_tunnel_that_is_small_itself_says_nothing_against_its_underlay(below: int, kind: str):
    """It kept its MTU when the hosts were raised, as tunnels do."""
    lab = Lab((2,)).fault([("a", "b", 4), ("b", "a", 4)], 1450, "too_small", told=[(None, 1450)])
    for name in "ab":
        lab.device(name).update(name="vx0", kind="vxlan", mtu=1450, overhead_bytes=50, parent="eth9")
        lab.hosts[name]["facts"]["interfaces"].append(interface("eth9", "10.9.0.1", below))
    for pair in lab.pairs.values():
        pair["interface"] = "vx0"
    found = only(lab, kind)
    runs = [each["run"] for each in found["commands"] if each["on"] == "host a"]
    assert runs == [*(["ip link set dev eth9 mtu 9050"] if below < 9050 else []), "ip link set dev vx0 mtu 9000"]
    assert "underlay" in found["advice"]


def refused_by_the_first(lab: Lab) -> Lab:
    """From a to b, which are four hops apart, the first router refuses what is above 1492: from the second hop on."""
    lab.fault([("a", "b", 4)], 1492, "too_small", told=[(R1, 1492)])
    hops: Hops = [(R1, "expired"), ("10.9.2.1", "too_big"), ("10.9.3.1", "too_big"), ("", "too_big")]
    trace = lab.trace(lab.pairs["a", "b", 4], hops, True)
    for hop in trace["hops"][1:]:
        hop["large"] |= {"address": R1, "mtu_bytes": 1492}
    lab.pairs["a", "b", 4]["traces"] = [trace]
    return lab


def test_both_directions_of_a_link_are_one_cause_where_one_hears_nothing():
    """As where the address of one end is another machine's too, to which errors are routed."""
    lab = refused_by_the_first(Lab((1, 1)))
    lab.fault([("b", "a", 4)], 1492, hops=[(R2, "expired"), (None, "silent"), (None, "silent"), ("", "silent")])
    found = only(lab, "router_too_small")
    assert {tuple(pair) for pair in found["pairs"]} == {("a", "b", 4), ("b", "a", 4)}
    assert "anycast" in found["summary"]
    # The other end hides from b, and answers a from the address that it has on the link.
    assert [(each["on"].split()[1].strip(","), "addr show to 10.9.2.1 " in each["run"]) for each in found["commands"]] == [
        (R1, False), ("10.9.2.1", True),
    ]  # fmt: skip


def test_the_other_end_of_a_link_is_raised_too_where_it_is_known_and_small():
    for limit, expected in ((1492, [R1, "10.9.3.2"]), (1496, [R1])):
        lab = refused_by_the_first(Lab((1, 1)))
        lab.fault(
            [("b", "a", 4)], limit,
            hops=[(R2, "expired"), ("10.9.3.2", "expired"), ("10.9.2.2", "silent"), ("", "silent")],
        )  # fmt: skip
        found = only(lab, "router_too_small")
        assert [each["on"].split()[1].strip(",") for each in found["commands"]] == expected


def test_a_loss_elsewhere_on_the_way_back_is_another_cause():
    lab = refused_by_the_first(Lab((1, 1)))
    far = [(R2, "expired"), ("10.9.2.2", "expired"), ("10.9.1.2", "expired"), ("", "silent")]
    lab.fault([("b", "a", 4)], 1492, hops=far)
    assert sorted(each["kind"] for each in lab.faults()) == ["router_too_small", "switch_or_nic_too_small"]


def test_hosts_that_are_able_are_cleared_and_a_bundle_hashed_by_addresses_is_named():
    lab = Lab((6,))
    sides = {"a": 0, "b": 1, "c": 0, "d": 1, "e": 0, "f": 1}
    near, far = "abc", "def"
    bad = lab.some(lambda a, b: (a in near) != (b in near) and sides[a] != sides[b])
    found = only(lab.fault(bad), "member_too_small")
    assert found["hosts"] == []
    assert len(found["pairs"]) == len(bad) == 10
    assert "are cleared" in found["summary"]
    assert "by addresses alone (layer 2 or 2+3, Linux bonding's default)" in found["summary"]
    assert {*near, *far} == set(sides)


def test_a_pair_of_two_that_are_able_with_a_third_is_a_matter_of_the_way_between_them():
    found = only(Lab((3,)).fault([("a", "b", 4), ("b", "a", 4)]), "member_too_small")
    assert found["where"] == "one of several parallel links or paths between a and b, chosen by addresses"


@pytest.mark.parametrize("both", [False, True])
def test_where_nothing_passes_between_two_groups_their_link_is_named_and_no_bundle(both):
    lab = Lab((5,))
    bad = lab.some(lambda a, b: (a in "ab" and b in "cde") or (both and b in "ab" and a in "cde"))
    found = only(lab.fault(bad), "switch_or_nic_too_small")
    assert found["hosts"] == []
    assert found["where"].startswith("the link between the two groups hosts a and b, and hosts c, d and e")
    assert "are cleared" in found["summary"]
    assert "parallel" not in found["summary"]
    assert len(found["pairs"]) == len(bad)


def test_an_end_that_is_not_known_to_be_able_clears_nobody():
    lab = Lab((3,))
    lab.fault(lab.some(lambda a, b: "c" in (a, b)))
    lab.fault([("a", "b", 4)])
    assert "member_too_small" not in kinds(lab)


def test_another_interface_clears_nothing():
    lab = Lab((3,))
    lab.fault([("a", "b", 4)])
    other = interface("eth1", "10.1.0.101")
    lab.hosts["a"]["facts"]["interfaces"].append(other)
    lab.pairs["a", "c", 4] |= {"interface": "eth1", "source_address": "10.1.0.101"}
    assert only(lab, "one_direction_only")["pairs"] == [["a", "b", 4]]


def test_a_kernel_without_a_route_explains_both_directions():
    lab = Lab((1, 1)).fault([("a", "b", 4), ("b", "a", 4)], None, "unreachable")
    lab.pairs["a", "b", 4] |= {"said": "Network is unreachable", "controls": {"sent": 0, "lost": 0}}
    found = only(lab, "unreachable")
    assert found["where"] == "routes of host a (IPv4)"
    assert {tuple(pair) for pair in found["pairs"]} == {("a", "b", 4), ("b", "a", 4)}
    assert "cannot be answered" in found["summary"]
    assert found["commands"][0] == {"run": "ip route get 10.2.0.1 from 10.1.0.1", "on": "host a", "purpose": ""}


def test_a_host_behind_nat_is_one_finding_and_no_route_is_missing():
    """Others have no way to its address, and answer what it begins."""
    lab = Lab((1, 2)).fault([("b", "a", 4), ("c", "a", 4)], None, "unreachable")
    for name in "bc":
        lab.pairs[name, "a", 4] |= {"said": "Network is unreachable", "controls": {"sent": 0, "lost": 0}}
    found = only(lab, "unreachable")
    assert (found["where"], found["hosts"]) == ("host a, behind NAT or a proxy, from hosts b and c (IPv4)", ["a"])
    assert "Give host" not in found["fix"]
    # Without an answer to anything of its own, routes are missing.
    for name in "bc":
        lab.pairs["a", name, 4]["tcp"]["connected"] = False
    assert {each["where"] for each in lab.faults()} == {"routes of host b (IPv4)", "routes of host c (IPv4)"}


def test_a_full_neighbour_table_is_blamed_and_no_firewall():
    lab = Lab((4,)).fault([("a", "b", 4), ("b", "a", 4)], None, "unreachable")
    table = {"entries": 8, "most": 8, "refused": 40, "permanent": 0}
    for host in lab.hosts.values():
        host["facts"]["neighbour_tables"] = {"boot_id": "one", "ipv4": table, "ipv6": None}
        host["neighbours_refused"] = {"ipv4": 31, "ipv6": None}
    found = only(lab, "neighbour_table_full")
    assert {tuple(pair) for pair in found["pairs"]} == {("a", "b", 4), ("b", "a", 4)}
    assert "was full 31 times" in found["evidence"]
    assert "the check needs 12 of them" in found["evidence"]
    assert "firewall" not in found["fix"]
    (command,) = found["commands"]
    assert command["run"] == "sysctl -w net.ipv4.neigh.default.gc_thresh3=32"
    assert command["on"] == "the machine of hosts a, b, c and d, outside of network namespaces"


def test_a_macvlan_that_one_host_does_not_reach_is_named_as_a_possible_reason():
    lab = Lab((3,)).fault([("a", "c", 4), ("c", "a", 4)], None, "unreachable")
    assert "macvlan" not in only(lab, "unreachable")["summary"]
    lab.device("c")["kind"] = "macvlan"
    assert "eth0 of host c is a macvlan: if it stands on an interface of host a" in only(lab, "unreachable")["summary"]


def test_half_of_the_window_is_the_kernels_own_limit_and_no_clamp():
    lab = Lab((2,))
    for used, expected in ((32_741, []), (20_000, ["mss_clamped"])):
        for key in lab.pairs:
            lab.pairs[key]["tcp"] |= {"mss_bytes": used, "peer_announced_mss_bytes": 65_483, "route_mtu_bytes": 65_535}
            lab.pairs[key] |= {"route_mtu_bytes": 65_535}
        assert kinds(lab) == expected


@pytest.mark.parametrize(
    ("limit", "hint"),
    [
        (8982, "9000 less 18: a device counts its header and FCS"),
        (1486, "1500 less 14: a device counts its header"),
        (9194, "9216 less 22: a device counts its header, VLAN tag and FCS"),
        (1492, "PPPoE"),
        (8996, "9000 less 4: a device counts a VLAN tag"),
        (8981, None),
    ],
)
def test_a_size_is_a_hint_at_what_a_device_counts(limit: int, hint: str | None):
    found = only(Lab((2,)).fault([("a", "b", 4), ("b", "a", 4)], limit), "black_hole")
    assert ("is typical of" in found["evidence"]) == (hint is not None)
    assert hint is None or hint in found["evidence"]
    assert (f"{limit} is {hint}" in found["summary"]) == (hint is not None and "less" in hint), "told without --details"


def through_a_tunnel(fragments: int | None) -> Lab:
    """Hosts a and b carry 9000 through vx0 over eth0, which has 1500; a made so many fragments meanwhile."""
    lab = Lab((2,))
    lab.hosts["a"]["facts"]["interfaces"] = [
        interface("eth0", "192.0.2.1", 1500),
        interface("vx0", "10.1.0.1", kind="vxlan", parent="eth0", overhead_bytes=50),
    ]
    lab.pairs["a", "b", 4]["interface"] = "vx0"
    lab.hosts["a"]["fragments_created"] = None if fragments is None else {"ipv4": fragments, "ipv6": 0}
    return lab


def test_outer_packets_that_a_host_cuts_are_told_by_its_counter():
    assert kinds(through_a_tunnel(144)) == ["outer_fragmented"]
    [found] = through_a_tunnel(144).blame()
    assert "made 144 fragments" in found["evidence"]
    assert [each["run"] for each in found["commands"]] == [
        "ip link set dev eth0 mtu 9050", "ip link set dev vx0 mtu 1450",
    ]  # fmt: skip
    assert kinds(through_a_tunnel(63)) == ["tunnel_mtu_mismatch"], "fewer than two of each packet"
    assert kinds(through_a_tunnel(None)) == ["tunnel_mtu_mismatch"]


@pytest.mark.parametrize(("whole", "told"), [(32, ["outer_fragmented"]), (31, []), (None, [])])
def test_outer_packets_that_a_router_cuts_are_told_by_what_the_far_end_puts_together(
    whole: int | None, told: list[str]
):
    """VXLAN sends without DF, and its own host cuts nothing: eth0 has room."""
    lab = through_a_tunnel(0)
    lab.device("a")["mtu"] = 9050
    lab.hosts["b"]["packets_reassembled"] = None if whole is None else {"ipv4": whole, "ipv6": 0}
    assert kinds(lab) == told
    if told:
        [found] = lab.blame()
        assert (found["where"], found["hosts"], found["commands"]) == ("the underlay from host a to host b", ["b"], [])
        assert "put 32 packets together from fragments" in found["evidence"]
        assert "9050 bytes" in found["advice"]
        assert lab.document()["verdict"] == "carries_target"


def test_what_the_sender_cut_and_what_came_in_pieces_by_itself_tell_nothing_of_routers():
    lab = through_a_tunnel(144)
    lab.hosts["b"]["packets_reassembled"] = {"ipv4": 72, "ipv6": 0}
    assert [each["hosts"] for each in lab.blame()] == [["a"]]
    lab = through_a_tunnel(0)
    lab.device("a")["mtu"] = 9050
    lab.hosts["b"]["packets_reassembled"] = {"ipv4": 72, "ipv6": 0}
    lab.pairs["a", "b", 4]["flows"]["fragmented"] = 1
    assert "outer_fragmented" not in kinds(lab)


def test_a_tunnel_of_a_program_is_told_to_be_cut_by_the_same_counter():
    lab = through_a_tunnel(154)
    lab.device("a").update(name="tun0", kind="tun", parent=None, overhead_bytes=None)
    lab.pairs["a", "b", 4]["interface"] = "tun0"
    [found] = lab.blame()
    assert found["kind"] == "outer_fragmented"
    assert found["commands"] == []
    assert "framegauge wire --encap openvpn" in found["advice"]


def test_what_a_tunnel_told_its_own_kernel_is_no_advmss():
    lab = Lab((1, 1))
    lab.pairs["b", "a", 4]["tcp"] |= {"mss_bytes": 1398, "peer_announced_mss_bytes": 1398}
    lab.pairs["a", "b", 4]["tcp"] |= {"mss_bytes": 1398, "route_mtu_bytes": 1450}
    assert kinds(lab) == []


def test_a_way_around_goes_into_the_table_that_the_source_uses():
    found = only(Lab((2,)).fault([("a", "b", 4), ("b", "a", 4)]), "black_hole")
    run = found["commands"][0]["run"]
    assert "route get 10.1.0.2 from 10.1.0.1 |" in run
    assert "( table [^ ]+)?" in run


def test_both_directions_of_a_port_behind_a_router_are_one_cause():
    lab = Lab((1, 1)).fault([("a", "b", 4)], hops=[(R1, "expired"), ("", "silent")])
    # What takes in packets may take in a little more than it sends: room for a VLAN tag.
    lab.fault([("b", "a", 4)], 1504, hops=[(R2, "silent"), ("", "silent")])
    found = only(lab, "switch_or_nic_too_small")
    assert found["where"] == f"between routers {R1} and {R2} and host b, receiving and sending"
    assert len(found["pairs"]) == 2


def test_a_routers_small_end_of_a_hosts_own_link_is_one_cause_and_nobody_reports_what_comes_in():
    lab = Lab((1, 1)).fault(
        [("a", "b", 4)], 1500, "too_small", told=[(R1, 1500)], hops=[(R1, "expired"), ("", "silent")]
    )
    lab.fault([("b", "a", 4)], 1504, hops=[(R2, "silent"), ("", "silent")])
    found = only(lab, "router_too_small")
    assert len(found["pairs"]) == 2
    assert "the far end of the link does not take such frames in" in found["summary"]
    assert "anycast" not in found["summary"]


def test_what_the_underlay_of_a_tunnel_leaves_is_no_advmss():
    lab = through_a_tunnel(144)
    lab.pairs["b", "a", 4]["tcp"] |= {"mss_bytes": 1398, "peer_announced_mss_bytes": 1398}
    assert kinds(lab) == ["outer_fragmented"]
    lab.pairs["b", "a", 4]["tcp"] |= {"mss_bytes": 900, "peer_announced_mss_bytes": 900}
    assert sorted(kinds(lab)) == ["mss_clamped", "outer_fragmented"]


def test_who_names_the_target_and_refuses_less_is_wrong_by_the_difference():
    lab = Lab((1, 1)).fault([("a", "b", 4)], 1400, "too_small", told=[(R1, 9000)])
    found = only(lab, "router_too_small")
    assert "drops packets above 1400 bytes" in found["summary"]
    assert "wrong by 7600" in found["summary"]


def test_an_error_without_a_size_lets_the_sender_guess_and_is_no_advmss():
    lab = Lab((1, 1)).fault([("a", "b", 4)], 1400, "too_small", told=[(R1, None)])
    lab.pairs["b", "a", 4]["tcp"] |= {"mss_bytes": 500, "peer_announced_mss_bytes": 500}
    assert kinds(lab) == ["router_too_small"]
    assert "drops packets above 1400 bytes" in lab.blame()[0]["summary"]
    assert "names no MTU" in lab.blame()[0]["summary"]


def test_behind_a_hop_that_nobody_has_heard_no_port_of_a_host_is_to_blame():
    lab = Lab((1, 1)).fault([("a", "b", 4)], hops=[(R1, "expired"), (None, "silent"), ("", "silent")])
    found = only(lab, "router_drops_silently")
    assert found["hosts"] == []
    assert not any(each["on"] == "host b" for each in found["commands"])


def test_a_router_of_the_check_whose_interfaces_are_large_has_a_route_that_is_small():
    lab = Lab((2, 2)).fault([("a", "c", 4)], 1500, "too_small", told=[("10.1.0.2", 1500)])
    found = only(lab, "router_too_small")
    assert found["where"] == "router 10.1.0.2 (host b)"
    assert "the MTU of a route there" in found["summary"]
    assert [each["run"] for each in found["commands"]] == [
        "ip route get 10.2.0.1", "ip route show table all | grep mtu",
    ]  # fmt: skip
    lab.device("b")["mtu"] = 1500
    assert found["commands"] != only(lab, "router_too_small")["commands"]
