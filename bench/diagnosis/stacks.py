"""Hosts that are not Linux, as far as their packets show it: what a stack writes into IPv4's identification, and NAT.

TTL, timestamps, SACK, window scaling, DF and windows are real settings of the sending kernel (`SYSCTLS`); so a scene
only rewrites what Linux cannot be told. A packet is rewritten when it leaves its host, so all taps and the receiving
kernel get the same one. The laws:

- "global": one counter for all packets of a host, whoever gets them, as in older Windows, lwIP and most controllers
  (the idle scan of port scanners rests on it). Other traffic of the host, which no tap sees, counts as well.
- "zero": atomic datagrams need no identification (RFC 6864 section 4.1); macOS and the Linux of SYN-ACKs write 0.
- "random": OpenBSD, and FreeBSD with `net.inet.ip.random_id`.
- NAT: many hosts, one address; ports are translated, TTL falls by one (RFC 3022), identifications stay as they came.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field

from bench.diagnosis.segments import Packet, checksum, parse, pieces

WINDOWS = {"net.ipv4.ip_default_ttl": "128", "net.ipv4.tcp_timestamps": "0"}
# lwIP's defaults: no options but the MSS, packets without DF.
CONTROLLER = {
    "net.ipv4.ip_default_ttl": "255", "net.ipv4.tcp_timestamps": "0", "net.ipv4.tcp_sack": "0",
    "net.ipv4.tcp_window_scaling": "0", "net.ipv4.ip_no_pmtu_disc": "1",
}  # fmt: skip
LOWEST_PORT = 20_000


@dataclass(frozen=True)
class Stack:
    """How a host numbers IPv4 packets: "global", "zero" or "random". `others`: unseen packets per seen one, at most."""

    identification: str
    others: int = 0


@dataclass
class Numbering:
    """The numbers of the hosts behind one device, by address."""

    stack: Stack
    draws: random.Random
    _last: dict[bytes, int] = field(default_factory=dict)

    def number(self, packet: Packet) -> Packet:
        """The packet as this stack sends it. IPv6 has no identification."""
        if packet.data[0] >> 4 != 4:
            return packet
        data = bytearray(packet.data)
        struct.pack_into("!H", data, 4, self._next(bytes(data[12:16]), pieces(packet)))
        return _again(packet, data)

    def _next(self, address: bytes, count: int) -> int:
        match self.stack.identification:
            case "zero":
                return 0
            case "random":
                return self.draws.randrange(65536)
        last = self._last.setdefault(address, self.draws.randrange(65536))
        value = (last + 1 + self.draws.randint(0, self.stack.others)) % 65536
        self._last[address] = value + count - 1
        return value


@dataclass
class Nat:
    """A router that translates the addresses of all hosts on one side into its own. It needs whole checksums."""

    address: bytes
    _outside: dict[tuple[bytes, int], int] = field(default_factory=dict)
    _inside: dict[int, tuple[bytes, int]] = field(default_factory=dict)

    def outward(self, packet: Packet) -> Packet:
        """A packet of an inner host, as it goes on."""
        source = packet.ends[:2]
        port = self._outside.setdefault(source, LOWEST_PORT + 7 * len(self._outside))
        self._inside[port] = source
        return self._translated(packet, (self.address, port), 0)

    def inward(self, packet: Packet) -> Packet:
        """An answer to it, as the inner host gets it."""
        return self._translated(packet, self._inside[packet.ends[3]], 1)

    def translated(self) -> dict[tuple[bytes, int], tuple[bytes, int]]:
        """How each inner end is called outside."""
        return {end: (self.address, port) for end, port in self._outside.items()}

    @staticmethod
    def _translated(packet: Packet, end: tuple[bytes, int], which: int) -> Packet:
        data = bytearray(packet.data)
        header = (data[0] & 15) * 4
        data[8] -= 1
        address = 12 + 4 * which
        port = header + 2 * which
        before = bytes(data[address : address + 4]) + bytes(data[port : port + 2])
        data[address : address + 4] = end[0]
        struct.pack_into("!H", data, port, end[1])
        after = bytes(data[address : address + 4]) + bytes(data[port : port + 2])
        struct.pack_into("!H", data, header + 16, updated(data[header + 16 : header + 18], before, after))
        return _again(packet, data)


def updated(old: bytes | bytearray, before: bytes, after: bytes) -> int:
    """A checksum after some of what it covers has changed (RFC 1624, equation 3)."""
    total = ~struct.unpack("!H", old)[0] & 0xFFFF
    words = len(before) // 2
    total += sum(~word & 0xFFFF for word in struct.unpack(f"!{words}H", before))
    total += sum(struct.unpack(f"!{words}H", after))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _again(packet: Packet, data: bytearray) -> Packet:
    """The packet with other headers; IPv4's header checksum is right again."""
    data[10:12] = b"\0\0"
    struct.pack_into("!H", data, 10, checksum(bytes(data[: (data[0] & 15) * 4])))
    again = parse(bytes(data), packet.virtio)
    again.whole, again.entry = packet.whole, packet.entry
    return again
