"""What `framegauge wire` says of VXLAN and SRv6, against the packets that the kernel's own send."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from framegauge.cli import encapsulations as wire

pytestmark = pytest.mark.needs("ip")

# Sends one packet of the inner MTU through the tunnel, tries one byte more, and captures what leaves below it.
MEASURE = """
import errno, json, select, socket, sys
inner, v6 = int(sys.argv[1]), sys.argv[2] == "6"
below = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
below.bind(("net0", 3))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.setsockopt(socket.IPPROTO_IP, 10, 3)  # MTU_DISCOVER: PROBE
udp.connect(("10.99.0.2", 9))
try:
    udp.send(bytes(inner + 1 - 28))
    refused = False
except OSError as error:
    refused = error.errno == errno.EMSGSIZE
udp.send(bytes(inner - 28))
outer = 0
while outer < inner and select.select([below], [], [], 5)[0]:
    packet = below.recv(70000)
    outer = int.from_bytes(packet[4:6], "big") + 40 if v6 else int.from_bytes(packet[2:4], "big")
print(json.dumps({"outer": outer, "refused": refused}))
"""


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def names() -> Iterator[list[str]]:
    own = [f"fgtest-{os.getpid()}-{each}" for each in "ab"]
    try:
        for name in own:
            run("ip", "netns", "add", name)
        yield own
    finally:
        for name in own:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@pytest.mark.parametrize(("family", "mtu"), [(4, 1500), (4, 9000), (6, 1500), (6, 9000)])
def test_a_packet_of_the_inner_mtu_fills_the_underlay(names: list[str], family: int, mtu: int) -> None:
    left, right = names
    address = ["10.98.0.{}/24", "fd98::{}/64"][family == 6]
    run("ip", "-n", left, "link", "add", "net0", "type", "veth", "peer", "name", "net0", "netns", right)
    for last, name in enumerate(names, 1):
        run("ip", "-n", name, "addr", "add", address.format(last), "dev", "net0", *(["nodad"] if family == 6 else []))
        run("ip", "-n", name, "link", "set", "net0", "mtu", str(mtu), "up")
    remote = address.format(2).partition("/")[0]
    inner = wire.ask(mtu, ["vxlan", f"ipv{family}"], None)["inner_mtu"]
    run("ip", "-n", left, "link", "add", "over", "type", "vxlan", "id", "9", "dstport", "4789", "remote", remote)
    run("ip", "-n", left, "link", "set", "over", "mtu", str(inner), "up")
    run("ip", "-n", left, "addr", "add", "10.99.0.1/24", "dev", "over")
    run("ip", "-n", left, "neigh", "add", "10.99.0.2", "lladdr", "02:00:00:00:00:02", "dev", "over")
    found = run("ip", "netns", "exec", left, sys.executable, "-c", MEASURE, str(inner), str(family))
    assert json.loads(found) == {"outer": mtu, "refused": True}


@pytest.mark.parametrize("segments", [1, 2, 3])
def test_a_packet_behind_segment_routing_fills_the_link(names: list[str], segments: int) -> None:
    left, right = names
    run("ip", "-n", left, "link", "add", "net0", "type", "veth", "peer", "name", "net0", "netns", right)
    for last, name in enumerate(names, 1):
        run("ip", "-n", name, "addr", "add", f"fd98::{last}/64", "dev", "net0", "nodad")
        run("ip", "-n", name, "link", "set", "net0", "up")
    run("ip", "-n", left, "addr", "add", "10.99.0.1/24", "dev", "net0")
    inner = wire.ask(1500, [f"srv6:{segments}"], None)["inner_mtu"]
    # The first segment is the neighbour; nothing has to read the others.
    path = ",".join(["fd98::2", *(f"fd97::{each}" for each in range(2, segments + 1))])
    run("ip", "-n", left, "route", "add", "10.99.0.2/32", "encap", "seg6", "mode", "encap", "segs", path, "dev", "net0")
    found = run("ip", "netns", "exec", left, sys.executable, "-c", MEASURE, str(inner), "6")
    assert json.loads(found) == {"outer": 1500, "refused": True}
