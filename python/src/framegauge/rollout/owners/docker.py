"""Docker's own bridge, whose MTU is that of the daemon: `mtu` of daemon.json, else 1500 (dockerd(8)). Networks that
people make have an option of their own, which is in no file that one reads."""

from __future__ import annotations

import re

from framegauge.rollout.owners.model import Claim, Files, Nic

__all__ = ["BRIDGE", "DAEMON", "claims", "configured", "largest"]

DAEMON, BRIDGE = "/etc/docker/daemon.json", "docker0"
DEFAULT = 1500
MTU = re.compile(r'"mtu"\s*:\s*"?(\d{1,6})')
# That of networks that are made from then on stands beside it, in `default-network-opts`.
ANY = re.compile(r'"(?:com\.docker\.network\.driver\.)?mtu"\s*:\s*"?(\d{1,6})')


def configured(files: Files) -> tuple[int, int] | None:
    """The MTU in its file, in bytes, and the line."""
    text = files.get(DAEMON, "")
    match = MTU.search(text)
    return None if match is None else (int(match[1]), text.count("\n", 0, match.start()) + 1)


def largest(files: Files) -> tuple[int, int] | None:
    """The largest MTU in its file, of docker0 or of networks that are made, and the line."""
    text = files.get(DAEMON, "")
    values = [(int(match[1]), text.count("\n", 0, match.start()) + 1) for match in ANY.finditer(text)]
    return max(values, default=None)


def claims(files: Files, nic: Nic) -> list[Claim]:
    """What the daemon sets, of its own bridge alone."""
    if nic.name != BRIDGE:
        return []
    mtu, line = configured(files) or (DEFAULT, 0)
    return [Claim("dockerd", DAEMON, line, '"mtu"' if line else 'its default without "mtu"', mtu)]
