"""Captures between real network namespaces, beside a tcpdump; on racks, of aggregates, until trouble, and interrupted."""

from __future__ import annotations

import json
import re
import secrets
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers.schemas import conforms
from helpers.support import PATIENCE_SECONDS

from framegauge.capture.schema import json_schema

MAIN = [sys.executable, "-m", "framegauge"]
MIB = 1 << 20
SERVER = """
import socket, sys, time
address, pause = sys.argv[1], float(sys.argv[2])
with socket.create_server((address, 5001), family=socket.AF_INET6 if ":" in address else socket.AF_INET) as server:
    print("ready", flush=True)
    one, _ = server.accept()
    time.sleep(pause)
    while one.recv(1 << 20):
        pass
"""
CLIENT = """
import socket, sys
one = socket.create_connection((sys.argv[1], 5001))
one.sendall(b"x" * int(sys.argv[2]))
one.close()
"""

pytestmark = pytest.mark.needs("tcpdump", "nft")


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@dataclass(frozen=True)
class Pair:
    """Two network namespaces on one link."""

    names: tuple[str, str]
    addresses: tuple[str, str] = ("10.9.0.1", "10.9.0.2")
    addresses6: tuple[str, str] = ("fd09::1", "fd09::2")

    def transfer(self, size: int, to: str | None = None, pause: float = 0.0) -> None:
        """Sends so many bytes from the first to the second, which reads them after a pause of some seconds."""
        address = to or self.addresses[1]
        enter = ["ip", "netns", "exec"]
        server = subprocess.Popen(
            [*enter, self.names[1], sys.executable, "-c", SERVER, address, str(pause)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        run(*enter, self.names[0], sys.executable, "-c", CLIENT, address, str(size))
        assert server.wait(60) == 0


@pytest.fixture
def pair() -> Iterator[Pair]:
    tag = secrets.token_hex(3)
    one, two = names = (f"fgc{tag}a", f"fgc{tag}b")
    for name in names:
        run("ip", "netns", "add", name)
    try:
        run("ip", "-n", one, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", two)
        found = Pair(names)
        for name, four, six in zip(names, found.addresses, found.addresses6, strict=True):
            run("ip", "-n", name, "addr", "add", f"{four}/24", "dev", "eth0")
            run("ip", "-n", name, "addr", "add", f"{six}/64", "dev", "eth0", "nodad")
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "link", "set", "eth0", "up")
        yield found
    finally:
        for name in names:
            run("ip", "netns", "del", name)


class Capturing:
    """`framegauge capture` under way: it has begun on all hosts."""

    def __init__(self, *words: object, hosts: int = 1) -> None:
        self.process = subprocess.Popen(
            [*MAIN, "capture", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        self.said: list[str] = []
        while sum(": capturing on " in line for line in self.said) < hosts:
            line = self.process.stderr.readline()
            assert line, "".join(self.said)
            self.said.append(line)

    def end(self, code: int = 0, interrupt: bool = True) -> str:
        """What it said in all."""
        if interrupt:
            self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        said = "".join(self.said) + err + out
        assert self.process.returncode == code, said
        return said


def packets(path: Path) -> list[tuple[bytes, int]]:
    """The packets of a pcapng of ours: what was kept, and how long each was."""
    data, place, found = path.read_bytes(), 0, []
    while place < len(data):
        kind, length = struct.unpack_from("<II", data, place)
        if kind == 6:
            kept, whole = struct.unpack_from("<II", data, place + 20)
            found.append((data[place + 28 : place + 28 + kept], whole))
        place += length
    return found


def tcpdumped(path: Path) -> list[tuple[bytes, int]]:
    data, place, found = path.read_bytes(), 24, []
    while place < len(data):
        kept, whole = struct.unpack_from("<II", data, place + 8)
        found.append((data[place + 16 : place + 16 + kept], whole))
        place += 16 + kept
    return found


def tcp_at(kept: bytes) -> int:
    """Where TCP begins in a frame of IPv4 or IPv6; 0 in others. Linux puts a jumbogram's header before it (RFC 2675)."""
    if kept[12:14] == b"\x86\xdd":
        return {6: 54, 0: 62}.get(kept[20], 0)
    return 34 if kept[12:14] == b"\x08\x00" else 0


def of_port(found: list[tuple[bytes, int]], port: int) -> list[tuple[bytes, int]]:
    """TCP from or to a port."""
    return [
        (kept, whole)
        for kept, whole in found
        if (start := tcp_at(kept)) and port in struct.unpack_from("!HH", kept, start)
    ]


def is_icmp(kept: bytes) -> bool:
    """ICMP, or ICMPv6, also behind the router alert of a group's report (RFC 3810)."""
    if kept[12:14] == b"\x86\xdd":
        return kept[54 if kept[20] == 0 else 20] == 58
    return kept[12:14] == b"\x08\x00" and kept[23] == 1


def document(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    conforms(found, json_schema())
    return found


def test_the_headers_are_those_that_tcpdump_sees_beside_it(pair: Pair, tmp_path: Path) -> None:
    dumps = []
    for name in pair.names:
        words = ["ip", "netns", "exec", name, "tcpdump", "-i", "eth0", "-s", "192", "-B", "65536", "-U"]
        dump = subprocess.Popen(
            [*words, "-w", str(tmp_path / f"{name}.pcap"), "tcp", "port", "5001"], stderr=subprocess.PIPE, text=True
        )
        assert dump.stderr is not None
        while "listening on" not in dump.stderr.readline():
            pass
        dumps.append(dump)
    capturing = Capturing(*(f"netns:{name}" for name in pair.names), "--for", "60s", "--out", tmp_path / "out", hosts=2)
    pair.transfer(50 * MIB)
    time.sleep(1)  # a packet waits for tcpdump, too
    said = capturing.end(130)
    for dump in dumps:
        dump.send_signal(signal.SIGINT)
    for name, dump in zip(pair.names, dumps, strict=True):
        errors = dump.communicate(timeout=PATIENCE_SECONDS)[1]
        about, theirs = document(tmp_path / "out", name), tcpdumped(tmp_path / f"{name}.pcap")
        ours = of_port(packets(tmp_path / "out" / f"{name}.pcapng"), 5001)
        if about["dropped_packets"] == 0 and re.search(r"^0 packets dropped by kernel", errors, re.MULTILINE):
            # Two taps of one interface may see packets of several CPUs in another order.
            assert sorted(ours) == sorted(theirs)
        assert len(ours) > 100
        assert about["packets"] == about["kept_packets"]
        assert "no packet dropped" in said or about["dropped_packets"] > 0
        (sent,) = [each for each in about["connections"] if "5001" in each["local"] + each["remote"]]
        moved = sent["after"]["sent_bytes"] - sent["after"]["retransmitted_bytes"] + sent["after"]["received_bytes"]
        assert 50 * MIB <= moved <= 50 * MIB + 2
        counters = about["counters_after"]["TcpActiveOpens"] + about["counters_after"]["TcpPassiveOpens"]
        assert counters - about["counters_before"]["TcpActiveOpens"] - about["counters_before"]["TcpPassiveOpens"] == 1
    found = subprocess.run([*MAIN, "diagnose", str(tmp_path / "out"), "--json"], capture_output=True, text=True)
    assert found.returncode in (0, 1), found.stderr
    captures = json.loads(found.stdout)["captures"]
    assert [Path(each["file"]).stem for each in captures] == sorted(pair.names)
    assert all(each["broken"] is None and each["missed_packets"] == 0 for each in captures)
    tools = subprocess.run(
        ["capinfos", str(tmp_path / "out" / f"{pair.names[0]}.pcapng")], capture_output=True, text=True
    )
    assert f"host netns:{pair.names[0]}" in tools.stdout


def test_big_tcp_has_its_true_length(pair: Pair, tmp_path: Path) -> None:
    for name in pair.names:
        run("ip", "-n", name, "link", "set", "eth0", "gso_max_size", "185000", "gro_max_size", "185000")
    name = pair.names[0]
    capturing = Capturing(f"netns:{name}", "--for", "60s", "--out", tmp_path / "out", "--snaplen", "100")
    pair.transfer(100 * MIB, to=pair.addresses6[1])
    capturing.end(130)
    found = of_port(packets(tmp_path / "out" / f"{name}.pcapng"), 5001)
    assert max(whole for _, whole in found) > 65_536 + 100
    assert max(len(kept) for kept, _ in found) == 100
    about = document(tmp_path / "out", name)
    if about["dropped_packets"] == 0:
        # Behind the headers is payload: all that the kernel says it has sent, resends as well.
        (sent,) = [each for each in about["connections"] if ":5001" in each["remote"]]
        payload = 0
        for kept, whole in found:
            start = tcp_at(kept)
            if kept[start + 2 : start + 4] == b"\x13\x89":
                payload += whole - start - (kept[start + 12] >> 4) * 4
        assert payload == sent["after"]["sent_bytes"]


def test_the_ring_is_bounded_and_the_newest_are_kept(pair: Pair, tmp_path: Path) -> None:
    name = pair.names[0]
    capturing = Capturing(
        f"netns:{name}%eth0",
        "--for",
        "60s",
        "--out",
        tmp_path,
        "--most",
        "2MiB",
        "--snaplen",
        "70000",
        "--port",
        "5001",
    )
    pair.transfer(50 * MIB)
    said = capturing.end(130)
    about = document(tmp_path, name)
    assert (tmp_path / f"{name}.pcapng").stat().st_size <= 2 * MIB + 1000
    assert about["given_up_packets"] > 0
    assert f"the oldest {about['given_up_packets']:,} packets gave way" in said
    found = packets(tmp_path / f"{name}.pcapng")
    assert len(found) == about["kept_packets"] == about["packets"] - about["given_up_packets"]
    # What ICMP says is taken as well: a link that is new solicits routers and reports its groups.
    segments = of_port(found, 5001)
    assert [each for each in found if not is_icmp(each[0])] == segments
    assert segments[-1][0][14 + 20 + 13] & 0x14  # the last one acknowledges, or resets what both have finished


def test_trouble_ends_it_and_is_named(pair: Pair, tmp_path: Path) -> None:
    """A loss that is provoked: the receiver's firewall drops one packet in a hundred."""
    capturing = Capturing(
        *(f"netns:{name}" for name in pair.names), "--until-trouble", "--for", "60s", "--out", tmp_path,
        "--sign", "retransmits=3", "--sign", "timeouts", "--after", "0.5s", "--before", "30s", hosts=2,
    )  # fmt: skip
    pair.transfer(5 * MIB)  # not lossy yet
    rules = "add table inet t; add chain inet t c { type filter hook input priority 0; };"
    run(
        "ip",
        "netns",
        "exec",
        pair.names[1],
        "nft",
        f"{rules} add rule inet t c tcp dport 5001 numgen inc mod 20 0 drop",
    )
    pair.transfer(20 * MIB)
    said = capturing.end(0, interrupt=False)
    sender = document(tmp_path, pair.names[0])
    assert set(sender["trouble"]["signs"]) <= {"retransmits", "timeouts"}
    assert f"netns:{pair.names[0]}: trouble: " in said
    assert re.search(r"segments sent again \(TcpRetransSegs \+\d+\)|retransmission timeouts", said)
    assert len(of_port(packets(tmp_path / f"{pair.names[0]}.pcapng"), 5001)) > 50


def test_a_receiver_that_does_not_read_is_trouble(pair: Pair, tmp_path: Path) -> None:
    capturing = Capturing(
        f"netns:{pair.names[0]}", "--until-trouble", "--for", "60s", "--out", tmp_path, "--sign", "receiver_limited",
    )  # fmt: skip
    pair.transfer(50 * MIB, pause=5.0)
    said = capturing.end(0, interrupt=False)
    assert "trouble: connections held up by their receiver's window (connections +1); of 10.9.0.1:" in said


def test_without_trouble_its_code_says_so(pair: Pair, tmp_path: Path) -> None:
    words = [
        "capture",
        f"netns:{pair.names[0]}",
        "--until-trouble",
        "--for",
        "1s",
        "--sign",
        "aborts",
        "--out",
        str(tmp_path),
    ]
    found = subprocess.run([*MAIN, *words, "--json"], capture_output=True, text=True)
    assert found.returncode == 3, found.stderr
    assert json.loads(found.stdout)["trouble"] is None
    assert (tmp_path / f"{pair.names[0]}.pcapng").exists()
    again = subprocess.run([*MAIN, *words], capture_output=True, text=True)
    assert again.returncode == 2
    assert f"--out: found files in {tmp_path}" in again.stderr


def test_nothing_stays_when_the_controller_is_killed(pair: Pair, tmp_path: Path) -> None:
    capturing = Capturing(f"netns:{pair.names[0]}", "--for", "60s", "--out", tmp_path)
    assert run("ip", "netns", "pids", pair.names[0]).split()
    capturing.process.kill()
    capturing.process.communicate()
    until = time.monotonic() + PATIENCE_SECONDS
    while run("ip", "netns", "pids", pair.names[0]).split():
        assert time.monotonic() < until, "the agent has not ended"
        time.sleep(0.05)


def test_without_rights_it_says_what_is_missing(tmp_path: Path) -> None:
    """As nobody: no CAP_NET_RAW, and no sudo that would help."""
    words = [*MAIN, "capture", "local%lo", "--for", "1s", "--out", "/tmp/never-made"]
    found = subprocess.run(
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *words],
        capture_output=True, text=True, cwd="/",
    )  # fmt: skip
    assert found.returncode == 2, found.stderr
    assert re.search(r"missing CAP_NET_RAW \(needed for capturing packets\): found user 65534 without it", found.stderr)
    assert not Path("/tmp/never-made").exists()
