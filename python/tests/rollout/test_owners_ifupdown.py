"""What sets an MTU by ifupdown beside the option `mtu` of the interface's own stanza."""

from __future__ import annotations

import pytest

from framegauge.rollout.owners import Nic, commands, ownership

PATH, OTHER = "/etc/network/interfaces", "/etc/network/interfaces.d/other"
ETH1 = Nic("eth1", 3, "52:54:00:00:00:01")
STANZA = "auto eth1\niface eth1 inet static\n  address 10.1.0.1/24\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{STANZA}  up ip link set mtu 1500 dev eth1\n",
        f"{STANZA}  post-up echo 1500 > /sys/class/net/$IFACE/mtu\n",
        f"{STANZA}  up ip link set dev eth2 mtu 1400; ip link set up dev ${{IFACE}} mtu 1500\n",
        "auto eth0\niface eth0 inet manual\n  post-up ip link set dev eth1 mtu 1500\n",
        f"{STANZA}iface eth0 inet manual\n  post-up ip link set dev eth1 mtu 1500\n",
    ],
)
def test_a_hook_that_sets_it_in_any_order_or_stanza_is_changed(text: str) -> None:
    found = ownership({PATH: text}, ETH1, 9000)
    assert ([claim.mtu for claim in found.claims], found.mentions) == ([1500], ())
    [edit] = found.edits
    assert edit.after == text.replace("1500", "9000")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{STANZA}  post-up /usr/local/sbin/set-mtu $IFACE 1500\n", 4),
        (f"{STANZA}  up ip link set dev $IFACE mtu $SIZE\n", 4),
        (f"{STANZA}iface eth0 inet manual\n  post-up set-mtu eth1 1500\n", 5),
    ],
)
def test_a_hook_that_may_set_it_is_told_and_no_stanza_is_said_to_set_none(text: str, line: int) -> None:
    found = ownership({PATH: text}, ETH1, 9000)
    assert (found.claims, found.edits) == ((), ())
    assert [(each.place, each.is_named) for each in found.mentions] == [(f"{PATH}:{line}", True)]


@pytest.mark.parametrize(
    "line",
    [
        "up ip link set dev eth2 mtu 1500",
        "up ip route add default via 10.1.0.254 dev $IFACE mtu 1500",
        "up iptables -A FORWARD -j TCPMSS --clamp-mss-to-pmtu",
        "down ip link set dev $IFACE mtu 1500",
    ],
)
def test_a_hook_of_something_else_is_left_alone(line: str) -> None:
    found = ownership({PATH: f"{STANZA}  {line}\n"}, ETH1, 9000)
    assert ([claim.mtu for claim in found.claims], found.mentions) == ([None], ())


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({PATH: "iface base inet static\n  mtu 1500\nauto eth1\niface eth1 inet static inherits base\n"}, f"{PATH}:2"),
        ({PATH: "auto eth1=lan\niface lan inet static\n  mtu 1500\n"}, f"{PATH}:3"),
        ({PATH: "allow-hotplug /eth*=lan\n", OTHER: "iface lan inet manual\n  mtu 1500\n"}, f"{OTHER}:2"),
    ],
)
def test_what_it_has_from_other_stanzas_is_told_and_theirs_to_change(files: dict[str, str], place: str) -> None:
    found = ownership(files, ETH1, 9000)
    assert [(claim.place, claim.mtu) for claim in found.claims] == [(place, 1500)]
    assert (found.edits, found.mentions) == ((), ())


def test_a_mapping_may_bring_it_up_by_a_stanza_with_an_mtu() -> None:
    text = "mapping eth*\n  script /usr/local/sbin/where\n  map HOME home\niface home inet dhcp\n  mtu 1500\n"
    found = ownership({PATH: text}, ETH1, 9000)
    assert (found.claims, [each.place for each in found.mentions]) == ((), [f"{PATH}:1"])
    for other in (text.replace("eth*", "wlan*"), text.replace("mtu 1500", "metric 5")):
        assert ownership({PATH: other}, ETH1, 9000).mentions == ()


def test_each_command_of_a_line_has_its_own_interface() -> None:
    line = 'ip link set eth1 up; ip -d l set "eth2" mtu 9000 && ifconfig eth3 mtu 1500 up; echo 1400 | tee /sys/class/net/eth4/mtu'
    assert [(each.name, each.mtu) for each in commands.settings(line)] == [
        ("eth2", 9000),
        ("eth3", 1500),
        ("eth4", 1400),
    ]
    assert commands.with_mtu(line, ("eth2", "eth4"), 4200) == line.replace("9000", "4200").replace("1400", "4200")
    assert commands.settings("ip link set mtu 1500 eth1") == commands.settings("ip link set eth1 mtu large") == []


IGNORED = "iface eth1 inet dhcp\n  mtu 9000\n", "iface eth1 inet6 auto\n  mtu 9000\n"


@pytest.mark.parametrize("text", IGNORED)
def test_an_mtu_that_a_method_does_not_take_is_no_setting(text: str) -> None:
    """`ifup --no-act --verbose` of ifupdown 0.8.41 runs nothing for it; a hook works with any method."""
    found = ownership({PATH: text}, ETH1, 9000)
    [claim] = found.claims
    assert (claim.mtu, claim.place, "no option of the method" in claim.but) == (None, f"{PATH}:1", True)
    [edit] = found.edits
    assert edit.after is not None
    assert "post-up ip link set dev $IFACE mtu 9000" in edit.after
    assert [entry.mtu for entry in ownership({PATH: edit.after}, ETH1, 9000).claims] == [9000]


@pytest.mark.parametrize("text", IGNORED)
@pytest.mark.parametrize("successor", ["/etc/network/ifupdown2/ifupdown2.conf", "/etc/network/ifupdown-ng.conf"])
def test_successors_take_it_with_any_method(text: str, successor: str) -> None:
    found = ownership({PATH: text.replace("9000", "1500"), successor: ""}, ETH1, 9000)
    assert [claim.mtu for claim in found.claims] == [1500]
    [edit] = found.edits
    assert edit.after == text


def test_a_stanza_of_inet6_gets_a_hook_as_its_option_would_lower_nothing() -> None:
    [edit] = ownership({PATH: "iface eth1 inet6 static\n  address fd00::1/64\n"}, ETH1, 1500).edits
    assert edit.after == "iface eth1 inet6 static\n  post-up ip link set dev $IFACE mtu 1500\n  address fd00::1/64\n"
