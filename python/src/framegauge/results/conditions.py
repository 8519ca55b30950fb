"""Which values a condition or a level of a run can have, whatever a folder says; and whether runs fit together."""

from __future__ import annotations

import math
from collections.abc import Mapping

__all__ = ["FACTOR_KEYS", "LARGEST", "is_sound"]

# The names of factors among the conditions of a run, with the unit where the value has one.
FACTOR_KEYS = {
    "rtt": "rtt_seconds", "moderation": "moderation_seconds", "buffer": "buffer_bytes", "skew": "skew_ppm",
    "gso_size": "gso_size_bytes", "gro_size": "gro_size_bytes",
}  # fmt: skip
LARGEST = 1e18
SMALLEST = 1e-18


def is_sound(name: str, value: object) -> bool:
    """Whether it can be a condition: a plain value, a number where the name ends in a unit."""
    if name.endswith("_ppm"):  # may be negative
        return isinstance(value, int | float) and _is_number(abs(value))
    if name.endswith(("_bytes", "_seconds", "_per_second")):
        return _is_number(value) or (value is None and name.endswith("_per_second"))  # None: unlimited
    if isinstance(value, dict) and "kind" in value:  # a queue discipline with its parameters
        return isinstance(value["kind"], str) and all(
            not isinstance(item, dict) and is_sound(key, item) for key, item in value.items()
        )
    if isinstance(value, dict) and name == "sizes":
        parts = value.values() if all(key.isdecimal() for key in value) else [value]  # by MTU, or for all MTUs
        return bool(value) and all(isinstance(part, dict) and _are_sizes(part) for part in parts)
    if isinstance(value, dict) and name == "receivers":  # by sender
        return all(isinstance(item, str) for item in value.values())
    if isinstance(value, dict):  # MTUs, or flows, by host
        return all(map(_is_number, value.values()))
    return value is None or isinstance(value, bool | str) or _is_number(value)


def _are_sizes(value: Mapping[str, object]) -> bool:
    """Whether these are sizes of socket buffers, of messages, or of both."""
    known_keys = {"socket_buffer_bytes", "message_bytes"}
    return bool(value) and value.keys() <= known_keys and all(map(_is_number, value.values()))


def _is_number(value: object) -> bool:
    """Whether it is a number that can be calculated with: 0, or within limits that no figure of a network leaves."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value == 0 or (SMALLEST <= value <= LARGEST and math.isfinite(value))
