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

from framegauge.rollout.owners.commands import SPEAKS, settings
from framegauge.rollout.owners.model import SECRET, Claim, Files, Nic

__all__ = ["FILES", "Mention", "claims", "is_of_another", "joined", "mentions", "names", "owner", "short"]

# What runs each, in words, by the files that it reads.
FILES = {
    "a udev rule": (
        "/etc/udev/rules.d/*.rules", "/run/udev/rules.d/*.rules", "/usr/lib/udev/rules.d/*.rules",
        "/usr/local/lib/udev/rules.d/*.rules", "/lib/udev/rules.d/*.rules",
    ),
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
# A variable of a shell, or what udev puts in, or systemd in a unit for several.
VARIABLE = re.compile(r"\$\{?\w+|\$name|%[kiIj]\b|\$env\{")
# Several names in one word, as shells expand it.
PATTERN = re.compile(r"(?<![\w.@:-])[\w.@:-]{1,40}(?:[*?]|\[[\w!^-]+\]|\{[\w,.-]+\})+[\w.*?-]*")
MOST_OF_BRACES = 1000
BRACES = re.compile(r"\{([^{}]*)\}")
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
    results = []
    for owner, path, number, line in _lines(files):
        is_named = names(line, nic)
        if owner == UDEV:
            matches = _matches(line, nic)
            is_possible, is_named = matches is not False, is_named or matches is True
        else:
            is_possible = is_named or (bool(VARIABLE.search(line)) and not is_of_another(line, nic))
        if is_possible and _setting(owner, line, nic) is None:
            results.append(Mention(owner, path, number, short(line), is_named))
    return results


def is_of_another(line: str, nic: Nic) -> bool:
    """Whether it sets the MTU of interfaces that it names, none of which is this one."""
    targets = [setting.name for setting in settings(line)]
    is_own = any(name in (nic.name, *nic.altnames) or _fits(name, nic) for name in targets)
    return any(not VARIABLE.search(name) for name in targets) and not is_own


def names(line: str, nic: Nic) -> bool:
    """Whether it has a name of the interface, alone, in a pattern or in a word with MTU (ETH1_MTU), or the address of
    its hardware."""
    if any(address and address in line.lower() for address in (nic.address, nic.permanent)):
        return True
    for name in (nic.name, *nic.altnames):
        if re.search(rf"(?<![A-Za-z0-9-]){re.escape(name)}(?![\w-]|\.\d)", line) is not None:
            return True
        key = "[_.-]".join(re.escape(piece) for piece in re.split(r"[_.-]", name))
        joined = rf"(?<![a-z0-9]){key}[_.-]?mtu(?![a-z])|(?<![a-z])mtu[_.-]?{key}(?![a-z0-9]|[_.-]\d)"
        if re.search(joined, line, re.IGNORECASE):
            return True
    return any(_fits(piece[0], nic) for piece in PATTERN.finditer(line))


def _fits(word: str, nic: Nic) -> bool:
    """Whether a word with wildcards or braces is the interface, among others."""
    if PATTERN.fullmatch(word) is None:
        return False
    expansions = [word]
    while expansions and len(expansions) < MOST_OF_BRACES and (braces := BRACES.search(expansions[0])) is not None:
        word, inner = expansions.pop(0), braces[1]
        ends = re.fullmatch(r"(\d{1,3})\.\.(\d{1,3})", inner)
        parts = [str(number) for number in range(int(ends[1]), int(ends[2]) + 1)] if ends else inner.split(",")
        expansions += [word[: braces.start()] + part + word[braces.end() :] for part in parts]
    return any(fnmatch.fnmatchcase(name, pattern) for name in (nic.name, *nic.altnames) for pattern in expansions)


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
    for setting in settings(line):
        is_other_name = setting.first == "ip" and setting.name in nic.altnames
        if setting.name == nic.name or is_other_name or (matches is True and VARIABLE.match(setting.name)):
            return setting.first, setting.mtu
    return None


def _matches(line: str, nic: Nic) -> bool | None:
    """Whether a udev rule applies to the interface; None if it does not tell by name, address or driver."""
    applies = None
    for key, operation, value in PAIR.findall(line):
        if key in ("KERNEL", "NAME", "ENV{INTERFACE}") and operation in ("==", "!="):
            fits = any(fnmatch.fnmatchcase(nic.name, pattern) for pattern in value.split("|"))
        elif key == "ATTR{address}" and operation in ("==", "!=") and nic.address:
            fits = any(
                fnmatch.fnmatchcase(address, value.lower()) for address in (nic.address, nic.permanent) if address
            )
        elif key in ("DRIVERS", "ENV{ID_NET_DRIVER}") and operation in ("==", "!=") and nic.driver:
            fits = any(fnmatch.fnmatchcase(nic.driver, pattern) for pattern in value.split("|"))
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
        # Of what distributions ship, which is much, only a word of its own.
        speaks = MTU if path.startswith(("/etc/", "/var/", "/run/", "/sbin/")) else SPEAKS
        for number, line in joined(files[path]):
            if speaks.search(line) and not line.lstrip().startswith(("#", ";")):
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
