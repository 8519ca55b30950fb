"""Situations of other people's networks, rebuilt from namespaces: what a check says of each, and what it must not say.

None asserts a time or a rate. Where a limit of the rate is at work, "could not tell" is right as well; a fault is not.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from helpers.schemas import conforms
from helpers.situations import Json, Network, network

from framegauge.check.judgement import schema
from framegauge.check.judgement.findings import CATALOGUE

pytestmark = pytest.mark.needs("ip", "nft", "ethtool", "tc")


@pytest.fixture
def net() -> Iterator[Network]:
    with network() as own:
        yield own


def sizes(document: Json) -> dict[tuple[str, str, int], int | None]:
    conforms(document, schema.json_schema())
    return {
        (pair["source"].partition("%")[0], pair["destination"].partition("%")[0], pair["family"]): pair["path_mtu_bytes"]
        for pair in document["pairs"]
    }  # fmt: skip


def faults(document: Json) -> list[Json]:
    return [each for each in document["findings"] if CATALOGUE[each["kind"]].is_fault]


def kinds(document: Json) -> list[str]:
    return [each["kind"] for each in document["findings"]]


def routed(net: Network, mtu: int = 9000, far: int = 9000) -> None:
    """a -- r -- b, and routes."""
    net.nodes("a", "b", routers=("r",))
    net.link("a", "r", mtu)
    net.link("r", "b", far)
    net.ip("a", "addr add 10.1.0.1/24 dev to-r", "route add default via 10.1.0.254")
    net.ip("r", "addr add 10.1.0.254/24 dev to-a", "addr add 10.2.0.254/24 dev to-b")
    net.ip("b", "addr add 10.2.0.1/24 dev to-r", "route add default via 10.2.0.254")


def between(net: Network, mtu: int) -> None:
    """a -- r1 -- r2 -- b with 9000, but for the link between the routers."""
    net.nodes("a", "b", routers=("r1", "r2"))
    net.link("a", "r1")
    net.link("r1", "r2", mtu)
    net.link("r2", "b")
    net.ip("a", "addr add 10.1.0.1/24 dev to-r1", "route add default via 10.1.0.254")
    net.ip(
        "r1", "addr add 10.1.0.254/24 dev to-a", "addr add 10.9.0.1/30 dev to-r2", "route add 10.2.0.0/24 via 10.9.0.2"
    )
    net.ip(
        "r2", "addr add 10.9.0.2/30 dev to-r1", "addr add 10.2.0.254/24 dev to-b", "route add 10.1.0.0/24 via 10.9.0.1"
    )
    net.ip("b", "addr add 10.2.0.1/24 dev to-r2", "route add default via 10.2.0.254")


LIMITS = {
    "policer": "nft add table inet p; nft 'add chain inet p f {{ type filter hook forward priority 0; }}';"
    " nft add rule inet p f iifname to-a limit rate over {rate} kbytes/second burst 20 kbytes drop",
    "short buffer": "tc qdisc add dev to-b root tbf rate {rate}kbps burst 10kb limit 20kb",
    "loss": "nft add table inet p; nft 'add chain inet p f {{ type filter hook forward priority 0; }}';"
    " nft add rule inet p f numgen random mod 20 '< 1' drop",
}


@pytest.mark.parametrize(("limit", "rate"), [("policer", 250), ("policer", 2000), ("short buffer", 250), ("loss", 0)])
def test_a_limit_of_the_rate_is_no_mtu(net: Network, limit: str, rate: int) -> None:
    routed(net)
    net.shell("r", LIMITS[limit].format(rate=rate))
    document = net.check("a", "b")
    assert faults(document) == []
    assert set(sizes(document).values()) <= {9000, None}
    assert {"rate_limited", "could_not_tell", "plain_loss"} & set(kinds(document)) or set(kinds(document)) == set()


def test_a_device_that_reports_too_big_and_forwards_is_not_believed(net: Network) -> None:
    routed(net)
    net.device("r", "to-a", limit=9000, above=552, named=552)
    document = net.check("a", "b")
    assert sizes(document) == {("a", "b", 4): 9000, ("b", "a", 4): 9000}
    assert kinds(document) == ["false_too_big"]
    assert "552" in document["findings"][0]["evidence"]


def test_a_router_that_names_more_than_it_lets_pass_is_wrong_by_four(net: Network) -> None:
    routed(net)
    net.device("r", "to-a", limit=1438, above=1438, named=1442)
    document = net.check("a", "b")
    assert sizes(document) == {("a", "b", 4): 1438, ("b", "a", 4): 9000}
    [found] = faults(document)
    assert found["kind"] == "router_too_small"
    assert "wrong by 4" in found["summary"]


@pytest.mark.parametrize(
    ("policy", "rules"),
    [
        ("accept", ["icmp type destination-unreachable drop"]),
        ("drop", ["iif lo accept", "ct state established accept", "meta l4proto { tcp, udp } accept"]),
    ],
)
def test_a_sender_that_drops_icmp_itself_is_named_and_no_router_is_told_to_let_it_pass(
    net: Network, policy: str, rules: list[str]
) -> None:
    between(net, 1500)
    base = f"{{ type filter hook input priority 0; policy {policy}; }}"
    net.shell("a", f"nft add table inet fw; nft 'add chain inet fw in {base}'")
    for rule in rules:
        net.shell("a", f"nft add rule inet fw in '{rule}'")
    document = net.check("a", "b")
    assert sizes(document) == {("a", "b", 4): 1500, ("b", "a", 4): 1500}
    of_a = next(each for each in faults(document) if ["a", "b", 4] in each["pairs"])
    assert (of_a["kind"], of_a["hosts"]) == ("icmp_filtered", ["a"])
    assert "chain in in table inet fw" in of_a["evidence"]
    assert {each["on"] for each in of_a["commands"]} == {"host a"}
    for command in of_a["commands"]:
        net.shell("a", command["run"])
    assert "icmp_filtered" not in kinds(net.check("a", "b"))


# u32 of tc knows no "longer than": packets of 2048 bytes and more, then down to 1502.
LONGER = ("0x8000 0x8000", "0x4000 0x4000", "0x2000 0x2000", "0x1000 0x1000", "0x0800 0x0800", "0x0600 0xfe00",
          "0x05e0 0xffe0", "0x05de 0xfffe")  # fmt: skip


def bundle(net: Network) -> None:
    """h1 to h3 on s1, h4 to h6 on s2, and two links between these, chosen by the last bits of both MACs; one stops at 1501."""
    near, far = ("h1", "h2", "h3"), ("h4", "h5", "h6")
    net.nodes("s1", "s2", *near, *far)
    for switch, hosts in (("s1", near), ("s2", far)):
        net.ip(switch, "link add br0 type bridge", "link set br0 mtu 9000 up")
        for host in hosts:
            net.link(host, switch)
            net.ip(switch, f"link set to-{host} master br0")
            net.ip(
                host,
                f"link set to-{switch} address 02:00:00:00:00:0{host[1]}",
                f"addr add 10.1.0.{host[1]}/24 dev to-{switch}",
            )
        for one, other in (("bp", "lag"), ("sink", "sink2")):
            net.ip(switch, f"link add {one} type veth peer name {other}")
            net.ip(switch, f"link set {one} mtu 9000 up", f"link set {other} mtu 9000 up")
        net.ip(switch, "link set bp master br0")
    for member in ("0", "1"):
        net.link("s1", "s2", end=member)
    for switch, other in (("s1", "s2"), ("s2", "s1")):
        lines = ["ethtool -K bp gro off", "tc qdisc add dev lag ingress"]
        lines += [
            f"tc filter add dev lag ingress protocol all prio 1 u32 match u8 {one} 0x01 at -3 match u8 {two} 0x01 at -9 "
            f"action mirred egress redirect dev to-{other}{one ^ two}"
            for one in (0, 1) for two in (0, 1)
        ]  # fmt: skip
        lines += [f"tc qdisc add dev to-{other}{member} ingress" for member in (0, 1)]
        lines += [
            f"tc filter add dev to-{other}1 ingress protocol ip prio 2 u32 match u16 {size} at 2 "
            "action mirred egress redirect dev sink"
            for size in LONGER
        ]  # fmt: skip
        lines += [
            f"tc filter add dev to-{other}{member} ingress protocol all prio 9 u32 match u32 0 0 "
            "action mirred egress redirect dev lag"
            for member in (0, 1)
        ]  # fmt: skip
        net.shell(switch, "; ".join(lines))


def test_a_bundle_hashed_by_addresses_clears_all_hosts(net: Network) -> None:
    bundle(net)
    document = net.check("h1", "h2", "h3", "h4", "h5", "h6")
    bad = {pair for pair, size in sizes(document).items() if size != 9000}
    assert bad == {
        (one, other, 4) for one, other, _ in sizes(document)
        if (one < "h4") != (other < "h4") and (int(one[1]) ^ int(other[1])) & 1
    }  # fmt: skip
    [found] = faults(document)
    assert (found["kind"], found["hosts"]) == ("member_too_small", [])
    assert {tuple(pair) for pair in found["pairs"]} == bad
    assert "layer 2 or 2+3" in found["summary"]


def test_an_error_that_another_machine_gets_leaves_one_cause(net: Network) -> None:
    """The address of na is nb's, too, and routers' errors go there (anycast, ECMP)."""
    net.nodes("c", "na", "nb", routers=("r1", "r2", "r0"))
    for one, other, mtu in (
        ("c", "r1", 1500),
        ("r1", "r2", 1492),
        ("r2", "r0", 1500),
        ("r0", "na", 1500),
        ("r0", "nb", 1500),
    ):
        net.link(one, other, mtu)
    for node, number in (("na", 2), ("nb", 3)):
        net.ip(
            node, f"addr add 10.{number}.0.1/24 dev to-r0", "link add vip type veth peer name vipx", "link set vip up"
        )
        net.ip(node, "link set vipx up", "addr add 192.0.2.10/32 dev vip", f"route add default via 10.{number}.0.254")
    net.ip("c", "addr add 10.1.0.1/24 dev to-r1", "route add default via 10.1.0.254")
    net.ip("r1", "addr add 10.1.0.254/24 dev to-c", "addr add 10.8.0.1/30 dev to-r2", "route add default via 10.8.0.2")
    net.ip("r2", "addr add 10.8.0.2/30 dev to-r1", "addr add 10.9.0.1/30 dev to-r0", "route add default via 10.9.0.2",
           "route add 10.1.0.0/24 via 10.8.0.1")  # fmt: skip
    net.ip("r0", "addr add 10.9.0.2/30 dev to-r2", "addr add 10.2.0.254/24 dev to-na", "addr add 10.3.0.254/24 dev to-nb",
           "route add 10.1.0.0/24 via 10.9.0.1", "route add 10.8.0.0/24 via 10.9.0.1", "route add 192.0.2.10/32 via 10.2.0.1",
           "rule add from 10.9.0.0/24 lookup 50", "rule add from 10.8.0.0/24 lookup 50",
           "route add 192.0.2.10/32 via 10.3.0.1 table 50")  # fmt: skip
    document = net.check("c", "na%vip", target=1500)
    assert set(sizes(document).values()) == {1492}
    [found] = faults(document)
    assert found["kind"] == "router_too_small"
    assert len(found["pairs"]) == 2
    assert "anycast" in found["summary"]
    assert not any("host c" in each["on"] for each in found["commands"])


def test_a_bridge_needs_its_small_port_raised_first(net: Network) -> None:
    net.nodes("a", "b", "vm")
    net.link("a", "b")
    net.link("a", "vm", 1500)
    net.ip("a", "link add br0 type bridge", "link set to-b master br0", "link set to-vm master br0", "link set br0 up",
           "addr add 10.1.0.1/24 dev br0")  # fmt: skip
    net.ip("b", "addr add 10.1.0.2/24 dev to-a")
    [found] = faults(net.check("a", "b"))
    assert found["kind"] == "host_interface_too_small"
    assert [each["run"] for each in found["commands"]] == [
        "ip link set dev to-vm mtu 9000", "ip link set dev br0 mtu 9000",
    ]  # fmt: skip


def plain(net: Network) -> None:
    net.nodes("a", "b")
    net.link("a", "b")
    for number, node in enumerate(("a", "b"), 1):
        other = "b" if node == "a" else "a"
        net.ip(node, f"addr add 10.1.0.{number}/24 dev to-{other}", f"addr add fd00:1::{number}/64 dev to-{other}")


def test_an_advmss_is_named(net: Network) -> None:
    plain(net)
    net.ip("a", "route change 10.1.0.0/24 dev to-b src 10.1.0.1 advmss 1460")
    document = net.check("a", "b")
    assert document["verdict"] == "carries_target"
    assert [(each["kind"], each["where"]) for each in document["findings"]] == [("mss_clamped", "routes of host a")]


def test_the_ipv6_mtu_of_an_interface_is_named(net: Network) -> None:
    plain(net)
    net.shell("a", "sysctl -qw net.ipv6.conf.to-b.mtu=1500")
    document = net.check("a", "b", families=(4, 6))
    assert document["verdict"] == "carries_target"
    [found] = document["findings"]
    assert [each["run"] for each in found["commands"]] == ["sysctl -w net.ipv6.conf.to-b.mtu=9000"]


def test_a_path_below_what_ipv6_allows_has_no_route_as_a_way_around(net: Network) -> None:
    net.nodes("a", "b", "s")
    for node in ("a", "b"):
        net.link(node, "s", 1500)
    net.ip("s", "link add br0 type bridge", "link set to-a master br0", "link set to-b master br0", "link set br0 up")
    for number, node in enumerate(("a", "b"), 1):
        net.ip(node, f"addr add 10.1.0.{number}/24 dev to-s", f"addr add fd00:1::{number}/64 dev to-s")
        net.shell("s", f"nft add table netdev {node}; nft 'add chain netdev {node} c {{ type filter hook ingress device to-{node} "
                       f"priority 0; }}'; nft add rule netdev {node} c meta length gt 1124 drop")  # fmt: skip
    document = net.check("a", "b", target=1500, families=(4, 6))
    assert set(sizes(document).values()) == {1124}
    assert not any("1280" in each["run"] for found in document["findings"] for each in found["commands"])


def test_a_small_end_of_a_router_is_one_cause_and_no_command_changes_nothing(net: Network) -> None:
    routed(net)
    net.ip("r", "link set to-b mtu 1500")
    net.shell("r", "nft add table inet f; nft 'add chain inet f out { type filter hook output priority 0; }'; nft add rule "
                   "inet f out icmp type destination-unreachable limit rate over 1/second burst 1 packets drop")  # fmt: skip
    document = net.check("a", "b")
    assert len(faults(document)) == 1
    assert not any(
        "mtu 9000" in each["run"] and each["on"].startswith("host ")
        for found in document["findings"] for each in found["commands"]
    )  # fmt: skip


def test_a_kernel_without_a_route_is_named(net: Network) -> None:
    routed(net)
    net.ip("a", "route del default")
    [found] = faults(net.check("a", "b"))
    assert (found["kind"], found["where"]) == ("unreachable", "routes of host a (IPv4)")
    assert len(found["pairs"]) == 2


def test_a_rule_by_source_decides_which_interface_is_meant(net: Network) -> None:
    """Packets from the second address take the second way, whose far end is small."""
    routed(net)
    net.link("a", "r", end="2")
    net.link("r", "b", 9000, 1500, end="2")
    net.ip(
        "a",
        "addr add 10.3.0.1/24 dev to-r2",
        "rule add from 10.3.0.1 lookup 77",
        "route add default via 10.3.0.254 table 77",
    )
    net.ip("r", "addr add 10.3.0.254/24 dev to-a2", "addr add 10.4.0.254/24 dev to-b2")
    net.ip(
        "b",
        "addr add 10.4.0.1/24 dev to-r2",
        "rule add from 10.4.0.1 lookup 77",
        "route add default via 10.4.0.254 table 77",
    )
    document = net.check("a%to-r2", "b%to-r2")
    assert {pair["interface"] for pair in document["pairs"]} == {"to-r2"}
    assert any(each["where"] == "host b, interface to-r2" for each in faults(document))


def test_outer_packets_of_a_tunnel_that_are_cut_are_told(net: Network) -> None:
    plain(net)
    for node, number, other in (("a", 1, "b"), ("b", 2, "a")):
        net.ip(node, f"link set to-{other} mtu 9050",
               f"link add vx0 type vxlan id 5 local 10.1.0.{number} remote 10.1.0.{3 - number} dstport 4789 dev to-{other}",
               "link set vx0 mtu 9000 up", f"addr add 10.7.0.{number}/24 dev vx0", f"link set to-{other} mtu 1500")  # fmt: skip
    document = net.check("a%vx0", "b%vx0")
    assert document["verdict"] == "carries_target"
    assert kinds(document) == ["outer_fragmented", "outer_fragmented"]


def test_outer_packets_that_a_router_cuts_are_told_by_the_far_end(net: Network) -> None:
    """VXLAN sends without DF, so a router with a small link cuts, and tells nobody."""
    between(net, 1500)
    for node, number, router in (("a", 1, "r1"), ("b", 2, "r2")):
        net.ip(node, f"link add vx0 type vxlan id 5 local 10.{number}.0.1 remote 10.{3 - number}.0.1 dstport 4789 dev to-{router}",
               "link set vx0 mtu 8950 up", f"addr add 10.7.0.{number}/24 dev vx0")  # fmt: skip
    document = net.check("a%vx0", "b%vx0", target=8950)
    assert document["verdict"] == "carries_target"
    assert [(each["kind"], each["where"]) for each in document["findings"]] == [
        ("outer_fragmented", "the underlay from host a to host b"),
        ("outer_fragmented", "the underlay from host b to host a"),
    ]
    for node, other in (("r1", "r2"), ("r2", "r1")):
        net.ip(node, f"link set to-{other} mtu 9000")
    assert net.check("a%vx0", "b%vx0", target=8950)["findings"] == []


def test_both_ends_of_a_link_are_raised_though_one_is_not_heard(net: Network) -> None:
    """Raised at the end that is heard alone, the link loses in silence what it refused before."""
    between(net, 1500)
    net.shell("r1", "nft add table inet f; nft 'add chain inet f o { type filter hook output priority 0; }';"
              " nft add rule inet f o meta l4proto icmp ip daddr 10.1.0.1 drop")  # fmt: skip
    [found] = faults(net.check("a", "b"))
    assert found["kind"] == "router_too_small"
    assert [each["on"].split()[1].strip(",") for each in found["commands"]] == ["10.2.0.254", "10.9.0.1"]
    for command, router in zip(found["commands"], ("r2", "r1"), strict=True):
        net.shell(router, command["run"])
    assert set(sizes(net.check("a", "b")).values()) == {9000}


def test_an_interface_without_a_carrier_is_not_told_to_go_up(net: Network) -> None:
    net.nodes("s", "a", "b")
    net.ip("s", "link add br0 type bridge", "link set br0 up")
    for number, node in enumerate("ab", 1):
        net.link(node, "s")
        net.ip("s", f"link set to-{node} master br0")
        net.ip(node, f"addr add 10.1.0.{number}/24 dev to-s")
    net.ip("s", "link set to-b down")
    [found] = faults(net.check("a", "b"))
    assert (found["kind"], "On host b to-s is up without a carrier." in found["summary"]) == ("unreachable", True)
    assert "ip link set dev to-s up" not in [each["run"] for each in found["commands"]]


def test_a_kernel_that_lost_its_routes_with_an_interface_is_told_to_put_it_up(net: Network) -> None:
    plain(net)
    net.ip("b", "link set to-a down")
    [found] = faults(net.check("a", "b"))
    assert (found["kind"], found["where"]) == ("unreachable", "routes of host b (IPv4)")
    net.shell("b", found["commands"][0]["run"])
    assert net.check("a", "b")["findings"] == []


def test_a_tunnel_in_a_bridge_is_named_and_no_router(net: Network) -> None:
    """Its kernel answers in the name of the far end, which no router is."""
    plain(net)
    for node, number, other in (("a", 1, "b"), ("b", 2, "a")):
        net.ip(node, f"link set to-{other} mtu 1500", f"link add vx0 type vxlan id 5 remote 10.1.0.{3 - number} dstport 4789",
               "link add br0 type bridge", "link set vx0 master br0", "link set vx0 up", "link set br0 up",
               f"addr add 10.7.0.{number}/24 dev br0")  # fmt: skip
    document = net.check("a%br0", "b%br0", target=1500)
    assert set(sizes(document).values()) == {1450}
    [found] = faults(document)
    assert found["kind"] == "overlay_overhead"
    assert "ip link set dev vx0 mtu 1450" in [each["run"] for each in found["commands"]]


def test_a_macvlan_beside_its_host_is_named_and_no_fault_of_others(net: Network) -> None:
    plain(net)
    net.nodes("c")
    net.ip("a", "link add mv0 link to-b type macvlan mode bridge", f"link set mv0 netns {net.name('c')}")
    net.ip("c", "link set mv0 mtu 9000 up", "addr add 10.1.0.3/24 dev mv0")
    [found] = faults(net.check("a", "b", "c"))
    assert {tuple(pair) for pair in found["pairs"]} == {("a", "c", 4), ("c", "a", 4)}
    assert "macvlan" in found["summary"]


def test_half_of_the_largest_window_is_no_clamp(net: Network) -> None:
    plain(net)
    for node, other in (("a", "b"), ("b", "a")):
        net.ip(node, f"link set to-{other} mtu 65535")
    assert kinds(net.check("a", "b", target=65_535)) == []


def docker(net: Network, *containers: str) -> None:
    """Containers behind docker0 (1500) of host a (9000), and a host b beside that one."""
    net.nodes("b", *containers, routers=("a",))
    net.link("a", "b")
    net.ip("a", "addr add 10.1.0.1/24 dev to-b", "link add docker0 type bridge", "link set docker0 mtu 1500 up",
           "addr add 172.17.0.1/16 dev docker0")  # fmt: skip
    net.ip("b", "addr add 10.1.0.2/24 dev to-a", "route add 172.17.0.0/16 via 10.1.0.1")
    for number, name in enumerate(containers, 2):
        net.link("a", name, 1500)
        net.ip("a", f"link set to-{name} master docker0")
        net.ip(name, f"addr add 172.17.0.{number}/16 dev to-a", "route add default via 172.17.0.1")


def test_a_network_of_docker_that_is_small_is_one_cause(net: Network) -> None:
    docker(net, "c1", "c2")
    document = net.check("a", "b", "c1", "c2")
    [found] = faults(document)
    assert (found["kind"], found["hosts"]) == ("host_interface_too_small", ["a", "c1", "c2"])
    assert '"mtu": 9000 in /etc/docker/daemon.json' in found["advice"]
    for command in found["commands"]:
        for node in ("a", "c1", "c2"):
            if node in command["on"].replace(",", "").split():
                net.shell(node, command["run"])
    assert net.check("a", "b", "c1", "c2")["verdict"] == "carries_target"


def test_a_filter_of_tc_that_drops_by_length_is_told_at_its_host(net: Network) -> None:
    net.nodes("a", "b", "c", "s")
    net.ip("s", "link add br0 type bridge", "link set br0 mtu 9000 up")
    for number, node in enumerate("abc", 1):
        net.link(node, "s")
        net.ip("s", f"link set to-{node} master br0")
        net.ip(node, f"addr add 10.1.0.{number}/24 dev to-s")
    net.ip("b", "link add sink type veth peer name sink2")
    net.ip("b", "link set sink mtu 9000 up", "link set sink2 mtu 9000 up")
    lines = ["tc qdisc add dev to-s ingress"]
    lines += [f"tc filter add dev to-s ingress protocol ip prio 2 u32 match u16 {size} at 2 action mirred egress "
              "redirect dev sink" for size in LONGER]  # fmt: skip
    net.shell("b", "; ".join(lines))
    document = net.check("a", "b", "c")
    [found] = faults(document)
    assert (found["kind"], found["hosts"]) == ("switch_or_nic_too_small", ["b"])
    assert "a filter of tc sees what to-s takes in" in found["summary"]
    assert found["commands"][0]["run"] == "tc -s filter show dev to-s ingress"
