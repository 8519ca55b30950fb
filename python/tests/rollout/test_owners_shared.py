"""Files that mean several interfaces of a host: what is to be raised is one of them, so that they are not changed."""

from __future__ import annotations

import pytest
from rollout.test_preflight import LINKS, asked, facts

from framegauge.rollout import preflight
from framegauge.rollout.owners import Files, Nic, ownership

ETH1, ETH0 = Nic("eth1", 3, "52:54:00:00:00:01"), Nic("eth0", 2, "52:54:00:00:00:00")
NETPLAN, NETWORK = "/etc/netplan/01.yaml", "/etc/systemd/network/10-wired.network"
LINK = "/etc/systemd/network/10-wired.link"
CLOUD = "/usr/lib/systemd/network/80-cloud.network"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (NETPLAN, "network:\n  ethernets:\n    all:\n      match: {name: 'eth*'}\n      mtu: 1500\n"),
        (NETPLAN, "network:\n  ethernets:\n    all:\n      match: {name: 'eth*'}\n      dhcp4: true\n"),
        (NETWORK, "[Match]\nName=eth*\n[Link]\nMTUBytes=1500\n"),
        (NETWORK, "[Match]\nName=eth0 eth1\n[Network]\nDHCP=yes\n"),
        (CLOUD, "[Match]\nType=ether\n[Network]\nDHCP=yes\n"),
        (LINK, "[Match]\nOriginalName=eth*\n[Link]\nMTUBytes=1500\n"),
    ],
)
def test_a_file_that_means_others_as_well_is_not_changed(path: str, text: str) -> None:
    files = {path: text}
    found = ownership(files, ETH1, 9000, beside=(ETH0,))
    assert (found.edits, dict(found.shared)) == ((), {path: ("eth0",)})
    # Where no other is there, nothing else is changed by it.
    for beside in ((), (Nic("wg0", 4, kind="wireguard", address=None),)):
        alone = ownership({path: text.replace("Type=ether", "Name=eth*")}, ETH1, 9000, beside=beside)
        assert (len(alone.edits), alone.shared) == (1, ())


@pytest.mark.parametrize(
    "files",
    [
        {NETWORK: "[Match]\nName=eth*\n[Link]\nMTUBytes=1500\n",
         "/etc/systemd/network/05-san.network": "[Match]\nName=eth1\n[Link]\nMTUBytes=1500\n"},
        {NETPLAN: "network:\n  ethernets:\n    eth0: {dhcp4: true}\n    eth1: {mtu: 1500}\n"},
        # What networkd has noted for the other is another file.
        {NETWORK: "[Match]\nName=eth*\n[Link]\nMTUBytes=1500\n", "/run/systemd/netif/links/2": "NETWORK_FILE=/x\n",
         "/run/systemd/netif/links/3": f"NETWORK_FILE={NETWORK}\n"},
    ],
)  # fmt: skip
def test_a_file_of_its_own_is_changed(files: Files) -> None:
    found = ownership(files, ETH1, 9000, beside=(ETH0,))
    assert (len(found.edits), found.shared) == (1, ())
    assert "eth1" in (found.edits[0].before or "") or found.edits[0].path == NETWORK


def test_a_preflight_says_what_to_do_instead() -> None:
    names = {each["ifname"] for each in LINKS}
    assert "bond0" in names
    files = {NETPLAN: "network:\n  bonds:\n    all:\n      match: {name: '*'}\n      mtu: 1500\n"}
    given = {"a": facts(files=files)}
    [finding] = [each for each in preflight.findings(given, asked("bond0")) if "sets 1500" in each.found]
    assert finding.severity == "warning"
    assert f"{NETPLAN} means " in finding.remedy
    assert "is not changed: give this interface one of its own" in finding.remedy
    assert preflight.edits(given, asked("bond0")) == {"a": []}
