"""Networks of namespaces with what other people's networks have: policers, filters, bundles, devices that lie."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from framegauge.check import open as check_open, plan as check_plan, run as check

Json = dict[str, Any]

# A device with one TUN interface: it reads packets, reports those above `above` as too big for `named`, and writes back
# what is not above `limit`. LIMIT ABOVE NAMED
DEVICE = """
import fcntl, os, socket, struct, sys
limit, above, named = map(int, sys.argv[1:])
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH", b"tun0", 0x1001))

def checksum(data):
    data += b"\\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF

def too_big(packet):
    body = struct.pack("!BBHHH", 3, 4, 0, 0, named) + packet[:548]
    body = body[:2] + struct.pack("!H", checksum(body)) + body[4:]
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 0, 0, 64, 1, 0, socket.inet_aton("10.9.9.9"), packet[12:16])
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + body

print("ready", flush=True)
while True:
    packet = os.read(tun, 70000)
    if packet[0] >> 4 != 4:
        continue
    if len(packet) > above:
        os.write(tun, too_big(packet))
    if len(packet) <= limit:
        os.write(tun, packet)
"""


class Network:
    """Namespaces by short names, joined by veth pairs whose ends are named after the other node: to-b."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._programs: list[subprocess.Popen[str]] = []

    def name(self, node: str) -> str:
        """The namespace's own name: no other test has it."""
        return f"fgsit-{os.getpid()}-{node}"

    def nodes(self, *nodes: str, routers: tuple[str, ...] = ()) -> None:
        """Makes them; duplicate addresses are not looked for, and routers forward."""
        for node in (*nodes, *routers):
            _run("ip", "netns", "add", self.name(node))
            self._names.append(node)
            self.ip(node, "link set lo up")
            settings = {"net.ipv4.conf.all.rp_filter": 0, "net.ipv4.conf.default.rp_filter": 0}
            settings |= {f"net.ipv6.conf.{scope}.accept_dad": 0 for scope in ("all", "default")}
            if node in routers:
                settings |= {"net.ipv4.ip_forward": 1, "net.ipv6.conf.all.forwarding": 1}
            self.shell(node, "; ".join(f"sysctl -qw {key}={value}" for key, value in settings.items()))

    def link(self, one: str, other: str, mtu: int = 9000, other_mtu: int | None = None, *, end: str = "") -> None:
        """A veth pair: to-OTHER is the interface in `one`, and the reverse; without aggregates, whose size is none. `end`:
        behind both names, where two links join the same nodes."""
        ends = (one, f"to-{other}{end}", mtu), (other, f"to-{one}{end}", mtu if other_mtu is None else other_mtu)
        (_, device, _), (_, peer, _) = ends
        _run("ip", "link", "add", device, "netns", self.name(one), "type", "veth", "peer", "name", peer, "netns",
             self.name(other))  # fmt: skip
        for node, interface, size in ends:
            self.ip(node, f"link set {interface} mtu {size} up")
            self.shell(node, f"ethtool -K {interface} tso off gso off gro off >/dev/null 2>&1 || true")

    def ip(self, node: str, *lines: str) -> None:
        """Lines of `ip` in a node."""
        for line in lines:
            _run("ip", "-n", self.name(node), *line.split())

    def shell(self, node: str, text: str) -> str:
        """A shell in a node; what it prints."""
        return _run("ip", "netns", "exec", self.name(node), "sh", "-ec", text)

    def device(self, node: str, source: str, limit: int, above: int, named: int) -> None:
        """All that a router takes in by `source` goes through a device (DEVICE) before it is routed."""
        words = ["ip", "netns", "exec", self.name(node), sys.executable, "-c", DEVICE, *map(str, (limit, above, named))]
        program = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self._programs.append(program)
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        self.ip(node, "link set tun0 mtu 9100 up", "addr add 10.9.9.1/30 dev tun0")
        self.ip(node, f"rule add iif {source} lookup 10 pref 10", "route add default dev tun0 table 10")

    def check(self, *hosts: str, target: int = 9000, families: tuple[int, ...] = (4,)) -> Json:
        """The document of a check of these hosts (NODE or NODE%INTERFACE), at any rate."""
        named = {self.name(host.partition("%")[0]): host.partition("%")[0] for host in hosts}
        words = [
            f"netns:{self.name(node)}{sign}{interface}"
            for node, sign, interface in (host.partition("%") for host in hosts)
        ]
        asked = check_plan.Asked(target, families, bits_per_second=float("inf"))
        with check_open.opened(words, None, lambda _: None) as (members, _):
            document = check.run(check_plan.prepare(members, asked), asked).document
        return _renamed(document, {f"netns:{name}": node for name, node in named.items()})

    def close(self) -> None:
        """Ends its programs and removes the nodes."""
        for program in self._programs:
            program.kill()
            program.wait()
            if program.stdout is not None:
                program.stdout.close()
        for node in self._names:
            subprocess.run(["ip", "netns", "del", self.name(node)], check=False, capture_output=True)


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """The document with the short names of hosts, wherever it names one."""
    if isinstance(value, dict):
        return {key: _renamed(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner, names) for inner in value]
    if isinstance(value, str):
        for name, short in names.items():
            value = value.replace(name, short)
    return value


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return done.stdout


@contextmanager
def network() -> Iterator[Network]:
    """An empty one; gone afterwards, with all that runs in it."""
    own = Network()
    try:
        yield own
    finally:
        own.close()
