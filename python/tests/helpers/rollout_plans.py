"""A plan of a roll-out, as `framegauge rollout plan --json` prints it; and journals that somebody else has written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from framegauge.rollout.owners import Edit


def _change(wave: int) -> dict[str, Any]:
    before = {"mtu:eth1": "1500", "routes4:eth1": "0", "routes6:eth1": "0"}
    return {
        "wave": wave, "interface": "eth1", "mtu": 9000, "hold": 1500, "before": before,
        "after": {**before, "mtu:eth1": "9000"}, "stages": {},
    }  # fmt: skip


EDIT = Edit("netplan", "/etc/netplan/01.yaml", "mtu: 1500\n", "mtu: 9000\n", (("netplan", "apply"),))
PLAN: dict[str, Any] = {
    "schema": 1,
    "question": "Raise the MTU of the databases?",
    "asked": {"waves": [["db1"], ["db2"]], "scope": "subnets", "target_mtu": 9000, "interfaces": {"db1": "eth1", "db2": "eth1"}},
    "hosts": {"db1": _change(0), "db2": _change(1)},
    "addresses": {"db1": ["192.0.2.1", "2001:db8::1"], "db2": ["192.0.2.2"]},
    "findings": [],
    "steps": [],
    "changes": [{"host": "db1", **EDIT.as_document()}],
}  # fmt: skip


def chained(lines: Iterable[bytes]) -> bytes:
    """A journal of these lines, each with the hash of the one before, as somebody would write it who knows how."""
    last: bytes | None = None
    made = b""
    for line in lines:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if isinstance(entry, dict):
            entry.pop("seal", None)
            line = json.dumps({**entry, "after": last and hashlib.sha256(last).hexdigest()[:32]}).encode()
            last = line
        made += line + b"\n"
    return made
