"""Commands of a shell that set an MTU, as hooks and scripts have them."""

from __future__ import annotations

import re

__all__ = ["SETS"]

# `ip link set` and `ifconfig`: the interface as it is written, and the MTU.
SETS = re.compile(
    r"\b(?:ip\s+(?:-\S+\s+)*l(?:i|in|ink)?\s+set\s+(?:dev\s+)?|ifconfig\s+)(?P<name>\S+)\s+(?:\S+\s+)*?"
    r"mtu\s+(?P<mtu>\d{1,9})\b"
)
