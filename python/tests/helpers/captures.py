"""Captures for the tests: written by hand, or taken at the ports of a rack."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from framegauge.agents.pipe import Agent
from framegauge.testbeds.base import Json
from framegauge.testbeds.rack import SAMPLE_SECONDS, RackTestbed

ETHERNET, RAW_IP = 1, 101
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
Packet = tuple[float, bytes]


class Captured(RackTestbed):
    """A rack that captures at every port while a workload runs: one file per run."""

    def __init__(self, agent: Agent, folder: Path) -> None:
        super().__init__(agent)
        self.folder = folder
        self.files: list[Path] = []

    def begin(self, watch: Sequence[str] = ()) -> float:
        ports = [f"switch>{host.name}" for host in self.hosts()]
        begun = super().begin(watch)
        self._agent.request("measure.end")
        self._agent.request("measure.begin", {"sample_seconds": SAMPLE_SECONDS, "watch": ports, "capture": True})
        return begun

    def end(self) -> Json:
        found = super().end()
        assert found["fabric"]["capture_left_out"] == 0
        path = self.folder / f"{len(self.files) + 1}.pcapng"
        path.write_bytes(self.fetch(found["fabric"]["capture"]))
        self.files.append(path)
        return found


def segment(
    source: str,
    destination: str,
    flags: int,
    seq: int,
    ack: int = 0,
    payload: int = 0,
    window: int = 512,
    mss: int | None = None,
) -> bytes:
    """An IPv4 packet with a TCP segment; ends are written "10.0.0.1:80". A SYN has an MSS and a window scale of 7."""
    (here, port), (there, to) = (end.split(":") for end in (source, destination))
    options = struct.pack("!BBHBBBB", 2, 4, mss, 3, 3, 7, 1) if mss is not None else b""
    offset = (20 + len(options)) // 4 << 4
    header = struct.pack("!HHIIBBHHH", int(port), int(to), seq % 2**32, ack % 2**32, offset, flags, window, 0, 0)
    segment.count = (segment.count + 1) % 65536  # type: ignore[attr-defined]
    identification = segment.count  # type: ignore[attr-defined]
    length = 20 + len(header) + len(options) + payload
    ip = struct.pack(
        "!BBHHHBBH4s4s",
        0x45,
        0,
        length,
        identification,
        0x4000,
        64,
        6,
        0,
        socket.inet_aton(here),
        socket.inet_aton(there),
    )
    return ip + header + options + bytes(payload)


segment.count = 0  # type: ignore[attr-defined]


def pcap(packets: Iterable[Packet], kept: int = 96, wire_bytes: int | None = None) -> bytes:
    """A capture with times in seconds, of which the first `kept` bytes of each packet are kept. `wire_bytes`: the length that
    each had on the wire, by its record."""
    out = bytearray(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, kept, RAW_IP))
    for at, packet in packets:
        seconds, part = divmod(round(at * 1e6), 1_000_000)
        out += struct.pack("<IIII", seconds, part, len(packet[:kept]), wire_bytes or len(packet)) + packet[:kept]
    return bytes(out)


def packets_in(capture: bytes) -> Iterator[tuple[float, int, bytes]]:
    """The packets of a pcap file of little-endian nanoseconds, as `pcapng` takes them."""
    place = 24
    while place < len(capture):
        seconds, part, kept, _ = struct.unpack_from("<IIII", capture, place)
        yield seconds + part / 1e9, 0, capture[place + 16 : place + 16 + kept]
        place += 16 + kept


def pcapng(
    packets: Iterable[tuple[float, int, bytes]],
    names: Sequence[str],
    link: int = RAW_IP,
    ran: tuple[float, float] | None = None,
) -> bytes:
    """A capture of several interfaces, each with a name: of each packet the time, the interface's number, the bytes. `ran`: when
    the capture began and ended, as the statistics of its first interface say."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    out = bytearray(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
    for name in names:
        text = name.encode()
        option = struct.pack("<HH", 2, len(text)) + text + bytes(-len(text) % 4)
        out += block(1, struct.pack("<HHI", link, 0, 0) + option)
    for at, interface, packet in packets:
        high, low = divmod(round(at * 1e6), 2**32)
        out += block(6, struct.pack("<IIIII", interface, high, low, len(packet), len(packet)) + packet)
    if ran is not None:
        begun, ended = (struct.pack("<II", *divmod(round(at * 1e6), 2**32)) for at in ran)
        option = struct.pack("<HH", 2, 8) + begun + struct.pack("<HH", 3, 8) + ended
        out += block(5, struct.pack("<I", 0) + ended + option)
    return bytes(out)


def stalled(client: str = "10.0.0.1:40000", server: str = "10.0.0.2:80", wait: float = 0.4) -> list[Packet]:
    """A connection whose second burst of data is lost and sent again after `wait`, with more data behind it."""
    now, found = 1_700_000_000.0, []

    def add(after: float, packet: bytes) -> None:
        nonlocal now
        now += after
        found.append((now, packet))

    add(0, segment(client, server, SYN, 1000, mss=1460))
    add(0.01, segment(server, client, SYN | ACK, 5000, 1001, mss=1460, window=64240))
    add(0, segment(client, server, ACK, 1001, 5001))
    place = 1001
    for _ in range(10):
        add(0, segment(client, server, ACK | PSH, place, 5001, 1000))
        place += 1000
        add(0.01, segment(server, client, ACK, 5001, place))
    for step in range(3):
        add(0, segment(client, server, ACK | PSH, place + 1000 * step, 5001, 1000))
    for step, after in enumerate((wait, 0.01, 0.0)):
        add(after, segment(client, server, ACK | PSH, place + 1000 * step, 5001, 1000))
        add(0.01, segment(server, client, ACK, 5001, place + 1000 * (step + 1)))
    add(0, segment(client, server, ACK | PSH, place + 3000, 5001, 1000))
    add(0.01, segment(server, client, ACK, 5001, place + 4000))
    return found


def payloads_out(capture: bytes) -> dict[tuple[bytes, bytes, int, int], list[int]]:
    """The TCP payloads of all packets that left the captured ports of a fabric, in order, by addresses and ports."""
    found: dict[tuple[bytes, bytes, int, int], list[int]] = {}
    for packet in packets_out(capture):
        if packet[0] >> 4 == 4 and packet[9] == socket.IPPROTO_TCP:
            header = 4 * (packet[0] & 15)
            size, ports = struct.unpack_from("!H", packet, 2)[0], struct.unpack_from("!HH", packet, header)
            payload = size - header - 4 * (packet[header + 12] >> 4)
            found.setdefault((packet[12:16], packet[16:20], *ports), []).append(payload)
    return found


def packets_out(capture: bytes) -> Iterator[bytes]:
    """All packets that left the captured ports of a fabric, from their IP header on, in order.

    The capture is a pcapng file: blocks of interfaces (1), whose names tell ports and sides, and of frames (6).
    """
    names, place = [], 0
    while place < len(capture):
        kind, length = struct.unpack_from("<II", capture, place)
        body = capture[place + 8 : place + length - 4]
        place += length
        if kind == 1:
            names.append(_name_of(body))
        elif kind == 6 and names[struct.unpack_from("<I", body)[0]].endswith(" out"):
            yield body[20 + 14 : 20 + struct.unpack_from("<I", body, 12)[0]]


def _name_of(interface: bytes) -> str:
    """The option if_name (2) of an interface's block."""
    place = 8
    while True:
        code, length = struct.unpack_from("<HH", interface, place)
        if code == 2:
            return interface[place + 4 : place + 4 + length].decode()
        place += 4 + (length + 3) // 4 * 4
