"""netplan: which of its YAML files sets an interface's MTU, and the change that has it set another one.

netplan reads *.yaml of /lib, /etc and /run/netplan in the order of their names; a later file's value wins, key by key
(netplan-generate(8)). An interface is meant by the name of its entry, or by `match` and `set-name`.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml

from framegauge.errors import StudyError
from framegauge.files import bounded
from framegauge.rollout.owners.model import Claim, Edit, Files, Kept, Nic, Trouble, Via

__all__ = ["claims", "edits", "held", "is_mine", "of_ipv6", "shared", "with_mtu"]

FOLDERS = ("/lib/netplan", "/usr/lib/netplan", "/etc/netplan", "/run/netplan")
KINDS = ("ethernets", "bonds", "bridges", "vlans", "tunnels", "dummy-devices", "vrfs", "virtual-ethernets", "wifis",
         "modems")  # fmt: skip
NUMBER = re.compile(r"[0-9]{1,9}")
IPV6_MTU = "ipv6-mtu"
LATE = "/etc/netplan/90-framegauge-mtu.yaml"
OF_CLOUD_INIT = "generated from information provided by the datasource"
RELOAD = (("netplan", "apply"),)


@dataclass(frozen=True)
class _Entry:
    path: str
    kind: str
    name: str
    node: yaml.Node | None
    line: int
    data: Mapping[str, Any]


def is_mine(path: str) -> bool:
    """Whether netplan reads the file."""
    return posixpath.dirname(path) in FOLDERS and path.endswith(".yaml")


def claims(files: Files, nic: Nic) -> list[Claim]:
    """What sets its MTU, the one that counts last; or else where it is managed. Trouble for a file that is no YAML."""
    own_entries = [entry for entry in _entries(files) if _means(entry, nic)]
    all_claims = []
    for entry in own_entries:
        key = f"network.{entry.kind}.{entry.name}.mtu"
        mtu = entry.data.get("mtu")
        if mtu is None:
            continue
        if isinstance(mtu, str) and NUMBER.fullmatch(mtu):  # netplan takes any scalar by its text, in quotes or not
            mtu = int(mtu)
        if isinstance(mtu, bool) or not isinstance(mtu, int):
            raise Trouble(f"{entry.path}:{entry.line}", f"{key}: {mtu!r}", "a number of bytes")
        all_claims.append(Claim("netplan", entry.path, _line(entry), key, mtu))
    if not all_claims and own_entries:
        last = own_entries[-1]
        all_claims.append(Claim("netplan", last.path, last.line, f"network.{last.kind}.{last.name}", None))
    return all_claims


def of_ipv6(files: Files, nic: Nic) -> list[Claim]:
    """What gives IPv6 alone an MTU of its own (`ipv6-mtu`, for networkd): the one that counts last."""
    all_claims = [
        Claim("netplan", entry.path, _line(entry, IPV6_MTU), f"{IPV6_MTU} of {entry.name}", int(text))
        for entry in _entries(files)
        if _means(entry, nic) and NUMBER.fullmatch(text := str(entry.data.get(IPV6_MTU)))
    ]
    return all_claims[-1:]


def edits(files: Files, nic: Nic, mtu: int, kept: Kept | None = None) -> list[Edit]:
    """The changes of the file that counts, and of files of /etc with routes that are `kept` at a smaller MTU; none if
    netplan does not manage the interface."""
    change = _edit(files, nic, mtu)
    if change is None or kept is None:
        return [] if change is None else [change]
    texts = {change.path: change.after or ""}
    for entry in _entries(files):
        if _means(entry, nic) and entry.path.startswith("/etc/") and OF_CLOUD_INIT not in files[entry.path]:
            before = texts.get(entry.path, files[entry.path])
            texts[entry.path] = _with_routes(before, entry.path, entry.kind, entry.name, kept)
    others = [Edit("netplan", path, files[path], text, RELOAD) for path, text in texts.items() if path != change.path]
    return [replace(change, after=texts[change.path]), *(edit for edit in others if edit.before != edit.after)]


def shared(files: Files, nic: Nic, beside: Iterable[Nic]) -> dict[str, tuple[str, ...]]:
    """The file that would be changed, if its entry means others of these interfaces as well, by `match`."""
    target = _counting(files, nic)
    names = () if target is None else tuple(other.name for other in beside if _means(target, other))
    return {target.path: names} if target is not None and names else {}


def held(files: Files, nic: Nic) -> set[tuple[Via, int]]:
    """The routes through a gateway that have an MTU."""
    routes = set()
    for entry in _entries(files):
        for route in _routes(entry.data) if _means(entry, nic) else ():
            if NUMBER.fullmatch(str(route.get("mtu"))):
                routes.add((_via(route), int(route["mtu"])))
    return routes


def _routes(data: Mapping[str, Any]) -> list[Any]:
    routes = data.get("routes")
    return [route for route in routes if isinstance(route, dict)] if isinstance(routes, list) else []


def _via(route: Mapping[str, Any]) -> Via:
    gateway = str(route.get("via", ""))
    return Via(6 if ":" in gateway else 4, str(route.get("to", "")), gateway)


def _with_routes(text: str, path: str, kind: str, name: str, kept_routes: Kept) -> str:
    """The text with that MTU in each of these routes, `gateway4` and `gateway6` as routes, and all else as it is. A
    route that cannot be changed so is left."""
    for route in kept_routes.routes:
        [entry] = [item for item in _of(text, path) if (item.kind, item.name) == (kind, name)]
        expected = _plain(text, path)
        settings = expected["network"][kind][name] or {}
        vias = {Via(route.family, item, route.gateway) for item in route.networks}
        places = [
            place
            for place, item in enumerate(settings.get("routes") or [])
            if isinstance(item, dict) and _via(item) in vias
        ]
        key = f"gateway{route.family}"
        if places:
            for place in places:
                settings["routes"][place]["mtu"] = kept_routes.mtu
            changed = _with_mtu_of(text, path, (kind, name), places, kept_routes.mtu)
        elif route.destination == "default" and str(settings.get(key)) == route.gateway and "routes" not in settings:
            del settings[key]
            everywhere = "::/0" if route.family == 6 else "0.0.0.0/0"
            settings["routes"] = [{"to": everywhere, "via": route.gateway, "mtu": kept_routes.mtu}]
            changed = _without_gateway(text, entry, key, settings["routes"][0])
        else:
            continue
        try:
            text = changed if _plain(changed, path) == expected else text
        except Trouble:
            continue
    return text


def _with_mtu_of(text: str, path: str, name: tuple[str, str], places: list[int], mtu: int) -> str:
    for place in places:
        [entry] = [candidate for candidate in _of(text, path) if (candidate.kind, candidate.name) == name]
        routes = _value(entry.node, "routes")
        if isinstance(routes, yaml.SequenceNode):
            text = _changed(text, routes.value[place], mtu)
    return text


def _without_gateway(text: str, entry: _Entry, key: str, route: Mapping[str, Any]) -> str:
    """The text with a list of routes where a `gateway4` or `gateway6` was."""
    assert isinstance(entry.node, yaml.MappingNode)
    [(name, value)] = [pair for pair in entry.node.value if pair[0].value == key][-1:]
    row = f"routes: [{{to: {_word(route['to'])}, via: {_word(route['via'])}, mtu: {route['mtu']}}}]"
    return text[: name.start_mark.index] + row + text[value.end_mark.index :]


def _word(value: str) -> str:
    return f'"{value}"' if ":" in value else value


def _edit(files: Files, nic: Nic, mtu: int) -> Edit | None:
    """The change of the file that counts; None if netplan does not manage the interface.

    What cloud-init has written it may write again: there, and where a file shares its values by aliases, a new file
    with a late name sets the MTU alone.
    """
    target = _counting(files, nic)
    if target is None:
        return None
    text = files[target.path]
    if OF_CLOUD_INIT not in text and target.path.startswith("/etc/"):
        try:
            return Edit(
                "netplan", target.path, text, with_mtu(text, target.path, target.kind, target.name, mtu), RELOAD
            )
        except Trouble:
            pass
    entry: Any = _plain(files[LATE], LATE) if LATE in files else {"network": {"version": 2}}
    entry["network"].setdefault(target.kind, {})[target.name] = {"mtu": mtu}
    return Edit("netplan", LATE, files.get(LATE), yaml.safe_dump(entry, sort_keys=False), RELOAD, mode=0o600)


def _counting(files: Files, nic: Nic) -> _Entry | None:
    """The entry whose MTU counts, or else the one by which the interface is managed."""
    own_entries = [candidate for candidate in _entries(files) if _means(candidate, nic)]
    with_value = [candidate for candidate in own_entries if candidate.data.get("mtu") is not None]
    return next(reversed(with_value or own_entries), None)


def with_mtu(text: str, path: str, kind: str, name: str, mtu: int) -> str:
    """The text with that MTU of that entry, all else as it is; Trouble if more, or less, would change."""
    [entry] = [candidate for candidate in _of(text, path) if (candidate.kind, candidate.name) == (kind, name)]
    changed = _changed(text, entry.node, mtu)
    expected = _plain(text, path)
    before = expected["network"][kind][name]
    expected["network"][kind][name] = {**(before or {}), "mtu": mtu}
    try:
        is_exact = _plain(changed, path) == expected
    except Trouble:
        is_exact = False
    if not is_exact:
        raise Trouble(path, f"an entry {kind}.{name} that shares its values", "one of its own")
    return changed


def _changed(text: str, node: yaml.Node | None, mtu: int) -> str:
    """The text with that MTU in a mapping."""
    value = _value(node, "mtu")
    if value is not None:
        return text[: value.start_mark.index] + str(mtu) + text[value.end_mark.index :]
    assert node is not None
    start = node.start_mark
    if not isinstance(node, yaml.MappingNode):  # `eth0:` with nothing behind it
        return f"{text[: start.index].rstrip(' ')} {{mtu: {mtu}}}{text[node.end_mark.index :]}"
    if node.flow_style:
        rest = ", " if node.value else ""
        return f"{text[: start.index + 1]}mtu: {mtu}{rest}{text[start.index + 1 :]}"
    return f"{text[: start.index]}mtu: {mtu}\n{' ' * start.column}{text[start.index :]}"


def _plain(text: str, path: str) -> Any:
    try:
        return bounded.compose(text, path)[1]
    except StudyError as error:
        raise Trouble(path, str(error).removeprefix(f"{path}:"), "YAML") from None


def _entries(files: Files) -> Iterator[_Entry]:
    """Of all files, in the order in which they count. A name hides the same name in a folder before it."""
    by_name: dict[str, str] = {}
    for folder in FOLDERS:
        by_name |= {
            posixpath.basename(path): path for path in files if posixpath.dirname(path) == folder and is_mine(path)
        }
    for name in sorted(by_name):
        yield from _of(files[by_name[name]], by_name[name])


def _of(text: str, path: str) -> Iterator[_Entry]:
    try:
        node, data = bounded.compose(text, path)
    except StudyError as error:
        raise Trouble(path, str(error).removeprefix(f"{path}:").split(": found ", 1)[-1], "YAML of netplan") from None
    if node is None:
        return
    top = data.get("network") if isinstance(data, dict) else None
    network = _value(node, "network")
    if not isinstance(top, dict) or network is None:
        raise Trouble(f"{path}:1", "no mapping network", "one, as netplan(5) has it")
    for kind in KINDS:
        defined = top.get(kind)
        if defined is None:
            continue
        if not isinstance(defined, dict):
            raise Trouble(path, f"network.{kind} that is no mapping", "interfaces by name")
        for name, values in defined.items():
            if isinstance(values, dict) or values is None:
                inner = _value(_value(network, kind), str(name))
                line = 0 if inner is None else inner.start_mark.line + 1
                yield _Entry(path, kind, str(name), inner, line, values or {})


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """The node behind a key of a mapping; of keys that stand there twice, the last one."""
    result = None
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == key:
                result = value
    return result


def _line(entry: _Entry, key: str = "mtu") -> int:
    node = _value(entry.node, key)
    return entry.line if node is None else node.start_mark.line + 1


def _means(entry: _Entry, nic: Nic) -> bool:
    """Whether the entry is the interface's (netplan(5), "Properties for physical device types")."""
    match = entry.data.get("match")
    if entry.data.get("set-name") == nic.name:
        return True
    if not isinstance(match, dict) or not match:
        return entry.name == nic.name
    name, address, driver = (match.get(key) for key in ("name", "macaddress", "driver"))
    if name is not None and not fnmatch.fnmatchcase(nic.name, str(name)):
        return False
    if address is not None and str(address).lower() not in (nic.address, nic.permanent):
        return False
    drivers = driver if isinstance(driver, list) else [driver]
    return driver is None or any(fnmatch.fnmatchcase(nic.driver or "", str(pattern)) for pattern in drivers)
