"""Which hosts are neighbours: subnets, from addresses and their prefixes."""

from __future__ import annotations

import ipaddress
import re

__all__ = ["DEFAULT_PREFIX", "as_people_count", "family_of", "subnet"]

# Where nobody says how long a prefix is.
DEFAULT_PREFIX = {4: 24, 6: 64}


def subnet(address: str, prefix_length: int | None = None) -> str:
    """The subnet of an address ("10.1.0.7/16" brings its own prefix); the text itself if it is no address."""
    text, _, own = address.partition("/")
    try:
        parsed = ipaddress.ip_address(text.partition("%")[0])
        length = int(own) if own else prefix_length
        length = DEFAULT_PREFIX[parsed.version] if length is None else length
        return str(ipaddress.ip_network(f"{parsed}/{length}", strict=False))
    except ValueError:
        return address


def family_of(address: str) -> int | None:
    """4 or 6; None if it is no address."""
    try:
        return ipaddress.ip_address(address.partition("/")[0].partition("%")[0]).version
    except ValueError:
        return None


def as_people_count(name: str) -> list[tuple[int, str]]:
    """A key for sorting: h2 comes before h10, and 10.0.2.0/24 before 10.0.10.0/24."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", name)]
