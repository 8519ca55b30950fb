"""What the way back of a change may do, by the owner of the file: a journal is data, and brings no program.

A journal is read days later and on other machines, by somebody who may undo as root what it lists. So its commands are
not run because they stand there: they are those of the owner, for the interface of the roll-out's file. Its paths are
in the owner's folders, and no line comes back into a file that runs commands unless it is one that goes, but for
numbers.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from framegauge.rollout.owners import cloud, cni, dhcp, ifcfg, ifupdown, netplan, networkd, networkmanager
from framegauge.rollout.owners.model import Command, Trouble

__all__ = ["reload_of"]

MODES = ("0600", "0644")
_NUMBERS = re.compile(r"[0-9]+")


@dataclass(frozen=True)
class _Law:
    """`is_mine`: which files the owner has. `reload`: what has it take them, by the interface. `runs`: whether its
    files hold commands, or name programs."""

    is_mine: Callable[[str], bool]
    reload: Callable[[str], tuple[Command, ...]] = lambda _: ()
    runs: bool = True


_LAWS = {
    "netplan": _Law(netplan.is_mine, lambda _: netplan.RELOAD, runs=False),
    "networkd": _Law(lambda path: networkd.is_ours(path, ".network"), networkd.reload, runs=False),
    "udev": _Law(lambda path: networkd.is_ours(path, ".link"), runs=False),
    "ifupdown": _Law(ifupdown.is_mine),
    "ifcfg": _Law(ifcfg.is_mine),
    "dhclient": _Law(dhcp.is_of_dhclient),
    "dhcpcd": _Law(lambda path: path == dhcp.DHCPCD_CONF, dhcp.reload_of_dhcpcd),
    "CNI": _Law(cni.is_mine),
    "cloud-init": _Law(lambda path: path == cloud.OFF),
}


def reload_of(entry: dict[str, Any], interface: str) -> tuple[Command, ...]:
    """The commands that have the owner take back the change of an entry `persisting`; Trouble for an entry that asks
    for what no roll-out does."""
    owner, path, undo = entry["owner"], entry["path"], entry["undo"]
    commands = tuple(tuple(command) for command in undo["reload"])
    if owner == "NetworkManager":
        if entry["whole"] or not networkmanager.is_mine(path):
            raise Trouble(f"the journal: {path}", "another file than a profile", "one of NetworkManager, left to it")
        if not networkmanager.is_reload(commands, interface):
            raise Trouble(
                f"the journal: {path}", f"the commands {_said(commands)}", "those that set the MTU of a profile"
            )
        return commands
    law = _LAWS.get(owner)
    if law is None or not entry["whole"] or posixpath.normpath(path) != path or not law.is_mine(path):
        raise Trouble(f"the journal: {path}", f"a file of {owner}", "one that a roll-out changes")
    if commands != law.reload(interface):
        raise Trouble(f"the journal: {path}", f"the commands {_said(commands)}", _said(law.reload(interface)) or "none")
    if entry["mode"] not in MODES:
        raise Trouble(f"the journal: {path}", f"the mode {entry['mode']}", " or ".join(MODES))
    for line in _strange(undo["diff"]) if law.runs else ():
        raise Trouble(f"the journal: {path}", f"the new line {line[:60]!r}", "lines that were there, but for numbers")
    return commands


def _said(commands: tuple[Command, ...]) -> str:
    return "; ".join(" ".join(command) for command in commands)


def _strange(diff: str) -> Iterator[str]:
    """Lines that come, and are not what others were that go."""
    lines = diff.split("\n")[2:]
    gone = {_NUMBERS.sub("", line[1:]) for line in lines if line.startswith("-")}
    yield from (line[1:] for line in lines if line.startswith("+") and _NUMBERS.sub("", line[1:]) not in gone)
