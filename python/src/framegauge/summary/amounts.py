"""How much a workload does, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framegauge import quantities

__all__ = ["OF_TRAFFIC", "amounts", "of_traffic", "users"]

# The conditions of workloads that are only simulated.
OF_TRAFFIC = (
    "unit_bytes", "block_bytes", "servers", "at_once", "mean_think_seconds", "response_sizes", "flow_sizes", "load",
    "recording", "copies", "speed", "ends",
)  # fmt: skip


def of_traffic(name: str, value: Any) -> str:
    """One of these conditions: "unit 256 kB", "8 servers"."""
    if name.endswith("_bytes"):
        return f"{name.removesuffix('_bytes')} {quantities.print_bytes(value)}"
    if name == "mean_think_seconds":
        return f"think {quantities.print_seconds(value)}"
    if name.endswith("_sizes"):
        return f"{name.removesuffix('_sizes')}s {value}"
    if name == "load":
        return f"load {value:g}"
    if name == "servers":
        return f"{value} server{'' if value == 1 else 's'}"
    if name in ("recording", "speed", "ends"):
        return f"{name} {value:g}" if name == "speed" else f"{name} {value}"
    if name == "copies":
        return "1 copy" if value == 1 else f"{value} copies"
    return f"{value} {name.replace('_', ' ')}"


def users(value: Any) -> str:
    """How many users there are: "20 users"."""
    return "users until saturation" if value == "saturate" else f"{value} user{'' if value == 1 else 's'}"


def amounts(given: Mapping[str, Any]) -> Iterator[str]:
    """The amounts among the conditions that both sides shared: "10 MB", "100 B / 1 kB", "closed loop"."""
    if "test" in given:
        yield str(given["test"])
    if "users" in given:
        yield users(given["users"])
    if "job" in given:
        yield str(given["job"])
    if "size_bytes" in given:
        yield quantities.print_bytes(given["size_bytes"])
    yield from (of_traffic(name, given[name]) for name in OF_TRAFFIC if name in given)
    if "response_bytes" in given:
        yield " / ".join(quantities.print_bytes(given.get(f"{name}_bytes", 0)) for name in ("request", "response"))
    if given.get("header_bytes"):
        yield f"header {quantities.print_bytes(given['header_bytes'])} written separately"
    if "rate_per_second" in given:
        rate = given["rate_per_second"]
        yield "closed loop" if rate is None else f"{rate:g}/s {given.get('arrivals', '')}"
    if "duration_seconds" in given:
        yield quantities.print_seconds(given["duration_seconds"])
