"""Files `ifcfg-NAME` of RHEL's network-scripts (and NetworkManager's reader of them) and of SUSE's wicked: the MTU that
they set, and its change. They are assignments of a shell (ifcfg(5)); one whose value a shell would expand is not
understood.
"""

from __future__ import annotations

import posixpath
import re

from framegauge.rollout.owners.elsewhere import Mention
from framegauge.rollout.owners.model import Claim, Edit, Files, Nic, Trouble

__all__ = ["claims", "edits", "is_mine", "of_ipv6", "unclear"]

FOLDERS = ("/etc/sysconfig/network-scripts", "/etc/sysconfig/network")
PREFIX = "ifcfg-"
# Copies that editors and package managers leave, which nobody reads (network-functions, `ifup`).
LEFT = re.compile(r"(~|\.bak|\.old|\.orig|\.rpmnew|\.rpmsave|\.rpmorig)$")
# By the address of the hardware in the file's name, as older SUSE has it.
BY_ADDRESS = re.compile(r"(?:\w+-)?id-((?:[0-9a-f]{2}:){5}[0-9a-f]{2})", re.IGNORECASE)
# What every file has that does not say otherwise (RHEL's network-scripts; NetworkManager does not read it).
GLOBAL = "/etc/sysconfig/network"
# Kinds that have the address of what they stand on or of a port.
BORROWERS = ("vlan", "bond", "bridge", "team", "macvlan", "macvtap", "ipvlan", "ipvtap")
LINE = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*?)\s*$")


def is_mine(path: str) -> bool:
    """Whether the file is one of theirs."""
    name = posixpath.basename(path)
    return posixpath.dirname(path) in FOLDERS and name.startswith(PREFIX) and not LEFT.search(name)


def claims(files: Files, nic: Nic) -> list[Claim]:
    """What sets its MTU, or else the file by which it is managed. Trouble for an MTU that is no number."""
    all_claims = []
    for path in _paths(files, nic):
        line, value = _values(files[path]).get("MTU", (0, ""))
        if value and not (value.isascii() and value.isdigit() and len(value) < 10):
            raise Trouble(f"{path}:{line}", f"MTU={value}", "a number of bytes")
        all_claims.append(Claim("ifcfg", path, line, "MTU", int(value) if value else None))
    return [claim for claim in all_claims if claim.mtu is not None] or all_claims[:1]


def of_ipv6(files: Files, nic: Nic) -> list[Claim]:
    """What gives IPv6 alone an MTU of its own (RHEL's network-scripts)."""
    all_claims = []
    for path in _paths(files, nic):
        line, value = _values(files[path]).get("IPV6_MTU", (0, ""))
        if value.isascii() and value.isdigit() and len(value) < 10:
            all_claims.append(Claim("ifcfg", path, line, "IPV6_MTU", int(value)))
    return all_claims[-1:]


def unclear(files: Files, nic: Nic) -> list[Mention]:
    """What RHEL's scripts take for an interface whose own file says nothing."""
    paths = _paths(files, nic)
    line, value = _values(files.get(GLOBAL, "")).get("MTU", (0, ""))
    if not value or not paths or any(_values(files[path]).get("MTU", (0, ""))[1] for path in paths):
        return []
    return [Mention("a file for all interfaces", GLOBAL, line, f"MTU={value}", True)]


def edits(files: Files, nic: Nic, mtu: int) -> list[Edit]:
    """The change of every file that sets it, or of the first one. Nothing is reloaded: `ifup` would take the addresses
    away for a moment. The next start finds the new value."""
    paths = _paths(files, nic)
    setting_paths = [path for path in paths if _values(files[path]).get("MTU", (0, ""))[1]]
    return [Edit("ifcfg", path, files[path], _with_mtu(files[path], mtu)) for path in setting_paths or paths[:1]]


def _paths(files: Files, nic: Nic) -> list[str]:
    return [path for path in sorted(files) if is_mine(path) and _names(files[path], path, nic)]


def _names(text: str, path: str, nic: Nic) -> bool:
    """Whether it is of this interface: by DEVICE or the address of its hardware, or else by the file's name."""
    values = {key: value for key, (_, value) in _values(text).items()}
    name = posixpath.basename(path).removeprefix(PREFIX)
    by_name = BY_ADDRESS.fullmatch(name)
    address = values.get("HWADDR") or values.get("LLADDR") or (by_name[1] if by_name else None)
    if address and nic.address and nic.kind not in BORROWERS:
        return address.lower() in (nic.address, nic.permanent)
    return (values.get("DEVICE") or name) == nic.name


def _values(text: str) -> dict[str, tuple[int, str]]:
    """Each variable with the line (1-based) and the value of its last assignment, without its quotes."""
    values = {}
    for number, line in enumerate(text.split("\n"), 1):
        if assignment := LINE.match(line):
            values[assignment[1]] = number, _unquoted(assignment[2])
    return values


def _unquoted(value: str) -> str:
    if value[:1] in ("'", '"'):
        return value[1:].partition(value[0])[0]
    return value.partition(" #")[0].strip()


def _with_mtu(text: str, mtu: int) -> str:
    line, _ = _values(text).get("MTU", (0, ""))
    lines = text.split("\n")
    if line:
        lines[line - 1] = re.sub(r"(MTU=['\"]?)[^'\"\s#]*", rf"\g<1>{mtu}", lines[line - 1], count=1)
        return "\n".join(lines)
    ending = "" if text.endswith("\n") or not text else "\n"
    return f"{text}{ending}MTU={mtu}\n"
