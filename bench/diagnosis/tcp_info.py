"""The kernel's account of a connection: struct tcp_info (include/uapi/linux/tcp.h), and between which ends it is."""

from __future__ import annotations

import socket
import struct
from typing import Any

TCP_INFO_BYTES = 256
BYTES = ("tcpi_state", "tcpi_ca_state", "tcpi_retransmits", "tcpi_probes", "tcpi_backoff", "tcpi_options")
# Name, format and place; times as the kernel has them, in microseconds (`last_`: milliseconds).
FIELDS = tuple(
    [(name, "B", place) for place, name in enumerate(BYTES)]
    + [
        (f"tcpi_{name}", "I", 8 + 4 * place)
        for place, name in enumerate(
            (
                "rto", "ato", "snd_mss", "rcv_mss", "unacked", "sacked", "lost", "retrans", "fackets", "last_data_sent",
                "last_ack_sent", "last_data_recv", "last_ack_recv", "pmtu", "rcv_ssthresh", "rtt", "rttvar",
                "snd_ssthresh", "snd_cwnd", "advmss", "reordering", "rcv_rtt", "rcv_space", "total_retrans",
            )
        )
    ]
    + [
        (f"tcpi_{name}", form, place)
        for name, form, place in (
            ("pacing_rate", "Q", 104), ("max_pacing_rate", "Q", 112), ("bytes_acked", "Q", 120),
            ("bytes_received", "Q", 128), ("segs_out", "I", 136), ("segs_in", "I", 140), ("notsent_bytes", "I", 144),
            ("min_rtt", "I", 148), ("data_segs_in", "I", 152), ("data_segs_out", "I", 156), ("delivery_rate", "Q", 160),
            ("busy_time", "Q", 168), ("rwnd_limited", "Q", 176), ("sndbuf_limited", "Q", 184), ("delivered", "I", 192),
            ("delivered_ce", "I", 196), ("bytes_sent", "Q", 200), ("bytes_retrans", "Q", 208), ("dsack_dups", "I", 216),
            ("reord_seen", "I", 220), ("rcv_ooopack", "I", 224), ("snd_wnd", "I", 228), ("rcv_wnd", "I", 232),
            ("rehash", "I", 236), ("total_rto", "H", 240), ("total_rto_recoveries", "H", 242),
            ("total_rto_time", "I", 244),
        )
    ]
)  # fmt: skip


def ends(connection: socket.socket) -> dict[str, Any]:
    """Both ends of a connection as address and port, while it has them."""
    return {"own": list(connection.getsockname()[:2]), "other": list(connection.getpeername()[:2])}


def account(connection: socket.socket) -> dict[str, Any]:
    """Every field that this kernel has."""
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    return {
        name: struct.unpack_from(f"<{form}", raw, place)[0]
        for name, form, place in FIELDS
        if place + struct.calcsize(form) <= len(raw)
    }
