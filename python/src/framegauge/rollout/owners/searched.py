"""Files of programs that nothing here reads: a line that speaks of an MTU, in a file that names the interface.

There is no end of programs that set MTUs (os-net-config, nmstate, netctl, wg-quick, libvirt, SR-IOV operators, scripts
of one's own). Their files are not understood, and are told so that somebody looks. What nobody names is not found so.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from framegauge.rollout.owners import dhcp, elsewhere, ifcfg, ifupdown2
from framegauge.rollout.owners.commands import SPEAKS
from framegauge.rollout.owners.elsewhere import Mention
from framegauge.rollout.owners.model import Files, Nic

__all__ = ["mentions"]

OWNER = "a file"
COMMENTS = ("#", ";", "//", "<!--", "*", '"#')
# What nobody runs or reads: copies that editors and package managers leave, and documentation.
LEFT = re.compile(
    r"(~|\.(bak|old|orig|save|swp|rpm\w+|dpkg-\w+|ucf-\w+|md|rst|html|example|sample|pem|crt)|README.*)$", re.IGNORECASE
)
# A line of a certificate or key: letters that happen to spell a word say nothing.
ENCODED = re.compile(r"\s*[A-Za-z0-9+/]{40,}={0,2}\s*")
PATH = re.compile(r"/[\w./@:+-]+")
# Read by who owns them, but not for whatever they may say of an interface.
READ_FOR_OTHERS = (
    "/etc/cloud/", "/etc/dhcp/", "/etc/dhcpcd.conf", ifupdown2.CONFIG, "/etc/network/ifupdown-ng.conf",
    "/etc/kernel/cmdline", "/etc/cmdline.d/", "/etc/dracut.conf", "/etc/default/grub",
)  # fmt: skip
OWN = ("/etc/framegauge/", dhcp.HOOK_FILE)
# Whose files have an MTU of the tunnel that they make, beside the name of the interface that it runs over (wg-quick(8),
# pppd(8)).
OF_TUNNELS = {
    "/etc/wireguard/": re.compile(r"\s*MTU\s*=", re.IGNORECASE),
    "/etc/ppp/": re.compile(r"\s*(?:default-)?m[tr]u\s+\d"),
}


def mentions(others: Files, read: Files, nic: Nic) -> list[Mention]:
    """A line of each of the `others` that may set its MTU, or more where they name it themselves, and lines by which
    programs call one of them for it. `read`: the files that are understood, which are left out."""
    results = [
        Mention(elsewhere.owner(path) or OWNER, path, number, elsewhere.short(line), True)
        for path in sorted(others)
        if not _is_understood(path, read) and not path.startswith(OWN) and not LEFT.search(path)
        for number, line in _of(path, others[path], nic)
    ]
    return [*results, *_calls(others, read, nic)]


def _calls(others: Files, read: Files, nic: Nic) -> Iterator[Mention]:
    """Lines of programs that call a script which speaks of an MTU, for the interface."""
    scripts = set(others)
    for path in sorted(candidate for candidate in read if elsewhere.owner(candidate)):
        for number, line in elsewhere.joined(read[path]):
            if scripts.isdisjoint(PATH.findall(line)) or line.lstrip().startswith(COMMENTS) or SPEAKS.search(line):
                continue
            if elsewhere.names(line, nic):
                yield Mention(elsewhere.owner(path) or OWNER, path, number, elsewhere.short(line), True)


def _is_understood(path: str, read: Files) -> bool:
    is_for_others = path.startswith(READ_FOR_OTHERS) or path == ifcfg.GLOBAL
    return path in read and not is_for_others and elsewhere.owner(path) is None


def _of(path: str, text: str, nic: Nic) -> Iterator[tuple[int, str]]:
    text_lines = [
        entry
        for entry in elsewhere.joined(text)
        if not ENCODED.fullmatch(entry[1]) and not _is_of_its_tunnel(path, entry[1], nic)
    ]
    lines = [entry for entry in text_lines if not entry[1].lstrip().startswith(COMMENTS)]
    mtu_lines = [
        (number, line) for number, line in lines if SPEAKS.search(line) and not elsewhere.is_of_another(line, nic)
    ]
    named_numbers = [number for number, line in lines if elsewhere.names(line, nic)]
    named_lines = [entry for entry in mtu_lines if entry[0] in named_numbers]
    if named_lines or not mtu_lines:
        yield from named_lines
    elif named_numbers:
        # The nearest to its name; below it rather than above, as most files have it.
        yield min(
            mtu_lines, key=lambda entry: min((abs(entry[0] - number), entry[0] < number) for number in named_numbers)
        )
    elif elsewhere.names(re.sub(r"[-_.](?!\d)", " ", posixpath.basename(path)), nic):
        # The whole file is for it; a line with a number tells more than a heading.
        yield next((entry for entry in mtu_lines if re.search(r"\d", entry[1])), mtu_lines[0])


def _is_of_its_tunnel(path: str, line: str, nic: Nic) -> bool:
    own = next((pattern for folder, pattern in OF_TUNNELS.items() if path.startswith(folder)), None)
    is_tunnel = nic.name == posixpath.basename(path).partition(".")[0] or nic.kind in ("wireguard", "ppp")
    return own is not None and not is_tunnel and own.match(line) is not None
