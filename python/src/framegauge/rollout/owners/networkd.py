"""systemd-networkd and udev: the .network and .link files that set an interface's MTU, and their change.

Of .network files the first one by name that matches counts, wherever it is; /etc hides the same name in /run and /usr,
and drop-ins (NAME.network.d/*.conf) add to it (systemd.network(5)). Which one that is networkd itself notes in
/run/systemd/netif/links. A .link file's MTU is given by udev when the interface appears (systemd.link(5)); udev notes
the file in /run/udev/data. A .netdev file's MTU is that of an interface which networkd makes (systemd.netdev(5)).
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from framegauge.rollout.owners import ini
from framegauge.rollout.owners.elsewhere import Mention
from framegauge.rollout.owners.ini import Entry
from framegauge.rollout.owners.model import Claim, Command, Edit, Files, Kept, Nic, Trouble, Via

__all__ = ["claims", "edits", "held", "lease_mtu", "of_ipv6", "of_netplan", "shared", "unclear"]

FOLDERS = ("/lib/systemd/network", "/usr/lib/systemd/network", "/usr/local/lib/systemd/network",
           "/run/systemd/network", "/etc/systemd/network")  # fmt: skip
ETC = "/etc/systemd/network"
LINKS, LEASES, UDEV_DATA = "/run/systemd/netif/links", "/run/systemd/netif/leases", "/run/udev/data/n"
DROP_IN = "90-framegauge-mtu.conf"
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
ANY = Entry("Match", "OriginalName", "*", 0)
TRUE = ("1", "yes", "y", "true", "t", "on")


def of_netplan(path: str) -> bool:
    """Whether netplan writes the file anew from its own."""
    return posixpath.basename(path).startswith("10-netplan-") and path.startswith("/run/")


def claims(files: Files, nic: Nic) -> list[Claim]:
    """What sets its MTU or, if nothing does, the file by which networkd manages it. Trouble for a file of no keys."""
    all_claims: list[Claim] = []
    for path, entry in _values(files, nic, ".link"):
        all_claims.append(Claim("udev", path, entry.line, "[Link] MTUBytes", _bytes(entry, path)))
    main = _main(files, nic, ".network")
    values = _values(files, nic, ".network")
    if not values:  # those of a .network file come later
        all_claims += _made(files, nic)
    if main is None:
        return all_claims
    all_claims += [
        Claim("networkd", path, last_entry.line, "[Link] MTUBytes", _bytes(last_entry, path))
        for path, last_entry in values[-1:]
    ]
    leased_mtu = lease_mtu(files, nic)
    if leased_mtu is not None and _uses_lease(files, main) and not values:
        all_claims.append(
            Claim("DHCP", f"{LEASES}/{nic.index}", 0, "option 26, with UseMTU=yes", leased_mtu, lasting=False)
        )
    if not all_claims:
        all_claims.append(Claim("networkd", main, 0, "[Link]", None))
    return all_claims


def of_ipv6(files: Files, nic: Nic) -> list[Claim]:
    """What gives IPv6 alone an MTU of its own: the last of the file that counts and its drop-ins."""
    main = _main(files, nic, ".network")
    all_claims = [
        Claim("networkd", path, entry.line, "[Network] IPv6MTUBytes", _bytes(entry, path))
        for path in ([] if main is None else _all(files, main))
        if (entry := ini.last(ini.entries(files[path], path), "Network", "IPv6MTUBytes")) is not None and entry.value
    ]
    return all_claims[-1:]


def _made(files: Files, nic: Nic) -> list[Claim]:
    """The MTU with which a .netdev file makes the interface."""
    netdev_claims = []
    for path in _by_name(files, ".netdev").values():
        entries = [(item, entry) for item in _all(files, path) for entry in ini.entries(files[item], item)]
        name = [entry.value for _, entry in entries if (entry.section, entry.key) == ("NetDev", "Name")]
        sizes = [item for item in entries if (item[1].section, item[1].key) == ("NetDev", "MTUBytes") and item[1].value]
        if name[-1:] == [nic.name] and sizes:
            where, entry = sizes[-1]
            netdev_claims.append(Claim("a .netdev file", where, entry.line, "[NetDev] MTUBytes", _bytes(entry, where)))
    return netdev_claims


def unclear(files: Files, nic: Nic) -> list[Mention]:
    """What sets an MTU in files of which it cannot be said here whether they are of the interface: [Match] asks for
    what only udev knows, such as Path=, and udev and networkd have not noted what they chose."""
    mentions = []
    noted_by_ending = {".network": f"{LINKS}/{nic.index}" in files, ".link": _noted_link(files, nic) is not None}
    for ending in (suffix for suffix, is_noted in noted_by_ending.items() if not is_noted):
        for path in _by_name(files, ending).values():
            if _is_unclear(files[path], path, nic):
                mentions += [
                    Mention("a [Match]", where, entry.line, f"{entry.key}={entry.value}", True)
                    for where in _all(files, path)
                    if (entry := ini.last(ini.entries(files[where], where), "Link", "MTUBytes")) and entry.value
                ]
    return mentions


def _is_unclear(text: str, path: str, nic: Nic) -> bool:
    """Whether [Match] would mean the interface but for what is not known here."""
    matches = [entry for entry in ini.entries(text, path) if entry.section == "Match"]
    known_entries = [entry for entry in matches if entry.key in _known(nic)]
    return len(known_entries) < len(matches) and _matches(known_entries or [ANY], nic)


def _noted_link(files: Files, nic: Nic) -> str | None:
    """The .link file that udev has noted, if it is there."""
    match = re.search(r"^E:ID_NET_LINK_FILE=(.*)$", files.get(f"{UDEV_DATA}{nic.index}", ""), re.MULTILINE)
    return match[1] if match is not None and match[1] in files else None


def reload(interface: str) -> tuple[Command, ...]:
    """What has networkd take changes of its files."""
    return ("networkctl", "reload"), ("networkctl", "reconfigure", interface)


def is_ours(path: str, ending: str) -> bool:
    """Whether a roll-out changes such a file: one in /etc, or a drop-in there."""
    folder, name = posixpath.split(path)
    above, inner = posixpath.split(folder)
    is_drop_in = above == ETC and inner.endswith(f"{ending}.d") and name.endswith(".conf")
    return is_drop_in or (folder == ETC and name.endswith(ending))


def edits(
    files: Files, nic: Nic, mtu: int, kept: Kept | None = None, left: Collection[str] = ()
) -> list[Edit]:  # fmt: skip
    """The changes of the files that count: in /etc the file itself, elsewhere a drop-in of it. None if networkd does
    not manage the interface. `kept`: routes of files in /etc that get an MTU of their own. `left`: files that are not
    to be changed."""
    changes = []
    for path, _ in _values(files, nic, ".link")[-1:]:
        if _main(files, nic, ".link") not in left:
            changes.append(_edit(files, path, mtu, ()))
    main = _main(files, nic, ".network")
    if main is not None and main not in left:
        values = _values(files, nic, ".network")
        changes.append(_edit(files, values[-1][0] if values else main, mtu, reload(nic.name)))
        if kept is not None:
            texts = {change.path: change.after or "" for change in changes}
            for path in _all(files, main):
                if path.startswith(f"{ETC}/"):
                    texts[path] = _with_routes(texts.get(path, files[path]), path, kept)
            by_path = {change.path: change for change in changes}
            changes = [
                replace(by_path[path], after=text)
                if path in by_path
                else Edit("networkd", path, files[path], text, reload(nic.name))
                for path, text in texts.items()
                if path in by_path or text != files[path]
            ]
    return changes


def shared(files: Files, nic: Nic, beside: Iterable[Nic]) -> dict[str, tuple[str, ...]]:
    """The files that would be changed and are those of others of these interfaces as well, such as one for all NICs."""
    both = {}
    for ending in (".link", ".network"):
        main = _main(files, nic, ending)
        names = () if main is None else tuple(other.name for other in beside if _main(files, other, ending) == main)
        if main is not None and names and (ending == ".network" or _values(files, nic, ending)):
            both[main] = names
    return both


def held(files: Files, nic: Nic) -> set[tuple[Via, int]]:
    """The routes through a gateway to which [Route] sections give an MTU."""
    main = _main(files, nic, ".network")
    routes = set()
    for path in [] if main is None else _all(files, main):
        for _, block in ini.blocks(files[path], path, "Route"):
            route, entry = _route(block), ini.last(block, "Route", "MTUBytes")
            if route is not None and entry is not None and entry.value:
                routes.add((route, _bytes(entry, path)))
    return routes


def _route(block: list[Entry]) -> Via | None:
    """The route that a [Route] section makes; None if it has no gateway."""
    gateway, to = ini.last(block, "Route", "Gateway"), ini.last(block, "Route", "Destination")
    if gateway is None or not gateway.value or gateway.value.startswith("_"):  # _dhcp4: whatever a server says
        return None
    return Via(6 if ":" in gateway.value else 4, to.value if to is not None else "default", gateway.value)


def _with_routes(text: str, path: str, kept_routes: Kept) -> str:
    """The text in which [Route] sections give these routes an MTU. What is a Gateway= of [Network], which has none,
    becomes a section."""
    for route in kept_routes.routes:
        vias = {Via(route.family, name, route.gateway) for name in route.networks}
        route_blocks = [(head, block) for head, block in ini.blocks(text, path, "Route") if _route(block) in vias]
        for head, block in reversed(route_blocks):
            lines = text.split("\n")
            entry = ini.last(block, "Route", "MTUBytes")
            if entry is not None:
                lines[entry.line - 1] = f"MTUBytes={kept_routes.mtu}"
            else:
                lines.insert(head, f"MTUBytes={kept_routes.mtu}")
            text = "\n".join(lines)
        short_entries = [
            short_entry
            for _, block in ini.blocks(text, path, "Network")
            for short_entry in block
            if short_entry.key == "Gateway" and short_entry.value == route.gateway
        ]
        if short_entries and not route_blocks and route.destination == "default":
            lines = text.split("\n")
            del lines[short_entries[0].line - 1]
            rest = "\n".join(lines).rstrip("\n")
            text = f"{rest}\n\n[Route]\nGateway={route.gateway}\nMTUBytes={kept_routes.mtu}\n"
    return text


def lease_mtu(files: Files, nic: Nic) -> int | None:
    """What the DHCP server told networkd; Trouble if that is no number."""
    path = f"{LEASES}/{nic.index}"
    entry = ini.last(ini.entries(files.get(path, ""), path), "", "MTU")
    return None if entry is None else _bytes(entry, path)


def _edit(files: Files, path: str, mtu: int, commands: tuple[Command, ...]) -> Edit:
    owner = "udev" if ".link" in path else "networkd"
    if path.startswith(f"{ETC}/"):
        text = files[path]
        return Edit(owner, path, text, ini.with_key(text, path, "Link", "MTUBytes", str(mtu)), commands)
    name = posixpath.basename(posixpath.dirname(path) if path.endswith(".conf") else path).removesuffix(".d")
    place = f"{ETC}/{name}.d/{DROP_IN}"
    before = files.get(place)
    return Edit(owner, place, before, ini.with_key(before or "", place, "Link", "MTUBytes", str(mtu)), commands)


def _main(files: Files, nic: Nic, ending: str) -> str | None:
    """The file that networkd, or udev, has chosen for the interface."""
    if ending == ".network":
        link_path = f"{LINKS}/{nic.index}"
        if link_path in files:
            entry = ini.last(ini.entries(files[link_path], link_path), "", "NETWORK_FILE")
            return entry.value if entry is not None and entry.value in files else None
    elif (chosen := _noted_link(files, nic)) is not None and _is_unclear(files[chosen], chosen, nic):
        return chosen
    by_name = _by_name(files, ending)
    for name in sorted(by_name):
        if _matches(ini.entries(files[by_name[name]], by_name[name]), nic):
            return by_name[name]
    return None


def _by_name(files: Files, ending: str) -> dict[str, str]:
    """The files that count, by their names: /etc hides what is elsewhere."""
    by_name: dict[str, str] = {}
    for folder in FOLDERS:
        by_name |= {
            posixpath.basename(path): path
            for path in files
            if posixpath.dirname(path) == folder and path.endswith(ending)
        }
    return by_name


def _all(files: Files, main: str) -> list[str]:
    """The file and its drop-ins, in the order in which they count."""
    name = posixpath.basename(main)
    by_name: dict[str, str] = {}
    for folder in FOLDERS:
        inner = f"{folder}/{name}.d"
        by_name |= {posixpath.basename(path): path for path in files if posixpath.dirname(path) == inner}
    return [main, *(by_name[file_name] for file_name in sorted(by_name) if file_name.endswith(".conf"))]


def _values(files: Files, nic: Nic, ending: str) -> list[tuple[str, Entry]]:
    main = _main(files, nic, ending)
    if main is None:
        return []
    values = []
    for path in _all(files, main):
        entry = ini.last(ini.entries(files[path], path), "Link", "MTUBytes")
        if entry is not None and entry.value:
            values.append((path, entry))
    return values


def _uses_lease(files: Files, main: str) -> bool:
    """Whether DHCP's MTU is taken: no, unless a file says so."""
    values = [
        entry.value.lower()
        for path in _all(files, main)
        for entry in ini.entries(files[path], path)
        if entry.section in ("DHCPv4", "DHCP") and entry.key == "UseMTU"
    ]
    return bool(values) and values[-1] in TRUE


def _bytes(entry: Entry, path: str) -> int:
    match = re.fullmatch(r"(\d{1,9})([KMG]?)", entry.value)
    if match is None:
        raise Trouble(f"{path}:{entry.line}", f"{entry.key}={entry.value}", "a number of bytes")
    return int(match[1]) * UNITS[match[2]]


def _matches(entries: list[Entry], nic: Nic) -> bool:
    """Whether [Match] means the interface; no, where it asks for what is not known here."""
    conditions = [entry for entry in entries if entry.section == "Match"]
    if not conditions:
        return False
    known_values = _known(nic)
    return all(entry.key in known_values and _one_of(entry.value, known_values[entry.key]) for entry in conditions)


def _known(nic: Nic) -> dict[str, list[str | None]]:
    """What the keys of [Match] are compared with."""
    return {
        "Name": [nic.name, *nic.altnames], "OriginalName": [nic.name], "MACAddress": [nic.address],
        "PermanentMACAddress": [nic.permanent or nic.address], "Driver": [nic.driver], "Type": ["ether"],
        "Kind": [nic.kind],
    }  # fmt: skip


def _one_of(value: str, values: list[str | None]) -> bool:
    words = value.split()
    negated = bool(words) and words[0].startswith("!")
    if negated:
        words[0] = words[0][1:]
    patterns = [word.replace("-", ":") if _is_address(word) else word for word in words]
    # A NIC is of no kind, so that !* means it.
    present = [own for own in values if own is not None]
    return any(fnmatch.fnmatch(own.lower(), pattern.lower()) for own in present for pattern in patterns) != negated


def _is_address(word: str) -> bool:
    return re.fullmatch(r"([0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}", word) is not None
