"""How much a workload does, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framegauge import quantities

__all__ = ["OF_TRAFFIC", "amounts", "counted", "mtus", "of_traffic", "rate", "senders", "storage", "users"]

# The conditions of traffic as applications make it.
OF_TRAFFIC = (
    "unit_bytes", "block_bytes", "servers", "at_once", "reduces", "mean_think_seconds", "response_sizes", "flow_sizes",
    "load", "streams", "recording", "copies", "speed", "ends",
)  # fmt: skip
# One of what a condition counts.
_COUNTED = {
    "nics": "NIC", "flows": "flow", "upload_flows": "upload flow", "download_flows": "download flow",
    "bulk_flows": "bulk flow", "bulk_hosts": "bulk host", "hosts": "host", "connections": "connection",
    "browser_connections": "connection", "streams": "long stream", "servers": "server", "reduces": "reducer",
    "copies": "copy",
}  # fmt: skip


def counted(name: str, value: Any) -> str | None:
    """A number of things in plain English: "1 flow", "16 hosts"; None of a condition that counts nothing."""
    if name not in _COUNTED or isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return _several(value, _COUNTED[name]) + (" per browser" if name == "browser_connections" else "")


def _several(count: float, what: str) -> str:
    plural = f"{what.removesuffix('y')}ies" if what.endswith("y") else f"{what}s"
    return f"{count} {what if count == 1 else plural}"


def of_traffic(name: str, value: Any) -> str:
    """One of these conditions: "unit 256 kB", "8 servers"."""
    if (number := counted(name, value)) is not None:
        return number
    if name.endswith("_bytes"):
        return f"{name.removesuffix('_bytes')} {quantities.print_stated_bytes(value)}"
    if name == "mean_think_seconds":
        return f"think {quantities.print_seconds(value)}"
    if name.endswith("_sizes"):
        return f"{name.removesuffix('_sizes')}s {value}"
    if name == "load":
        return f"load {value:g}"
    if name in ("recording", "speed", "ends"):
        return f"{name} {value:g}" if name == "speed" else f"{name} {value}"
    return f"{value} {name.replace('_', ' ')}"


def mtus(value: Mapping[str, int]) -> str:
    """MTUs by host: "1500/9000", "9000/h2 1500", and with others: "1500/storage network 9000", "9000/routes 1500"."""
    names = {"default": "", "storage": "storage network "}
    if "default" not in value:
        names |= {host: "" for host in value if host not in ("storage", "routes")}
    return "/".join(f"{names.get(key, f'{key} ')}{mtu}" for key, mtu in value.items())


def storage(given: Mapping[str, Any]) -> Iterator[str]:
    """What is done to storage: "random write", "depth 4", "replication 3"."""
    if "operation" in given and "access" in given:
        yield f"{given['access']} {given['operation']}"
    yield from (f"{name} {given[name]}" for name in ("depth", "replication") if name in given)
    if "store" in given:
        yield str(given["store"])
    if given.get("storage_network"):
        yield "storage network"


def users(value: Any) -> str:
    """How many users there are: "20 users"."""
    return "users until saturation" if value == "saturate" else _several(value, "user")


def senders(flows: Mapping[str, int]) -> str:
    """Who sends, with the number of flows where it is more than one: "from h1 to h12, h13 x2"."""
    spans: list[tuple[list[str], int]] = []
    for host, count in flows.items():
        if spans and spans[-1][1] == count and _follows(spans[-1][0][-1], host):
            spans[-1][0].append(host)
        else:
            spans.append(([host], count))
    names = [
        (hosts[0] if len(hosts) == 1 else f"{hosts[0]}{', ' if len(hosts) == 2 else ' to '}{hosts[-1]}")
        + ("" if count == 1 else f" x{count}" if len(hosts) == 1 else f" x{count} each")
        for hosts, count in spans
    ]
    return f"from {', '.join(names)}"


def _follows(host: str, successor: str) -> bool:
    """Whether a host is the next after another: h13 is after h12."""
    numbers = [name.removeprefix("h") for name in (host, successor)]
    return all(map(str.isdecimal, numbers)) and int(numbers[1]) == int(numbers[0]) + 1


def rate(value: float | None) -> str:
    """The rate of requests: "200/s", "closed loop"."""
    return "closed loop" if value is None else f"{value:g}/s"


def _site(settings: Mapping[str, Any]) -> Iterator[str]:
    """What a web site and its browsers are like: "thumbnails of 3 kB", "5 ms of CPU per page"."""
    if "thumbnail_bytes" in settings:
        yield f"thumbnails of {quantities.print_bytes(settings['thumbnail_bytes'])}"
    if (connections := counted("browser_connections", settings.get("browser_connections"))) is not None:
        yield connections
    for name, what in (("page_cpu", "CPU time"), ("page_wait", "waiting")):
        if f"{name}_seconds" in settings:
            yield f"{quantities.print_seconds(settings[f'{name}_seconds'])} of {what} per page"
    if settings.get("keep_alive") is False:
        yield "no keep-alive between servers"


def amounts(given: Mapping[str, Any]) -> Iterator[str]:
    """The amounts among the conditions that both sides shared: "10 MB", "100 B / 1 kB", "closed loop"."""
    if "test" in given:
        yield str(given["test"])
    if "users" in given:
        yield users(given["users"])
    yield from _site(given)
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
        arrivals = given.get("arrivals", "") if given["rate_per_second"] is not None else ""
        yield f"{rate(given['rate_per_second'])} {arrivals}".rstrip()
    if given.get("spurt_seconds"):
        yield " / ".join(f"{name} {quantities.print_seconds(given[f'{name}_seconds'])}" for name in ("spurt", "pause"))
    if "duration_seconds" in given:
        yield quantities.print_seconds(given["duration_seconds"])
