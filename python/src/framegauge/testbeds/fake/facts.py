"""The answers of a fake host to `check.facts` and `check.routes`: one NIC, and a route to everywhere."""

from __future__ import annotations

import ipaddress
import platform

from framegauge.testbeds.base import Json
from framegauge.testbeds.fake.testbed import FakeError

__all__ = ["facts", "routes"]

MTU = 1500
LOOPBACK_MTU = 65535


def facts(_: Json) -> Json:
    """The answer to `check.facts`."""
    nic = {
        "name": "eth0", "index": 2, "mtu": MTU, "maximum_mtu": 9710, "up": True, "enabled": True, "kind": None,
        "driver": "ixgbe",
        "bits_per_second": 10_000_000_000, "parent": None, "master": None, "overhead_bytes": None,
        "addresses": [{"address": "10.0.0.1", "prefix_length": 24, "family": 4}],
        "offloads": dict.fromkeys(("tso", "gso", "gro", "tx_checksum", "lro"), True),
    }  # fmt: skip
    table = {"entries": 1, "most": 1024, "refused": 0, "permanent": 0}
    return {
        "hostname": "fake", "kernel": platform.release(), "clock_source": "tsc", "interfaces": [nic],
        "sysctls": {"net.ipv4.tcp_mtu_probing": "0"}, "path_mtu_cache": [],
        "mss_clamps": {"rules": [], "error": None}, "error_filters": {"rules": [], "error": None},
        "length_filters": {"rules": [], "error": None},
        "fragments_created": {"ipv4": 0, "ipv6": 0}, "packets_reassembled": {"ipv4": 0, "ipv6": 0}, "rdma": [],
        "neighbour_tables": {"boot_id": "fake", "ipv4": table, "ipv6": table},
    }  # fmt: skip


def routes(params: Json) -> Json:
    """The answer to `check.routes`; FakeError for an invalid address."""
    return {"routes": [_route(destination) for destination in params["destinations"]]}


def _route(destination: str) -> Json:
    try:
        loopback = ipaddress.ip_address(destination).is_loopback
    except ValueError:
        text = f'check.routes: destinations: found "{destination}", expected an IPv4 or IPv6 address'
        raise FakeError(-32602, text, {"method": "check.routes"}) from None
    return {
        "destination": destination, "source": destination if loopback else "10.0.0.1",
        "interface": "lo" if loopback else "eth0", "route_mtu_bytes": LOOPBACK_MTU if loopback else MTU, "error": None,
    }  # fmt: skip
