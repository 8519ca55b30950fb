"""Preflights of real interfaces: each item in a lab of its own, and nothing where nothing stands against a change."""

from __future__ import annotations

import contextlib
import json
import secrets
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from helpers import xdp
from helpers.sshd import Site, run

from framegauge.agents.binary import find_agent
from framegauge.rollout.model import Json
from framegauge.rollout.preflight import run as preflight
from framegauge.rollout.preflight.schema import json_schema

Found = list[tuple[str, str]]  # severity and kind


class Lab:
    """A host `a` with eth0 to a host `b`, each a network namespace of its own."""

    def __init__(self, tag: str) -> None:
        self.a, self.b = f"fgp{tag}a", f"fgp{tag}b"

    def ip(self, *words: str, host: str | None = None) -> None:
        run("ip", "-n", host or self.a, *words)

    def sysctl(self, name: str, value: str) -> None:
        run("ip", "netns", "exec", self.a, "sysctl", "-qw", f"{name}={value}")

    def facts(self, folder: Path | None = None) -> Json:
        """Of host a; `folder` is to be its /etc."""
        name = f"netns:{self.a}"
        commands = {}
        if folder is not None:
            agent = shlex.quote(str(find_agent()))
            inside = f"mount --bind {shlex.quote(str(folder))} /etc && exec {agent} host"
            commands[name] = ["ip", "netns", "exec", self.a, "unshare", "--mount", "sh", "-ec", inside]
        facts, errors = preflight.read([name], [], print, commands)
        assert errors == {}
        return facts

    def document(
        self, mtu: int = 9000, interface: str = "eth0", scope: str = "subnets", folder: Path | None = None
    ) -> Json:
        """Of host a; `folder` is to be its /etc."""
        name, facts = f"netns:{self.a}", self.facts(folder)
        asked = preflight.chosen({name: interface}, facts, mtu, scope, 60.0, frozenset())  # type: ignore[arg-type]
        document = preflight.document(asked, facts, {})
        jsonschema.validate(document, json_schema())
        return document

    def found(self, mtu: int = 9000, interface: str = "eth0", scope: str = "subnets") -> Found:
        """The findings without notes."""
        listed = self.document(mtu, interface, scope)["findings"]
        return [(each["severity"], each["what"]) for each in listed if each["severity"] != "note"]


@pytest.fixture
def lab() -> Iterator[Lab]:
    made = Lab(secrets.token_hex(2))
    with contextlib.ExitStack() as undo:
        for namespace in (made.a, made.b):
            run("ip", "netns", "add", namespace)
            undo.callback(run, "ip", "netns", "del", namespace)
            made.ip("link", "set", "lo", "up", host=namespace)
        made.ip("link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", made.b)
        for number, namespace in enumerate((made.a, made.b), 1):
            made.ip("addr", "add", f"192.0.2.{number}/24", "dev", "eth0", host=namespace)
            made.ip("link", "set", "eth0", "up", host=namespace)
        yield made


def test_nothing_stands_against_a_change_of_a_clean_host(lab: Lab) -> None:
    document = lab.document()
    assert document["verdict"] == "clear"
    assert document["hosts"] == [
        {"name": f"netns:{lab.a}", "interface": "eth0", "mtu": 1500, "maximum_mtu": 65535, "error": None}
    ]
    assert lab.found(1400) == lab.found(9000, scope="all") == []


@pytest.mark.needs("busybox")
def test_a_udhcpc_that_asks_for_the_mtu_is_found_where_it_runs(lab: Lab) -> None:
    words = ["ip", "netns", "exec", lab.a, "busybox", "udhcpc", "-f", "-i", "eth0", "-s", "/bin/true"]
    for more, expected in ([], []), (["-O", "mtu"], [("warning", "dhcp")]):
        client = subprocess.Popen([*words, *more], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            name = Path(f"/proc/{client.pid}/comm")
            while name.read_text().strip() != "busybox":
                assert client.poll() is None
            assert lab.found() == expected
        finally:
            client.kill()
            client.wait()


def test_an_interface_that_is_down_or_not_there(lab: Lab) -> None:
    assert lab.found(interface="eth7") == [("refused", "interface")]
    lab.ip("link", "set", "eth0", "down")
    assert lab.found() == [("refused", "down")]


def test_an_xdp_program_without_fragments_limits_both_ends(lab: Lab) -> None:
    with xdp.passing(lab.b, "eth0"):
        [found] = lab.document()["findings"][:1]
        assert (found["what"], found["found"]) == ("maximum", "a maximum MTU of 3506 (veth)")
        assert "section xdp.frags" in found["remedy"]
        with pytest.raises(subprocess.CalledProcessError):
            lab.ip("link", "set", "eth0", "mtu", "9000")
        assert lab.found(3506) == []
    with xdp.passing(lab.a, "eth0"):
        assert lab.found() == [("refused", "xdp")]
        assert lab.found(3506) == []
    with xdp.passing(lab.a, "eth0", generic=True):
        assert lab.found() == []
    assert lab.found() == []


def test_a_program_that_takes_fragments_is_known_by_the_other_end_on_the_same_host(lab: Lab) -> None:
    lab.ip("link", "add", "eth1", "type", "veth", "peer", "name", "eth2")
    lab.ip("link", "set", "eth1", "up")
    lab.ip("link", "set", "eth2", "up")
    with xdp.passing(lab.a, "eth1", frags=True):
        assert lab.found(interface="eth1") == []
    with xdp.passing(lab.a, "eth1"):
        assert lab.found(interface="eth1") == [("refused", "xdp")]


def test_an_overlay_fits_or_not(lab: Lab) -> None:
    lab.ip("link", "add", "vx0", "type", "vxlan", "id", "7", "local", "192.0.2.1", "remote", "192.0.2.2",
           "dstport", "4789", "dev", "eth0")  # fmt: skip
    lab.ip("link", "set", "vx0", "up")
    assert lab.found(1400) == [("refused", "overlay")]
    [finding] = [each for each in lab.document(interface="vx0")["findings"] if each["severity"] == "refused"]
    assert (finding["found"], finding["expected"]) == ("eth0 below this vxlan with 1500", "9050 or more")
    notes = [each for each in lab.document()["findings"] if each["what"] == "overlay"]
    assert [(each["severity"], each["found"], each["expected"]) for each in notes] == [
        ("note", "the vxlan vx0, which keeps 1450", "up to 8950")
    ]
    lab.ip("link", "set", "eth0", "mtu", "9050")
    assert lab.found(interface="vx0") == []


def test_a_bridge_carries_what_all_of_its_ports_carry(lab: Lab) -> None:
    lab.ip("link", "add", "br0", "type", "bridge")
    lab.ip("link", "set", "eth0", "master", "br0")
    lab.ip("link", "set", "br0", "up")
    assert lab.found(interface="br0") == [("warning", "bridge")]
    assert lab.found() == [("warning", "bridge")]
    lab.ip("link", "set", "eth0", "mtu", "9000")
    lab.ip("link", "set", "br0", "mtu", "9000")
    assert lab.found(interface="br0") == lab.found() == []


def test_what_stands_on_an_interface_needs_it_raised_and_is_lowered_with_it(lab: Lab) -> None:
    lab.ip("link", "add", "mv0", "link", "eth0", "type", "macvlan", "mode", "bridge")
    lab.ip("link", "set", "mv0", "up")
    [note] = [each for each in lab.document(interface="mv0")["findings"] if each["what"] == "parent"]
    assert (note["severity"], note["found"]) == ("note", "eth0 below it with 1500")
    assert lab.found(1400) == [("refused", "child")]
    lab.ip("link", "set", "eth0", "mtu", "1400")
    lab.ip("link", "set", "eth0", "mtu", "1500")
    shown = json.loads(run("ip", "-n", lab.a, "-j", "link", "show", "mv0"))
    assert shown[0]["mtu"] == 1400  # as the finding says


def test_settings_of_tcp_and_ipv6(lab: Lab) -> None:
    lab.sysctl("net.ipv4.tcp_mtu_probing", "2")
    assert lab.found() == [("warning", "mtu_probing")]
    lab.sysctl("net.ipv4.tcp_mtu_probing", "1")
    assert lab.found() == []
    lab.sysctl("net.ipv4.ip_no_pmtu_disc", "1")
    assert lab.found() == [("warning", "discovery")]
    lab.sysctl("net.ipv4.ip_no_pmtu_disc", "0")
    lab.ip("addr", "add", "2001:db8::1/64", "dev", "eth0", "nodad")
    assert lab.found(1200) == [("refused", "ipv6")]
    lab.sysctl("net.ipv6.conf.eth0.mtu", "1400")
    assert lab.found() == [("warning", "router")]


def test_routes_with_an_mtu_of_their_own_and_the_default_route(lab: Lab) -> None:
    lab.ip("route", "add", "default", "via", "192.0.2.2", "mtu", "1400")
    assert lab.found() == []  # that of a gateway keeps what it has
    assert lab.found(scope="all") == [("refused", "management"), ("warning", "route")]
    lab.ip("route", "change", "192.0.2.0/24", "dev", "eth0", "src", "192.0.2.1", "advmss", "1400")
    assert lab.found() == [("warning", "route")]


def test_a_path_mtu_that_the_kernel_has_learned(lab: Lab) -> None:
    lab.ip("link", "set", "eth0", "mtu", "9000")
    lab.ip("link", "set", "eth0", "mtu", "9000", host=lab.b)
    run("ip", "netns", "exec", lab.b, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    lab.ip("link", "add", "far", "mtu", "1500", "type", "bridge", host=lab.b)
    lab.ip("addr", "add", "198.51.100.1/24", "dev", "far", host=lab.b)
    lab.ip("link", "set", "far", "up", host=lab.b)
    lab.ip("neigh", "add", "198.51.100.9", "lladdr", "02:00:00:00:00:09", "dev", "far", host=lab.b)
    lab.ip("route", "add", "198.51.100.0/24", "via", "192.0.2.2")
    big = ["ip", "netns", "exec", lab.a, "ping", "-c", "1", "-W", "1", "-M", "do", "-s", "4000", "198.51.100.9"]
    subprocess.run(big, check=False, capture_output=True)
    assert "mtu 1500" in run("ip", "-n", lab.a, "route", "get", "198.51.100.9")
    assert lab.found(9000, scope="all") == []  # not a raise
    lab.ip("link", "set", "eth0", "mtu", "8000")
    # The router takes 9000, which nobody has asked it.
    assert lab.found(9000, scope="all") == [("warning", "path_mtu_cache"), ("refused", "neighbour")]
    assert lab.found(9000) == [("warning", "neighbour")]  # not in the subnets of the data


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    """A folder to be /etc, with what programs need of it."""
    folder = tmp_path / "etc"
    folder.mkdir()
    for name in ("passwd", "group", "nsswitch.conf", "ld.so.cache"):
        if Path("/etc", name).exists():
            (folder / name).write_bytes(Path("/etc", name).read_bytes())
    return folder


@pytest.mark.needs("patch")
def test_the_owner_of_the_mtu_and_the_lines_that_keep_the_change(lab: Lab, etc: Path) -> None:
    (etc / "netplan").mkdir()
    text = "network:\n  ethernets:\n    eth0:\n      mtu: 1500\n      addresses: [192.0.2.1/24]\n"
    (etc / "netplan/01.yaml").write_text(text)
    document = lab.document(folder=etc)
    findings = [(each["severity"], each["what"], each["found"]) for each in document["findings"]]
    claim = "netplan, which sets 1500 (network.ethernets.eth0.mtu in /etc/netplan/01.yaml:4)"
    assert findings == [("warning", "owner", claim)]
    [change] = document["changes"]
    subprocess.run(["patch", "-p0", etc / "netplan/01.yaml"], input=change["diff"], text=True, check=True)
    assert (etc / "netplan/01.yaml").read_text() == text.replace("1500", "9000")
    again = lab.document(folder=etc)
    assert (again["verdict"], again["findings"], again["changes"]) == ("clear", [], [])


def test_passwords_of_networkmanager_are_not_read(lab: Lab, etc: Path) -> None:
    folder = etc / "NetworkManager/system-connections"
    folder.mkdir(parents=True)
    lines = ["[connection]", "id=lan", "uuid=5a", "interface-name=eth0", "[ethernet]", "mtu=1400", "[802-1x]"]
    (folder / "lan.nmconnection").write_text(
        "\n".join([*lines, "password=hidden", "private-key-password = hidden", ""])
    )
    assert "hidden" not in str(lab.facts(etc))
    document = lab.document(folder=etc)
    assert [each["what"] for each in document["findings"]] == ["owner"]
    assert document["changes"][0]["reload"][0][:5] == ["nmcli", "connection", "modify", "uuid", "5a"]


def test_only_programs_of_the_host_s_own_network_count(lab: Lab, tmp_path: Path) -> None:
    program = tmp_path / "ceph-osd"
    shutil.copy(shutil.which("sleep") or "", program)
    for namespace, expected in ((lab.b, []), (lab.a, [("warning", "heartbeats")])):
        with subprocess.Popen(["ip", "netns", "exec", namespace, program, "60"]) as started:
            while Path(f"/proc/{started.pid}/comm").read_text() != "ceph-osd\n":
                time.sleep(0.01)
            assert lab.found() == expected
            started.kill()


@pytest.mark.needs("ssh", "sshd")
def test_the_interface_of_the_ssh_session_is_refused_unless_forced(there: Site, tmp_path: Path) -> None:
    hosts = [{"name": name, "interface": "eth0"} for name in there.hosts]
    inventory = tmp_path / "hosts.yaml"
    inventory.write_text(json.dumps({"hosts": hosts, "options": list(there.options)}))
    command = [sys.executable, "-m", "framegauge", "rollout", "preflight", "--hosts", str(inventory), "--mtu", "4200"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    document = json.loads(done.stdout)
    jsonschema.validate(document, json_schema())
    assert (done.returncode, document["verdict"]) == (1, "refused")
    assert [(each["where"], each["what"]) for each in document["findings"] if each["severity"] == "refused"] == [
        ("alpha/eth0", "management"),
        ("beta/eth0", "management"),
        ("alpha/eth0", "neighbour"),  # the machine that asks
    ]
    address = there.hosts["alpha"].address
    assert document["findings"][0]["found"] == f"the interface of this ssh session ({address})"
    done = subprocess.run(
        [*command, "--force", "management", "--force", "neighbour"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == (
        "MTU 4200 on alpha/eth0 (now 1500), beta/eth0 (now 1500): possible, with warnings"
    )
    assert "  warning alpha/eth0: management: found the interface of this ssh session" in done.stdout


def test_a_host_that_cannot_be_asked_is_no_host_that_passed(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.yaml"
    inventory.write_text(json.dumps({"hosts": [{"name": "nobody", "ssh": "nobody.invalid", "interface": "eth0"}]}))
    command = [sys.executable, "-m", "framegauge", "rollout", "preflight", "--hosts", str(inventory), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    document = json.loads(done.stdout)
    assert (done.returncode, document["verdict"]) == (2, "could_not_tell")
    assert [(each["where"], each["what"]) for each in document["findings"]] == [("nobody", "host")]
    assert "nobody" in document["hosts"][0]["error"]
