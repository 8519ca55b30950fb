"""MTUs on the kernel's command line: `ip=` and `bond=` of dracut.cmdline(7), which NetworkManager and networkd read as
well (nm-initrd-generator(8), systemd-network-generator(8)).

They count where the network is brought up before the root is mounted, and until somebody else sets an MTU: what they
say may be so at the next start. The kernel's own `ip=` (Documentation/admin-guide/nfs/nfsroot.rst) has no MTU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from framegauge.rollout.owners.elsewhere import Mention, short
from framegauge.rollout.owners.model import Claim, Files, Nic

__all__ = ["FILES", "OWNER", "WORDS", "claims", "unclear"]

OWNER = "the kernel's command line"
# The one of this start, and those of the next: boot loaders, what dracut builds in, Raspberry Pi.
FILES = (
    "/proc/cmdline", "/etc/kernel/cmdline", "/etc/cmdline.d/*.conf", "/etc/dracut.conf", "/etc/dracut.conf.d/*.conf",
    "/etc/default/grub", "/etc/default/grub.d/*.cfg", "/boot/loader/entries/*.conf", "/boot/cmdline.txt",
    "/boot/firmware/cmdline.txt",
)  # fmt: skip
WORDS = ("ip", "bond")  # no other word of such a file is read
WORD = re.compile(rf"(?<![^\s\"'=])({'|'.join(WORDS)})=([^\s\"']+)")
FIELD = re.compile(r"((?:\[[^\]]*\]|[^:\[\]])*)(?::|$)")
METHODS = (
    "dhcp",
    "on",
    "any",
    "dhcp6",
    "auto6",
    "either6",
    "link6",
    "single-dhcp",
    "link-local",
    "none",
    "off",
    "ibft",
)


def claims(files: Files, nic: Nic, mtu: int) -> list[Claim]:
    """Those that set the MTU that is asked for."""
    return [claim for claim in _all(files, nic) if claim.mtu == mtu]


def unclear(files: Files, nic: Nic, mtu: int) -> list[Mention]:
    """Those that may set another one."""
    others = [claim for claim in _all(files, nic) if claim.mtu != mtu]
    return [Mention(OWNER, claim.path, claim.line, short(claim.key), True) for claim in others]


def _all(files: Files, nic: Nic) -> list[Claim]:
    return [
        Claim(OWNER, path, number, match[0], mtu)
        for path in sorted(files)
        if _is_one(path)
        for number, line in enumerate(files[path].split("\n"), 1)
        if not line.lstrip().startswith("#")
        for match in WORD.finditer(line)
        for name, mtu in _settings(match[1], match[2])
        if name in (nic.name, *nic.altnames)
    ]


def _is_one(path: str) -> bool:
    return any(re.fullmatch(pattern.replace(".", r"\.").replace("*", "[^/]*"), path) for pattern in FILES)


def _settings(word: str, value: str) -> Iterator[tuple[str, int]]:
    """The interface and the MTU of a word: `ip=IFACE:METHOD:MTU`, `ip=ADDRESS:PEER:GATEWAY:MASK:HOST:IFACE:METHOD:MTU`,
    `bond=NAME:PORTS:OPTIONS:MTU`. What stands there instead of an MTU is the address of a DNS server."""
    fields = [match[1] for match in FIELD.finditer(value)]
    places = [(0, 3)] if word == "bond" else [(iface, iface + 2) for iface in (0, 5)]
    for iface, mtu in places:
        is_so = word == "bond" or (len(fields) > iface + 1 and fields[iface + 1] in METHODS)
        if is_so and len(fields) > mtu and re.fullmatch(r"\d{2,5}", fields[mtu]):
            yield fields[iface], int(fields[mtu])
