"""The emulated rack: real TCP stacks in namespaces, joined by the fabric, driven by one rack agent."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from framegauge.agents.spools import read_spool
from framegauge.errors import AgentFailure
from framegauge.testbeds import changing
from framegauge.testbeds.base import NO_AGGREGATES, Conditions, Host, Json, Pending, Progress, Requests

__all__ = ["RackAgent", "RackTestbed", "Relay"]

UP_SECONDS = 60.0
SAMPLE_SECONDS = 0.01  # between two readings of each queue
AROUND_SECONDS = 0.005  # before and after a watched port's longest run of drops, for which all events are kept


class RackAgent(Requests, Protocol):
    """A rack agent, or a fake of one."""

    about: Json

    def close(self) -> None:
        """Ends the agent."""
        ...


class Relay(Requests):
    """A host's agent, reached through the rack agent, whose errors are passed on unchanged."""

    def __init__(self, rack: Requests, host: str) -> None:
        self._rack = rack
        self._host = host

    def begin(
        self, method: str, params: Mapping[str, Any] | None = None, on_progress: Progress | None = None
    ) -> Pending:
        """Like Agent.begin; cancelling the request cancels it in the host's agent, too."""
        relay_params = {"host": self._host, "method": method, "params": dict(params or {})}
        return self._rack.begin("relay", relay_params, on_progress)


class RackTestbed:
    """The testbed `fabric` of a rack agent."""

    kind = "fabric"
    scope = "emulated"
    is_private = True
    outlives_agents = False

    def __init__(self, agent: RackAgent) -> None:
        self._agent = agent
        self._hosts: list[Host] = []
        self._standing: tuple[Conditions, Json] | None = None

    def requirements(self, bits_per_second: int | None, aggregates: Mapping[str, int] = NO_AGGREGATES) -> Json:
        """What this machine lacks, as reported by the agent."""
        sizes = {name.replace("size", "bytes"): size for name, size in aggregates.items()}
        return self._agent.request("requirements", {"testbed": self.kind, "bits_per_second": bits_per_second, **sizes})

    def standing(self) -> Mapping[str, Requests]:
        """None: every run has fresh hosts."""
        return {}

    def about(self) -> Json:
        """The agent's answer to hello."""
        return dict(self._agent.about)

    def up(self, conditions: Conditions) -> Json:
        """The result of `rack.up` under these conditions."""
        sizes = {"gso_bytes": conditions.gso_bytes, "gro_bytes": conditions.gro_bytes}
        windows = {
            "initial_window_segments": conditions.initial_window_segments,
            "initial_receive_window_segments": conditions.initial_receive_window_segments,
        }
        params = {
            "testbed": self.kind,
            **conditions.hosts_and_link,
            "nic": {
                "tso": conditions.tso,
                "lro": conditions.lro,
                "gro": conditions.gro,
                "checksum": conditions.checksum,
                "moderation_seconds": conditions.moderation_seconds,
                "aggregate_bytes": conditions.aggregate_bytes,
                # Left out if not given, as the overlay is.
                **{name: size for name, size in sizes.items() if size is not None},
            },
            "shaper": {"factor": conditions.shaper_factor, "burst_bytes": conditions.shaper_burst_bytes}
            if conditions.shaping
            else None,
            "congestion_control": conditions.congestion_control,
            "family": conditions.family,
            "sysctls": dict(conditions.sysctls),
            **conditions.network,
            # Left out by default, for older agents that do not know the key.
            **({"overlay": conditions.overlay} if conditions.overlay is not None else {}),
            **{name: segments for name, segments in windows.items() if segments is not None},
        }
        result = self._agent.request("rack.up", params, timeout_seconds=UP_SECONDS)
        self._hosts = [
            Host(
                host["name"], host["address"], Relay(self._agent, host["name"]),
                tuple(nic["address"] for nic in host.get("nics", ())),
            )
            for host in result["hosts"]
        ]  # fmt: skip
        later = {mtu for host in conditions.hosts for nic in (1, 2) for mtu in conditions.mtus(host, nic)[1:]}
        if later:
            result["later_ceilings"] = [self._ceiling(conditions, mtu) for mtu in sorted(later)]
        result |= self._of_storage(conditions)
        if conditions.route_mtu is not None:
            for name in conditions.hosts:
                self._agent.request("rack.set", {"host": name, "route_mtu": conditions.route_mtu})
        self._standing = conditions, result
        return result

    def again(self, conditions: Conditions) -> Json | None:
        """Gives the hosts that are up other MTUs, by `rack.set`. Routers would need theirs, an overlay and held routes
        their own."""
        if self._standing is None:
            return None
        previous, result = self._standing
        candidate = replace(previous, mtu=conditions.mtu, storage_mtu=conditions.storage_mtu)
        only_mtu = candidate == conditions and list(previous.mtu) == list(conditions.mtu)
        if not only_mtu or conditions.changes or conditions.overlay is not None or result["routers"]:
            return None
        if conditions.route_mtu is not None:
            return None
        for host in result["hosts"]:
            for number, nic in enumerate(host["nics"], 1):
                (old_mtu,), (mtu,) = previous.mtus(host["name"], number), conditions.mtus(host["name"], number)
                if mtu != old_mtu:
                    self._agent.request("rack.set", {"host": nic["end"], "mtu": mtu})
        ceilings = {name: self._ceiling(conditions, mtu) for name, mtu in conditions.mtu.items()}
        base = {name: value for name, value in result.items() if name != "storage_ceiling"}
        self._standing = conditions, {**base, "ceilings": ceilings, **self._of_storage(conditions)}
        return dict(self._standing[1])

    def _of_storage(self, conditions: Conditions) -> Json:
        """`storage_ceiling`, if the storage network has an MTU of its own."""
        mtu = conditions.storage_mtu
        return {} if mtu is None else {"storage_ceiling": self._ceiling(conditions, mtu)}

    def _ceiling(self, conditions: Conditions, mtu: int) -> Json:
        """The ceiling for an MTU that `rack.up` tells none of, in the form of `ceilings` of `rack.up`."""
        params = {"mtu": mtu, "encapsulations": [], "bits_per_second": conditions.bits_per_second}
        wire = self._agent.request("frames.wire", params)
        family = next(entry for entry in wire["families"] if entry["family"] == conditions.family)
        goodput = family["goodput_bits_per_second"]
        return {"mtu": mtu, "frame_bytes": wire["frame_bytes"], "goodput_bits_per_second": goodput}

    def hosts(self) -> Sequence[Host]:
        """The running hosts."""
        return self._hosts

    def predict(self, conditions: Conditions, size_bytes: int) -> float | None:
        """The result of `frames.predict`, for shaped links that are all alike and hosts that have one MTU and start
        as the kernel does; otherwise None."""
        if conditions.bits_per_second is None or len(set(conditions.first_mtus)) != 1:
            return None
        if (
            conditions.overlay is not None
            or conditions.initial_window_segments is not None
            or conditions.initial_receive_window_segments is not None
            or conditions.slow_start_threshold_segments is not None
            or conditions.route_mtu is not None
            or conditions.changes
            or not {"topology", "links", "background"}.isdisjoint(conditions.network)
        ):
            return None
        params = {
            "size_bytes": size_bytes,
            "mtu": next(iter(conditions.mtu.values())),
            "family": conditions.family,
            "bits_per_second": conditions.bits_per_second,
            "rtt_seconds": conditions.rtt_seconds,
        }
        seconds: float = self._agent.request("frames.predict", params)["completion_seconds"]
        return seconds

    def begin(self, watch: Sequence[str] = ()) -> float:
        """Starts the fabric's meters; all events at the named ports are kept."""
        params = {"sample_seconds": SAMPLE_SECONDS} if self.kind == "fabric" else {}
        self._agent.request(
            "measure.begin", {**params, **({"watch": list(watch), "around_seconds": AROUND_SECONDS} if watch else {})}
        )
        return time.monotonic()  # the agents' clock, because they are on this machine

    def changing(
        self, changes: Sequence[Mapping[str, Any]], begun_seconds: float
    ) -> contextlib.AbstractContextManager[list[Json]]:
        """Makes changes by `rack.set`."""
        return changing.beside(self._agent, changes, begun_seconds, time.monotonic)

    def end(self) -> Json:
        """The activity of the fabric and the CPUs since `begin`."""
        return self._agent.request("measure.end")

    def ports(self) -> Sequence[Json]:
        """The counters of the fabric's ports; none on the kernel's own links."""
        ports: Sequence[Json] = self._agent.request("rack.ports")["ports"] if self.kind == "fabric" else ()
        return ports

    def fetch(self, spool: int) -> bytes:
        """A spool of the rack agent, such as the drops."""
        return read_spool(self._agent, spool)

    def down(self) -> None:
        """Takes the rack down, if one is up."""
        self._standing = None
        if self._hosts:
            self._hosts = []
            self._agent.request("rack.down", timeout_seconds=UP_SECONDS)

    def unrestored(self) -> list[str]:
        """None: its hosts are made for it, and end with it."""
        return []

    def close(self) -> None:
        """Takes the rack down and ends the agent, which puts everything back."""
        with contextlib.suppress(AgentFailure):
            self.down()
        self._agent.close()
