"""How many packets a UDP datagram takes (RFC 791 section 2.3, RFC 8200 section 4.5)."""

from __future__ import annotations

__all__ = ["IP_BYTES", "UDP_BYTES", "fragments"]

IP_BYTES = {4: 20, 6: 40}
FRAGMENT_BYTES = {4: 0, 6: 8}  # of the extension header
UDP_BYTES = 8
FRAGMENT_UNIT = 8  # in which offsets are counted


def fragments(payload_bytes: int, mtu: int, family: int = 4) -> int:
    """The number of packets that a UDP datagram with so much payload takes."""
    datagram_bytes = payload_bytes + UDP_BYTES
    if datagram_bytes + IP_BYTES[family] <= mtu:
        return 1
    room = (mtu - IP_BYTES[family] - FRAGMENT_BYTES[family]) // FRAGMENT_UNIT * FRAGMENT_UNIT
    return -(-datagram_bytes // room)
