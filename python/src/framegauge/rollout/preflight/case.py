"""One host of a preflight: its facts, and the question about one of its interfaces. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from framegauge.rollout.model import Asked, Finding, Json, Severity
from framegauge.rollout.owners import Nic
from framegauge.rollout.preflight.links import Link, Links

__all__ = ["LARGE", "Case"]

LARGE = 1500  # bytes; what every network carries


@dataclass(frozen=True)
class Case:
    """A host, the interface whose MTU is to change, and what is asked."""

    host: str
    interface: str
    asked: Asked
    facts: Json

    @cached_property
    def links(self) -> Links:
        """Its interfaces: with all details where its `ip` gives them, else as its agent tells them."""
        entries = self.facts["links"]
        links = Links.of(entries)
        if links.names():
            return links
        return Links(
            [
                Link(entry["name"], entry["index"], entry["mtu"], most=entry["maximum_mtu"], kind=entry["kind"],
                     parent=entry["parent"], up=entry["up"])
                for entry in self.facts["check"]["interfaces"]
            ]
        )  # fmt: skip

    @property
    def link(self) -> Link:
        """The interface; there must be one of that name."""
        return cast(Link, self.links.get(self.interface))

    @property
    def target(self) -> int:
        """The MTU that is asked for."""
        return self.asked.target_mtu

    @property
    def before(self) -> int:
        """The MTU that the interface has, or had as the user says."""
        return self.asked.old_mtu or self.link.mtu

    @property
    def is_raised(self) -> bool:
        """Whether the MTU is to grow."""
        return self.target > self.before

    @property
    def files(self) -> Mapping[str, str]:
        """The texts of its files by path."""
        return cast(Mapping[str, str], self.facts["files"])

    @property
    def programs(self) -> frozenset[str]:
        """Those that run, of those that bear on an MTU."""
        return frozenset(self.facts["programs"])

    def told(self, name: str) -> Mapping[str, Any]:
        """What `check.facts` has of an interface; nothing for one that it does not know."""
        matches = [entry for entry in self.facts["check"]["interfaces"] if entry["name"] == name]
        return matches[0] if matches else {}

    def sysctl(self, name: str) -> str | None:
        """The value of a setting."""
        return cast("str | None", self.facts["check"]["sysctls"].get(name))

    def driver(self, name: str) -> str | None:
        """Of an interface."""
        return cast("str | None", self.told(name).get("driver"))

    @cached_property
    def networks(self) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
        """The subnets that the interface is in."""
        texts = [
            f"{entry['address']}/{entry['prefix_length']}" for entry in self.told(self.interface).get("addresses", ())
        ]
        return [ipaddress.ip_network(text, strict=False) for text in texts]

    def is_near(self, destination: str) -> bool:
        """Whether an address or network is in a subnet of the interface."""
        try:
            network = ipaddress.ip_network(destination, strict=False)
        except ValueError:
            return False
        return any(network.version == subnet.version and network.subnet_of(subnet) for subnet in self.networks)  # type: ignore[arg-type]

    def nic(self) -> Nic:
        """The interface as the owners of its MTU name it."""
        return self._nic(self.link)

    def beside(self) -> list[Nic]:
        """The other interfaces of the host, as the owners of their MTUs name them."""
        others = [self.links.get(name) for name in self.links.names() if name != self.interface]
        return [self._nic(link) for link in others if link is not None]

    def _nic(self, link: Link) -> Nic:
        permanent = None if link.permanent is None else link.permanent.lower()
        address = None if link.address is None else link.address.lower()
        return Nic(link.name, link.index, address, permanent, self.driver(link.name), link.kind, link.altnames)

    def finding(self, what: str, severity: Severity, found: str, expected: str, remedy: str) -> Finding:
        """About the interface."""
        return Finding(f"{self.host}/{self.interface}", what, severity, found, expected, remedy)
