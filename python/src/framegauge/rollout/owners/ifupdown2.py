"""Policies of ifupdown2: the MTU of interfaces whose stanza names none.

ifupdown2's module `address` (ifupdown2/addons/address.py, ifupdown/policymanager.py) takes, where a stanza has no
`mtu`, that of `iface_defaults` for the interface by its name, those of the administrator before those of the system.
Else it sets the default (`defaults`, or 1500) whenever the interface is brought up or reloaded: of NICs that are no
port of a bond, of bonds, bridges, VXLANs and whatever it has no module for. VLANs take what they stand on has.
`max_mtu` is a limit above which it sets no MTU at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from framegauge.rollout.owners.model import Claim, Files, Nic, Trouble

__all__ = ["CONFIG", "POLICIES", "check_limit", "claims", "is_policy"]

CONFIG = "/etc/network/ifupdown2/ifupdown2.conf"
# The administrator's come first. Of several files in a folder ifupdown2 reads the last that its file system lists.
POLICIES = ("/etc/network/ifupdown2/policy.d/*.json", "/var/lib/ifupdown2/policy.d/*.json")
DEFAULT = 1500
WITH_DEFAULT = (None, "bond", "bridge", "vxlan", "dummy")  # kinds of links that are given the default


def is_policy(path: str) -> bool:
    """Whether it is a file of policies."""
    return any(re.fullmatch(pattern.replace(".", r"\.").replace("*", "[^/]+"), path) for pattern in POLICIES)


def claims(files: Files, nic: Nic, is_port: bool) -> list[Claim]:
    """What sets the MTU of an interface whose stanza names none. `is_port`: of a bond."""
    if CONFIG not in files:
        return []
    for names in (("iface_defaults", nic.name), ("defaults",)):
        if names == ("defaults",) and (is_port or nic.kind not in WITH_DEFAULT):
            return []
        for pattern in POLICIES:
            key = " ".join((*names, "mtu"))
            results = [
                Claim("ifupdown", path, _line(files[path], names[-1], "mtu"), key, mtu)
                for path, module in _modules(files, pattern)
                if (mtu := _number(path, module, (*names, "mtu"))) is not None
            ]
            if results:
                return results
    return [Claim("ifupdown", CONFIG, 0, "the default of ifupdown2 for a stanza without mtu", DEFAULT)]


def check_limit(files: Files, mtu: int) -> None:
    """Trouble where a policy has ifupdown2 set no MTU as large as this."""
    if CONFIG not in files:
        return
    for pattern in POLICIES:
        for path, module in _modules(files, pattern):
            most = _number(path, module, ("module_globals", "max_mtu"))
            if most is None:
                continue
            if 0 < most < mtu:
                place = f"{path}:{_line(files[path], 'module_globals', 'max_mtu')}"
                raise Trouble(place, f'"max_mtu": {most}, above which ifupdown2 sets no MTU', f"{mtu} or more")
            return


def _modules(files: Files, pattern: str) -> Iterator[tuple[str, Any]]:
    """The policies of the module `address` of each file of a folder."""
    folder = pattern.partition("*")[0]
    for path in sorted(entry for entry in files if entry.startswith(folder) and is_policy(entry)):
        if '"address"' not in files[path]:
            continue
        try:
            module = json.loads(files[path]).get("address")
        except (ValueError, AttributeError, RecursionError):
            raise Trouble(path, "what ifupdown2 leaves out", "policies as JSON") from None
        yield path, module


def _number(path: str, module: Any, keys: tuple[str, ...]) -> int | None:
    for key in keys:
        module = module.get(key) if isinstance(module, dict) else None
    if module is None or module == "":
        return None
    text = str(module).strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Trouble(path, f"{' '.join(keys)} {text[:40]!r}", "a number of bytes")
    return int(text)


def _line(text: str, block: str, key: str) -> int:
    """Where the value of a block stands; 0 if that is not certain."""
    match = re.search(rf'"{re.escape(block)}"\s*:\s*\{{[^{{}}]*"{key}"', text)
    return 0 if match is None else text.count("\n", 0, match.end()) + 1
