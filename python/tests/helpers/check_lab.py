"""Result documents of path MTU checks for tests: a healthy mesh, in which faults are then put."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from framegauge.check.judgement import blame, planner, verdict

TARGET = 9000
Hops = Sequence[tuple[str | None, str]]  # address of a router (None: it never answers), what it does with large ones


def interface(name: str, address: str, mtu: int = TARGET, **more: Any) -> dict[str, Any]:
    return {
        "name": name, "index": 2, "mtu": mtu, "maximum_mtu": 9710, "up": True, "kind": None, "driver": "ixgbe",
        "bits_per_second": 10_000_000_000, "parent": None, "overhead_bytes": None, "offloads": None,
        "addresses": [{"address": address, "prefix_length": 64 if ":" in address else 24, "family": 6 if ":" in address else 4}],
        **more,
    }  # fmt: skip


class Lab:
    """Hosts `a`, `b`, … in subnets; every ordered pair carries the target until told otherwise."""

    def __init__(self, subnets: Sequence[int] = (3,), families: Sequence[int] = (4,), flows: int = 32) -> None:
        self.flows, self.hosts, self.pairs = flows, {}, {}
        self.findings: list[dict[str, Any]] = []
        for subnet, count in enumerate(subnets, 1):
            for number in range(1, count + 1):
                self._host(len(self.hosts), subnet, number, families)
        for source in self.hosts:
            for destination in self.hosts:
                for family in families:
                    if source != destination:
                        self.pairs[source, destination, family] = self._pair(source, destination, family)

    def _host(self, index: int, subnet: int, number: int, families: Sequence[int]) -> None:
        name = chr(ord("a") + index) if len(self.hosts) < 26 else f"h{index}"
        held = [f"10.{subnet}.0.{number}" if family == 4 else f"fd00:{subnet}::{number}" for family in families]
        device = interface("eth0", held[0])
        device["addresses"] = [entry for address in held for entry in interface("x", address)["addresses"]]
        facts = {
            "hostname": name, "kernel": "6.1.0", "interfaces": [device], "path_mtu_cache": [],
            "sysctls": {"net.ipv4.tcp_mtu_probing": "0", "net.ipv4.ip_no_pmtu_disc": "0"},
        }  # fmt: skip
        self.hosts[name] = {"name": name, "addresses": held, "facts": facts, "error": None}

    def address(self, name: str, family: int = 4) -> str:
        return next(each for each in self.hosts[name]["addresses"] if (":" in each) == (family == 6))

    def device(self, name: str) -> dict[str, Any]:
        return self.hosts[name]["facts"]["interfaces"][0]

    def _pair(self, source: str, destination: str, family: int) -> dict[str, Any]:
        return {
            "source": source, "destination": destination, "source_address": self.address(source, family),
            "destination_address": self.address(destination, family), "family": family, "verdict": "carries_target",
            "path_mtu_bytes": TARGET, "route_mtu_bytes": TARGET,
            "flows": {"probed": self.flows, "bad": 0, "unknown": 0, "path_mtus_bytes": {str(TARGET): self.flows}},
            "told_by": [], "controls": {"sent": 64, "lost": 0}, "traces": [], "interface": "eth0", "seconds": 0.1,
            "tcp": {"connected": True, "mss_bytes": 8948, "peer_announced_mss_bytes": 8960, "error": None},
        }  # fmt: skip

    def some(self, choose: Callable[[str, str], bool], family: int | None = None) -> list[tuple[str, str, int]]:
        return [key for key in self.pairs if choose(key[0], key[1]) and family in (None, key[2])]

    def fault(
        self, keys: Iterable[tuple[str, str, int]], mtu: int | None = 1500, kind: str = "black_hole",
        bad: int | None = None, told: Sequence[tuple[str | None, int | None]] = (), hops: Hops = (),
    ) -> Lab:  # fmt: skip
        """Only `bad` of the flows, if given. `hops` are those of the bad flows' trace."""
        for key in keys:
            pair, count = self.pairs[key], self.flows if bad is None else bad
            sizes = {str(TARGET): self.flows - count} if count < self.flows else {}
            sizes |= {} if mtu is None else {str(mtu): count}
            pair |= {"verdict": kind, "path_mtu_bytes": mtu, "tcp": None}
            pair["flows"] |= {"bad": count, "path_mtus_bytes": sizes}
            pair["told_by"] = [{"address": who, "mtu_bytes": size, "flows": count} for who, size in told]
            if hops:
                pair["traces"] = [self.trace(pair, hops, True)]
        return self

    def trace(self, pair: dict[str, Any], hops: Hops, bad: bool) -> dict[str, Any]:
        """The last is the destination's: ("", what)."""
        found = []
        for ttl, (address, large) in enumerate(hops, 1):
            small = "silent" if address is None else "expired"
            if address == "":
                small, address = "delivered", pair["destination_address"]
            answered = address if large != "silent" else None
            found.append({
                "ttl": ttl, "small": {"outcome": small, "address": address},
                "large": {"outcome": large, "address": answered, "mtu_bytes": None},
            })  # fmt: skip
        return {"source_port": 40000 + bad, "bad": bad, "hops": found}

    def document(self) -> dict[str, Any]:
        pairs, hosts = list(self.pairs.values()), list(self.hosts.values())
        found = {
            "schema": 1, "target_mtu": TARGET, "verdict": verdict.of_check(pairs, hosts), "seconds": 1.9,
            "false_claim_probability": 1e-6, "flows": self.flows, "coverage": planner.member_coverage(self.flows),
            "plan": {"kind": "full_mesh", "pairs": len(pairs), "of": len(pairs)}, "hosts": hosts, "pairs": pairs,
            "findings": [],
        }  # fmt: skip
        found["findings"] = blame.blame(found)
        return found

    def blame(self) -> list[dict[str, Any]]:
        return self.document()["findings"]

    def faults(self) -> list[dict[str, Any]]:
        from framegauge.check.judgement.findings import CATALOGUE

        return [each for each in self.blame() if CATALOGUE[each["kind"]].is_fault]
