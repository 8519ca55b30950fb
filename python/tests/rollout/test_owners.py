"""Who owns an MTU by real files, and the lines that make a change last."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from framegauge.rollout.owners import Claim, Edit, Nic, Ownership, cloud, dhcp, ini, networkd, ownership
from framegauge.rollout.owners.model import Trouble

HERE = Path(__file__).parent / "recorded"
STORAGE = (HERE / "netplan/storage.yaml").read_text()
CLOUD = (HERE / "netplan/50-cloud-init.yaml").read_text()
INTERFACES = (HERE / "ifupdown/interfaces").read_text()
LEASES = (HERE / "dhcp/dhclient.leases").read_text()
NETWORKD = {
    "/etc/systemd/network/10-eth0.network": (HERE / "networkd/10-eth0.network").read_text(),
    "/run/systemd/netif/leases/2": (HERE / "networkd/leases-2").read_text(),
    "/run/systemd/netif/links/2": (HERE / "networkd/links-2")
    .read_text()
    .replace("/run/systemd/network/", "/etc/systemd/network/"),
}


def one(found: Ownership) -> tuple[Claim, Edit]:
    """The only claim and the only change."""
    assert not found.troubles
    [claim], [edit] = found.claims, found.edits
    return claim, edit


def changed(edit: Edit) -> list[str]:
    """The lines of a diff that differ."""
    return [line for line in edit.diff.splitlines()[2:] if line[:1] in "+-"]


def patched(edit: Edit, folder: Path) -> str:
    """The file after patch(1) has read the diff."""
    place = folder / "file"
    place.write_text(edit.before or "")
    subprocess.run(["patch", "-p0", str(place)], input=edit.diff, text=True, check=True, capture_output=True)
    return place.read_text()


@pytest.mark.needs("patch")
@pytest.mark.parametrize(
    ("nic", "line", "key", "mtu", "lines"),
    [
        (Nic("eth1"), 13, "network.ethernets.eth1.mtu", 1500, ["-      mtu: 1500", "+      mtu: 9000"]),
        (Nic("eth1.15"), 25, "network.vlans.eth1.15.mtu", 1500, ["-      mtu: 1500", "+      mtu: 9000"]),
        (Nic("eth0", address="de:ad:be:ef:ca:fe"), 7, "network.ethernets.lan", None, ["+      mtu: 9000"]),
        (Nic("eth2"), 14, "network.ethernets.eth2", None, ["-    eth2: {}", "+    eth2: {mtu: 9000}"]),
        (
            Nic("eth3"), 15, "network.ethernets.eth3", None,
            ["-    eth3: {dhcp4: false, addresses: [192.0.2.3/24]}",
             "+    eth3: {mtu: 9000, dhcp4: false, addresses: [192.0.2.3/24]}"],
        ),
        (Nic("bond0"), 18, "network.bonds.bond0", None, ["+      mtu: 9000"]),
    ],
)  # fmt: skip
def test_netplan(nic: Nic, line: int, key: str, mtu: int | None, lines: list[str], tmp_path: Path) -> None:
    claim, edit = one(ownership({"/etc/netplan/01.yaml": STORAGE}, nic, 9000))
    assert claim == Claim("netplan", "/etc/netplan/01.yaml", line, key, mtu)
    assert changed(edit) == lines
    assert edit.reload == (("netplan", "apply"),)
    assert patched(edit, tmp_path) == edit.after
    assert patched(edit.undo, tmp_path) == STORAGE


def test_of_several_files_of_netplan_the_last_one_by_name_counts() -> None:
    late = "network: {ethernets: {eth1: {mtu: 1400}}}\n"
    files = {"/etc/netplan/01.yaml": STORAGE, "/run/netplan/99.yaml": late, "/lib/netplan/01.yaml": "not read"}
    found = ownership(files, Nic("eth1"), 9000)
    assert [(claim.path, claim.mtu) for claim in found.claims] == [
        ("/etc/netplan/01.yaml", 1500),
        ("/run/netplan/99.yaml", 1400),
    ]
    # What is in /run is gone with the next start: the change comes in a file of /etc.
    assert [edit.path for edit in found.edits] == ["/etc/netplan/90-framegauge-mtu.yaml"]


def test_cloud_init_s_file_is_left_as_it_is_and_one_beside_it_counts_more() -> None:
    files = {"/etc/netplan/50-cloud-init.yaml": CLOUD}
    claim, edit = one(ownership(files, Nic("ens3", address="fa:16:3e:ed:9a:59"), 9000))
    assert (claim.path, claim.mtu) == ("/etc/netplan/50-cloud-init.yaml", None)
    assert (edit.path, edit.before, edit.mode) == ("/etc/netplan/90-framegauge-mtu.yaml", None, 0o600)
    assert edit.after == "network:\n  version: 2\n  ethernets:\n    ens3:\n      mtu: 9000\n"
    again = ownership({**files, edit.path: edit.after}, Nic("ens3", address="fa:16:3e:ed:9a:59"), 9000)
    assert ([claim.mtu for claim in again.claims], again.edits) == ([9000], ())


def test_netplan_takes_a_number_in_quotes() -> None:
    text = 'network:\n  ethernets:\n    eth1:\n      mtu: "1500"\n'
    claim, edit = one(ownership({"/etc/netplan/01.yaml": text}, Nic("eth1"), 9000))
    assert (claim.mtu, edit.after) == (1500, text.replace('"1500"', "9000"))


def test_a_file_that_cloud_init_may_write_again_is_changed_after_it_is_told_not_to() -> None:
    path = "/etc/network/interfaces.d/50-cloud-init"
    found = ownership({path: INTERFACES}, Nic("ens4"), 9000)
    assert [edit.path for edit in found.edits] == [cloud.OFF, path]
    off = {path: INTERFACES, cloud.OFF: "network: {config: disabled}\n"}
    assert [edit.path for edit in ownership(off, Nic("ens4"), 9000).edits] == [path]


def test_an_alias_is_not_changed_for_all_that_share_it() -> None:
    text = "network:\n  ethernets:\n    eth0: &both\n      mtu: 1500\n    eth1: *both\n"
    [edit] = ownership({"/etc/netplan/01.yaml": text}, Nic("eth1"), 9000).edits
    assert edit.path == "/etc/netplan/90-framegauge-mtu.yaml"


def test_networkd_takes_option_26_where_it_is_told_to_and_sets_no_mtu() -> None:
    claim, edit = one(ownership(NETWORKD, Nic("eth0", 2), 9000))
    assert (claim.owner, claim.mtu, claim.lasting) == ("DHCP", 1450, False)
    assert changed(edit) == ["+", "+[Link]", "+MTUBytes=9000"]
    assert edit.reload == (("networkctl", "reload"), ("networkctl", "reconfigure", "eth0"))
    again = ownership({**NETWORKD, edit.path: edit.after or ""}, Nic("eth0", 2), 9000)
    assert [(claim.owner, claim.mtu) for claim in again.claims] == [("networkd", 9000)]
    assert again.edits == ()
    without = {**NETWORKD, edit.path: NETWORKD[edit.path].replace("UseMTU=true", "UseMTU=false")}
    assert [(each.owner, each.mtu) for each in ownership(without, Nic("eth0", 2), 9000).claims] == [("networkd", None)]


def test_a_network_file_of_the_distribution_gets_a_drop_in() -> None:
    files = {"/usr/lib/systemd/network/80-ethernet.network": "[Match]\nType=ether\nKind=!*\n[Network]\nDHCP=yes\n"}
    _, edit = one(ownership(files, Nic("eth0", 2), 9000))
    assert edit.path == "/etc/systemd/network/80-ethernet.network.d/90-framegauge-mtu.conf"
    assert (edit.before, edit.after) == (None, "[Link]\nMTUBytes=9000\n")
    again = ownership({**files, edit.path: edit.after or ""}, Nic("eth0", 2), 1500)
    assert [edit.path for edit in again.edits] == ["/etc/systemd/network/80-ethernet.network.d/90-framegauge-mtu.conf"]


def test_udev_s_link_file_is_changed_too() -> None:
    files = {
        "/etc/systemd/network/05-nic.link": "[Match]\nMACAddress=02:00:00:00:00:01\n[Link]\nMTUBytes=1K\n",
        **NETWORKD,
    }
    found = ownership(files, Nic("eth0", 2, "02:00:00:00:00:01"), 9000)
    assert [(claim.owner, claim.mtu) for claim in found.claims] == [("udev", 1024), ("DHCP", 1450)]
    assert [edit.path for edit in found.edits] == [
        "/etc/systemd/network/05-nic.link",
        "/etc/systemd/network/10-eth0.network",
    ]


def test_what_netplan_generates_is_netplan_s() -> None:
    path = "/run/systemd/network/10-netplan-eth0.network"
    generated = {path: (HERE / "networkd/10-netplan-eth0.network").read_text()}
    links = {"/run/systemd/netif/links/2": f"NETWORK_FILE={path}\n", "/run/systemd/netif/leases/2": "MTU=1450\n"}
    source = "network: {ethernets: {eth0: {dhcp4: true, mtu: 9000}}}\n"
    found = ownership({**generated, **links, "/etc/netplan/01.yaml": source}, Nic("eth0", 2, "de:ad:be:ef:ca:fe"), 1500)
    assert [(claim.owner, claim.mtu) for claim in found.claims] == [("netplan", 9000)]
    assert [edit.path for edit in found.edits] == ["/etc/netplan/01.yaml"]


@pytest.mark.parametrize(
    ("name", "mtu", "back"), [("storage", 9000, "9000"), ("lan", None, "0"), ("v100", 9000, "9000")]
)
def test_networkmanager_changes_its_profile_itself(name: str, mtu: int | None, back: str) -> None:
    path = f"/etc/NetworkManager/system-connections/{name}.nmconnection"
    text = (HERE / f"networkmanager/{name}.nmconnection").read_text()
    nic = Nic({"storage": "eth1", "lan": "eth0", "v100": "eth1.100"}[name], 3)
    claim, edit = one(ownership({path: text}, nic, 4200))
    assert (claim.owner, claim.path, claim.mtu) == ("NetworkManager", path, mtu)
    uuid = ini.last(ini.entries(text, path), "connection", "uuid")
    assert uuid is not None
    modify = ("nmcli", "connection", "modify", "uuid", uuid.value, "802-3-ethernet.mtu")
    assert not edit.whole
    assert edit.reload == ((*modify, "4200"), ("nmcli", "device", "reapply", nic.name))
    assert edit.undo.reload == ((*modify, back), ("nmcli", "device", "reapply", nic.name))
    assert edit.undo.undo == edit
    assert changed(edit)[-1] == "+mtu=4200"


def test_networkmanager_s_active_profile_counts_before_one_of_that_name() -> None:
    folder = "/etc/NetworkManager/system-connections"
    files = {
        f"{folder}/{name}.nmconnection": (HERE / f"networkmanager/{name}.nmconnection").read_text()
        for name in ("lan", "storage")
    }
    noted = "[device]\nmanaged=true\nconnection-uuid=84650930-6178-4df0-829d-46ec0d51df95\n"
    [claim] = ownership({**files, "/run/NetworkManager/devices/2": noted}, Nic("eth0", 2), 4200).claims
    assert claim.path == f"{folder}/storage.nmconnection"


@pytest.mark.needs("patch")
@pytest.mark.parametrize(
    ("name", "line", "mtu", "lines"),
    [
        ("ens3", 10, None, ["+    post-up ip link set dev $IFACE mtu 9000"]),
        ("ens4", 15, 1500, ["-\tmtu 1500", "+\tmtu 9000"]),
        (
            "ens5", 24, 1450,
            ["-    pre-up /sbin/ip link set dev $IFACE mtu 1450 up", "+    pre-up /sbin/ip link set dev $IFACE mtu 9000 up"],
        ),
        ("ens6", 27, None, ["+    mtu 9000"]),
    ],
)  # fmt: skip
def test_ifupdown(name: str, line: int, mtu: int | None, lines: list[str], tmp_path: Path) -> None:
    claim, edit = one(ownership({"/etc/network/interfaces": INTERFACES}, Nic(name), 9000))
    assert (claim.owner, claim.line, claim.mtu) == ("ifupdown", line, mtu)
    assert changed(edit) == lines
    assert patched(edit, tmp_path) == edit.after
    again = ownership({"/etc/network/interfaces": edit.after or ""}, Nic(name), 9000)
    assert ({claim.mtu for claim in again.claims}, again.edits) == ({9000}, ())


def test_dhclient_takes_what_it_was_told_until_its_file_says_otherwise() -> None:
    files = {"/var/lib/dhcp/dhclient.leases": LEASES, "/etc/dhcp/dhclient.conf": "request interface-mtu;\n"}
    assert ownership(files, Nic("eth0"), 9000).claims == ()  # it does not run
    claim, edit = one(ownership(files, Nic("eth0"), 9000, frozenset({"dhclient"})))
    assert (claim.owner, claim.mtu, claim.lasting) == ("dhclient", 1450, False)
    assert edit.after == 'request interface-mtu;\n\ninterface "eth0" {\n  supersede interface-mtu 9000;\n}\n'
    after = {**files, edit.path: edit.after}
    again = ownership(after, Nic("eth0"), 4200, frozenset({"dhclient"}))
    assert [(claim.mtu, claim.line) for claim in again.claims] == [(9000, 4)]
    assert changed(again.edits[0]) == ["-  supersede interface-mtu 9000;", "+  supersede interface-mtu 4200;"]


def test_what_dhclient_supersedes_counts_though_no_server_tells_an_mtu() -> None:
    conf, leases = {"/etc/dhcp/dhclient.conf": "supersede interface-mtu 1460;\n"}, "/var/lib/dhcp/dhclient.leases"
    lease = 'lease {\n  interface "eth0";\n  fixed-address 192.0.2.7;\n}\n'
    nic, runs = Nic("eth0", 2), frozenset({"dhclient"})
    found = ownership({**conf, leases: lease}, nic, 9000, runs)
    assert [(claim.place, claim.mtu) for claim in found.claims] == [("/etc/dhcp/dhclient.conf:1", 1460)]
    # Other interfaces keep what is for all.
    own = 'interface "eth0" {\n  supersede interface-mtu 9000;\n}\n'
    assert [edit.after for edit in found.edits] == [f"supersede interface-mtu 1460;\n\n{own}"]
    after = {"/etc/dhcp/dhclient.conf": found.edits[0].after or "", leases: lease}
    assert [claim.mtu for claim in ownership(after, nic, 9000, runs).claims] == [9000]
    assert ownership({**conf, leases: lease.replace("eth0", "eth1")}, nic, 9000, runs).claims == ()
    assert ownership({leases: lease}, nic, 9000, runs).claims == ()


@pytest.mark.parametrize("name", ["eth0", "eth0.5", "a'b"])
def test_a_hook_of_debian_s_script_has_a_dhclient_that_runs_set_it(name: str) -> None:
    folder = "/etc/dhcp/dhclient-enter-hooks.d"
    files = {"/var/lib/dhcp/dhclient.leases": LEASES.replace("eth0", name), f"{folder}/debug": "# nothing\n"}
    _, hook = ownership(files, Nic(name), 9000, frozenset({"dhclient"})).edits
    assert (hook.before, hook.path.removeprefix(f"{folder}/").replace("-", "").replace("_", "").isalnum()) == (
        None,
        True,
    )
    for interface, expected in ((name, "9000"), ("eth9", "1450")):
        text = f'interface="$1" new_interface_mtu=1450\n{hook.after}\necho $new_interface_mtu'
        said = subprocess.run(["sh", "-euc", text, "sh", interface], check=True, capture_output=True, text=True)
        assert said.stdout == f"{expected}\n"
    again = ownership({**files, hook.path: hook.after or ""}, Nic(name), 9000, frozenset({"dhclient"}))
    assert hook.path not in [each.path for each in again.edits]


def test_the_last_lease_of_dhclient_counts() -> None:
    later = LEASES.replace("1450", "1400") + LEASES.replace("  option interface-mtu 1450;\n", "")
    found = dhcp.leases_of_dhclient(LEASES + later, "x.leases")
    assert found == [("eth0", 1450), ("eth0", 1400), ("eth0", None)]


def test_dhcpcd_limits_the_routes() -> None:
    octets = (HERE / "dhcp/dhcpcd.eth0.lease.hex").read_text()
    assert dhcp.option_26(octets, "eth0.lease") == 1450
    files = {
        "/var/lib/dhcpcd/eth0.lease": octets,
        "/etc/dhcpcd.conf": "persistent\noption domain_name_servers, domain_name\noption interface_mtu  # of routes\n",
    }
    claim, edit = one(ownership(files, Nic("eth0"), 9000, frozenset({"dhcpcd"})))
    assert (claim.owner, claim.key, claim.mtu) == ("dhcpcd", "option 26, for the MTU of routes", 1450)
    assert changed(edit) == ["+", "+interface eth0", "+nooption interface_mtu"]
    again = {**files, edit.path: edit.after or ""}
    assert ownership(again, Nic("eth0"), 9000, frozenset({"dhcpcd"})).claims == ()
    with pytest.raises(Trouble, match="an option that is cut off at byte 240"):
        dhcp.option_26(octets[:482], "eth0.lease")


@pytest.mark.parametrize(
    ("command", "takes"),
    [
        ("udhcpc -i eth1 -O mtu", True),
        ("/bin/busybox udhcpc -b --interface eth1 -O search -O 26", True),
        ("udhcpc -i eth1 -Omtu", True),
        ("udhcpc -i eth1", False),
        ("udhcpc -i eth10 -O mtu", False),
        ("udhcpc -O mtu", False),  # of eth0
    ],
)
def test_a_udhcpc_that_asks_for_the_mtu_is_its_server_s(command: str, takes: bool) -> None:
    assert dhcp.udhcpc_takes_it(["udhcpc -i eth7", command], "eth1") == takes
    files = {"/etc/network/interfaces": "iface eth1 inet manual\n    mtu 9000\n"}
    found = ownership(files, Nic("eth1"), 9000, frozenset({"udhcpc"} if takes else ()))
    assert [(each.owner, each.mtu) for each in found.claims if not each.lasting] == [("udhcpc", None)] * takes


CALICO = '{"name": "k8s", "plugins": [{"type": "calico", "mtu": 1440}, {"type": "portmap"}]}'
BRIDGE = '{"cniVersion": "1.0.0", "name": "data", "type": "macvlan", "master": "eth1",\n "mtu": 1500}\n'


def test_a_container_network_is_named_and_only_one_written_by_hand_is_changed() -> None:
    found = ownership({"/etc/cni/net.d/10-calico.conflist": CALICO}, Nic("eth1"), 9000)
    assert found.pods is not None
    assert (found.pods.plugin, found.pods.mtu, found.edits) == ("calico", 1440, ())
    assert '{"spec":{"calicoNetwork":{"mtu":8950}}}' in found.pods.advice(8950)
    found = ownership({"/etc/cni/net.d/10-data.conf": BRIDGE}, Nic("eth1"), 9000)
    assert [changed(edit) for edit in found.edits] == [['- "mtu": 1500}', '+ "mtu": 9000}']]
    flannel = '{"name": "cbr0", "plugins": [{"type": "flannel", "delegate": {"isDefaultGateway": true}}]}'
    files = {"/etc/cni/net.d/10-flannel.conflist": flannel, "/run/flannel/subnet.env": "FLANNEL_MTU=1450\n"}
    found = ownership(files, Nic("eth1"), 9000)
    assert found.pods is not None
    assert (found.pods.plugin, found.pods.mtu) == ("flannel", 1450)


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        ("/etc/netplan/01.yaml", "network: [", "/etc/netplan/01.yaml: found "),
        ("/etc/netplan/01.yaml", "network:\n  ethernets: {eth0: {mtu: large}}\n",
         "/etc/netplan/01.yaml:2: found network.ethernets.eth0.mtu: 'large', expected a number of bytes"),
        ("/etc/netplan/01.yaml", "ethernets: {}\n",
         "/etc/netplan/01.yaml:1: found no mapping network, expected one, as netplan(5) has it"),
        ("/etc/systemd/network/a.network", "[Match]\nName=eth0\n[Link\n",
         "/etc/systemd/network/a.network:3: found '[Link', expected a section such as [Link]"),
        ("/etc/systemd/network/a.network", "[Match]\nName=eth0\n[Link]\nMTUBytes=big\n",
         "/etc/systemd/network/a.network:4: found MTUBytes=big, expected a number of bytes"),
        ("/etc/network/interfaces", "iface eth0 inet\n",
         "/etc/network/interfaces:1: found 'iface eth0 inet', expected iface NAME FAMILY METHOD"),
        ("/etc/network/interfaces", "iface eth0 inet static\n mtu 9k\n",
         "/etc/network/interfaces:2: found mtu 9k, expected a number of bytes"),
        ("/etc/cni/net.d/x.conf", "{", "/etc/cni/net.d/x.conf:1: found invalid JSON, expected a configuration of a CNI"),
    ],
)  # fmt: skip
def test_a_file_that_its_owner_would_not_take_is_one_line(path: str, text: str, told: str) -> None:
    found = ownership({path: text}, Nic("eth0"), 9000)
    [trouble] = found.troubles
    assert trouble.startswith(told)
    assert "\n" not in trouble
    assert found.edits == ()


def test_a_secret_near_the_change_is_not_shown() -> None:
    text = "network:\n  ethernets:\n    eth1:\n      auth: {password: hidden}\n      mtu: 1500\n"
    _, edit = one(ownership({"/etc/netplan/01.yaml": text}, Nic("eth1"), 9000))
    assert "hidden" not in str(edit.as_document())
    text = "network: {ethernets: {eth1: {mtu: 1500, auth: {password: hidden}}}}\n"
    found = ownership({"/etc/netplan/01.yaml": text}, Nic("eth1"), 9000)
    assert (found.edits, len(found.troubles)) == ((), 1)


def test_networkd_matches_other_names_of_an_interface() -> None:
    files = {"/etc/systemd/network/a.network": "[Match]\nName=enp3s0*\n[Link]\nMTUBytes=1500\n"}
    assert [claim.mtu for claim in ownership(files, Nic("eth1", altnames=("enp3s0f1",)), 9000).claims] == [1500]
    assert ownership(files, Nic("eth1", altnames=("enp4s0f1",)), 9000).claims == ()


def test_networkd_s_match_with_what_is_not_known_here_is_no_match() -> None:
    for match, expected in (
        ("Name=eth*", 1), ("Name=!eth*", 0), ("Name=lan wan", 0), ("Name=eth0\nHost=a", 0), ("MACAddress=02-00-00-00-00-01", 1),
    ):  # fmt: skip
        files = {"/etc/systemd/network/a.network": f"[Match]\n{match}\n[Link]\nMTUBytes=9000\n"}
        assert len(networkd.claims(files, Nic("eth0", 2, "02:00:00:00:00:01"))) == expected
