"""The path MTUs of a host's routes as one value, as the agent has them (`routes4:eth0`, pipe/README.md). Pure."""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.errors import BadAnswer

__all__ = ["FREE", "Held", "Route", "Value", "largest", "of_answer", "parse", "sent_to", "typed", "value"]


@dataclass(frozen=True)
class Held:
    """What a route asks for: an MTU in bytes, 0 for none. `locked`: it stays when that of the interface rises."""

    mtu: int = 0
    locked: bool = False

    def __str__(self) -> str:
        return f"{self.mtu}{'!' if self.locked else ''}"


FREE = Held()


@dataclass(frozen=True)
class Route:
    """A route through an interface. `connected`: to a subnet of the interface, through no gateway."""

    family: int
    name: str
    connected: bool
    held: Held

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        """Where it leads."""
        return ipaddress.ip_network(self.name.partition("#")[0].partition("@")[0], strict=False)

    @property
    def is_to_one_host(self) -> bool:
        """Whether it leads to a single address."""
        return self.network.num_addresses == 1


@dataclass(frozen=True)
class Value:
    """What each route is to ask for: those that are named, and all others."""

    others: Held
    named: Mapping[str, Held]

    def of(self, name: str) -> Held:
        """What one route is to ask for."""
        return self.named.get(name, self.others)

    def __str__(self) -> str:
        return " ".join([str(self.others), *(f"{name}={held}" for name, held in sorted(self.named.items()))])


def value(routes: Iterable[Route], others: Held, wanted: Callable[[Route], Held]) -> Value:
    """`others`, and by name the routes for which something else is wanted."""
    held_by_name = {route.name: wanted(route) for route in routes}
    return Value(others, {name: held for name, held in held_by_name.items() if held != others})


def parse(text: str) -> Value:
    """The value in a text; BadAnswer if it is none."""
    try:
        first, *words = text.split()
        named = dict(word.rsplit("=", 1) for word in words)
        return Value(_held(first), {name: _held(held) for name, held in named.items()})
    except ValueError:
        raise BadAnswer(f"found the route MTUs {text!r}, expected such as 1500 10.0.0.0/24=0") from None


def typed(interface: str, family: int, value: Value) -> Iterator[str]:
    """The same with `ip`, a line for all routes alike. ROUTE stands for what the comment names: its gateway and so on
    are nowhere but on the host."""
    dev = f"dev {shlex.quote(interface)}"
    show = f"ip -{family} route show {dev}"
    for name, held in [*sorted(value.named.items()), ("", value.others)]:
        lock = "lock " if held.locked else ""
        mtu = f" mtu {lock}{held.mtu}" if held.mtu else ""
        which = f"{name} in" if name else "each other in" if value.named else "each in"
        without = "" if held.mtu else ", without its mtu"
        yield f"ip -{family} route change ROUTE {dev}{mtu}  # ROUTE: {which} `{show}`{without}"


def largest(routes: Iterable[Route], value: Value, mtu: int, address: str, unasked: int | None = None) -> int:
    """The largest packet to an address through an interface of this MTU: the longest of its routes there says.
    `unasked`: where that asks for none, if it is not the interface's."""
    place = ipaddress.ip_address(address.partition("%")[0])
    best, held = -1, value.others
    for route in routes:
        network = route.network
        if network.version == place.version and place in network and network.prefixlen > best:
            best, held = network.prefixlen, value.of(route.name)
    return min(held.mtu or unasked or mtu, mtu)


def sent_to(routes: Iterable[Route], settings: Mapping[str, str], interface: str, address: str) -> int:
    """The largest packet to an address through an interface with these settings. What IPv6 alone has for an MTU counts
    where no route asks for another."""
    family, mtu = 6 if ":" in address else 4, int(settings[f"mtu:{interface}"])
    unasked = int(settings.get(f"mtu6:{interface}", mtu)) if family == 6 else mtu
    return largest(routes, parse(settings[f"routes{family}:{interface}"]), mtu, address, unasked)


def _held(word: str) -> Held:
    return Held(int(word.removesuffix("!")), word.endswith("!"))


def of_answer(routes: Sequence[Mapping[str, Any]]) -> list[Route]:
    """The routes in an answer of `host.routes`."""
    return [Route(row["family"], row["route"], row["connected"], Held(row["mtu"], row["locked"])) for row in routes]
