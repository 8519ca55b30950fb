"""Kinds of causes, and the families that tools know which do not tell kinds apart."""

from __future__ import annotations

from framegauge.diagnose.kinds import KINDS

# What is in none is scored as a kind only.
FAMILIES: dict[str, tuple[str, ...]] = {
    "loss": (
        "fast_retransmit", "rto_stall", "tail_loss", "double_loss", "retransmit_storm", "pmtu_black_hole", "incast",
        "outcast", "cwnd_collapse",
    ),
    "needless": ("spurious_retransmit",),
    "order": ("reordering",),
    "window": ("zero_window", "receiver_limited", "window_scaling_off", "silly_window"),
    "opening": ("syn_loss", "connection_refused"),
    "cut_off": ("reset", "reset_storm"),
}  # fmt: skip
_FAMILY = {kind: family for family, kinds in FAMILIES.items() for kind in kinds}


def family(cause: str) -> str | None:
    """That of a kind, or the family itself; None: it is in none."""
    return cause if cause in FAMILIES else _FAMILY.get(cause)


def known() -> frozenset[str]:
    """All that may be answered."""
    return frozenset(KINDS) | frozenset(FAMILIES)
