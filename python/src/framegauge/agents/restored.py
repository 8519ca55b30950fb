"""What a host says of settings that were to be put back (`lease.end`, `lease.back`). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framegauge.printable import one_line

__all__ = ["MOST", "unrestored"]

MOST = 20  # lines of a host, which can say as many as it likes
COMMAND_CHARACTERS = 300


def unrestored(said: Mapping[str, Any]) -> list[str]:
    """A line for each thing that is not as it was, with the commands that mend it; none if all is."""
    if said["restored"]:
        return []
    lines = []
    for difference in said.get("differs", [])[:MOST]:
        line = f"{difference['what']}: found {difference['found']}, expected {difference['expected']}"
        commands = "; ".join(one_line(command, COMMAND_CHARACTERS) for command in difference["commands"][:MOST])
        lines.append(one_line(f"{line}; to mend it: {commands}" if commands else line))
    if more := len(said.get("differs", [])) - MOST:
        lines += [f"and {more} more"] if more > 0 else []
    return lines or [one_line(said["failed"] or "not restored")]
