"""NetworkManager: the profile (keyfile) of an interface, what MTU it sets, and its change.

Which profile is active NetworkManager notes by its UUID in /run/NetworkManager/devices. `mtu=0`, or none, leaves it to
DHCP's option 26 or the device (nm-settings-keyfile(5)), unless a section [connection] of NetworkManager.conf(5) has one
for all.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re

from framegauge.rollout.owners import ini
from framegauge.rollout.owners.elsewhere import Mention
from framegauge.rollout.owners.ini import Entry
from framegauge.rollout.owners.model import Claim, Command, Edit, Files, Kept, Nic, Trouble, Via

__all__ = ["claims", "edit", "held", "of_ipv6", "of_netplan", "unclear"]

FOLDERS = ("/etc/NetworkManager/system-connections", "/run/NetworkManager/system-connections",
           "/usr/lib/NetworkManager/system-connections")  # fmt: skip
# Copies and what lies beside profiles; of /etc it reads files of any other name.
LEFT = re.compile(r"\..*|.*(~|\.pem|\.der|\.[A-Z0-9a-z]{6})")
CONFIGS = ("/etc/NetworkManager/NetworkManager.conf", "/etc/NetworkManager/conf.d/*.conf",
           "/run/NetworkManager/conf.d/*.conf", "/usr/lib/NetworkManager/conf.d/*.conf")  # fmt: skip
DEVICES = "/run/NetworkManager/devices"
SECTIONS = ("ethernet", "802-3-ethernet")
# The section, and nmcli's name, by the type of a profile whose MTU is no setting of Ethernet (nm-settings-nmcli(5)).
OTHERS = {
    "infiniband": ("infiniband",), "wifi": ("wifi", "802-11-wireless"), "802-11-wireless": ("wifi", "802-11-wireless"),
    "wireguard": ("wireguard",), "ip-tunnel": ("ip-tunnel",), "gsm": ("gsm",),
}  # fmt: skip
KINDS = (None, "veth")  # what its profiles of Ethernet are for
WITHOUT = ("", "0", "auto")  # values that leave the MTU to others
ROUTE = re.compile(r"route\d+")
MODIFY = ("nmcli", "connection", "modify", "uuid")
MTUS = tuple(dict.fromkeys(f"{names[-1]}.mtu" for names in (SECTIONS, *OTHERS.values())))
UUID, DIGITS = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{,63}"), re.compile(r"[0-9]{1,9}")


def of_netplan(path: str) -> bool:
    """Whether netplan writes the profile anew from its own files."""
    return posixpath.basename(path).startswith("netplan-") and path.startswith("/run/")


def claims(files: Files, nic: Nic) -> list[Claim]:
    """What the profile says of the MTU; nothing if there is no profile of the interface."""
    path = _profile(files, nic)
    if path is None:
        return []
    entries = ini.entries(files[path], path)
    entry = _mtu(entries)
    if entry is None or entry.value in WITHOUT:
        names = _sections(entries)
        defaults = _defaults(files, nic) if names == SECTIONS else []
        if len({item.value for _, item, _ in defaults}) == 1 and all(is_certain for _, _, is_certain in defaults):
            where, default, _ = defaults[0]
            return [Claim("NetworkManager", where, default.line, f"[connection] {default.key}", int(default.value))]
        return [Claim("NetworkManager", path, 0 if entry is None else entry.line, f"[{names[0]}] mtu", None)]
    if not (entry.value.isascii() and entry.value.isdigit() and len(entry.value) < 10):
        raise Trouble(f"{path}:{entry.line}", f"mtu={entry.value}", "a number of bytes")
    return [Claim("NetworkManager", path, entry.line, f"[{entry.section}] mtu", int(entry.value))]


def of_ipv6(files: Files, nic: Nic) -> list[Claim]:
    """What gives IPv6 alone an MTU of its own (nm-settings-keyfile(5), `ipv6.mtu`)."""
    path = _profile(files, nic)
    entry = None if path is None else ini.last(ini.entries(files[path], path), "ipv6", "mtu")
    if path is None or entry is None or not DIGITS.fullmatch(entry.value) or int(entry.value) == 0:
        return []
    return [Claim("NetworkManager", path, entry.line, "[ipv6] mtu", int(entry.value))]


def unclear(files: Files, nic: Nic) -> list[Mention]:
    """Profiles that may come to be the interface's, since they name none or several, and defaults of which it cannot
    be said whether they are."""
    own_path, claimed_places = _profile(files, nic), {claim.place for claim in claims(files, nic)}
    state_path = f"{DEVICES}/{nic.index}"
    is_noted = ini.last(ini.entries(files.get(state_path, ""), state_path), "device", "connection-uuid") is not None
    mentions = [
        Mention("a profile of NetworkManager", path, entry.line, f"[{entry.section}] mtu={entry.value}", True)
        for path in ([] if is_noted else _by_name(files))
        if path != own_path
        and (entry := _mtu(entries := ini.entries(files[path], path))) is not None
        and entry.value not in WITHOUT
        and _may_mean(entries, nic)
    ]
    own_entry = None if own_path is None else _mtu(ini.entries(files[own_path], own_path))
    is_ethernet = own_path is None or _sections(ini.entries(files[own_path], own_path)) == SECTIONS
    if is_ethernet and (own_entry is None or own_entry.value in WITHOUT):
        mentions += [
            Mention("a default of NetworkManager", path, entry.line, f"{entry.key}={entry.value}", True)
            for path, entry, _ in _defaults(files, nic)
            if f"{path}:{entry.line}" not in claimed_places
        ]
    return mentions


def is_mine(path: str) -> bool:
    """Whether it is a profile."""
    folder, name = posixpath.split(path)
    if name.endswith(".nmconnection"):
        return folder in FOLDERS
    return folder == FOLDERS[0] and LEFT.fullmatch(name) is None


def _by_name(files: Files) -> list[str]:
    """The profiles, those with the usual ending first: others may be copies of them."""
    return sorted(
        (path for path in files if is_mine(path)), key=lambda path: (not path.endswith(".nmconnection"), path)
    )


def _defaults(files: Files, nic: Nic) -> list[tuple[str, Entry, bool]]:
    """What sections [connection] have for an Ethernet interface: file, entry, and whether it is for all."""
    defaults = []
    if nic.kind not in KINDS:
        return []
    for path in sorted(name for name in files if any(fnmatch.fnmatchcase(name, pattern) for pattern in CONFIGS)):
        entries = ini.entries(files[path], path)
        for entry in entries:
            if entry.section.startswith("connection") and entry.key in [f"{name}.mtu" for name in SECTIONS]:
                spec = ini.last(entries, entry.section, "match-device")
                if DIGITS.fullmatch(entry.value) and (spec is None or _may_match(spec.value, nic)):
                    defaults.append((path, entry, spec is None))
    return defaults


def _may_match(spec: str, nic: Nic) -> bool:
    """Whether a list of devices may have the interface: it does unless all of it is others by name or address."""
    for word in re.split(r"[,;]", spec):
        kind, _, value = word.strip().partition(":")
        if kind == "interface-name":
            may = fnmatch.fnmatchcase(nic.name, value.removeprefix("="))
        elif kind == "mac":
            may = value.lower() in (nic.address, nic.permanent)
        elif kind == "driver":
            may = nic.driver is None or fnmatch.fnmatchcase(nic.driver, value.partition("/")[0])
        else:
            may = bool(kind) and kind != "except"
        if may:
            return True
    return False


def _may_mean(entries: list[Entry], nic: Nic) -> bool:
    """Whether a profile that names no interface, or a pattern of names, may be brought up on this one."""
    kind, patterns = ini.last(entries, "connection", "type"), ini.last(entries, "match", "interface-name")
    is_bound = ini.last(entries, "connection", "interface-name") is not None or any(
        ini.last(entries, section, "mac-address") for section in SECTIONS
    )
    if is_bound or nic.kind not in KINDS or (kind is not None and kind.value not in SECTIONS):
        return False
    words = [word.strip().lstrip("|&") for word in patterns.value.split(";")] if patterns is not None else []
    required = [word for word in words if word and not word.startswith("!")]
    excluded = [word[1:] for word in words if word.startswith("!")]
    return (not required or any(fnmatch.fnmatchcase(nic.name, word) for word in required)) and not any(
        fnmatch.fnmatchcase(nic.name, word) for word in excluded
    )


def is_reload(commands: tuple[Command, ...], interface: str) -> bool:
    """Whether a change of a profile's MTU, and of its routes, is all that they do."""
    if len(commands) != 2 or commands[1] != ("nmcli", "device", "reapply", interface):
        return False
    head, uuid, key, value, routes = (
        commands[0][:4],
        commands[0][4:5],
        commands[0][5:6],
        commands[0][6:7],
        commands[0][7:],
    )
    return (
        head == MODIFY
        and len(uuid) == 1
        and UUID.fullmatch(uuid[0]) is not None
        and key in [(name,) for name in MTUS]
        and len(value) == 1
        and DIGITS.fullmatch(value[0]) is not None
        and len(routes) % 2 == 0
        and set(routes[::2]) <= {"ipv4.routes", "ipv6.routes"}
    )


def edit(files: Files, nic: Nic, mtu: int, kept: Kept | None = None) -> Edit | None:
    """The change of the profile, which NetworkManager makes itself; None if there is none. `kept`: static routes of it
    that get an MTU of their own."""
    path = _profile(files, nic)
    if path is None:
        return None
    entries = ini.entries(files[path], path)
    entry, uuid = _mtu(entries), ini.last(entries, "connection", "uuid")
    if uuid is None:
        raise Trouble(path, "a profile without a uuid", "one, as NetworkManager gives it")
    names = _sections(entries)
    section = names[0] if entry is None else entry.section
    text = ini.with_key(files[path], path, section, "mtu", str(mtu))
    before = "0" if entry is None or not entry.value.isdigit() else entry.value

    routed = text if kept is None else _with_routes(text, path, kept)

    def commands(value: str, profile: str) -> tuple[Command, ...]:
        words: list[str] = []
        for family in (4, 6):
            if _listed(text, path, family) != _listed(routed, path, family):
                words += [f"ipv{family}.routes", _listed(profile, path, family)]
        modify = (*MODIFY, uuid.value, f"{names[-1]}.mtu", value, *words)
        return modify, ("nmcli", "device", "reapply", nic.name)

    back = commands(before, text)
    return Edit(
        "NetworkManager", path, files[path], routed, commands(str(mtu), routed), mode=0o600, whole=False, back=back
    )


def held(files: Files, nic: Nic) -> set[tuple[Via, int]]:
    """The static routes through a gateway to which the profile gives an MTU."""
    path = _profile(files, nic)
    routes = set()
    for family in () if path is None else (4, 6):
        for route, _, options in _routes(files[path or ""], path or "", family):
            mtu = dict(option.partition("=")[::2] for option in options).get("mtu", "")
            if route is not None and mtu.isascii() and mtu.isdigit() and len(mtu) < 10:
                routes.add((route, int(mtu)))
    return routes


def _routes(text: str, path: str, family: int) -> list[tuple[Via | None, Entry, list[str]]]:
    """The routes of a profile: each with its entry (`route1=NETWORK,GATEWAY,METRIC`) and options (`route1_options`)."""
    section = f"ipv{family}"
    entries = ini.entries(text, path)
    routes: list[tuple[Via | None, Entry, list[str]]] = []
    for entry in entries:
        if entry.section.lower() != section or not ROUTE.fullmatch(entry.key):
            continue
        to, *fields = entry.value.split(",")
        options = ini.last(entries, section, f"{entry.key}_options")
        route = Via(family, to, fields[0]) if fields and fields[0] else None
        routes.append((route, entry, options.value.split(",") if options is not None and options.value else []))
    return routes


def _with_routes(text: str, path: str, kept_routes: Kept) -> str:
    for route in kept_routes.routes:
        vias = {Via(route.family, name, route.gateway) for name in route.networks}
        for via, entry, options in _routes(text, path, route.family):
            if via in vias:
                others = [option for option in options if not option.startswith("mtu=")]
                value = ",".join([*others, f"mtu={kept_routes.mtu}"])
                text = ini.with_key(text, path, f"ipv{route.family}", f"{entry.key}_options", value)
    return text


def _listed(text: str, path: str, family: int) -> str:
    """All routes as nmcli takes them: NETWORK GATEWAY METRIC NAME=VALUE…, with commas in between."""
    rows = (" ".join([*entry.value.split(","), *options]) for _, entry, options in _routes(text, path, family))
    return ", ".join(" ".join(row.split()) for row in rows)


def _mtu(entries: list[Entry]) -> Entry | None:
    names = _sections(entries)
    return next((entry for name in names if (entry := ini.last(entries, name, "mtu")) is not None), None)


def _sections(entries: list[Entry]) -> tuple[str, ...]:
    """Which sections of a profile may have its MTU."""
    kind = ini.last(entries, "connection", "type")
    return SECTIONS if kind is None else OTHERS.get(kind.value, SECTIONS)


def _profile(files: Files, nic: Nic) -> str | None:
    """The file of the active profile; if that is not noted, of the one that names the interface."""
    profiles = {path: ini.entries(files[path], path) for path in _by_name(files)}
    state_path = f"{DEVICES}/{nic.index}"
    if state_path in files:
        uuid = ini.last(ini.entries(files[state_path], state_path), "device", "connection-uuid")
        for path, entries in profiles.items():
            own_uuid = ini.last(entries, "connection", "uuid")
            if uuid is not None and own_uuid is not None and own_uuid.value == uuid.value:
                return path
    return next((path for path, entries in profiles.items() if _means(entries, nic)), None)


def _means(entries: list[Entry], nic: Nic) -> bool:
    name = ini.last(entries, "connection", "interface-name")
    if name is not None:
        return name.value == nic.name
    address = next((entry for key in SECTIONS if (entry := ini.last(entries, key, "mac-address")) is not None), None)
    if address is not None:
        return address.value.lower() in (nic.address, nic.permanent)
    parent, number = ini.last(entries, "vlan", "parent"), ini.last(entries, "vlan", "id")
    return parent is not None and number is not None and f"{parent.value}.{number.value}" == nic.name
