"""The interfaces of a host as `ip -d -j link` tells them (iproute2, ip-link(8)): what stands on what. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Link", "Links", "Xdp"]

# Ports of a bridge that lead out of the host: a NIC has no kind. Others lead to a container or a virtual machine.
OUTWARD = (None, "vlan", "bond", "team")

# IFLA_XDP_ATTACHED (linux/if_link.h).
MODES = {1: "native", 2: "generic", 3: "offloaded", 4: "native"}


@dataclass(frozen=True)
class Xdp:
    """An XDP program: in the driver (`native`), in the kernel's stack (`generic`) or in the NIC (`offloaded`)."""

    mode: str
    name: str


@dataclass(frozen=True)
class Link:
    """One interface. `least` and `most`: the MTUs that its driver takes, in bytes; None where it does not say."""

    name: str
    index: int
    mtu: int
    least: int | None = None
    most: int | None = None
    kind: str | None = None
    master: str | None = None
    parent: str | None = None
    peer: str | None = None  # a veth's other end, if it is on this host
    elsewhere: bool = False  # what it stands on, or a veth's other end, is in another network namespace
    xdp: Xdp | None = None
    up: bool = True
    address: str | None = None
    permanent: str | None = None
    altnames: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


class Links:
    """All of them, by name."""

    def __init__(self, links: Sequence[Link]) -> None:
        self._by_name = {link.name: link for link in links}

    @classmethod
    def of(cls, listed: object) -> Links:
        """From the parsed JSON; entries without name, index or MTU are left out."""
        entries = listed if isinstance(listed, list) else []
        return cls([link for entry in entries if (link := _link(entry)) is not None])

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def get(self, name: str | None) -> Link | None:
        """The interface of that name, if there is one."""
        return None if name is None else self._by_name.get(name)

    def names(self) -> list[str]:
        """All names, without the loopback's."""
        return [name for name in self._by_name if name != "lo"]

    def ports(self, name: str) -> list[Link]:
        """What a bond, team or bridge has as ports."""
        return [port for port in self._by_name.values() if port.master == name]

    def outward(self, name: str) -> list[Link]:
        """The ports of a bridge that lead out of the host; none of anything else."""
        link = self.get(name)
        is_bridge = link is not None and link.kind == "bridge"
        return [port for port in self.ports(name) if port.kind in OUTWARD] if is_bridge else []

    def above(self, name: str) -> list[Link]:
        """What stands on it: VLANs, macvlans and the like, and tunnels that are bound to it."""
        return [upper for upper in self._by_name.values() if upper.parent == name]

    def below(self, name: str) -> list[Link]:
        """What it stands on, nearest first."""
        lower_links: list[Link] = []
        link = self.get(name)
        while link is not None and (link := self.get(link.parent)) is not None and link not in lower_links:
            lower_links.append(link)
        return lower_links

    def stack(self, name: str) -> set[str]:
        """The interface with all that stands on it or has it as a port."""
        names, queue = set[str](), [name]
        while queue:
            current = queue.pop()
            if current in names:
                continue
            names.add(current)
            link = self.get(current)
            queue += [upper.name for upper in self.above(current)]
            queue += [link.master] if link is not None and link.master is not None else []
        return names


def _link(entry: object) -> Link | None:
    if not isinstance(entry, dict):
        return None
    name, index, mtu = entry.get("ifname"), entry.get("ifindex"), entry.get("mtu")
    if not (isinstance(name, str) and isinstance(index, int) and isinstance(mtu, int)):
        return None
    link_info = entry.get("linkinfo")
    info: Mapping[str, Any] = link_info if isinstance(link_info, dict) else {}
    kind, info_data = info.get("info_kind"), info.get("info_data")
    data: Mapping[str, Any] = info_data if isinstance(info_data, dict) else {}
    here = None if "link_netnsid" in entry else entry.get("link")
    bound = data.get("link")
    flags = entry.get("flags")
    return Link(
        name, index, mtu,
        least=_positive(entry.get("min_mtu")),
        most=_positive(entry.get("max_mtu")),
        kind=kind if isinstance(kind, str) else None,
        master=_text(entry.get("master")),
        parent=_text(bound) if isinstance(bound, str) else None if kind == "veth" else _text(here),
        peer=_text(here) if kind == "veth" else None,
        elsewhere="link_netnsid" in entry,
        xdp=_xdp(entry.get("xdp")),
        up="UP" in flags if isinstance(flags, list) else True,
        address=_text(entry.get("address")),
        permanent=_text(entry.get("permaddr")),
        altnames=tuple(altname for altname in _listed(entry.get("altnames")) if isinstance(altname, str)),
        data=data,
    )  # fmt: skip


def _xdp(entry: object) -> Xdp | None:
    """Newer versions of ip list several programs in `attached`; the first one that is not generic tells."""
    if not isinstance(entry, dict):
        return None
    attached = entry.get("attached")
    attachments = [item for item in (attached if isinstance(attached, list) else [entry]) if isinstance(item, dict)]
    programs = []
    for item in attachments:
        program = item.get("prog")
        name = _text(program.get("name")) if isinstance(program, dict) else None
        mode = item.get("mode")
        programs.append(Xdp(MODES.get(mode, "native") if isinstance(mode, int) else "native", name or "without a name"))
    return next((item for item in programs if item.mode != "generic"), programs[0] if programs else None)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
