"""Files that nothing here understands: which of them may set the MTU of an interface, and what is said of those."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from rollout.test_preflight import asked, facts

from framegauge.rollout import preflight
from framegauge.rollout.owners import Nic, cni, ownership
from framegauge.rollout.preflight import survey

ETH1 = Nic("eth1", 3, "52:54:00:00:00:01")
OS_NET_CONFIG = (
    "network_config:\n- type: interface\n  name: eth0\n  mtu: 9000\n- type: interface\n  name: eth1\n  mtu: 1500\n"
)
MULTUS = "/etc/cni/net.d/00-multus.conf"
CALICO = "/etc/cni/net.d/10-calico.conflist", '{"plugins": [{"type": "calico", "mtu": "1450"}]}'


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("/etc/os-net-config/config.yaml", OS_NET_CONFIG, 7),
        ("/etc/nmstate/storage.yml", "interfaces:\n- name: eth1\n  mtu: 1500\n", 3),
        ("/etc/tuning/mtu.sh", "IF=eth1\nip link set dev $IF mtu 1500\n", 2),
        ("/etc/conf.d/net", 'mtu_eth1="1500"\n', 1),
        ("/etc/netctl/storage", "Interface=eth1\nExecUpPost='ip link set dev eth1 mtu 1500'\n", 2),
        ("/etc/NetworkManager/conf.d/mtu.conf", "match-device=interface-name:eth1\nethernet.mtu=1500\n", 2),
        ("/etc/sriov-operator/pci/0000:03:00.0", '{"Name":"eth1","numVfs":8,"mtu":1500}', 1),
        ("/etc/cni/multus/net.d/san.conf", '{"type":"macvlan","master":"eth1","mtu":"1500"}', 1),
        ("/etc/libvirt/qemu/networks/a.xml", "<bridge name='eth1'/>\n<mtu size='1500'/>\n", 2),
        ("/etc/sysctl.d/mtu.conf", "net.ipv6.conf.eth1.mtu = 1500", 1),
        ("/etc/a/b", "52:54:00:00:00:01\nvethMTU: 1500", 2),
        ("/etc/netctl/eth1.conf", "MTU=1500", 1),
        ("/etc/wireguard/eth1.conf", "[Interface]\nMTU = 1420\n", 2),
        ("/etc/wireguard/wg0.conf", "MTU = 1420\nPostUp = ip link set dev eth1 mtu 1500\n", 2),
        ("/etc/switch.conf", "port mtu 1500 eth1", 1),
        ("/etc/cloud/cloud.cfg.d/60.cfg", "network: {config: [{name: eth1, mtu: 1500}]}", 1),
        ("/etc/dhcp/dhclient.conf", 'interface "eth1" { default interface-mtu 1500; }', 1),
        ("/etc/dhcp/dhclient-enter-hooks.d/mtu", 'if [ "$interface" = eth1 ]; then new_interface_mtu=1500; fi', 1),
        # The program's own line says nothing of an MTU, or names the interface by a variable.
        ("/etc/systemd/system/jumbo.service", " eth1\nDescription=sets the MTU\n", 2),
        ("/etc/rc.local", " eth1\nip link set $i mtu 1500\n", 2),
    ],
)
def test_a_file_that_names_the_interface_and_an_mtu_is_told(path: str, text: str, line: int) -> None:
    """By the line nearest to the name; also of a file that is read for something else."""
    files = {path: text} if path.startswith(("/etc/cloud/", "/etc/dhcp/", "/etc/systemd/", "/etc/rc.local")) else {}
    [mention] = ownership(files, ETH1, 9000, others={path: text}).mentions
    assert (mention.path, mention.line, mention.is_named) == (path, line, True)
    here = {path: text.replace("eth1", "bond0").replace("52:54:00:00:00:01", "bond0")}
    listed = preflight.findings({"a": facts(others={path.replace("eth1", "bond0"): here[path]})}, asked("bond0"))
    [finding] = [each for each in listed if each.what == "program"]
    assert (finding.severity, "may set it" in finding.found) == ("warning", True)
    assert not any("no config file" in each.found for each in listed)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/etc/tuning/mtu.sh", "ip link set dev eth2 mtu 1500\nethtool -G eth1 rx 4096\n"),
        ("/etc/tuning/mtu.sh", "# ip link set dev eth1 mtu 1500\n"),
        ("/etc/a.conf", "eth1.100 mtu 1500"),
        ("/etc/a.conf", "veth1 mtu 1500"),
        ("/etc/sysctl.d/a.conf", "net.ipv4.tcp_mtu_probing = 1\nnet.ipv4.conf.eth1.rp_filter = 2\n"),
        ("/etc/sysctl.d/a.conf", "net.ipv6.conf.eth1.accept_ra_mtu = 0\n"),
        ("/etc/frr/frr.conf", "interface eth1\n ip ospf mtu-ignore\n"),
        ("/etc/nft.conf", "-A FORWARD -o eth1 -j TCPMSS --clamp-mss-to-pmtu"),
        ("/etc/nftables.conf", 'oifname "eth1" tcp flags syn tcp option maxseg size set rt mtu\n'),
        (
            "/etc/wireguard/wg0.conf",
            "[Interface]\nMTU = 1420\nPostUp = iptables -t nat -A POSTROUTING -o eth1 -j MASQUERADE",
        ),
        ("/etc/ppp/peers/dsl-provider", "plugin rp-pppoe.so eth1\nmtu 1492\nmru 1492\n"),
        ("/etc/openvpn/server.conf", "# over eth1\nmultihome eth1\ntun-mtu 1400\nmtu-disc yes\nlink-mtu 1500\n"),
        ("/etc/netplan/01.yaml.bak", "eth1: {mtu: 1500}"),
        ("/etc/ssl/certs/8f103249.0", "AwwQVGVsaWEgUm9vdCBDQSB2MjAeFw0xODExMjkxMTU1/mtu/eth1\n"),
        ("/etc/framegauge/lease", "eth1 mtu"),
        ("/etc/dhcp/dhclient-enter-hooks.d/framegauge-mtu-eth1", "eth1 new_interface_mtu=9000"),
    ],
)
def test_other_interfaces_path_mtus_and_copies_say_nothing(path: str, text: str) -> None:
    assert ownership({}, ETH1, 9000, others={path: text}).mentions == ()


@pytest.mark.parametrize("word", ["ETH1_MTU=1500", "eth1_mtu=1500", "eth1-mtu: 1500", "MTU_ETH1=1500", "Eth1Mtu: 1500"])
def test_a_word_of_the_interface_and_mtu_names_it(word: str) -> None:
    [mention] = ownership({}, ETH1, 9000, others={"/etc/default/tuning": word}).mentions
    assert mention.text == word
    for other in ("ETH10", "VETH1", "eth1.100", "ETH1_100"):
        line = re.sub("eth1", other, word, flags=re.IGNORECASE)
        assert ownership({}, ETH1, 9000, others={"/etc/default/tuning": line}).mentions == ()


def test_a_script_that_a_program_calls_for_the_interface_is_told_by_the_call() -> None:
    unit, jumbo = "/etc/systemd/system/jumbo.service", "/etc/scripts/jumbo"
    others = {jumbo: 'ip link set dev "$1" mtu "$2"\n'}
    calls = {"": 1, "-": 1, "/bin/sh ": 1, "/usr": 0}
    for before, count in calls.items():
        files = {unit: f"\n\nExecStart={before}{jumbo} eth1 1500\n"}
        assert [each.place for each in ownership(files, ETH1, 9000, others=others).mentions] == [f"{unit}:3"] * count
    assert ownership({unit: f"ExecStart={jumbo} eth2 1500\n"}, ETH1, 9000, others=others).mentions == ()
    hook = f"iface eth1 inet static\n  up {jumbo} $IFACE 1500\n"
    found = ownership({"/etc/network/interfaces": hook}, ETH1, 9000, others=others)
    assert (found.claims, [each.line for each in found.mentions]) == ((), [2])


def test_an_instance_of_a_unit_is_of_the_interface_in_its_name() -> None:
    text = "[Unit]\nDescription=MTU of %i\nExecStart=/sbin/ip link set dev %i mtu 1500\n"
    unit, instance = "/etc/systemd/system/mtu@.service", "/etc/systemd/system/multi-user.target.wants/mtu@eth1.service"
    [mention] = ownership({unit: text.replace("Desc", "#")}, ETH1, 9000).mentions
    assert (mention.place, mention.is_named) == (f"{unit}:3", False)
    named = [each for each in ownership({unit: text}, ETH1, 9000, others={instance: text}).mentions if each.is_named]
    assert [each.place for each in named] == [f"{instance}:3"]


def test_what_its_owner_has_understood_is_not_told_again() -> None:
    text = "network: {ethernets: {eth0: {mtu: 9000}, eth1: {dhcp4: true}}}\n"
    found = ownership({"/etc/netplan/01.yaml": text}, ETH1, 9000, others={"/etc/netplan/01.yaml": text})
    assert found.mentions == ()


def test_a_line_that_may_hold_a_secret_is_not_shown() -> None:
    [mention] = ownership({}, ETH1, 9000, others={"/etc/x": "eth1 mtu 1500 password hunter2"}).mentions
    assert mention.text == "a line that may hold a secret"


def test_many_lines_are_counted() -> None:
    others = {f"/etc/x/{number:02}": "bond0 mtu 1500" for number in range(20)}
    listed = preflight.findings({"a": facts(others=others)}, asked("bond0"))
    programs = [each for each in listed if each.what == "program"]
    assert len(programs) == 9
    assert programs[-1].found.startswith("12 more lines that are not understood")


def test_nobody_sets_it_only_as_far_as_one_could_look() -> None:
    def note(**more: bool) -> str:
        [owner] = [each for each in preflight.findings({"a": facts(**more)}, asked("bond0")) if each.what == "owner"]
        return str(owner)

    def said(which: str = "") -> str:
        lost = "it is lost at reboot, and when the interface is made anew"
        return f"a/bond0: owner: no config file{which} sets this MTU: {lost}"

    assert note() == said()
    assert note(as_root=False) == said(" that this user may read")
    assert note(searched=False) == said(" that could be searched in time")


def test_the_survey_searches_files_that_it_does_not_know(tmp_path: Path) -> None:
    """By the real script, with an interface of this machine: lines of an MTU, names of interfaces, and nothing else."""
    name = next(each.name for each in sorted(Path("/sys/class/net").iterdir()) if each.name != "lo")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/a file.yaml").write_text(f"password: secret\n- name: {name} # secret\n# {name}\n  mtu: 1500\n")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/lan.yaml").symlink_to(tmp_path.parent / "elsewhere.yaml")
    (tmp_path.parent / "elsewhere.yaml").write_text(f"{name}:\n  mtu: 1500\n")
    (tmp_path / "linked/zero").symlink_to("/dev/zero")
    (tmp_path / "linked/up").symlink_to(tmp_path)
    (tmp_path / "other.yaml").write_text("name: nobody99\nmtu: 1500\n")
    (tmp_path / "binary").write_bytes(b"\0mtu " + name.encode())
    (tmp_path / f"net.{name}").write_bytes(b"MTU=1500 # \xe9\n")
    script = survey.SCRIPT.replace("search /etc ", f"search {tmp_path} ")
    assert script != survey.SCRIPT
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    found = survey.parsed(done.stdout, "a")
    mine = {path.removeprefix(f"{tmp_path}/"): text for path, text in found["others"].items() if str(tmp_path) in path}
    assert {path: text.split("\n") for path, text in mine.items()} == {
        "deep/a file.yaml": ["", f" {name}", "", "  mtu: 1500", ""], f"net.{name}": ["MTU=1500 # �", ""],
        "linked/lan.yaml": [f" {name}", "  mtu: 1500", ""],
    }  # fmt: skip
    assert found["searched"] is True
    assert not any(str(tmp_path) in path for path in found["unreadable"])


def test_docker0_is_dockerd_s() -> None:
    bridge = Nic("docker0", 4, kind="bridge")
    [claim] = ownership({"/etc/docker/daemon.json": '{\n "mtu": 1450}'}, bridge, 9000).claims
    assert (claim.owner, claim.mtu, claim.place) == ("dockerd", 1450, "/etc/docker/daemon.json:2")
    [claim] = ownership({}, bridge, 9000).claims
    assert (claim.owner, claim.mtu) == ("dockerd", 1500)
    assert ownership({"/etc/docker/daemon.json": '{"mtu": 1450}'}, ETH1, 9000).claims == ()


@pytest.mark.parametrize(
    ("files", "path", "mtu"),
    [
        ({MULTUS: '{"type": "multus", "delegates": [{"plugins": [{"type": "calico", "mtu": 1450}]}]}'}, MULTUS, 1450),
        ({MULTUS: '{"type": "multus-shim", "clusterNetwork": "/host/etc/cni/net.d/10-calico.conflist"}',
          "/etc/cni/net.d/05-a.conf": '{"type": "ptp", "mtu": 1400}', CALICO[0]: CALICO[1]}, CALICO[0], 1450),
        ({MULTUS: '{"type": "multus"}', CALICO[0]: CALICO[1]}, CALICO[0], 1450),
    ],
)  # fmt: skip
def test_pods_of_multus_have_the_network_beneath(files: dict[str, str], path: str, mtu: int) -> None:
    found = cni.pods(files)
    assert found is not None
    assert (found.plugin, found.path, found.mtu) == ("calico", path, mtu)


def test_a_netdev_file_makes_an_interface_with_an_mtu() -> None:
    path, bridge = "/etc/systemd/network/20-br.netdev", Nic("br5", 5, kind="bridge")
    netdev = "[NetDev]\nName=br5\nKind=bridge\nMTUBytes=1500\n"
    [claim] = ownership({path: netdev}, bridge, 9000).claims
    assert (claim.owner, claim.place, claim.mtu) == ("a .netdev file", f"{path}:4", 1500)
    network = {"/etc/systemd/network/20-br.network": "[Match]\nName=br5\n[Link]\nMTUBytes=9000\n"}
    assert [each.owner for each in ownership({path: netdev, **network}, bridge, 9000).claims] == ["networkd"]
    assert ownership({path: netdev}, ETH1, 9000).claims == ()


def test_a_match_by_what_only_udev_knows_is_told_or_as_udev_notes_it() -> None:
    path = "/etc/systemd/network/10-a.link"
    text = "[Match]\nPath=pci-0000:03:00.0\n[Link]\nMTUBytes=1500\n"
    found = ownership({path: text}, ETH1, 9000)
    assert (found.claims, [each.place for each in found.mentions]) == ((), [f"{path}:4"])
    noted = {"/run/udev/data/n3": f"E:ID_NET_DRIVER=x\nE:ID_NET_LINK_FILE={path}\n"}
    assert [(claim.owner, claim.mtu) for claim in ownership({path: text, **noted}, ETH1, 9000).claims] == [
        ("udev", 1500)
    ]
    default = "/usr/lib/systemd/network/99-default.link"
    other = {"/run/udev/data/n3": f"E:ID_NET_LINK_FILE={default}\n", default: "[Match]\nOriginalName=*\n"}
    found = ownership({path: text, **other}, ETH1, 9000)
    assert (found.claims, found.mentions) == ((), ())
    assert ownership({path: "[Match]\nPath=x\nName=eth7\n[Link]\nMTUBytes=1500\n"}, ETH1, 9000).mentions == ()


def test_a_short_stanza_is_ifupdown2_s_and_a_fault_of_ifupdown() -> None:
    path, text = "/etc/network/interfaces", "auto eth1\niface eth1\n    mtu 1500\n"
    found = ownership({path: text, "/etc/network/ifupdown2/ifupdown2.conf": ""}, ETH1, 9000)
    assert [(claim.mtu, claim.line) for claim in found.claims] == [(1500, 3)]
    assert [edit.after for edit in found.edits] == [text.replace("1500", "9000")]
    [trouble] = ownership({path: text}, ETH1, 9000).troubles
    assert "expected iface NAME FAMILY METHOD" in trouble
