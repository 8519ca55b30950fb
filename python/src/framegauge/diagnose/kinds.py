"""The names of all findings (crates/diagnosis/src/kinds.rs), and each as the cause that a headline names."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CAUSES", "KINDS"]

CAUSES: Mapping[str, str] = {
    "rto_stall": "The sender fell silent until its retransmission timer ran out",
    "tail_loss": "The last segments of a burst were lost",
    "fast_retransmit": "Segments were lost, and sent again within about an RTT",
    "double_loss": "A retransmission was lost, too",
    "spurious_retransmit": "Data that had arrived was sent again",
    "nagle_delayed_ack": "Nagle's algorithm waited for a delayed acknowledgement",
    "pmtu_black_hole": "Packets above some size vanish on the way",
    "mss_mismatch": "The two ends announce different MSSs",
    "zero_window": "The receiving application did not read",
    "receiver_limited": "The receiver's window was the limit",
    "application_limited": "The application had nothing to send",
    "sender_stall": "The sender paused with an open window and more to send",
    "network_limited": "The congestion window and the path were the limit",
    "bufferbloat": "A queue on the path made the RTT long",
    "reordering": "Segments arrived in another order",
    "syn_loss": "The handshake had to be repeated",
    "connection_refused": "A connection was refused",
    "reset": "A connection was cut off by a reset",
    "reset_storm": "Many connections were cut off by resets",
    "window_scaling_off": "Window scaling is off",
    "silly_window": "The receiver opens its window by small steps",
    "cwnd_collapse": "The congestion window became small after a loss",
    "idle_restart": "The sender began with a small window again after a pause",
    "retransmit_storm": "Much of what was sent was sent again",
    "short_flow_slow_start": "A transfer ended while its window still grew",
    "incast": "Many senders answered one host at the same time (incast)",
    "outcast": "Few flows starved beside many (outcast)",
    "protocol_violation": "An end does not keep the rules of TCP",
    "challenge_ack": "An end still held an older connection of the same ports",
    "paws": "Packets were discarded, because the timestamps of their sender went back",
    "dead_peer": "The other end had gone, or the path to it",
    "unexplained": "Answers came late for no reason that the capture shows",
    "capture_duplicates": "The capture has packets twice",
    "capture_loss": "The capture lacks packets",
    "half_capture": "The capture has one direction only",
    "capture_misordered": "The capture's stamps go back",
    "aggregates": "The capture has aggregates",
    "checksum_offload": "The capture was made before checksums were filled in",
    "truncated": "The capture ends early",
}
KINDS = tuple(CAUSES)
