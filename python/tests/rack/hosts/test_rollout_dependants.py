"""A roll-out that lowers interfaces on which others stand: the kernel lowers those as well, and an undo raises them."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.rollouts import done, file_of
from helpers.switched import Lab, lab

pytestmark = pytest.mark.needs("ethtool", "ping")
NAMES = ["a", "b"]


def _stand_on(found: Lab, name: str) -> None:
    """Two macvlans that have more than is asked for, and one that has less."""
    for device, mtu in (("mv0", 9000), ("mv1", 8000), ("small", 1400)):
        found.ip(name, "link", "add", "link", "eth1", "name", device, "mtu", str(mtu), "type", "macvlan")
    found.ip(name, "link", "set", "mv0", "up")
    found.ip(name, "addr", "add", f"10.78.0.{NAMES.index(name) + 1}/24", "dev", "mv0")
    found.ip(name, "route", "add", "10.79.0.0/24", "via", "10.78.0.9", "dev", "mv0", "mtu", "4000")


def _mtus(found: Lab, name: str) -> list[int]:
    return [found.mtu(name, device) for device in ("eth1", "mv0", "mv1", "small")]


def _route(found: Lab, name: str) -> str:
    return found.ip(name, "route", "show", "10.79.0.0/24")


def test_what_stands_on_a_lowered_interface_comes_back_with_it(tmp_path: Path) -> None:
    with lab(NAMES, mtu=9000) as found:
        for name in NAMES:
            _stand_on(found, name)
        before = [_mtus(found, name) for name in NAMES], [_route(found, name) for name in NAMES]
        path = file_of(found, tmp_path, mtu=1500, more="families: 4")
        code, said = done("apply", path)
        assert (code, "mv0 on it with 9000" in said, "force child" in said) == (2, True, True), said
        path = file_of(found, tmp_path, mtu=1500, more="families: 4\nforce: [child]")
        code, said = done("apply", path)
        assert code == 0, said
        assert {tuple(_mtus(found, name)) for name in NAMES} == {(1500, 1500, 1500, 1400)}
        # One of them is gone by the time of the undo, which does not keep the rest.
        found.ip("b", "link", "del", "mv1")
        code, said = done("undo", path)
        assert code == 0, said
        assert _mtus(found, "a") == before[0][0] == [9000, 9000, 8000, 1400]
        assert [found.mtu("b", device) for device in ("eth1", "mv0", "small")] == [9000, 9000, 1400]
        assert [_route(found, name) for name in NAMES] == before[1]


def test_a_bridge_on_what_stands_there_comes_back_and_what_stands_on_the_bridge(tmp_path: Path) -> None:
    devices = ("eth1", "mv0", "br0", "top")
    with lab(NAMES, mtu=9000) as found:
        for name in NAMES:
            found.ip(name, "link", "add", "link", "eth1", "name", "mv0", "mtu", "9000", "type", "macvlan")
            found.ip(name, "link", "add", "name", "br0", "type", "bridge")
            found.ip(name, "link", "set", "mv0", "master", "br0", "up")
            found.ip(name, "link", "set", "br0", "up")
            # The bridge has taken on the MTU of its port; this one is lowered with it, and not raised.
            found.ip(name, "link", "add", "link", "br0", "name", "top", "mtu", "8000", "type", "macvlan")
            found.ip(name, "link", "set", "top", "up")
            found.ip(name, "addr", "add", f"10.78.0.{NAMES.index(name) + 1}/24", "dev", "top")
            found.ip(name, "route", "add", "10.79.0.0/24", "via", "10.78.0.9", "dev", "top", "mtu", "4000")
        before = [_route(found, name) for name in NAMES]
        path = file_of(found, tmp_path, mtu=1500, more="families: 4\nforce: [child]")
        code, said = done("apply", path)
        assert code == 0, said
        assert {tuple(found.mtu(name, device) for device in devices) for name in NAMES} == {(1500,) * 4}
        code, said = done("undo", path)
        assert code == 0, said
        assert {tuple(found.mtu(name, device) for device in devices) for name in NAMES} == {(9000, 9000, 9000, 8000)}
        assert [_route(found, name) for name in NAMES] == before
        # Nobody has given the bridge an MTU for good: it still follows.
        found.ip("a", "link", "set", "mv0", "mtu", "4000")
        assert found.mtu("a", "br0") == 4000


def test_an_mtu_that_only_ipv6_has_comes_back(tmp_path: Path) -> None:
    with lab(NAMES) as found:
        for name, mtu in (("a", "1300"), ("b", "1500")):
            found.inside(name, "sysctl", "-q", "-w", f"net.ipv6.conf.eth1.mtu={mtu}")

        def ipv6() -> list[str]:
            return [found.inside(name, "sysctl", "-n", "net.ipv6.conf.eth1.mtu").strip() for name in NAMES]

        path = file_of(found, tmp_path)
        code, said = done("apply", path)
        assert (code, ipv6()) == (0, ["9000", "9000"]), said
        code, said = done("undo", path)
        assert (code, ipv6(), found.is_old()) == (0, ["1300", "1500"], True), said
