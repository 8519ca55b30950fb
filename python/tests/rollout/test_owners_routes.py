"""Routes through a gateway that keep a smaller MTU: the lines that have their owners give them one."""

from __future__ import annotations

import pytest

from framegauge.rollout.model import Asked, Json
from framegauge.rollout.owners import Edit, Kept, Nic, Ownership, Via, ownership
from framegauge.rollout.preflight import ownership as of_case
from framegauge.rollout.preflight.case import Case

NIC = Nic("eth1", 3)
DEFAULT, SITE = Via(4, "default", "192.0.2.1"), Via(4, "198.51.100.0/24", "192.0.2.2")
DEFAULT6, ELSEWHERE = Via(6, "default", "2001:db8::1"), Via(4, "203.0.113.0/24", "192.0.2.3")
INTERFACES = """\
iface eth1 inet static
    mtu 9000
    address 192.0.2.9/24
    gateway 192.0.2.1
    up ip route add 198.51.100.0/24 via 192.0.2.2 dev eth1 mtu 4000 \\
        proto static

iface eth1 inet6 static
\taddress 2001:db8::9/64
\tgateway 2001:db8::1
"""
NETPLAN = """\
network:
  version: 2
  ethernets:
    eth1:
      mtu: 9000
      gateway6: "2001:db8::1"   # deprecated
    other: {mtu: 1500}
"""
NETPLAN_LATER = """\
network:
  ethernets:
    eth1:
      routes:
        - to: default
          via: 192.0.2.1
        - {to: 198.51.100.0/24, via: 192.0.2.2, mtu: 4000, metric: 7}
        - to: 198.51.100.0/24
          via: 192.0.2.7
"""
NETWORK = """\
[Match]
Name=eth1

[Link]
MTUBytes=9000

[Network]
Address=192.0.2.9/24
Gateway=192.0.2.1
Gateway=2001:db8::1

[Route]
Gateway=192.0.2.2
Destination=198.51.100.0/24
# as the other site has it
MTUBytes=4000

[Route]
Gateway=192.0.2.7
Destination=198.51.100.0/24
"""
PROFILE = """\
[connection]
uuid=84650930-6178-4df0-829d-46ec0d51df95
interface-name=eth1
[ethernet]
mtu=9000
[ipv4]
method=manual
route1=198.51.100.0/24,192.0.2.2,7
route1_options=onlink=true,mtu=4000
route2=0.0.0.0/0,192.0.2.1
route3=198.51.100.0/24,192.0.2.7
"""
FOLDER = "/etc/NetworkManager/system-connections"


def written(files: dict[str, str], *routes: Via) -> Ownership:
    """Of eth1, which gets 9000, while these routes keep 1500; what comes out has nothing left to do."""
    kept = Kept(1500, routes)
    found = ownership(files, NIC, 9000, kept=kept)
    assert not found.troubles
    after = {**files, **{each.path: each.after or "" for each in found.edits}}
    again = ownership(after, NIC, 9000, kept=kept)
    assert (again.edits, again.loose) == ((), found.loose)
    return found


def lines(edit: Edit) -> list[str]:
    return [line for line in edit.diff.splitlines()[2:] if line[:1] in "+-"]


def test_ifupdown_gives_them_one_after_all_else() -> None:
    found = written({"/etc/network/interfaces": INTERFACES}, DEFAULT, SITE, DEFAULT6)
    assert found.loose == ()
    assert lines(found.edits[0]) == [
        "-    up ip route add 198.51.100.0/24 via 192.0.2.2 dev eth1 mtu 4000 \\",
        "+    up ip route add 198.51.100.0/24 via 192.0.2.2 dev eth1 mtu 1500 \\",
        "+    up ip route replace default via 192.0.2.1 dev $IFACE mtu 1500",
        "+\tup ip -6 route replace default via 2001:db8::1 dev $IFACE mtu 1500",
    ]
    exact = Via(4, "default", "192.0.2.1", 100, onlink=True)
    [edit] = written({"/etc/network/interfaces": INTERFACES}, exact).edits
    assert lines(edit) == ["+    up ip route replace default via 192.0.2.1 dev $IFACE metric 100 onlink mtu 1500"]


def test_what_a_server_tells_and_what_nobody_makes_is_loose() -> None:
    text = "iface eth1 inet dhcp\n    post-up ip link set dev $IFACE mtu 9000\n"
    found = written({"/etc/network/interfaces": text}, DEFAULT)
    assert (found.edits, found.loose) == ((), (DEFAULT,))
    assert written({}, SITE).loose == (SITE,)


def test_netplan_s_routes_get_one_and_its_old_gateways_become_routes() -> None:
    files = {"/etc/netplan/01.yaml": NETPLAN, "/etc/netplan/02.yaml": NETPLAN_LATER}
    found = written(files, DEFAULT, SITE, DEFAULT6, ELSEWHERE)
    assert found.loose == (ELSEWHERE,)
    assert [(each.path, each.reload) for each in found.edits] == [(path, (("netplan", "apply"),)) for path in files]
    assert lines(found.edits[0]) == [
        '-      gateway6: "2001:db8::1"   # deprecated',
        '+      routes: [{to: "::/0", via: "2001:db8::1", mtu: 1500}]   # deprecated',
    ]
    assert lines(found.edits[1]) == [
        "-        - to: default",
        "+        - mtu: 1500",
        "+          to: default",
        "-        - {to: 198.51.100.0/24, via: 192.0.2.2, mtu: 4000, metric: 7}",
        "+        - {to: 198.51.100.0/24, via: 192.0.2.2, mtu: 1500, metric: 7}",
    ]
    cloud = "# generated from information provided by the datasource\n" + NETPLAN_LATER
    found = written({"/etc/netplan/01.yaml": NETPLAN, "/etc/netplan/50-cloud-init.yaml": cloud}, DEFAULT)
    assert (found.edits, found.loose) == ((), (DEFAULT,))


def test_networkd_s_sections_get_one_and_a_gateway_becomes_a_section() -> None:
    found = written({"/etc/systemd/network/a.network": NETWORK}, DEFAULT, SITE, DEFAULT6)
    assert found.loose == ()
    assert found.edits[0].reload == (("networkctl", "reload"), ("networkctl", "reconfigure", "eth1"))
    assert lines(found.edits[0]) == [
        "-Gateway=192.0.2.1", "-Gateway=2001:db8::1", "-MTUBytes=4000", "+MTUBytes=1500",
        "+", "+[Route]", "+Gateway=192.0.2.1", "+MTUBytes=1500",
        "+", "+[Route]", "+Gateway=2001:db8::1", "+MTUBytes=1500",
    ]  # fmt: skip
    other = {"/usr/lib/systemd/network/a.network": NETWORK}
    assert written(other, DEFAULT).loose == (DEFAULT,)


def test_networkmanager_is_told_all_routes_of_the_profile() -> None:
    path = f"{FOLDER}/a.nmconnection"
    found = written({path: PROFILE}, DEFAULT, SITE)
    [edit] = found.edits
    assert (found.loose, edit.whole) == ((), False)
    modify = (
        "nmcli",
        "connection",
        "modify",
        "uuid",
        "84650930-6178-4df0-829d-46ec0d51df95",
        "802-3-ethernet.mtu",
        "9000",
    )
    new = "198.51.100.0/24 192.0.2.2 7 onlink=true mtu=1500, 0.0.0.0/0 192.0.2.1 mtu=1500, 198.51.100.0/24 192.0.2.7"
    old = "198.51.100.0/24 192.0.2.2 7 onlink=true mtu=4000, 0.0.0.0/0 192.0.2.1, 198.51.100.0/24 192.0.2.7"
    assert edit.reload == ((*modify, "ipv4.routes", new), ("nmcli", "device", "reapply", "eth1"))
    assert edit.undo.reload == ((*modify, "ipv4.routes", old), ("nmcli", "device", "reapply", "eth1"))


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        ({}, [SITE]),
        ({"protocol": "static", "metric": 5, "flags": ["onlink"]}, [SITE]),
        ({"metrics": [{"mtu": 1500}]}, [SITE]),  # once it is held
        ({"metrics": [{"mtu": 1400}]}, []),  # an administrator's
        ({"protocol": "bgp"}, []),
        ({"dev": "eth0"}, []),
        ({"gateway": None}, []),
    ],
)
def test_which_routes_are_meant(route: Json, expected: list[Via]) -> None:
    """As `ip -j route` prints them: routes that files name, and that get no MTU of their own otherwise."""
    shown = {"dst": "198.51.100.0/24", "gateway": "192.0.2.2", "dev": "eth1", **route}
    shown = {key: value for key, value in shown.items() if value is not None}
    facts = {
        "files": {}, "programs": [], "routes": [shown], "routes6": None, "unreadable": [],
        "links": [{"ifname": "eth1", "ifindex": 3, "mtu": 9000, "flags": ["UP"]}],
        "check": {"interfaces": [], "sysctls": {}},
    }  # fmt: skip
    asked = Asked((("a",),), {"a": "eth1"}, 9000)
    assert list(of_case.of(Case("a", "eth1", asked, facts), 1500).loose) == expected
    everywhere = Asked((("a",),), {"a": "eth1"}, 9000, scope="all")
    assert of_case.of(Case("a", "eth1", everywhere, facts), 1500).loose == ()
