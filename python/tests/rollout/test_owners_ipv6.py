"""An MTU of IPv6 alone, which stays at less when the interface is raised: who sets it, and what a preflight says."""

from __future__ import annotations

import pytest
from rollout.test_preflight import asked, facts

from framegauge.rollout import preflight
from framegauge.rollout.owners import Nic, ownership

ETH1 = Nic("eth1", 3, "52:54:00:00:00:01")
NETPLAN = "network:\n  ethernets:\n    eth1:\n      mtu: 9000\n      ipv6-mtu: %s\n"
NETWORK = "[Match]\nName=eth1\n[Link]\nMTUBytes=9000\n[Network]\nIPv6MTUBytes=%s\n"
INTERFACES = (
    "iface eth1 inet static\n  address 10.1.0.1/24\n  mtu 9000\niface eth1 inet6 static\n  address fd00::1/64\n"
)
PROFILE = "[connection]\nid=a\nuuid=1\ninterface-name=eth1\n[ethernet]\nmtu=9000\n[ipv6]\nmtu=%s\n"


@pytest.mark.parametrize(
    ("path", "text", "owner", "line"),
    [
        ("/etc/netplan/01.yaml", NETPLAN, "netplan", 5),
        ("/etc/systemd/network/10.network", NETWORK, "networkd", 6),
        ("/etc/NetworkManager/system-connections/a.nmconnection", PROFILE, "NetworkManager", 8),
        ("/etc/sysconfig/network-scripts/ifcfg-eth1", "DEVICE=eth1\nMTU=9000\nIPV6_MTU=%s\n", "ifcfg", 3),
        ("/etc/network/interfaces", f"{INTERFACES}  mtu %s\n", "ifupdown", 6),
    ],
)
def test_who_gives_ipv6_an_mtu_of_its_own_is_named(path: str, text: str, owner: str, line: int) -> None:
    files = {path: text % 1500}
    [claim] = ownership(files, ETH1, 9000).of_ipv6
    assert (claim.owner, claim.line, claim.mtu) == (owner, line, 1500)
    for size, count in ((1500, 1), (9000, 0)):
        renamed = {path.replace("eth1", "bond0"): (text % size).replace("eth1", "bond0")}
        listed = preflight.findings({"a": facts(files=renamed)}, asked("bond0"))
        of_ipv6 = [each for each in listed if "IPv6 alone" in each.found]
        assert [(each.what, each.severity) for each in of_ipv6] == [("owner", "warning")] * count
        assert not any("no config file" in each.found for each in listed)


def test_what_netplan_generates_is_told_once() -> None:
    generated = {"/run/systemd/network/10-netplan-eth1.network": NETWORK % 1500}
    found = ownership({"/etc/netplan/01.yaml": NETPLAN % 1500, **generated}, ETH1, 9000)
    assert [claim.owner for claim in found.of_ipv6] == ["netplan"]


@pytest.mark.parametrize("value", ["0", "", "auto"])
def test_a_profile_that_leaves_it_to_routers_sets_none(value: str) -> None:
    files = {"/etc/NetworkManager/system-connections/a.nmconnection": PROFILE % value}
    assert ownership(files, ETH1, 9000).of_ipv6 == ()


SYSCTL = "/etc/sysctl.d/50-mtu.conf"


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({SYSCTL: "# MTUs\nnet.ipv6.conf.eth1.mtu = 1500\n"}, f"{SYSCTL}:2"),
        ({SYSCTL: "-net/ipv6/conf/eth1/mtu=1500"}, f"{SYSCTL}:1"),
        ({SYSCTL: "net.ipv6.conf.*.mtu=1500"}, f"{SYSCTL}:1"),
        # The last by name, wherever it is, and the main file after all.
        ({SYSCTL: "net.ipv6.conf.eth1.mtu=1400", "/usr/lib/sysctl.d/60.conf": "net.ipv6.conf.eth1.mtu=1500"},
         "/usr/lib/sysctl.d/60.conf:1"),
        ({"/etc/sysctl.conf": "net.ipv6.conf.eth1.mtu=1500", SYSCTL: "net.ipv6.conf.eth1.mtu=1400"}, "/etc/sysctl.conf:1"),
        # One of the same name in /etc takes the other's place.
        ({SYSCTL: "net.ipv6.conf.eth1.mtu=1500", "/usr/lib/sysctl.d/50-mtu.conf": "net.ipv6.conf.eth1.mtu=1400"},
         f"{SYSCTL}:1"),
        ({SYSCTL: "net.ipv6.conf.eth1.mtu=1500\nnet.ipv6.conf.eth*.mtu=1400"}, f"{SYSCTL}:1"),
    ],
)  # fmt: skip
def test_a_file_of_sysctl_gives_ipv6_an_mtu(files: dict[str, str], place: str) -> None:
    [claim] = ownership(files, ETH1, 9000).of_ipv6
    assert (claim.owner, claim.place, claim.mtu) == ("sysctl", place, 1500)
    renamed = {path: text.replace("eth1", "bond0").replace("eth*", "bond*") for path, text in files.items()}
    [found] = [
        each for each in preflight.findings({"a": facts(files=renamed)}, asked("bond0")) if "IPv6 alone" in each.found
    ]
    assert (found.what, found.severity) == ("owner", "warning")
    assert "has 1500 again when it is next applied" in found.remedy


@pytest.mark.parametrize(
    "line",
    [
        # The kernel takes neither for an interface (net/ipv6/addrconf.c).
        "net.ipv6.conf.default.mtu = 1500",
        "net.ipv6.conf.all.mtu = 1500",
        "net.ipv6.conf.eth1/100.mtu = 1500",
        "net.ipv6.conf.eth10.mtu = 1500",
        "#net.ipv6.conf.eth1.mtu = 1500",
        "net.ipv6.conf.eth1.accept_ra_mtu = 0",
        "net.ipv6.route.mtu_expires = 1500",
    ],
)
def test_what_no_kernel_takes_for_the_interface_is_no_setting(line: str) -> None:
    assert ownership({SYSCTL: line}, ETH1, 9000).of_ipv6 == ()


def test_a_dot_in_a_name_is_a_slash_in_a_key() -> None:
    [claim] = ownership({SYSCTL: "net.ipv6.conf.eth1/100.mtu = 1500"}, Nic("eth1.100"), 9000).of_ipv6
    assert claim.key == "net.ipv6.conf.eth1/100.mtu"
    [claim] = ownership({SYSCTL: "net/ipv6/conf/eth1.100/mtu = 1500"}, Nic("eth1.100"), 9000).of_ipv6
    assert claim.mtu == 1500


@pytest.mark.parametrize("sizes", [(1500, 1500, 9000), (9000, 4000, 1500), (1500, 4000, 9000)])
def test_a_stanza_of_inet6_that_is_not_of_ipv6_alone_is_changed_with_the_others(sizes: tuple[int, int, int]) -> None:
    """With as much as the interface it follows it; with more than it is to have it would raise it (inet6.defn)."""
    inet, inet6, target = sizes
    text = INTERFACES.replace("9000", str(inet)) + f"  mtu {inet6}\n"
    found = ownership({"/etc/network/interfaces": text}, ETH1, target)
    assert found.of_ipv6 == ()
    [edit] = found.edits
    assert edit.after == INTERFACES.replace("9000", str(target)) + f"  mtu {target}\n"


def test_an_mtu_of_ipv6_alone_stays_when_the_interface_is_raised_in_its_stanza() -> None:
    text = INTERFACES.replace("9000", "3000") + "  mtu 1500\n"
    found = ownership({"/etc/network/interfaces": text}, ETH1, 9000)
    assert [claim.mtu for claim in found.claims] == [3000]
    [edit] = found.edits
    assert edit.after == text.replace("3000", "9000")
