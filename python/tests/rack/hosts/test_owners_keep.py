"""Owners that run: what a renewal of DHCP or a reload of ifupdown makes of a roll-out, before and after `persist`."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from helpers import dhcp, sshd
from helpers.rollouts import done, file_of, until
from helpers.sshd import run
from helpers.switched import Lab, lab

from framegauge.rollout.owners.dhcp import server_lines

pytestmark = pytest.mark.needs("ssh", "sshd", "ethtool", "dnsmasq", "dhclient", "ifup", "busybox")
RENEW_SECONDS = 3  # dnsmasq takes no less
OTHER_ADDRESS, GATEWAY = "10.77.0.101", "10.77.0.250"
STANZA = f"""\
iface eth1 inet static
    address 10.77.0.2/24
    gateway {GATEWAY}
    up ip route add 198.51.100.0/24 via {GATEWAY} dev eth1
"""


def etc_of(folder: Path) -> Path:
    """A host's own /etc with the files of Debian's dhclient, and of ifupdown."""
    sshd.own_etc(folder)
    (folder / "network/interfaces.d").mkdir(parents=True)
    shutil.copytree("/etc/dhcp", folder / "dhcp")
    for name in ("if-up.d", "if-down.d", "if-pre-up.d", "if-post-down.d"):
        (folder / "network" / name).mkdir()
    return folder


def bound_anew(server: dhcp.Server, log: Path, address: str) -> None:
    """The client of host a renews its lease, is refused, and begins a new one with another address."""
    before = log.read_text().count(f"BOUND {address}")
    server.give({"a": address})
    assert until(lambda: log.read_text().count(f"BOUND {address}") > before, dhcp.PATIENCE_SECONDS)


def mtu_of_route(found: Lab, destination: str) -> int | None:
    """What a route of host b asks for."""
    [route] = json.loads(found.ip("b", "-j", "route", "show", destination))
    mtu: int | None = (route.get("metrics") or [{}])[0].get("mtu")
    return mtu


def test_what_owners_did_they_do_no_more(tmp_path: Path) -> None:
    """Host a has a dhclient, and a server that says 1500; host b has ifupdown."""
    names = ["a", "b"]
    etc = {name: etc_of(tmp_path / name / "etc") for name in names}
    (etc["b"] / "network/interfaces").write_text(STANZA)
    (tmp_path / "state").mkdir()
    log = tmp_path / "scripts"
    log.touch()
    # At the end of each run of dhclient's script (dhclient-script(8)).
    (etc["a"] / "dhcp/dhclient-exit-hooks.d/tell").write_text(f'echo "$reason $new_ip_address" >>{log}\n')
    (tmp_path / "site").mkdir()
    with (
        sshd.site(tmp_path / "site", names, etc=etc) as site,
        lab(names, {name: host.namespace for name, host in site.hosts.items()}) as found,
        dhcp.server(found, tmp_path / "server", renew_seconds=RENEW_SECONDS) as server,
        dhcp.dhclient(site.hosts["a"].process, tmp_path / "client") as client,
    ):

        def reload(program: str) -> None:
            inside = ["nsenter", f"--target={site.hosts['b'].process}", "--mount", "--net"]
            run(*inside, program, f"--state-dir={tmp_path}/state", "eth1")

        # b's ifupdown makes two routes through a gateway.
        found.ip("b", "addr", "flush", "dev", "eth1", "scope", "global")
        reload("ifup")
        assert [mtu_of_route(found, to) for to in ("default", "198.51.100.0/24")] == [None, None]
        # A real renewal of a's lease puts 1500 back.
        found.set_mtu("a", 9000)
        bound_anew(server, log, OTHER_ADDRESS)
        assert found.mtu("a") == 1500
        bound_anew(server, log, found.address("a"))

        path = file_of(found, tmp_path, hosts=names, options=site.options, more="families: 4\nforce: [neighbour]")
        code, said = done("apply", path)
        assert code == 0, said
        code, said = done("persist", path)
        assert (code, said.count(": as asked")) == (0, 2), said
        assert "supersede interface-mtu 9000;" in (etc["a"] / "dhcp/dhclient.conf").read_text()

        # The client that runs begins a new lease, and one that starts asks for its old one.
        bound_anew(server, log, OTHER_ADDRESS)
        assert found.mtu("a") == 9000
        bound_anew(server, log, found.address("a"))
        client.stop()
        hook = etc["a"] / "dhcp/dhclient-enter-hooks.d/framegauge-mtu-eth1"
        hook.rename(tmp_path / "aside")
        client.start()
        assert found.mtu("a") == 9000
        (tmp_path / "aside").rename(hook)
        # b's interface is taken down and made anew.
        reload("ifdown")
        found.set_mtu("b", 1500)
        reload("ifup")
        assert found.mtu("b") == 9000
        assert [mtu_of_route(found, to) for to in ("default", "198.51.100.0/24")] == [1500, 1500]
        code, said = done("status", path, "--prove")
        assert (code, said.count(": as asked")) == (0, 2), said
        code, said = done("persist", path, "--undo")
        assert (code, hook.exists()) == (0, False), said
        assert (etc["b"] / "network/interfaces").read_text() == STANZA
        assert "interface-mtu 9000" not in (etc["a"] / "dhcp/dhclient.conf").read_text()


def test_the_line_for_a_server_s_operator_has_its_clients_keep_it(tmp_path: Path) -> None:
    """udhcpc has no file of its own for it."""
    [line] = re.findall(r"dnsmasq: (\S+);", server_lines(9000))
    with (
        lab(["a"]) as found,
        dhcp.server(found, tmp_path / "server") as server,
        dhcp.udhcpc(server, "a") as client,
    ):
        found.set_mtu("a", 9000)
        assert client.renewed()
        assert found.mtu("a") == 1500
        server.tell(line)
        assert client.renewed()
        assert found.mtu("a") == 9000
