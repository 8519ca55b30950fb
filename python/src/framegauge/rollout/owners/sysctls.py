"""Files of sysctl(8) and systemd-sysctl(8) that give IPv6 an MTU of its own on an interface: `net.ipv6.conf.IFACE.mtu`.

That of `default` and of `all` does nothing: a new interface has the MTU of its link (`ipv6_add_dev` in
net/ipv6/addrconf.c), and so has one whose MTU is changed (`addrconf_notify`), until the file is applied again.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterator

from framegauge.rollout.owners.model import Claim, Files, Nic

__all__ = ["FILES", "OWNER", "of_ipv6"]

OWNER = "sysctl"
# Of files with the same name the first one counts (sysctl.d(5)).
FOLDERS = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d")
MAIN = "/etc/sysctl.conf"
FILES = (*(f"{folder}/*.conf" for folder in FOLDERS), MAIN)
LINE = re.compile(r"\s*-?\s*(?P<key>[^\s=#;]+)\s*=\s*(?P<value>\d{1,9})\s*$")
BEFORE, AFTER = "net/ipv6/conf/", "/mtu"
NOT_INTERFACES = ("all", "default")


def of_ipv6(files: Files, nic: Nic) -> list[Claim]:
    """The line that counts: the last one, and one with the interface's name before any pattern."""
    lines = [entry for path in _ordered(files) for entry in _lines(path, files[path])]
    by_name = [entry for entry in lines if entry[2] == nic.name]
    by_pattern = [
        entry for entry in lines if entry[2] not in NOT_INTERFACES and fnmatch.fnmatchcase(nic.name, entry[2])
    ]
    return [
        Claim(OWNER, path, number, key, mtu) for path, number, _, key, mtu in (by_name or by_pattern)[-1:]
    ]  # fmt: skip


def _ordered(files: Files) -> list[str]:
    """As they are applied: by their names, wherever they are, and the main file last."""
    first: dict[str, str] = {}
    for folder in FOLDERS:
        for path in files:
            if posixpath.dirname(path) == folder and path.endswith(".conf"):
                first.setdefault(posixpath.basename(path), path)
    return [first[name] for name in sorted(first)] + [path for path in (MAIN,) if path in files]


def _lines(path: str, text: str) -> Iterator[tuple[str, int, str, str, int]]:
    """Path, number, interface (or pattern), key and value of each line that sets such an MTU."""
    for number, line in enumerate(text.split("\n"), 1):
        match = LINE.match(line)
        key = "" if match is None else _slashed(match["key"])
        if match is not None and key.startswith(BEFORE) and key.endswith(AFTER):
            yield path, number, key[len(BEFORE) : -len(AFTER)], match["key"], int(match["value"])


def _slashed(key: str) -> str:
    """The path of a key: where the first separator is a dot, dots and slashes change places (sysctl.d(5))."""
    dot, slash = key.find("."), key.find("/")
    if dot < 0 or 0 <= slash < dot:
        return key
    return key.translate(str.maketrans("./", "/."))
