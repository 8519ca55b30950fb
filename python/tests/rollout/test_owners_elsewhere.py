"""Owners of MTUs beside netplan and its like: ifcfg files, and programs that run when an interface comes up."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.mutated import mutated
from hypothesis import given, strategies as st
from rollout.test_preflight import LINKS, asked, facts

from framegauge.rollout import preflight
from framegauge.rollout.owners import Nic, cni, elsewhere, ifcfg, ownership
from framegauge.rollout.preflight import survey

RHEL, SUSE = "/etc/sysconfig/network-scripts/ifcfg-eth1", "/etc/sysconfig/network/ifcfg-eth1"
IFCFG = "DEVICE=eth1\nTYPE=Ethernet\nBOOTPROTO=none\nMTU=1500\nPREFIX=24\n"
UDEV, LOCAL = "/etc/udev/rules.d/70-mtu.rules", "/etc/rc.local"
DISPATCHER = "/etc/NetworkManager/dispatcher.d/90-mtu"
ETH1 = Nic("eth1", 3, "52:54:00:00:00:01", driver="ixgbe", altnames=("enp3s0f1",))
KNOWN = [
    IFCFG,
    "MTU='1500'\n",
    'DEVICE="eth1"\nMTU="9000" # large\n',
    'KERNEL=="eth1", ATTR{mtu}="1500"\n',
    "ip link set eth1 mtu 9000",
]


@pytest.mark.parametrize(
    ("path", "text", "line", "mtu", "after"),
    [
        (RHEL, IFCFG, 4, 1500, IFCFG.replace("1500", "9000")),
        (SUSE, "BOOTPROTO='static'\nMTU='1500'\n", 2, 1500, "BOOTPROTO='static'\nMTU='9000'\n"),
        (RHEL, "DEVICE=eth1", 0, None, "DEVICE=eth1\nMTU=9000\n"),
        (RHEL, "MTU=\nDEVICE=eth1\n", 1, None, "MTU=9000\nDEVICE=eth1\n"),
        # The last assignment counts, as in a shell.
        (RHEL, "MTU=1400\nMTU=1500\n", 2, 1500, "MTU=1400\nMTU=9000\n"),
    ],
)
def test_an_ifcfg_file_is_read_and_changed(path: str, text: str, line: int, mtu: int | None, after: str) -> None:
    found = ownership({path: text}, ETH1, 9000)
    [claim], [edit] = found.claims, found.edits
    assert (claim.owner, claim.path, claim.line, claim.mtu) == ("ifcfg", path, line, mtu)
    assert edit.after == after
    shell = subprocess.run(["sh", "-c", f"{after}\necho $MTU"], capture_output=True, text=True, check=True)
    assert shell.stdout == "9000\n"


def test_an_ifcfg_file_is_of_the_interface_that_it_names() -> None:
    other = {RHEL: "DEVICE=eth2\nMTU=1500\n", f"{RHEL}.bak": IFCFG, RHEL.replace("eth1", "lan"): "MTU=1400\n"}
    assert ownership(other, ETH1, 9000).claims == ()
    by_address = {RHEL.replace("eth1", "lan"): "HWADDR=52:54:00:00:00:01\nMTU=1400\n"}
    assert [claim.mtu for claim in ownership(by_address, ETH1, 9000).claims] == [1400]


@pytest.mark.parametrize(
    ("kind", "name", "text", "mtus"),
    [
        ("veth", "ifcfg-lan", "HWADDR=52:54:00:00:00:01\nMTU=1400\n", [1400]),
        ("bond", "ifcfg-lan", "HWADDR=52:54:00:00:00:01\nMTU=1400\n", []),
        (None, "ifcfg-eth-id-52:54:00:00:00:01", "MTU='1400'\n", [1400]),
        (None, "ifcfg-eth-id-52:54:00:00:00:02", "MTU='1400'\n", []),
    ],
)
def test_an_ifcfg_file_by_address_is_of_what_has_its_own(
    kind: str | None, name: str, text: str, mtus: list[int]
) -> None:
    files = {f"/etc/sysconfig/network/{name}": text}
    assert [claim.mtu for claim in ownership(files, replace(ETH1, kind=kind), 9000).claims] == mtus


def test_an_mtu_for_all_ifcfg_files_may_be_that_of_one_which_says_none() -> None:
    files = {RHEL: "DEVICE=eth1\n", ifcfg.GLOBAL: "NETWORKING=yes\nMTU=1500\n"}
    assert [each.place for each in ownership(files, ETH1, 9000).mentions] == [f"{ifcfg.GLOBAL}:2"]
    assert ownership({**files, RHEL: IFCFG}, ETH1, 9000).mentions == ()
    assert ownership({ifcfg.GLOBAL: files[ifcfg.GLOBAL]}, ETH1, 9000).mentions == ()


def test_an_mtu_that_a_shell_would_expand_is_not_understood() -> None:
    [trouble] = ownership({RHEL: "DEVICE=eth1\nMTU=$LARGE\n"}, ETH1, 9000).troubles
    assert trouble == f"{RHEL}:2: found MTU=$LARGE, expected a number of bytes"


@pytest.mark.parametrize(
    ("path", "line", "mtu"),
    [
        (UDEV, 'ACTION=="add", SUBSYSTEM=="net", KERNEL=="eth1", RUN+="/sbin/ip link set dev eth1 mtu 1500"', 1500),
        (UDEV, 'SUBSYSTEM=="net", KERNEL=="eth*", ATTR{mtu}="1400"', 1400),
        (UDEV, 'SUBSYSTEM=="net", KERNEL=="lan0|eth1", RUN+="/sbin/ip link set %k mtu 1500"', 1500),
        (UDEV, 'SUBSYSTEM=="net", ATTR{address}=="52:54:00:00:00:01", NAME="eth1", ATTR{mtu}="9000"', 9000),
        (LOCAL, "ip link set eth1 up mtu 1500 || true", 1500),
        (LOCAL, "/sbin/ifconfig eth1 mtu 1500 up", 1500),
        (LOCAL, 'echo "1500" > /sys/class/net/eth1/mtu', 1500),
        (LOCAL, "ip link set dev enp3s0f1 mtu 1500", 1500),
        ("/usr/lib/udev/rules.d/80-mtu.rules", 'SUBSYSTEM=="net", ENV{ID_NET_DRIVER}=="ixgbe", ATTR{mtu}="1500"', 1500),
        ("/etc/cron.d/mtu", "@reboot root ip link set dev eth1 mtu 1500", 1500),
        ("/etc/systemd/system/mtu.service", "ExecStart=/usr/sbin/ip link set dev eth1 mtu 1500", 1500),
    ],
)
def test_a_line_that_sets_the_mtu_is_a_claim(path: str, line: str, mtu: int) -> None:
    found = ownership({path: f"# mtu of eth1\n{line}\n"}, ETH1, 9000)
    assert [(claim.path, claim.line, claim.mtu) for claim in found.claims] == [(path, 2, mtu)]
    assert (found.edits, found.mentions, found.troubles) == ((), (), ())


@pytest.mark.parametrize(
    ("path", "line", "is_named"),
    [
        (LOCAL, "set-mtu --interface eth1 --jumbo", True),
        (LOCAL, "ip link set eth1 mtu $SIZE", True),
        (LOCAL, "echo 1500 | tee /sys/class/net/eth1*/mtu", True),
        (LOCAL, "ifconfig eth1{,x} mtu 1500", True),
        (LOCAL, 'for i in /sys/class/net/*; do echo 1500 > "$i/mtu"; done', False),
        (DISPATCHER, 'ip link set "$1" mtu 1500', False),
        (UDEV, 'SUBSYSTEM=="net", ACTION=="add", RUN+="/usr/local/bin/mtu %k"', False),
        (UDEV, 'SUBSYSTEM=="net", KERNEL=="eth1", RUN+="/usr/local/bin/set-mtu"', True),
    ],
)
def test_a_line_that_may_set_it_is_told_and_not_believed(path: str, line: str, is_named: bool) -> None:
    found = ownership({path: line}, ETH1, 9000)
    [mention] = found.mentions
    assert (found.claims, mention.place, mention.is_named) == ((), f"{path}:1", is_named)
    listed = preflight.findings({"a": facts(files={path: line.replace("eth1", "bond0")})}, asked("bond0"))
    [finding] = [each for each in listed if each.what == "program"]
    assert finding.severity == ("warning" if is_named else "note")
    assert "that is not understood and may set it" in finding.found
    assert not any("no config file" in each.found for each in listed)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (LOCAL, "# ip link set eth1 mtu 1500"),
        (LOCAL, "ip link set eth2 mtu 1500"),
        (LOCAL, "ip link set eth1.100 mtu 1500"),
        (UDEV, 'SUBSYSTEM=="net", KERNEL=="eth2", ATTR{mtu}="1500"'),
        (UDEV, 'SUBSYSTEM=="net", KERNEL!="eth1", ATTR{mtu}="1500"'),
        (LOCAL, "ip link set dev enp3s0f10 mtu 1500"),
        (LOCAL, "ifconfig eth{2,3} mtu 1500"),
        (LOCAL, "ifconfig eth{2..9} mtu 1500"),
        (LOCAL, "echo 1500 | tee /sys/class/net/veth*/mtu"),
        (UDEV, 'SUBSYSTEM=="net", DRIVERS=="mlx5_core", ATTR{mtu}="1500"'),
        (UDEV, 'SUBSYSTEM=="block", KERNEL=="eth1", ATTR{mtu}="1500"'),
        ("/etc/somewhere/else", "ip link set eth1 mtu 1500"),
    ],
)
def test_what_is_of_another_interface_or_of_nobody_says_nothing(path: str, line: str) -> None:
    found = ownership({path: line}, ETH1, 9000)
    assert (found.claims, found.mentions) == ((), ())


def test_the_survey_reads_the_lines_of_programs_that_speak_of_an_mtu(tmp_path: Path) -> None:
    """By the real script; the rest of a program, which may hold secrets, stays where it is."""
    local = tmp_path / "rc.local"
    local.write_text("#!/bin/sh\nPASSWORD=secret\nip link set eth1 \\\n  mtu 1500\nexit 0\n")
    script = survey.SCRIPT.replace(" /etc/rc.local ", f" {local} ")
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    text = survey.parsed(done.stdout, "a")["files"][str(local)]
    assert text == "\n\nip link set eth1 \\\n  mtu 1500\n\n"


def test_the_survey_reads_the_line_by_which_a_program_calls_a_script(tmp_path: Path) -> None:
    local, script_file = tmp_path / "rc.local", tmp_path / "folder/jumbo"
    script_file.parent.mkdir()
    script_file.write_text('SECRET=1\nip link set "$1" mtu "$2"\n')
    local.write_text(f"PASSWORD=secret\n{script_file} eth1 1500\n")
    script = survey.SCRIPT.replace(" /etc/rc.local ", f" {local} ").replace("search /etc ", f"search {tmp_path} ")
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    found = survey.parsed(done.stdout, "a")
    assert found["files"][str(local)] == f"\n{script_file} eth1 1500\n"
    assert found["others"][str(script_file)] == '\nip link set "$1" mtu "$2"\n'


@pytest.mark.parametrize("mtu", ['"9001"', "9001"])
def test_a_container_network_may_write_its_mtu_as_a_text(mtu: str) -> None:
    files = {"/etc/cni/net.d/10-aws.conflist": f'{{"plugins": [{{"type": "aws-cni", "mtu": {mtu}}}]}}'}
    listed = preflight.findings({"a": facts(files=files)}, asked("bond0"))
    [refused] = [each for each in listed if each.severity == "refused"]
    assert refused.found == "pods of aws-cni with 9001 (/etc/cni/net.d/10-aws.conflist)"


def test_pods_get_what_the_overlay_leaves() -> None:
    found = cni.pods({"/etc/cni/net.d/a.conflist": '{"plugins": [{"type": "calico", "mtu": 1440}]}'})
    assert found is not None
    assert found.beneath(1500, 9000) == 8940
    assert '"mtu":8940' in found.advice(8940)


@pytest.mark.parametrize(
    ("plugin", "mtu", "before", "after", "expected"),
    [
        # Pods that never followed their hosts from 1500, or are ahead of them.
        ("calico", 1440, 9000, 4200, 4140),
        ("calico", 1440, 9000, 9200, 9140),
        ("flannel", 8950, 1500, 9000, 8950),
        ("flannel", 8950, 9000, 1500, 1450),
        ("bridge", 1500, 9000, 4200, 4200),
        ("calico", 4000, 9000, 4500, None),
        ("macvlan", 8950, 9000, 1500, 1500),
    ],
)
def test_what_an_overlay_takes_is_told_by_a_likely_number_or_not(
    plugin: str, mtu: int, before: int, after: int, expected: int | None
) -> None:
    assert cni.Pods("x", plugin, mtu, None).beneath(before, after) == expected
    files = {"/etc/cni/net.d/a.conf": f'{{"type": "{plugin}", "mtu": {mtu}}}'}
    listed = preflight.findings({"a": facts(files=files)}, asked("bond0", after, old_mtu=before))
    [pods] = [each for each in listed if each.what == "pods"]
    most = after if expected is None else expected
    assert (pods.severity == "refused", "-" in pods.expected) == (mtu > most, False)
    assert expected is not None or "which their MTU does not tell" in pods.expected


def test_pods_of_k3s_and_of_a_plugin_behind_the_first_count() -> None:
    k3s = f"{cni.FOLDERS[1]}/10-flannel.conflist"
    files = {k3s: '{"plugins": [{"type": "flannel"}]}', cni.FLANNEL: "FLANNEL_MTU=8950\n"}
    assert cni.pods(files) == cni.Pods(k3s, "flannel", 8950, None)
    assert cni.pods({cni.FLANNEL: files[cni.FLANNEL]}) == cni.Pods(cni.FLANNEL, "flannel", 8950, None)
    podman = {"/etc/cni/net.d/87-podman.conflist": '{"plugins": [{"type": "bridge"}, {"type": "portmap"}]}'}
    assert cni.pods({**podman, **files}) == cni.pods(files)
    tuned = '{"plugins": [{"type": "bridge", "mtu": 1450}, {"type": "tuning", "mtu": 9001}]}'
    found = cni.pods({"/etc/cni/net.d/a.conflist": tuned})
    assert found is not None
    assert (found.plugin, found.mtu) == ("tuning", 9001)


@pytest.mark.parametrize(
    "text",
    ['{"mtu": 9000}', '{"mtu":1500, "default-network-opts": {"bridge": {"com.docker.network.driver.mtu":"9000"}}}'],
)
def test_containers_of_docker_with_more_than_the_new_mtu_are_told(text: str) -> None:
    given = {"a": facts(files={"/etc/docker/daemon.json": text})}
    [finding] = [each for each in preflight.findings(given, asked("bond0", 1500)) if each.what == "containers"]
    assert (finding.severity, "with 9000 (/etc/docker/daemon.json:1)" in finding.found) == ("warning", True)
    assert not any(each.what == "containers" for each in preflight.findings(given, asked("bond0", 9000)))
    bridge = {"ifname": "br-0123456789ab", "ifindex": 99, "mtu": 9000, "linkinfo": {"info_kind": "bridge"}}
    given = {"a": facts(links=[*LINKS, bridge])}
    told = [each.found for each in preflight.findings(given, asked("bond0", 1500)) if each.what == "containers"]
    assert told == ["Docker's network br-0123456789ab with 9000"]


@pytest.mark.parametrize(
    ("bridge", "forward", "files", "told"),
    [
        ("docker0", "0", {}, ["Docker's network docker0 with 9000"]),
        ("docker0", "1", {"/etc/docker/daemon.json": '{"mtu": 9000}'},
         ["containers of Docker with 9000 (/etc/docker/daemon.json:1)"]),
        ("virbr0", "1", {}, ["guests behind the bridge virbr0 with 9000"]),
        ("virbr0", "0", {}, []),
        ("cni0", "1", {}, []),
    ],
)  # fmt: skip
def test_guests_with_more_than_their_host_is_to_have_are_told_once(
    bridge: str, forward: str, files: dict[str, str], told: list[str]
) -> None:
    links = [*LINKS, {"ifname": bridge, "ifindex": 99, "mtu": 9000, "linkinfo": {"info_kind": "bridge"}},
             {"ifname": "vnet7", "ifindex": 98, "mtu": 9000, "master": bridge, "linkinfo": {"info_kind": "tun"}}]  # fmt: skip
    given = {"a": facts(links=links, files=files, check={"sysctls": {"net.ipv4.ip_forward": forward}})}
    found = [each.found for each in preflight.findings(given, asked("bond0", 1500)) if each.what == "containers"]
    assert found == told
    assert not any(each.what == "containers" for each in preflight.findings(given, asked("bond0", 9000)))


@given(mutated(KNOWN) | st.text(max_size=60), st.sampled_from([RHEL, SUSE, UDEV, LOCAL, DISPATCHER]))
def test_whatever_such_a_file_has_it_is_read_or_a_line_says_why_not(text: str, path: str) -> None:
    found = ownership({path: text}, ETH1, 9000)
    assert all("\n" not in each for each in found.troubles)
    for edit in found.edits:
        after = {path: edit.after or ""}
        assert [claim.mtu for claim in ifcfg.claims(after, ETH1)] == [9000]
    assert all(each.line >= 1 for each in elsewhere.mentions({path: text}, ETH1))
