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

from framegauge.rollout.owners.commands import settings
from framegauge.rollout.owners.model import SECRET, Claim, Files, Nic

__all__ = ["FILES", "Mention", "claims", "is_of_another", "joined", "mentions", "names", "owner", "short"]

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
        named = names(line, nic)
        if owner == UDEV:
            matches = _matches(line, nic)
            may, named = matches is not False, named or matches is True
        else:
            may = named or (bool(VARIABLE.search(line)) and not is_of_another(line, nic))
        if may and _setting(owner, line, nic) is None:
            listed.append(Mention(owner, path, number, short(line), named))
    return listed


def is_of_another(line: str, nic: Nic) -> bool:
    """Whether it sets the MTU of interfaces that it names, none of which is this one."""
    named = [setting.name for setting in settings(line)]
    return any(not VARIABLE.search(name) for name in named) and nic.name not in named


def names(line: str, nic: Nic) -> bool:
    """Whether it has the name of the interface, or the address of its hardware."""
    if any(address and address in line.lower() for address in (nic.address, nic.permanent)):
        return True
    return re.search(rf"(?<![A-Za-z0-9-]){re.escape(nic.name)}(?![\w-]|\.\d)", line) is not None


def short(line: str) -> str:
    """As it is told: on one line, and no value that may be a secret."""
    if SECRET.search(line):
        return "a line that may hold a secret"
    return " ".join(line.split())[:120]


def _setting(owner: str, line: str, nic: Nic) -> tuple[str, int] | None:
    """The setting and the MTU that a line certainly gives to the interface."""
    matches = _matches(line, nic) if owner == UDEV else None
    if owner == UDEV:
        if matches is not True:
            return None
        for key, operation, value in PAIR.findall(line):
            if key == "ATTR{mtu}" and operation in ("=", ":=") and value.isdigit():
                return "ATTR{mtu}", int(value)
    for each in settings(line):
        if each.name == nic.name or (matches is True and VARIABLE.match(each.name)):
            return each.first, each.mtu
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


def _lines(files: Files) -> Iterator[tuple[str, str, int, str]]:
    """Owner, path, number and text of each line that speaks of an MTU and is no comment, continued ones joined."""
    for path in sorted(files):
        by = owner(path)
        if by is None:
            continue
        for number, line in joined(files[path]):
            if MTU.search(line) and not line.lstrip().startswith(("#", ";")):
                yield by, path, number, line


def joined(text: str) -> Iterator[tuple[int, str]]:
    """Its lines with the number of their first, those that end with a backslash joined with the next."""
    begun, parts = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        begun = begun or number
        if line.endswith("\\"):
            parts += line[:-1] + " "
            continue
        yield begun, parts + line
        begun, parts = 0, ""
    if parts:
        yield begun, parts


def owner(path: str) -> str | None:
    """Who reads the file, of these; None for any other."""
    for by, patterns in FILES.items():
        for pattern in patterns:
            same_depth = pattern.count("/") == path.count("/")
            if same_depth and fnmatch.fnmatchcase(path, pattern) and not posixpath.basename(path).startswith("."):
                return by
    return None
