"""How much room this kernel leaves for headers in every buffer (`MAX_TCP_HEADER`), as its socket buffers tell.

A kernel with wireless networks and tunnels has 320 bytes, one without 192. A segment of 1460 bytes with either, and its
320 bytes of `skb_shared_info`, is rounded up to a power of two: 4096, or 2048. A new connection has room for ten of
them, twice (`tcp_sndbuf_expand`).
"""

from __future__ import annotations

import socket
from functools import cache

MSS = 1460
SHARED_INFO_BYTES, DESCRIPTION_BYTES = 320, 256
SEGMENTS = 20
ROOMS = (192, 320)


def send_buffer_bytes(room_bytes: int) -> int:
    """What a new connection may hold in memory, with so much room for headers."""
    payload_and_more = MSS + room_bytes + SHARED_INFO_BYTES
    return SEGMENTS * ((1 << (payload_and_more - 1).bit_length()) + DESCRIPTION_BYTES)


@cache
def header_room_bytes() -> int:
    """The room that explains the send buffer of a new connection, which is made to find out."""
    with socket.socket() as listener, socket.socket() as client:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, MSS)
        client.connect(listener.getsockname())
        held = client.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    known = {send_buffer_bytes(room): room for room in ROOMS}
    if held not in known:
        raise RuntimeError(f"a new connection's send buffer: found {held} bytes, expected one of {sorted(known)}")
    return known[held]
