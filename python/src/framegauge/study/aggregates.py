"""Rules for the largest aggregates of hosts (BIG TCP), and the sizes that a study asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.files.types import Problem
from framegauge.networks.aggregates import USUAL_BYTES
from framegauge.networks.capabilities import Capabilities
from framegauge.study.factors import Factors, nic_of

__all__ = ["PROBING", "aggregate_problems", "hardware_problems", "largest_aggregates", "probing_problems"]

PROBING = "net.ipv4.tcp_mtu_probing"  # for both IP families


def largest_aggregates(factors: Factors) -> dict[str, int]:
    """The largest size of each factor that asks for BIG TCP, which a device or a kernel may not have."""
    most = {name: max(level or 0 for level in factors.levels(name)) for name in ("gso_size", "gro_size")}
    return {name: size for name, size in most.items() if size > USUAL_BYTES}


def aggregate_problems(
    factors: Factors, able: Capabilities, kind: str, bits_per_second: int | None
) -> Iterator[Problem]:
    """Problems with sizes above the usual one: settings by which no such aggregate would ever be seen."""
    sizes = largest_aggregates(factors)
    if able.passes_aggregates and sizes and bits_per_second is not None:
        name = next(iter(sizes))
        expected = f"{USUAL_BYTES} or less, or link: {{rate: unshaped}}: the shaper of testbed {kind} cuts larger ones"
        yield Problem(("factors", name), sizes[name], expected)
    if "gso_size" in sizes and _without_tso(factors):
        expected = f"{USUAL_BYTES} or less with offloads or tso off: without TSO no aggregate leaves a host"
        yield Problem(("factors", "gso_size"), sizes["gso_size"], expected)


def hardware_problems(factors: Factors, kind: str) -> Iterator[Problem]:
    """Problems with `hw_gro` on hosts that a testbed builds: their interfaces have no hardware."""
    if factors.hw_gro is not None:
        expected = f"no such factor on testbed {kind}: its interfaces say rx-gro-hw: off [fixed]"
        text = ", ".join("on" if level else "off" for level in factors.hw_gro.levels)
        yield Problem(("factors", "hw_gro"), text, expected)


def _without_tso(factors: Factors) -> bool:
    """Whether TSO is switched off at some level; on the user's own hosts, it may be left as it is."""
    names = ("offloads", "tso", "lro", "gro", "checksum")
    settings = [
        nic_of({**dict.fromkeys(names), "offloads": offloads, "tso": tso})["tso"]
        for offloads in factors.levels("offloads")
        for tso in factors.levels("tso")
    ]
    return False in settings


def probing_problems(levels: Sequence[Any], sysctls: Mapping[str, str]) -> Iterator[Problem]:
    """Problems with `mtu_probing`, which is a sysctl."""
    if levels != [None] and PROBING in sysctls:
        yield Problem(("sysctls", PROBING), sysctls[PROBING], "no such key with factors.mtu_probing, which sets it")
