"""Programs that set an MTU when an interface comes up or the machine starts: udev rules, rc.local, units of systemd,
hooks of NetworkManager, networkd, ifupdown and DHCP clients, cron.

They are programs, so no text tells for certain what they do. A line that sets the MTU of the interface to a number in a
known way is a claim; any other that speaks of an MTU and of the interface, or of one that it names by a variable, may
set it, and is told as such.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from framegauge.rollout.owners.commands import SETS
from framegauge.rollout.owners.model import Claim, Files, Nic

__all__ = ["FILES", "Mention", "claims", "mentions"]

# What runs each, in words, by the files that it reads.
FILES = {
    "a udev rule": ("/etc/udev/rules.d/*.rules", "/run/udev/rules.d/*.rules"),
    "rc.local": (
        "/etc/rc.local", "/etc/rc.d/rc.local", "/etc/init.d/boot.local", "/etc/init.d/after.local", "/sbin/ifup-local",
    ),
    "a unit of systemd": ("/etc/systemd/system/*.service", "/etc/systemd/system/*/*.conf"),
    "a hook of NetworkManager": ("/etc/NetworkManager/dispatcher.d/*", "/etc/NetworkManager/dispatcher.d/*/*"),
    "a hook of networkd-dispatcher": ("/etc/networkd-dispatcher/*/*",),
    "a hook of ifupdown": ("/etc/network/if-pre-up.d/*", "/etc/network/if-up.d/*"),
    "a hook of wicked": ("/etc/sysconfig/network/scripts/*",),
    "a hook of dhclient": ("/etc/dhcp/dhclient-exit-hooks.d/*",),
    "cron": ("/etc/crontab", "/etc/cron.d/*", "/var/spool/cron/crontabs/root", "/var/spool/cron/root"),
}  # fmt: skip
UDEV = "a udev rule"
MTU = re.compile(r"mtu", re.IGNORECASE)
SETTING = (
    SETS,
    re.compile(r"\becho\s+[\"']?(?P<mtu>\d{1,9})[\"']?\s*>\s*[\"']?/sys/class/net/(?P<name>[^/\s]+)/mtu\b"),
)
# A variable of a shell, or what udev puts in.
VARIABLE = re.compile(r"\$\{?\w+|\$name|%k|\$env\{")
PAIR = re.compile(r"([A-Z_]+(?:\{[^}]*\})?)\s*(==|!=|\+=|-=|:=|=)\s*\"((?:[^\"\\]|\\.)*)\"")


@dataclass(frozen=True)
class Mention:
    """A line that may set the MTU of the interface. `is_named`: it has the interface's own name."""

    owner: str
    path: str
    line: int
    text: str
    is_named: bool

    @property
    def place(self) -> str:
        """Path and line."""
        return f"{self.path}:{self.line}"


def claims(files: Files, nic: Nic) -> list[Claim]:
    """The lines that set its MTU to a number."""
    settings = [(owner, path, number, _setting(owner, line, nic)) for owner, path, number, line in _lines(files)]
    return [Claim(owner, path, number, *setting) for owner, path, number, setting in settings if setting is not None]


def mentions(files: Files, nic: Nic) -> list[Mention]:
    """The other lines that may."""
    listed = []
    for owner, path, number, line in _lines(files):
        named = _names(line, nic.name) or bool(nic.address and nic.address in line.lower())
        if owner == UDEV:
            matches = _matches(line, nic)
            may, named = matches is not False, named or matches is True
        else:
            names = [setting["name"] for pattern in SETTING for setting in pattern.finditer(line)]
            may = named or (bool(VARIABLE.search(line)) and not any(not VARIABLE.search(name) for name in names))
        if may and _setting(owner, line, nic) is None:
            listed.append(Mention(owner, path, number, " ".join(line.split())[:120], named))
    return listed


def _setting(owner: str, line: str, nic: Nic) -> tuple[str, int] | None:
    """The setting and the MTU that a line certainly gives to the interface."""
    matches = _matches(line, nic) if owner == UDEV else None
    if owner == UDEV:
        if matches is not True:
            return None
        for key, operation, value in PAIR.findall(line):
            if key == "ATTR{mtu}" and operation in ("=", ":=") and value.isdigit():
                return "ATTR{mtu}", int(value)
    for pattern in SETTING:
        if setting := pattern.search(line):
            name = setting["name"].strip("\"'")
            if name == nic.name or (matches is True and VARIABLE.match(name)):
                return setting[0].split()[0], int(setting["mtu"])
    return None


def _matches(line: str, nic: Nic) -> bool | None:
    """Whether a udev rule applies to the interface; None if it does not tell by name or address."""
    applies = None
    for key, operation, value in PAIR.findall(line):
        if key in ("KERNEL", "NAME", "ENV{INTERFACE}") and operation in ("==", "!="):
            fits = any(fnmatch.fnmatchcase(nic.name, each) for each in value.split("|"))
        elif key == "ATTR{address}" and operation in ("==", "!=") and nic.address:
            fits = any(
                fnmatch.fnmatchcase(address, value.lower()) for address in (nic.address, nic.permanent) if address
            )
        elif key == "NAME" and operation in ("=", ":="):
            fits, operation = value == nic.name, "=="
        elif key == "SUBSYSTEM" and operation == "==" and value != "net":
            return False
        else:
            continue
        if fits is (operation == "!="):
            return False
        applies = True if operation == "==" else applies
    return applies


def _names(line: str, name: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", line) is not None


def _lines(files: Files) -> Iterator[tuple[str, str, int, str]]:
    """Owner, path, number and text of each line that speaks of an MTU and is no comment, continued ones joined."""
    for path in sorted(files):
        owner = _owner(path)
        if owner is None:
            continue
        begun, parts = 0, ""
        for number, line in enumerate(files[path].split("\n"), 1):
            begun = begun or number
            parts += line[:-1] + " " if line.endswith("\\") else line
            if line.endswith("\\"):
                continue
            if MTU.search(parts) and not parts.lstrip().startswith(("#", ";")):
                yield owner, path, begun, parts
            begun, parts = 0, ""


def _owner(path: str) -> str | None:
    for owner, patterns in FILES.items():
        for pattern in patterns:
            same_depth = pattern.count("/") == path.count("/")
            if same_depth and fnmatch.fnmatchcase(path, pattern) and not posixpath.basename(path).startswith("."):
                return owner
    return None
