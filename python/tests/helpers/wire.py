"""What frames on the wire may hold besides the bytes that programs count."""

from __future__ import annotations

from framegauge.evidence.nic import deltas
from framegauge.testbeds.base import Json

AROUND = 70  # bytes of a frame around its data: Ethernet 18, IPv4 20, TCP 20, timestamps 12
MOST_SACK = 28  # three blocks and two bytes of padding, beside timestamps (RFC 2018, section 3)


def counted_exactly(told: Json, host: Json, counted: int, more: int = 0) -> bool:
    """Whether the data frames of `host`, as the fabric counted them, carry the `counted` bytes that programs sent, and at
    most `more`. Nothing is said of a host that sent a segment again. Where its peers did, a frame may say which bytes
    came twice or out of order (RFC 2018, RFC 2883)."""
    again = {name: deltas(told, name, "nstat").get("TcpRetransSegs", 0) for name in told["counters_after"]}
    if again[host["host"]]:
        return True
    options = MOST_SACK * host["data_frames"] if any(again.values()) else 0
    return 0 <= host["data_frame_bytes"] - AROUND * host["data_frames"] - counted <= more + options
