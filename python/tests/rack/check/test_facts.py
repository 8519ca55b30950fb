"""What a host says of itself, against namespaces that `ip` built: real veth, bridge, VXLAN, and real ICMP."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers.rollouts import until
from helpers.schemas import conforms
from helpers.support import ROOT

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.errors import AgentError, AgentLost

pytestmark = pytest.mark.needs("ip")

SCHEMA = json.loads((ROOT / "pipe/schema.json").read_text())
# Sends a packet that may not be cut and waits until the kernel has been told that it is too big.
TOO_BIG = """
import select, socket, sys
v6 = ":" in sys.argv[1]
udp = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
level = socket.IPPROTO_IPV6 if v6 else socket.IPPROTO_IP
udp.setsockopt(level, 23 if v6 else 10, 2)  # MTU_DISCOVER: DO
udp.setsockopt(level, 25 if v6 else 11, 1)  # RECVERR
udp.connect((sys.argv[1], 9))
udp.send(bytes(3000))
poll = select.poll()
poll.register(udp, 0)
sys.exit(0 if poll.poll(5000) else 1)
"""


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


@dataclass
class Network:
    """a --9000-- r --1400-- b."""

    a: str
    r: str
    b: str

    def inside(self, host: str, *words: str) -> None:
        run("ip", "netns", "exec", host, *words)


def build(network: Network) -> None:
    for name in (network.a, network.r, network.b):
        run("ip", "netns", "add", name)
        network.inside(name, "ip", "link", "set", "lo", "up")
    for left, right, net, mtu in ((network.a, network.r, 1, 9000), (network.b, network.r, 2, 1400)):
        run("ip", "-n", left, "link", "add", "net0", "type", "veth", "peer", "name", f"r{net}", "netns", right)
        for host, name, last in ((left, "net0", 1), (right, f"r{net}", 254)):
            run("ip", "-n", host, "addr", "add", f"10.201.{net}.{last}/24", "dev", name)
            run("ip", "-n", host, "addr", "add", f"fd78:201:{net}::{last}/64", "dev", name, "nodad")
            run("ip", "-n", host, "link", "set", name, "mtu", str(mtu), "up")
        run("ip", "-n", left, "route", "add", "default", "via", f"10.201.{net}.254")
        run("ip", "-n", left, "-6", "route", "add", "default", "via", f"fd78:201:{net}::254")
    network.inside(
        network.r, "sh", "-c", "echo 1 | tee /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding"
    )
    vxlan = ("type", "vxlan", "dstport", "4789", "id")
    run("ip", "-n", network.a, "link", "add", "over4", *vxlan, "4", "remote", "10.201.2.1")
    run("ip", "-n", network.a, "link", "add", "over6", *vxlan, "6", "remote", "fd78:201:2::1", "dev", "net0")
    run("ip", "-n", network.a, "link", "add", "ovs", "type", "vxlan", "external", "dstport", "4790")
    run("ip", "-n", network.a, "link", "add", "switch", "type", "bridge")
    run("ip", "-n", network.a, "addr", "add", "10.99.0.1/16", "dev", "over4")


@pytest.fixture
def network() -> Iterator[Network]:
    own = Network(*(f"fgtest-{os.getpid()}-{each}" for each in "arb"))
    try:
        build(own)
        yield own
    finally:
        for name in (own.a, own.r, own.b):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def ask(command: list[str], method: str, params: dict[str, Any] | None = None) -> Any:
    with Agent.open(command) as agent:
        found = agent.request(method, params)
    conforms(found, {"$ref": f"#/$defs/{method}.result", "$defs": SCHEMA["$defs"]})
    return found


def host(name: str) -> list[str]:
    return [find_agent(), "host", "--netns", name]


def test_interfaces_and_tunnels(network: Network) -> None:
    found = ask(host(network.a), "check.facts")
    assert found["hostname"] == Path("/proc/sys/kernel/hostname").read_text().strip()
    all_of_them = {each["name"]: each for each in found["interfaces"]}
    assert {"net0", "over4", "over6", "ovs", "switch"} <= all_of_them.keys()
    assert "lo" not in all_of_them
    link = all_of_them["net0"]
    assert (link["mtu"], link["kind"], link["driver"], link["up"], link["parent"]) == (9000, "veth", "veth", True, None)
    assert link["addresses"] == [
        {"address": "10.201.1.1", "prefix_length": 24, "family": 4},
        {"address": "fd78:201:1::1", "prefix_length": 64, "family": 6},
    ]
    assert link["offloads"].keys() == {"tso", "gso", "gro", "tx_checksum", "lro"}
    tunnels = {name: (each["kind"], each["overhead_bytes"], each["parent"]) for name, each in all_of_them.items()}
    assert tunnels["over4"] == ("vxlan", 50, "net0"), "the interface that leads to the other end"
    assert tunnels["over6"] == ("vxlan", 70, "net0")
    assert tunnels["ovs"] == ("vxlan", None, None), "each packet has an underlay of its own"
    assert tunnels["switch"] == ("bridge", None, None)
    # Bound to its interface, the driver itself takes the same from the MTU.
    assert all_of_them["over6"]["mtu"] == 9000 - 70
    assert all_of_them["over4"]["up"] is False
    assert found["sysctls"]["net.ipv4.tcp_mtu_probing"] == "0"
    assert found["sysctls"]["net.ipv6.conf.net0.mtu"] == "9000"


@pytest.mark.parametrize(("family", "destination"), [(4, "10.201.2.1"), (6, "fd78:201:2::1")])
def test_a_remembered_path_mtu_is_listed_and_is_the_route_mtu(network: Network, family: int, destination: str) -> None:
    routes = {"destinations": [destination]}
    assert ask(host(network.a), "check.facts")["path_mtu_cache"] == []
    source = "10.201.1.1" if family == 4 else "fd78:201:1::1"
    way = {"destination": destination, "source": source, "interface": "net0", "route_mtu_bytes": 9000, "error": None}
    assert ask(host(network.a), "check.routes", routes)["routes"] == [way]
    network.inside(network.a, sys.executable, "-c", TOO_BIG, destination)
    cache = ask(host(network.a), "check.facts")["path_mtu_cache"]
    assert cache == [{"destination": destination, "mtu": 1400, "family": family}]
    assert ask(host(network.a), "check.routes", routes)["routes"] == [{**way, "route_mtu_bytes": 1400}]
    run("ip", "-n", network.a, f"-{family}", "route", "flush", "cache")
    assert ask(host(network.a), "check.facts")["path_mtu_cache"] == []


@pytest.mark.needs("nft")
def test_rules_that_clamp_the_mss_are_listed(network: Network) -> None:
    assert ask(host(network.a), "check.facts")["mss_clamps"] == {"rules": [], "error": None}
    for words in (
        "table inet fg", "chain inet fg out { type filter hook output priority 0 ; }",
        "rule inet fg out tcp flags syn tcp option maxseg size set 1360",
        "rule inet fg out tcp dport 22 accept",
        "table ip6 vpn", "chain ip6 vpn forward", "rule ip6 vpn forward tcp option maxseg size set rt mtu",
    ):  # fmt: skip
        network.inside(network.a, "nft", "add", *words.split())
    assert ask(host(network.a), "check.facts")["mss_clamps"]["rules"] == [
        {"family": "inet", "table": "fg", "chain": "out", "to": "size", "mss_bytes": 1360},
        {"family": "ip6", "table": "vpn", "chain": "forward", "to": "route_mtu", "mss_bytes": None},
    ]


@pytest.mark.needs("nft")
def test_rules_that_keep_too_big_away_are_told_with_their_place(network: Network) -> None:
    for words in (
        "table inet fg", "chain inet fg in { type filter hook input priority 0 ; }",
        "rule inet fg in ct state vmap { established : accept }", "rule inet fg in icmp type destination-unreachable drop",
        "rule inet fg in ip6 saddr fd00::/8 drop",
    ):  # fmt: skip
        network.inside(network.a, "nft", "add", *words.split())
    rules = ask(host(network.a), "check.facts")["error_filters"]["rules"]
    assert [(each["ip_version"], each["family"], each["chain"], each["certain"]) for each in rules] == [
        (4, "inet", "in", True), (6, "inet", "in", False),
    ]  # fmt: skip
    assert all(isinstance(each["handle"], int) for each in rules)


@pytest.mark.needs("nft")
def test_rules_that_drop_by_length_are_told_of_every_kind_of_table(network: Network) -> None:
    for words in (
        "table netdev fg", "chain netdev fg in { type filter hook ingress device net0 priority 0 ; }",
        "rule netdev fg in meta length > 1500 drop",
        "table ip6 fg", "chain ip6 fg in { type filter hook input priority 0 ; policy drop ; }",
        "rule ip6 fg in ip6 length 0-1360 accept",
    ):  # fmt: skip
        network.inside(network.a, "nft", "add", *words.split())
    rules = ask(host(network.a), "check.facts")["length_filters"]["rules"]
    told = [(each["ip_version"], each["hook"], each["device"], each["above_bytes"], each["certain"]) for each in rules]
    ingress = [(family, "ingress", "net0", 1500, True) for family in (4, 6)]
    assert told == [*ingress, (6, "input", None, 1400, True)]


def test_an_interface_tells_of_what_it_is_a_port(network: Network) -> None:
    run("ip", "-n", network.a, "link", "set", "over6", "master", "switch")
    found = {each["name"]: each["master"] for each in ask(host(network.a), "check.facts")["interfaces"]}
    assert (found["over6"], found["net0"], found["switch"]) == ("switch", None, None)


@pytest.mark.needs("tc")
def test_filters_of_tc_are_told_by_what_they_see(network: Network) -> None:
    def programs() -> list[str]:
        [own] = [each for each in ask(host(network.a), "check.facts")["interfaces"] if each["name"] == "net0"]
        return own["programs"]

    network.inside(network.a, "tc", "qdisc", "add", "dev", "net0", "clsact")
    assert programs() == []
    for way, known in (("egress", ["tc_egress"]), ("ingress", ["tc_ingress", "tc_egress"])):
        network.inside(
            network.a, *f"tc filter add dev net0 {way} protocol ip prio 1 u32 match u32 0 0 flowid 1:1".split()
        )
        assert programs() == known


def test_fragments_that_a_host_makes_are_counted(network: Network) -> None:
    before = ask(host(network.a), "check.facts")["fragments_created"]
    network.inside(network.a, "ip", "link", "set", "net0", "mtu", "1500")
    network.inside(network.r, "ip", "link", "set", "r1", "mtu", "1500")
    network.inside(network.a, "ping", "-c1", "-M", "dont", "-s", "4000", "10.201.1.254")
    after = ask(host(network.a), "check.facts")["fragments_created"]
    assert (after["ipv4"] - before["ipv4"], after["ipv6"] - before["ipv6"]) == (3, 0)


def test_packets_that_a_host_puts_together_are_counted(network: Network) -> None:
    before = ask(host(network.r), "check.facts")["packets_reassembled"]
    network.inside(network.a, "ip", "link", "set", "net0", "mtu", "1500")
    network.inside(network.r, "ip", "link", "set", "r1", "mtu", "1500")
    network.inside(network.a, "ping", "-c1", "-M", "dont", "-s", "4000", "10.201.1.254")
    after = ask(host(network.r), "check.facts")["packets_reassembled"]
    assert (after["ipv4"] - before["ipv4"], after["ipv6"] - before["ipv6"]) == (1, 0)


def test_an_interface_without_a_carrier_was_told_to_be_up(network: Network) -> None:
    def states() -> tuple[bool, bool]:
        [own] = [each for each in ask(host(network.a), "check.facts")["interfaces"] if each["name"] == "net0"]
        return own["up"], own["enabled"]

    assert states() == (True, True)
    network.inside(network.r, "ip", "link", "set", "r1", "down")
    # The kernel tells of a carrier that is lost when it comes to it (net/core/link_watch.c).
    assert until(lambda: states() == (False, True))
    network.inside(network.a, "ip", "link", "set", "net0", "down")
    assert states() == (False, False)


def test_the_neighbour_tables_of_the_kernel_are_read_in_any_namespace(network: Network) -> None:
    run("ip", "-n", network.a, "neigh", "add", "10.201.1.9", "lladdr", "02:00:00:00:00:09", "dev", "net0")
    found, other = (ask(host(name), "check.facts")["neighbour_tables"] for name in (network.a, network.b))
    assert found["boot_id"] == other["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert (found["ipv4"]["permanent"], other["ipv4"]["permanent"], found["ipv6"]["permanent"]) == (1, 0, 0)
    assert found["ipv4"]["most"] == int(Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3").read_text())
    assert found["ipv4"]["entries"] >= 1
    # Of all namespaces, and never less than before.
    assert other["ipv4"]["refused"] >= found["ipv4"]["refused"]


def test_a_host_without_nft_says_so(network: Network) -> None:
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /usr/sbin && exec "$@"', "sh"]
    found = ask([*hidden, "env", "PATH=/nonexistent", *host(network.a)], "check.facts")
    assert found["mss_clamps"] == {"rules": None, "error": "nft is not installed"}


def test_destinations_without_a_route(network: Network) -> None:
    run("ip", "-n", network.a, "route", "del", "default")
    asked = {"destinations": ["192.0.2.1", "10.201.1.254"]}
    missing, there = ask(host(network.a), "check.routes", asked)["routes"]
    assert missing == {
        "destination": "192.0.2.1", "source": None, "interface": None, "route_mtu_bytes": None,
        "error": "Network is unreachable",
    }  # fmt: skip
    assert there["interface"] == "net0"
    with pytest.raises(AgentError, match=r'destinations: found "b", expected an IPv4 or IPv6 address'):
        ask(host(network.a), "check.routes", {"destinations": ["b"]})


def test_any_user_may_ask(tmp_path_factory: pytest.TempPathFactory) -> None:
    # The folders of pytest are root's alone.
    agent = Path(shutil.copy(find_agent(), f"/tmp/framegauge-test-{os.getpid()}"))
    try:
        agent.chmod(0o755)
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(agent), "host"]
        by_nobody, by_root = ask(nobody, "check.facts"), ask([str(agent), "host"], "check.facts")
        clamps = by_nobody.pop("mss_clamps"), by_root.pop("mss_clamps")
        filters = by_nobody.pop("error_filters"), by_root.pop("error_filters")
        lengths = by_nobody.pop("length_filters"), by_root.pop("length_filters")
        # What all namespaces of the kernel have changes at any time.
        tables = by_nobody.pop("neighbour_tables"), by_root.pop("neighbour_tables")
        assert len({each["ipv4"]["most"] for each in tables}) == 1
        assert by_nobody == by_root
        assert [each["error"] for each in filters] == [each["error"] for each in clamps]
        assert [each["error"] for each in lengths] == [each["error"] for each in clamps]
        if shutil.which("nft") is not None:
            assert clamps[0] == {"rules": None, "error": "nft: Operation not permitted (you must be root)"}
            assert clamps[1]["error"] is None
        routes = {"destinations": ["127.0.0.1"]}
        assert ask(nobody, "check.routes", routes)["routes"][0]["interface"] == "lo"
        assert ask(nobody, "frames.wire", {"mtu": 1500, "encapsulations": [], "bits_per_second": None})
        run("ip", "netns", "add", agent.name)
        with pytest.raises(AgentLost, match=r"found no privilege to enter it, expected root \(CAP_SYS_ADMIN\)"):
            ask([*nobody, "--netns", agent.name], "check.facts")
    finally:
        subprocess.run(["ip", "netns", "del", agent.name], check=False, capture_output=True)
        agent.unlink()


def test_a_namespace_that_is_not_there() -> None:
    with pytest.raises(AgentLost, match="found no /run/netns/fg-none, expected a name that `ip netns` lists"):
        ask(host("fg-none"), "check.facts")
