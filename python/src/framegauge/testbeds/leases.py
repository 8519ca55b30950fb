"""Leases: changes of hosts that last only while this process renews them (`lease.begin` of their agents)."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from framegauge.agents.pipe import Json, Requests
from framegauge.agents.restored import unrestored
from framegauge.errors import AgentError, AgentFailure, MissingRequirement
from framegauge.networks.aggregates import HARDWARE_GRO, USUAL_BYTES
from framegauge.printable import one_line
from framegauge.testbeds.base import is_qdisc

__all__ = ["CONGESTION_CONTROL", "SIZES", "SWITCHES", "Change", "Leases", "settings", "too_large"]

CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"
OTHER = "another lease under way"  # the agent's wording
RETRY_SECONDS = 0.5
SLACK_SECONDS = 5.0
RENEWALS = 5  # within the time of a lease, which ends a little early, so that three may be lost
SWITCHES = {"tso": ("tso", "gso"), "lro": ("lro",), "gro": ("gro",), "checksum": ("tx",)}
SIZES = ("gso", "gro")
READ_AS = {"tx": "tx_checksum"}


@dataclass(frozen=True)
class Change:
    """The changes for one host: settings by the agent's names."""

    host: str
    agent: Requests
    settings: Mapping[str, str]
    sudo: bool


def settings(interface: str, asked: Mapping[str, object], sysctls: Mapping[str, str], now: Json) -> dict[str, str]:
    """The requested settings of a host that differ from `now`, its reading (`host.read`)."""
    changes = {}
    if now["mtu"] != asked["mtu"]:
        changes[f"mtu:{interface}"] = str(asked["mtu"])
    for name, switches in SWITCHES.items():
        level = asked[name]
        for switch in switches if level is not None else ():
            if now["offloads"][READ_AS.get(switch, switch)] is not level:
                changes[f"{switch}:{interface}"] = "on" if level else "off"
    hardware = asked.get("hw_gro")
    if hardware is not None and now["features"][HARDWARE_GRO]["on"] is not hardware:
        changes[f"{HARDWARE_GRO}:{interface}"] = "on" if hardware else "off"
    for name in SIZES:
        size = asked.get(f"{name}_bytes")
        sizes = [now["aggregates"][f"{name}{version}_bytes"] for version in ("", "_ipv4")] if size is not None else []
        if any(current not in (size, None) for current in sizes):
            # IPv6's, then IPv4's, where the kernel has one of its own.
            changes[f"{name}_size:{interface}"] = " ".join(str(size) for current in sizes if current is not None)
    if (qdisc := asked["qdisc"]) is not None and not is_qdisc(now["qdisc"], str(qdisc)):
        changes[f"qdisc:{interface}"] = str(qdisc)
    for name, value in sysctls.items():
        if (now["sysctls"].get(name) or "").split() != value.split():
            changes[f"sysctl:{name}"] = value
    return changes


def too_large(largest: Mapping[str, int], now: Mapping[str, int | None]) -> str | None:
    """Why a host cannot have aggregates as large as a study will ask for: its reading of sizes, against those."""
    for name, size in largest.items():
        limit = now["tso_maximum_bytes"] or USUAL_BYTES  # of what is built; any device takes what is merged
        if name == "gso_size" and size > limit:
            return f"found tso_max_size {limit}, expected {size} or more for {name}"
        if now["gso_ipv4_bytes"] is None:
            return f"found a kernel without sizes for IPv4, expected Linux 6.3 or later for {name} {size}"
    return None


class Leases:
    """Leases on several hosts, renewed by a thread until `end`. On a host that does not answer, the lease expires and
    the changes are undone."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._held: dict[str, Requests] = {}
        self._lost: dict[str, str] = {}
        self._over = threading.Event()
        self._keeper: threading.Thread | None = None

    def begin(self, changes: Sequence[Change]) -> Json:
        """Changes all hosts or none; returns the changes by host, with old and new values."""
        held: Json = {}
        try:
            for change in changes:
                held[change.host] = self._begin(change)["held"]
                self._held[change.host] = change.agent
        except BaseException as error:
            self.end()
            if isinstance(error, AgentError):
                raise MissingRequirement([_refused(changes[len(held)], error)]) from None
            raise
        return held

    def _begin(self, change: Change) -> Json:
        """Begins one lease. If a lost agent's lease is still active, the current values are not the original ones, so
        this waits until that lease expires; it is no longer renewed."""
        params = {"settings": dict(change.settings), "seconds": self._seconds, "sudo": change.sudo}
        deadline = time.monotonic() + self._seconds + SLACK_SECONDS
        while True:
            try:
                return change.agent.request("lease.begin", params)
            except AgentError as error:
                if OTHER not in error.message or time.monotonic() > deadline:
                    raise
            time.sleep(RETRY_SECONDS)

    def keep(self) -> None:
        """Starts to renew the leases; only once it is certain that the changed hosts can still be reached."""
        if self._held:
            self._keeper = threading.Thread(target=self._renew, name="leases", daemon=True)
            self._keeper.start()

    @property
    def lost(self) -> Mapping[str, str]:
        """Hosts whose lease could not be renewed, with the reason."""
        return self._lost

    def _renew(self) -> None:
        pause = self._seconds / RENEWALS
        while not self._over.wait(pause):
            for host, agent in self._held.items():
                if host in self._lost:
                    continue
                try:
                    agent.request("lease.renew", timeout_seconds=pause)
                except AgentFailure as error:
                    self._lost[host] = one_line(error)

    def end(self) -> list[str]:
        """Undoes all changes; a line for each host that did not confirm it, whose lease will expire, and for each
        thing that is not as it was."""
        self._over.set()
        if self._keeper is not None:
            self._keeper.join()
        lines = []
        for host, agent in self._held.items():
            try:
                answer = agent.request("lease.end")
            except AgentFailure as error:
                lines.append(
                    f"{host}: not confirmed; its changes are undone within {self._seconds:g} s: {one_line(error)}"
                )
            else:
                lines += [f"{host}: not as it was: {line}" for line in unrestored(answer)]
        self._held = {}
        return lines


def _refused(change: Change, error: AgentError) -> Json:
    words = ", ".join(f"{name}={value}" for name, value in change.settings.items())
    remedy = "mark the host read_only, take that level out, or allow its user the command that --dry-run shows"
    with suppress(KeyError):
        remedy = one_line(error.data.get("remedy", remedy)) if error.data else remedy
    return {
        "name": "privilege", "needed_for": f"{words} on {change.host}", "found": error.message, "remedy": remedy,
    }  # fmt: skip
