"""Files of owners after somebody edited them without care: a change changes what is asked, or a line says why not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from helpers.mutated import mutated
from hypothesis import assume, given, strategies as st

from framegauge.rollout.owners import Kept, Nic, Via, cni, dhcp, ifupdown, ini, lawful, netplan, ownership
from framegauge.rollout.owners.model import Trouble

HERE = Path(__file__).parent / "recorded"
NETPLAN = [(HERE / f"netplan/{name}.yaml").read_text() for name in ("storage", "50-cloud-init")]
INI = [each.read_text() for each in sorted(HERE.glob("network*/*")) if each.is_file()]
INTERFACES = [(HERE / "ifupdown/interfaces").read_text()]
LEASES = [(HERE / "dhcp/dhclient.leases").read_text(), 'interface "eth0" {\n  supersede interface-mtu 9000; # x\n}\n']
CNI = ['{"name": "x", "plugins": [{"type": "bridge", "master": "eth0", "mtu": 1500}]}', '{"type": "macvlan"}']
FILES = {
    "/etc/netplan/01.yaml": NETPLAN, "/etc/systemd/network/10-eth0.network": INI,
    "/run/systemd/netif/leases/2": INI, "/run/systemd/netif/links/2": INI,
    "/etc/NetworkManager/system-connections/a.nmconnection": INI, "/etc/network/interfaces": INTERFACES,
    "/var/lib/dhcp/dhclient.leases": LEASES, "/etc/dhcp/dhclient.conf": LEASES, "/etc/cni/net.d/a.conf": CNI,
    "/etc/cloud/cloud.cfg.d/a.cfg": NETPLAN, "/run/flannel/subnet.env": INI,
}  # fmt: skip
KEPT = Kept(1500, (Via(4, "default", "192.168.1.1"), Via(6, "default", "fe80::1"), Via(4, "10.0.0.0/8", "192.0.2.1")))
NIC = Nic("eth0", 2, "de:ad:be:ef:ca:fe")


@given(st.fixed_dictionaries({path: mutated(texts) | st.text(max_size=40) for path, texts in FILES.items()}))
def test_whatever_the_files_are_each_trouble_is_a_line_and_each_change_can_be_undone(files: dict[str, str]) -> None:
    found = ownership(files, NIC, 9000, frozenset({"dhclient", "dhcpcd"}), KEPT)
    assert all("\n" not in each and len(each) < 2000 for each in found.troubles)
    for edit in found.edits:
        assert edit.before == files.get(edit.path)
        assert edit.after != edit.before
        assert edit.undo.undo == edit
        assert edit.diff.startswith("--- ")
        entry = json.loads(json.dumps(edit.as_document()))
        assert lawful.reload_of(entry, NIC.name) == edit.undo.reload


def _plain(text: str) -> Any:
    return yaml.safe_load(text)


@given(mutated(NETPLAN), st.sampled_from(["lan", "eth1", "eth2", "eth3", "ens3"]), st.integers(68, 65535))
def test_a_change_of_netplan_changes_one_value(text: str, name: str, mtu: int) -> None:
    try:
        after = netplan.with_mtu(text, "x", "ethernets", name, mtu)
    except (Trouble, ValueError):  # no YAML, or no such entry
        assume(False)
        return
    before = _plain(text)
    before["network"]["ethernets"][name] = {**(before["network"]["ethernets"][name] or {}), "mtu": mtu}
    assert _plain(after) == before


@given(mutated(INI), st.sampled_from(["Link", "ethernet", "Match"]), st.sampled_from(["MTUBytes", "mtu", "Name"]))
def test_a_change_of_sections_and_keys_changes_one_value(text: str, section: str, key: str) -> None:
    try:
        before = ini.entries(text, "x")
        after = ini.entries(ini.with_key(text, "x", section, key, "9000"), "x")
    except Trouble:
        assume(False)
        return
    entry = ini.last(after, section, key)
    assert entry is not None
    assert entry.value == "9000"
    plain = [(each.section, each.key, each.value) for each in after]
    old = [(each.section, each.key, each.value) for each in before]
    there = ini.last(before, section, key)
    if there is not None:
        old.remove((there.section, there.key, there.value))
    plain.remove((entry.section, entry.key, "9000"))
    assert sorted(plain) == sorted(old)


@given(mutated(INTERFACES), st.sampled_from(["ens3", "ens4", "ens5", "ens6"]))
def test_a_change_of_interfaces_is_what_is_read_next(text: str, name: str) -> None:
    nic, files = Nic(name), {"/etc/network/interfaces": text}
    try:
        assume(ifupdown.claims(files, nic))
    except Trouble:
        assume(False)
    after = ifupdown.with_mtu(text, "/etc/network/interfaces", nic, 4321)
    assert {claim.mtu for claim in ifupdown.claims({"/etc/network/interfaces": after}, nic)} == {4321}
    old = [line for line in text.split("\n") if "mtu" not in line]
    assert [line for line in after.split("\n") if "mtu" not in line] == old


@given(st.binary(max_size=400))
def test_a_lease_of_dhcpcd_is_read_or_refused(data: bytes) -> None:
    message = bytes(236) + bytes.fromhex("63825363") + data
    try:
        found = dhcp.option_26(message.hex(), "x")
    except Trouble:
        return
    assert found is None or 0 <= found < 65536


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5)), st.integers(1, 65535))
def test_the_mtu_of_a_cni_is_changed_alone(extra: dict[str, Any], mtu: int) -> None:
    given_ = {**extra, "type": "bridge", "master": "eth0", "mtu": 1500}
    files = {"/etc/cni/net.d/a.conf": json.dumps(given_)}
    edit = cni.edit(files, NIC, mtu)
    assert edit is not None
    assert json.loads(edit.after or "") == {**given_, "mtu": mtu}
