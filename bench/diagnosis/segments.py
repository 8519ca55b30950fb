"""IP packets on the scenes' wire: what a fault needs to know of them, and aggregates cut into packets of the link."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from bench.diagnosis.ledger import Ends, Entry

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
TCP = 6
# struct virtio_net_hdr (include/uapi/linux/virtio_net.h), which precedes each packet of a device with offloads.
VIRTIO = struct.Struct("<BBHHHH")
NEEDS_CHECKSUM, NOT_GSO = 1, 0


@dataclass(slots=True)
class Packet:
    """One IP packet. `offset` is where TCP's payload begins; `virtio` its header of offloads, if the device has one."""

    data: bytes
    ends: Ends
    flags: int
    seq: int
    payload: int
    offset: int
    is_tcp: bool
    virtio: bytes = b""
    # The packets that an aggregate was cut into share it.
    whole: Packet | None = None
    # Its line in the books of the wire.
    entry: Entry | None = None
    ack: int = 0

    @property
    def size(self) -> int:
        """Bytes of the IP packet, or of the whole aggregate."""
        return len(self.data)


def parse(data: bytes, virtio: bytes = b"") -> Packet:
    """A packet as it left a device. What is no TCP has no ends."""
    if data[0] >> 4 == 4:
        header, protocol = (data[0] & 15) * 4, data[9]
        source, destination = data[12:16], data[16:20]
    else:
        header, protocol = 40, data[6]
        source, destination = data[8:24], data[24:40]
    if protocol != TCP:
        return Packet(data, (source, 0, destination, 0), 0, 0, 0, len(data), False, virtio)
    here, there, seq, ack, where, flags = struct.unpack_from("!HHIIBB", data, header)
    offset = header + (where >> 4) * 4
    ends = (source, here, destination, there)
    return Packet(data, ends, flags, seq, len(data) - offset, offset, True, virtio, ack=ack)


def pieces(packet: Packet) -> int:
    """How many packets of the link it becomes."""
    if not packet.virtio:
        return 1
    _, gso, _, size, _, _ = VIRTIO.unpack(packet.virtio)
    return 1 if gso == NOT_GSO or packet.payload <= size else -(-packet.payload // size)


def cut(packet: Packet) -> list[Packet]:
    """The packets of the link that an aggregate becomes, as a NIC cuts it: FIN and PSH go to the last (TSO)."""
    if pieces(packet) == 1:
        return [packet]
    flags, _, header_bytes, size, start, place = VIRTIO.unpack(packet.virtio)
    virtio = VIRTIO.pack(flags, NOT_GSO, header_bytes, 0, start, place)
    found = []
    for number, begin in enumerate(range(0, packet.payload, size)):
        payload = packet.data[packet.offset + begin : packet.offset + begin + size]
        is_last = begin + size >= packet.payload
        head = _header(packet, number, len(payload), begin, is_last)
        piece = parse(head + payload, virtio)
        piece.whole = packet
        found.append(piece)
    return found


def _header(packet: Packet, number: int, payload: int, begin: int, is_last: bool) -> bytes:
    """The headers of one packet of an aggregate. The TCP checksum is left to the receiving device."""
    head = bytearray(packet.data[: packet.offset])
    if head[0] >> 4 == 4:
        ip = (head[0] & 15) * 4
        identification = struct.unpack_from("!H", head, 4)[0]
        struct.pack_into("!HH", head, 2, len(head) + payload, (identification + number) % 65536)
        head[10:12] = b"\0\0"
        struct.pack_into("!H", head, 10, checksum(bytes(head[:ip])))
    else:
        ip = 40
        struct.pack_into("!H", head, 4, len(head) - 40 + payload)
    struct.pack_into("!I", head, ip + 4, (packet.seq + begin) % 2**32)
    if not is_last:
        head[ip + 13] &= ~(FIN | PSH)
    return bytes(head)


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def too_big(packet: Packet, mtu: int) -> bytes:
    """A router's "fragmentation needed" for a packet (RFC 1191), or "packet too big" (RFC 8201)."""
    source, _, destination, _ = packet.ends
    if len(source) == 4:
        body = struct.pack("!BBHHH", 3, 4, 0, 0, mtu) + packet.data[:68]
        body = body[:2] + struct.pack("!H", checksum(body)) + body[4:]
        head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 0, 0, 64, 1, 0, destination, source)
        return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + body
    body = struct.pack("!BBHI", 2, 0, 0, mtu) + packet.data[:1000]
    pseudo = destination + source + struct.pack("!II", len(body), 58)
    body = body[:2] + struct.pack("!H", checksum(pseudo + body + b"\0" * (len(body) % 2))) + body[4:]
    return struct.pack("!IHBB16s16s", 0x60000000, len(body), 58, 64, destination, source) + body


def rewritten(packet: Packet, seq: int = 0, ack: int = 0, flags: int = 0) -> Packet:
    """A copy of a packet that no device still has to complete: these are added to its numbers, and are its flags."""
    data = bytearray(packet.data)
    ip = (data[0] & 15) * 4 if data[0] >> 4 == 4 else 40
    sequence, acknowledged = struct.unpack_from("!II", data, ip + 4)
    struct.pack_into("!II", data, ip + 4, (sequence + seq) % 2**32, (acknowledged + ack) % 2**32)
    data[ip + 13] = flags or data[ip + 13]
    data[ip + 16 : ip + 18] = b"\0\0"
    source, _, destination, _ = packet.ends
    pseudo = source + destination + struct.pack("!II", len(data) - ip, TCP)
    struct.pack_into("!H", data, ip + 16, checksum(pseudo + bytes(data[ip:]) + b"\0" * ((len(data) - ip) % 2)))
    return parse(bytes(data))
