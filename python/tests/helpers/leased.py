"""A host for leases: an interface of MTU 9000 in a namespace, what stands on it, and everything that they have as text."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from helpers.sshd import run

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent

__all__ = ["KINDS", "Bed", "agent_in", "bed", "is_made"]

# Kinds of interfaces that stand on `eth1`, with what `ip link add` takes behind their name.
KINDS = {
    "vlan": "link eth1 name up0 type vlan id 7",
    "macvlan": "link eth1 name up0 type macvlan mode bridge",
    "macvtap": "link eth1 name up0 type macvtap mode bridge",
    "ipvlan": "link eth1 name up0 type ipvlan mode l3",
    "macsec": "link eth1 name up0 type macsec",
    "gre": "name up0 type gre remote 10.9.0.2 local 10.9.0.1 dev eth1",
    "vxlan": "name up0 type vxlan id 5 dstport 4789 dev eth1 remote 10.9.0.2",
    "bridge": "name up0 type bridge",
    "bond": "name up0 type bond",
}
# An address is tentative until a helper of the kernel had a CPU, also without looking for others that have it.
NEW_SECONDS = 10.0
CONF = "grep -H . /proc/sys/net/ipv6/conf/*/* /proc/sys/net/ipv6/neigh/*/* 2>/dev/null | grep -v stable_secret"


@dataclass(frozen=True)
class Bed:
    """Two networks: of the host, and of a container of it."""

    host: str
    container: str

    def ip(self, words: str, inside: str | None = None) -> str:
        return run("ip", "-n", inside or self.host, *words.split())

    def sysctl(self, setting: str) -> None:
        run("ip", "netns", "exec", self.host, "sysctl", "-qw", setting)

    def mtu(self, interface: str = "eth1", inside: str | None = None) -> int:
        [link] = json.loads(self.ip(f"-j link show {interface}", inside))
        return int(link["mtu"])

    def processes(self) -> list[int]:
        """All that run there: the agent, and its leases."""
        return [int(pid) for pid in run("ip", "netns", "pids", self.host).split()]

    def state(self) -> str:
        """All that a lease may touch of both networks, by its own doing or the kernel's, once no address is new."""
        until = time.monotonic() + NEW_SECONDS
        while any(" tentative" in self.ip("-6 addr", each) for each in (self.host, self.container)):
            if time.monotonic() > until:
                break
            time.sleep(0.02)
        parts = []
        for name in (self.host, self.container):
            links = json.loads(self.ip("-d -j link", name))
            keys = ("ifname", "mtu", "gso_max_size", "gro_max_size", "gso_ipv4_max_size", "gro_ipv4_max_size")
            parts += [str([link.get(key) for key in keys]) for link in links]
            parts += [self.ip(words, name) for words in ("-6 addr", "addr", "-6 neigh show nud permanent")]
            parts.append(self.ip("-6 neigh show proxy", name))
            for family in ("-4", "-6"):
                parts += sorted(self.ip(f"{family} route show table all", name).splitlines())
            parts.append(run("ip", "netns", "exec", name, "sh", "-c", CONF))
        return "\n".join(parts)


@contextlib.contextmanager
def bed() -> Iterator[Bed]:
    name = f"fgw{secrets.token_hex(3)}"
    made = Bed(name, f"{name}c")
    try:
        for each in (made.host, made.container):
            run("ip", "netns", "add", each)
            # Else addresses that come back are looked for on the link, which takes a second or two.
            for place in ("all", "default"):
                run("ip", "netns", "exec", each, "sysctl", "-qw", f"net.ipv6.conf.{place}.accept_dad=0")
        for words in (
            "link add eth1 mtu 9000 type veth peer name far mtu 9000", "link set far up", "link set eth1 up",
            "addr add 10.9.0.1/24 dev eth1", "addr add fd67::1/64 dev eth1 nodad",
        ):  # fmt: skip
            made.ip(words)
        yield made
    finally:
        for each in (made.container, made.host):
            subprocess.run(["ip", "netns", "del", each], check=False, capture_output=True)


@contextlib.contextmanager
def agent_in(namespace: str) -> Iterator[Agent]:
    agent = Agent.open([find_agent(), "host", "--netns", namespace])
    try:
        yield agent
    finally:
        agent.close()


@cache
def _made() -> frozenset[str]:
    script = "ip link add eth1 type veth peer name far\n"
    for kind, words in KINDS.items():
        script += f"ip link add {words} 2>/dev/null && echo {kind} && ip link del up0\n"
    done = subprocess.run(["unshare", "-n", "sh", "-c", script], capture_output=True, text=True, check=False)
    return frozenset(done.stdout.split())


def is_made(kind: str) -> bool:
    """Whether this kernel makes interfaces of a kind."""
    return kind in _made()
