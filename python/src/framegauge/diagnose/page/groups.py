"""Kinds of findings and causes in groups, each with a colour of its own on the page."""

from __future__ import annotations

__all__ = ["GROUPS", "group_of"]

# The group, what it says in the legend, and its kinds.
GROUPS = (
    ("loss", "loss and resends", (
        "rto_stall", "tail_loss", "fast_retransmit", "double_loss", "spurious_retransmit", "pmtu_black_hole",
        "syn_loss", "cwnd_collapse", "retransmit_storm", "incast", "outcast",
    )),
    ("receiver", "the receiver", (
        "zero_window", "receiver_limited", "window_scaling_off", "silly_window", "challenge_ack", "paws", "dead_peer",
    )),
    ("sender", "the sender and its application", (
        "nagle_delayed_ack", "sender_stall", "idle_restart", "short_flow_slow_start",
    )),
    ("network", "queues and the path", ("bufferbloat", "reordering", "mss_mismatch")),
    ("idle", "nothing to send", ("application_limited",)),
    ("way", "data on its way", ("network_limited", "handshake")),
)  # fmt: skip
# All others.
OTHER = ("other", "other")
_OF = {kind: name for name, _, kinds in GROUPS for kind in kinds}


def group_of(kind: str) -> str:
    """The group of a kind."""
    return _OF.get(kind, OTHER[0])
