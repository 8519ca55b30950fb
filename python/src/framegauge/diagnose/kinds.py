"""The names of all findings (crates/diagnosis/src/kinds.rs)."""

from __future__ import annotations

__all__ = ["KINDS"]

KINDS = (
    "rto_stall", "tail_loss", "fast_retransmit", "double_loss", "spurious_retransmit", "nagle_delayed_ack",
    "pmtu_black_hole", "mss_mismatch", "zero_window", "receiver_limited", "application_limited", "sender_stall",
    "network_limited", "bufferbloat", "reordering", "syn_loss", "connection_refused", "reset", "reset_storm",
    "window_scaling_off", "silly_window", "cwnd_collapse", "idle_restart", "retransmit_storm",
    "short_flow_slow_start", "incast", "outcast", "protocol_violation", "challenge_ack", "paws", "dead_peer",
    "unexplained", "capture_duplicates", "capture_loss", "half_capture", "capture_misordered", "aggregates",
    "checksum_offload", "truncated",
)  # fmt: skip
