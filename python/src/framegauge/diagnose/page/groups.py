"""Kinds of findings and causes in groups, each with a colour of its own on the page."""

from __future__ import annotations

from framegauge.diagnose.kinds import GROUPS, KINDS

__all__ = ["GROUPS", "OTHER", "group_of"]

OTHER = "other"
# Causes of time that are no findings.
_CAUSES = {"handshake": "way"}


def group_of(kind: str) -> str:
    """The group of a kind, or of a cause."""
    return KINDS[kind].group if kind in KINDS else _CAUSES.get(kind, OTHER)
