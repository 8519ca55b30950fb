"""A lab for roll-outs: hosts that are network namespaces, on two switches, which are Linux bridges with a trunk.

Frames above the MTU of a port are dropped there without a word, as switches do. So nothing may leave a host as an
aggregate, which a veth would take at any size: segmentation is off.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers.sshd import run
from helpers.support import PATIENCE_SECONDS

PORT_MTU = 9000
LOAD = Path(__file__).with_name("tls_load.py")


@dataclass(frozen=True)
class Lab:
    """Namespaces of hosts by name, each with `eth1` on a switch; `switch` is the namespace of both."""

    hosts: Mapping[str, str]
    switch: str

    def ip(self, name: str, *words: str) -> str:
        return run("ip", "-n", self.hosts[name], *words)

    def inside(self, name: str, *words: str) -> str:
        """What a program in a host prints."""
        return run("ip", "netns", "exec", self.hosts[name], *words)

    def mtu(self, name: str, device: str = "eth1") -> int:
        [link] = json.loads(self.ip(name, "-j", "link", "show", device))
        return int(link["mtu"])

    def set_mtu(self, name: str, mtu: int) -> None:
        self.ip(name, "link", "set", "eth1", "mtu", str(mtu))

    def set_port(self, name: str, mtu: int) -> None:
        """The MTU of the switch's port to a host."""
        run("ip", "-n", self.switch, "link", "set", self.port(name), "mtu", str(mtu))

    def cut(self, name: str) -> None:
        run("ip", "-n", self.switch, "link", "set", self.port(name), "down")

    def mend(self, name: str) -> None:
        run("ip", "-n", self.switch, "link", "set", self.port(name), "up")

    def port(self, name: str) -> str:
        return f"p{list(self.hosts).index(name)}"

    def address(self, name: str, family: int = 4) -> str:
        number = list(self.hosts).index(name) + 1
        return f"10.77.0.{number}" if family == 4 else f"fd77::{number}"

    def route_mtus(self, name: str) -> set[int]:
        """What the routes of a host to the others ask for; 0 for nothing."""
        found = set()
        for family in ("-4", "-6"):
            for route in json.loads(self.ip(name, "-j", family, "route", "show", "dev", "eth1")):
                metrics = (route.get("metrics") or [{}])[0]
                found.add(int(metrics.get("mtu", 0)))
        return found

    def packet(self, name: str) -> int:
        """The largest that a host sends to the others."""
        return min(mtu or self.mtu(name) for mtu in self.route_mtus(name))

    def plug(self, name: str, mtu: int = 1500) -> None:
        """Gives a host its interface and its addresses, as when it starts."""
        namespace, port = self.hosts[name], self.port(name)
        inside = ("ip", "-n", self.switch, "link")
        run(*inside, "add", port, "mtu", str(PORT_MTU), "type", "veth", "peer", "name", "eth1", "netns", namespace)
        run(*inside, "set", port, "master", f"s{list(self.hosts).index(name) % 2}", "up")
        self.ip(name, "link", "set", "eth1", "mtu", str(mtu))
        run("ip", "netns", "exec", namespace, "ethtool", "-K", "eth1", "tso", "off", "gso", "off", "gro", "off")
        self.ip(name, "addr", "add", f"{self.address(name)}/24", "dev", "eth1")
        self.ip(name, "addr", "add", f"{self.address(name, 6)}/64", "dev", "eth1", "nodad")
        self.ip(name, "link", "set", "eth1", "up")

    def unplug(self, name: str) -> None:
        """Takes its interface away."""
        run("ip", "-n", self.switch, "link", "del", self.port(name))

    def is_old(self, mtu: int = 1500) -> bool:
        return all(self.mtu(name) == mtu and self.route_mtus(name) == {0} for name in self.hosts)


@contextlib.contextmanager
def lab(names: Sequence[str], namespaces: Mapping[str, str] | None = None, mtu: int = 1500) -> Iterator[Lab]:
    """Builds it; with `namespaces` in those, by host. Everything goes after."""
    tag = secrets.token_hex(2)
    found = Lab(dict(namespaces or {name: f"fgr{tag}-{name}" for name in names}), f"fgr{tag}-sw")
    with contextlib.ExitStack() as undo:
        for each in [found.switch, *([] if namespaces else found.hosts.values())]:
            run("ip", "netns", "add", each)
            undo.callback(run, "ip", "netns", "del", each)
            run("ip", "-n", each, "link", "set", "lo", "up")
        inside = ("ip", "-n", found.switch, "link")
        run(*inside, "add", "t0", "mtu", str(PORT_MTU), "type", "veth", "peer", "name", "t1", "mtu", str(PORT_MTU))
        for number in range(2):
            run(*inside, "add", f"s{number}", "mtu", str(PORT_MTU), "type", "bridge")
            run(*inside, "set", f"t{number}", "master", f"s{number}", "up")
            run(*inside, "set", f"s{number}", "up")
        for name in found.hosts:
            undo.callback(subprocess.run, [*inside, "del", found.port(name)], check=False, capture_output=True)
            found.plug(name, mtu)
        yield found


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of over 9,000 bytes, as it is sent, and its key."""
    place, key, der = folder / "server.pem", folder / "server.key", folder / "server.der"
    names = ",".join(["DNS:server.test", *(f"DNS:a-long-name-of-host-{number}.server.test" for number in range(260))])
    run(
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "9",
        "-subj", "/CN=server.test", "-addext", f"subjectAltName={names}", "-keyout", str(key), "-out", str(place),
    )  # fmt: skip
    run("openssl", "x509", "-in", str(place), "-outform", "DER", "-out", str(der))
    assert der.stat().st_size > 9_000
    return place, key


@contextlib.contextmanager
def load(lab: Lab, folder: Path, server: str, clients: Sequence[str]) -> Iterator[dict[str, list[str]]]:
    """Clients that ask a TLS server over IPv4 and IPv6 as long as the block lasts; after it, what failed, by client."""
    cert, key = certificate(folder)
    failed: dict[str, list[str]] = {}
    with contextlib.ExitStack() as undo:
        serving = _start(lab, server, "serve", str(cert), str(key), "4433", undo=undo)
        addresses = [lab.address(server, family) for family in (4, 6)]
        asking = {name: _start(lab, name, "ask", str(cert), "4433", *addresses, undo=undo) for name in clients}
        yield failed
        for name, process in asking.items():
            out, _ = process.communicate(timeout=PATIENCE_SECONDS)
            found = json.loads(out)
            assert all(each["answered"] + len(each["failed"]) > 0 for each in found.values()), found
            failed[name] = [line for each in found.values() for line in each["failed"]]
        serving.communicate(timeout=PATIENCE_SECONDS)


def _start(lab: Lab, name: str, *words: str, undo: contextlib.ExitStack) -> subprocess.Popen[str]:
    command = ["ip", "netns", "exec", lab.hosts[name], sys.executable, str(LOAD), *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    undo.callback(process.wait)
    undo.callback(process.kill)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process
