"""The params of `rack.set` (pipe/README.md) from the arguments of `framegauge rack set`, and their texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from framegauge.errors import InputError, QuantityError
from framegauge.networks import ports, topologies
from framegauge.quantities import (
    exact_bits_per_second,
    exact_bytes,
    exact_seconds,
    exact_share,
    parse_bits_per_second,
    parse_bytes,
    parse_seconds,
)

__all__ = ["described", "params", "place_of", "together", "unknown", "unknown_host", "unknown_port"]

Json = dict[str, Any]

MOST_TOGETHER = 3
_PORT = re.compile(r"([^>:]+)[>:]([^>:]+)")
# By option: the key in `rack.set`, and the parser of its value.
_QUANTITIES: Mapping[str, tuple[str, Callable[[object], float]]] = {
    "rate": ("bits_per_second", parse_bits_per_second),
    "delay": ("delay_seconds", parse_seconds),
    "mtu": ("mtu", parse_bytes),
    "buffer": ("buffer_bytes", parse_bytes),
}


def params(where: str, options: Mapping[str, str | None], up: bool | None = None) -> Json:
    """The params for a port (`switch>h1` or `switch:h1`; `*` stands for any characters), a host or one of its NICs
    (`h1.2`), or a router.

    The options are rate, delay, mtu, buffer and queue; for a host or router, only mtu. InputError if they do not fit.
    """
    changes: Json = {}
    for name, text in options.items():
        if text is None:
            continue
        if name == "queue":
            changes["queue"] = {"kind": text}
            continue
        key, parse = _QUANTITIES[name]
        try:
            changes[key] = parse(text)
        except QuantityError as error:
            raise InputError(f"rack set: --{name}: {error}") from None
    if up is not None:
        changes["up"] = up
    port = _PORT.fullmatch(where)
    if port is None and (">" in where or ":" in where):
        raise InputError(f'rack set: found "{where}", expected a port such as "switch>h1", or a host such as h1')
    if not changes:
        expected = "--rate, --delay, --mtu, --buffer, --queue, --down or --up" if port else "--mtu"
        raise InputError(f"rack set: found nothing to set, expected {expected} after {where}")
    if port is not None:
        return {"from": port[1], "to": port[2], **changes}
    if changes.keys() != {"mtu"}:
        raise InputError(
            f"rack set: found more than --mtu, expected only --mtu for host or router {where}; "
            f'other options need a port FROM>TO, such as "switch>{where}"'
        )
    return {"host": where, **changes}


def described(asked: Mapping[str, Any]) -> list[str]:
    """The settings in words."""
    texts: Mapping[str, Callable[[Any], str]] = {
        "bits_per_second": lambda value: f"rate {exact_bits_per_second(value)}",
        "delay_seconds": lambda value: f"delay {exact_seconds(value)}",
        "loss": lambda value: f"loss {exact_share(value)}",
        "mtu": lambda value: f"MTU {value}",
        "buffer_bytes": lambda value: f"buffer {exact_bytes(value)}",
        "queue": lambda value: f"queue {value['kind']}",
        "up": lambda value: "up" if value else "down",
        "route_mtu": lambda value: f"routes held at MTU {value}" if value else "routes released",
        "reopen": lambda _: "connections ended",
    }
    return [text(asked[key]) for key, text in texts.items() if key in asked]


def place_of(asked: Mapping[str, Any]) -> str:
    """The place of a setting: a host, or a pattern of links."""
    return str(asked["host"]) if "host" in asked else f"{asked['from']}>{asked['to']}"


def together(every: Sequence[Mapping[str, Any]]) -> str:
    """All settings of one moment in words: "h1, h2: MTU 9000; switch>h1: down"; many hosts as their number."""
    groups: dict[str, list[str]] = {}
    for change in every:
        groups.setdefault(", ".join(described(change)), []).append(place_of(change))
    return "; ".join(
        f"{', '.join(names) if len(names) <= MOST_TOGETHER else _many(names)}: {words}"
        for words, names in groups.items()
    )


def _many(names: Sequence[str]) -> str:
    """Hosts, or NICs of the same number, by how many they are."""
    of_nics = {name.partition(".")[2] for name in names}
    network = {"1": " on the public network", "2": " on the storage network"}
    return f"{len(names)} hosts{network.get(next(iter(of_nics)), '') if len(of_nics) == 1 else ''}"


def unknown_port(asked: Mapping[str, Any], ports: Sequence[str]) -> str | None:
    """The error if no port matches, with the most similar names; None if at least one does."""
    for port in ports:
        # The second of two links between the same ends is called switch>h1#2.
        source, _, target = port.partition("#")[0].partition(">")
        if topologies.fits(asked["from"], source) and topologies.fits(asked["to"], target):
            return None
    return unknown("set", "port", f"{asked['from']}>{asked['to']}", ports)


def unknown_host(name: str, hosts: Sequence[str]) -> str:
    """The error for an unknown host, with the most similar names."""
    return unknown("set", "host", name, hosts)


def unknown(verb: str, kind: str, name: str, names: Sequence[str]) -> str:
    """The error for an unknown port or host in a verb of `rack`, with the most similar names."""
    return f"rack {verb}: {ports.unknown(kind, name, names)}"
