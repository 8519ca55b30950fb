"""Which profiles and defaults of NetworkManager are an interface's, and which may be."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from framegauge.rollout.owners import Nic, networkmanager, ownership
from framegauge.rollout.preflight import survey

ETC = "/etc/NetworkManager/system-connections"
CONFIG = "/etc/NetworkManager/conf.d/mtu.conf"
ETH1 = Nic("eth1", 3, "52:54:00:00:00:01", driver="ixgbe")
UUID = "84650930-6178-4df0-829d-46ec0d51df95"
HEAD = f"[connection]\nuuid={UUID}\ntype=ethernet\n"
OWN = f"{HEAD}interface-name=eth1\n"
MTU = "[ethernet]\nmtu=1500\n"


def test_profiles_in_etc_may_have_any_name_but_those_of_copies() -> None:
    by_mac = f"{HEAD}[802-3-ethernet]\nmac-address=52:54:00:00:00:01\nmtu=1500\n"
    for name, text in (("lan", OWN + MTU), ("bymac", by_mac)):
        assert [claim.mtu for claim in ownership({f"{ETC}/{name}": text}, ETH1, 9000).claims] == [1500]
    for path in (f"{ETC}/lan~", f"{ETC}/.lan", f"{ETC}/lan.pem", "/run/NetworkManager/system-connections/lan"):
        assert ownership({path: OWN + MTU}, ETH1, 9000).claims == ()
    both = {f"{ETC}/a copy": OWN + MTU, f"{ETC}/lan.nmconnection": OWN + MTU}
    assert [claim.path for claim in ownership(both, ETH1, 9000).claims] == [f"{ETC}/lan.nmconnection"]


@pytest.mark.parametrize(
    ("text", "may"),
    [
        (f"{HEAD}{MTU}", True),
        (f"{HEAD}[match]\ninterface-name=lan0;eth*;\n{MTU}", True),
        (f"{HEAD}[match]\ninterface-name=eth*;!eth1;\n{MTU}", False),
        (f"{HEAD}interface-name=eth2\n{MTU}", False),
        (f"{HEAD}[ethernet]\nmac-address=52:54:00:00:00:02\nmtu=1500\n", False),
        (f"{HEAD}[ethernet]\nmtu=0\n", False),
        (f"{HEAD.replace('ethernet', 'infiniband')}{MTU}", False),
    ],
)
def test_a_profile_that_names_no_interface_may_be_its(text: str, may: bool) -> None:
    path = f"{ETC}/wired.nmconnection"
    found = ownership({path: text}, ETH1, 9000)
    assert (found.claims, [each.path for each in found.mentions]) == ((), [path] * may)
    assert ownership({path: text}, replace(ETH1, kind="bond"), 9000).mentions == ()
    noted = {f"{ETC}/lan.nmconnection": OWN.replace("8465", "0000"), path: text}
    noted["/run/NetworkManager/devices/3"] = f"[device]\nconnection-uuid={UUID.replace('8465', '0000')}\n"
    assert ownership(noted, ETH1, 9000).mentions == ()


@pytest.mark.parametrize(
    ("config", "claimed", "mentioned"),
    [
        ("[connection]\nethernet.mtu=1500\n", [1500], 0),
        ("[connection-lan]\nmatch-device=interface-name:eth*\nethernet.mtu=1500\n", [None], 1),
        ("[connection-lan]\nmatch-device=driver:ixgbe\nethernet.mtu=1500\n", [None], 1),
        ("[connection-lan]\nmatch-device=interface-name:eth0;mac:52:54:00:00:00:02\nethernet.mtu=1500\n", [None], 0),
        ("[connection]\nethernet.mtu=1500\n[connection-b]\nethernet.mtu=9000\n", [None], 2),
        ("[main]\nethernet.mtu=1500\n", [None], 0),
    ],
)
def test_a_default_is_that_of_a_profile_without_an_mtu(config: str, claimed: list[int | None], mentioned: int) -> None:
    profile = f"{ETC}/lan.nmconnection"
    found = ownership({CONFIG: config, profile: OWN}, ETH1, 9000)
    assert ([claim.mtu for claim in found.claims], len(found.mentions)) == (claimed, mentioned)
    assert [edit.path for edit in found.edits] == [profile]
    found = ownership({CONFIG: config, profile: OWN + MTU}, ETH1, 9000)
    assert ([claim.mtu for claim in found.claims], found.mentions) == ([1500], ())


def test_of_its_files_no_more_is_read_than_that_needs() -> None:
    text = f"{HEAD}psk=secret\n{MTU}ethernet.mtu=1\n802-3-ethernet.mtu=1\nmatch-device=*\npassword=mtu=\n"
    kept = [line for line in text.split("\n") if re.match(survey.PUBLIC, line)]
    assert kept == [line for line in text.split("\n") if line and "secret" not in line and "password" not in line]


@pytest.mark.parametrize(
    ("kind", "section", "key"),
    [
        ("infiniband", "infiniband", "infiniband.mtu"),
        ("wifi", "wifi", "802-11-wireless.mtu"),
        ("802-11-wireless", "802-11-wireless", "802-11-wireless.mtu"),
        ("wireguard", "wireguard", "wireguard.mtu"),
        ("bond", "ethernet", "802-3-ethernet.mtu"),
    ],
)
def test_the_mtu_of_a_profile_is_in_the_section_of_its_type(kind: str, section: str, key: str) -> None:
    text, path = OWN.replace("type=ethernet", f"type={kind}"), f"{ETC}/lan.nmconnection"
    default = {CONFIG: "[connection]\nethernet.mtu=1400\n"} if section != "ethernet" else {}
    for own, mtu in ((f"[{section}]\nmtu=2044\n", 2044), ("", None)):
        found = ownership({path: text + own, **default}, ETH1, 4092)
        assert ([(claim.path, claim.mtu) for claim in found.claims], found.mentions) == ([(path, mtu)], ())
        [edit] = found.edits
        assert edit.reload[0] == ("nmcli", "connection", "modify", "uuid", UUID, key, "4092")
        assert networkmanager.is_reload(edit.reload, "eth1")
        assert edit.after is not None
        assert ownership({path: edit.after}, ETH1, 4092).claims[0].mtu == 4092
