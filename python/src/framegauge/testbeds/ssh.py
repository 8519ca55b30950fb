"""The user's own hosts over ssh: measured as they are, changed only by leases, and put back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Protocol

from framegauge.agents.pipe import Agent, Json, Requests
from framegauge.agents.ssh import host_words, open_agent
from framegauge.errors import AgentFailure, BadAnswer, Lapsed, Refused
from framegauge.files.machines import Machine
from framegauge.printable import one_line
from framegauge.testbeds import hardware
from framegauge.testbeds.base import NO_AGGREGATES, Conditions, Host, Place
from framegauge.testbeds.leases import CONGESTION_CONTROL, Change, Leases, settings, too_large
from framegauge.testbeds.listed import ListedHosts, of_machine
from framegauge.testbeds.logins import Unreachable

__all__ = ["Reach", "SshTestbed"]

MOST_LISTED = 20  # old connections that are listed per host
NO_METRICS = "net.ipv4.tcp_no_metrics_save"  # read with every run: whether connections inherit windows (tcp(7))
# With which MSS connections begin: a host that probes path MTUs from the start is named with its runs.
PROBED = ("net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_base_mss")

Say = Callable[[str], None]


Reached = Sequence[tuple[Host, str | None]]  # hosts, each with the interface named for it


class Reach(Protocol):
    """The way in which hosts reach each other."""

    def ways(self, hosts: Reached, family: int) -> dict[str, Place]:
        """The interface and address for data of each host; Refused if there is no route."""
        ...

    def narrow(self, hosts: Reached, family: int, mtu: Mapping[str, int]) -> Iterable[str]:
        """One line for each path that does not carry packets of these MTUs."""
        ...


class SshTestbed:
    """The testbed of `kind: ssh`."""

    scope = "measured"
    is_private = False

    def __init__(
        self,
        machines: Sequence[Machine],
        say: Say,
        reach: Reach,
        *,
        family: int = 4,
        bits_per_second: int | None = None,
        lease_seconds: float = 60.0,
        goes_on: bool = True,
        counts: bool = False,
    ) -> None:
        self.outlives_agents, self._counts = goes_on, counts
        self._machines, self._reach = {machine.name: machine for machine in machines}, reach
        self._say, self._family, self._rate, self._seconds = say, family, bits_per_second, lease_seconds
        self._listed = ListedHosts([of_machine(machine) for machine in machines], say)
        self._agents: dict[str, Requests] = {host.name: host.agent for host in self._listed.hosts()}
        self._reopened: list[Agent] = []
        self._facts: Json = {}
        self._places: dict[str, Place] = {}
        self._hosts: list[Host] = []
        self._leases: Leases | None = None
        self._unrestored: list[str] = []
        self._now: dict[str, Json] = {}
        self._carried: list[Mapping[str, int]] = []
        self._begun = 0.0
        self._sizes: Mapping[str, int] = NO_AGGREGATES

    def requirements(
        self,
        bits_per_second: int | None,  # noqa: ARG002
        aggregates: Mapping[str, int] = NO_AGGREGATES,
    ) -> Json:
        """The missing requirements: hosts that cannot be reached. The hosts' facts are read here, once. The limits of
        aggregates are those of interfaces, which are known only once the hosts have found each other."""
        self._sizes = aggregates
        missing = []
        for name, agent in self._agents.items():
            try:
                self._facts[name] = agent.request("check.facts")
            except AgentFailure as error:
                requirement = {"name": f"host {name}", "needed_for": "the study", "found": one_line(error)}
                missing.append(
                    requirement | {"remedy": f"make sure that `ssh {self._machines[name].destination}` works"}
                )
        return {"missing": missing, "degraded": []}

    def standing(self) -> Mapping[str, Requests]:
        """The agents of all hosts."""
        return self._agents

    def about(self) -> Json:
        """The greeting of every agent, and the facts of every host."""
        greetings = {name: dict(getattr(agent, "about", {})) for name, agent in self._agents.items()}
        kernels = sorted({str(greeting.get("kernel")) for greeting in greetings.values()})
        return {
            "hosts": {name: {**greetings[name], "facts": self._facts.get(name)} for name in greetings},
            "kernel": kernels,
        }

    def up(self, conditions: Conditions) -> Json:
        """Reaches every host, changes settings that differ, and keeps them only if full-size packets pass both ways."""
        self._connect()
        self._places = self._places or self._reach.ways(self._reached(), self._family)
        watched = [*conditions.sysctls, NO_METRICS, CONGESTION_CONTROL, *PROBED]
        for name, place in self._places.items():
            agent = self._agents[name]
            params = {
                "interface": place.interface, "address": place.address, "sysctls": watched, "count": self._counts,
                "sudo": self._counts and _user(agent) != 0,
            }  # fmt: skip
            if conditions.hw_gro is not None:
                params["features"] = list(hardware.WATCHED)
            agent.request("host.adopt", params)
        changes = self._changes(conditions)
        connections = self._standing(changes, conditions)
        self._leases = Leases(self._seconds)
        leased = self._leases.begin(changes)
        switched = {} if conditions.hw_gro is None else self._switched_along(changes, leased)
        if leased:
            for line in self._reach.narrow(self._reached(), self._family, conditions.mtu):
                # A network that cannot carry the packets ends the study; one that no longer does leaves a gap in it.
                kind = Lapsed if conditions.mtu in self._carried else Refused
                raise kind(f"{line}, expected them to pass; everything is put back")
            self._carried.append(conditions.mtu)
            self._leases.keep()
        self._hosts = [Host(name, place.address, self._agents[name]) for name, place in self._places.items()]
        hosts = [
            {"name": name, "address": place.address, "interface": place.interface}
            for name, place in self._places.items()
        ]
        result = {
            "hosts": hosts, "ceilings": self._ceilings(conditions), "changed": leased, "old_connections": connections,
        }  # fmt: skip
        return result if not switched else {**result, "switched_along": switched}

    def again(self, conditions: Conditions) -> Json | None:
        """Puts back what was changed, and changes it anew: hosts stay by themselves."""
        self.down()
        return self.up(conditions)

    def _standing(self, changes: Sequence[Change], conditions: Conditions) -> Json:
        """The open connections of each host whose MTU will be raised."""
        connections = {}
        for change in changes:
            place = self._places[change.host]
            if (
                conditions.mtu[change.host] > self._now[change.host]["mtu"]
                and f"mtu:{place.interface}" in change.settings
            ):
                sockets = change.agent.request("sockets.read")["sockets"]
                connections[change.host] = old_connections(sockets, place.address)
        return connections

    def _switched_along(self, changes: Sequence[Change], leased: Json) -> Json:
        """What each interface has switched by itself; Refused if one does not do as it was asked to."""
        features = {}
        for change in changes:
            if problem := hardware.unswitched(leased[change.host], change.settings):
                raise Refused(f"{change.host}: {self._places[change.host].interface}: {problem}")
            reading = change.agent.request("host.read")
            if lines := list(hardware.switched_along(self._now[change.host], reading, change.settings)):
                features[change.host] = lines
        return features

    def _connect(self) -> None:
        for name, agent in self._agents.items():
            with suppress(AgentFailure):
                if not isinstance(agent, Unreachable):
                    agent.request("check.facts")
                    continue
            # A new login: the old agent, if it still ran, has undone its changes when its input ended.
            remote = of_machine(self._machines[name])
            new_agent = open_agent(remote, host_words(remote), self._say)
            self._reopened.append(new_agent)
            self._agents[name] = new_agent
            self._places = {}

    def _reached(self) -> Reached:
        return [(Host(name, "", self._agents[name]), machine.interface) for name, machine in self._machines.items()]

    def _changes(self, conditions: Conditions) -> list[Change]:
        sysctls = dict(conditions.sysctls)
        if conditions.congestion_control is not None:
            sysctls[CONGESTION_CONTROL] = conditions.congestion_control
        changes = []
        for name, machine in self._machines.items():
            agent, place = self._agents[name], self._places[name]
            levels = {
                "mtu": conditions.mtu[name], "tso": conditions.tso, "gro": conditions.gro,
                "checksum": conditions.checksum, "lro": conditions.lro, "qdisc": conditions.qdisc,
                "gso_bytes": conditions.gso_bytes, "gro_bytes": conditions.gro_bytes, "hw_gro": conditions.hw_gro,
            }  # fmt: skip
            self._now[name] = agent.request("host.read")
            if self._sizes and (problem := too_large(self._sizes, self._now[name]["aggregates"])):
                raise Refused(f"{name}: {place.interface}: {problem}")
            if conditions.hw_gro is not None and (problem := hardware.lacking(self._now[name])):
                raise Refused(f"{name}: {place.interface}: {problem}")
            differences = settings(place.interface, levels, sysctls, self._now[name])
            if not differences:
                continue
            if machine.read_only:
                words = ", ".join(f"{key}={value}" for key, value in differences.items())
                raise Refused(
                    f"{name}: found a read_only host, expected {words}: its current values are the only possible levels"
                )
            changes.append(Change(name, agent, differences, sudo=_user(agent) != 0))
        return changes

    def _ceilings(self, conditions: Conditions) -> Json:
        ceilings = {}
        for name, mtu in conditions.mtu.items():
            params = {"mtu": mtu, "encapsulations": [], "bits_per_second": self._rate}
            wire = self._agents[name].request("frames.wire", params)
            family = next((entry for entry in wire["families"] if entry["family"] == self._family), None)
            if family is None:
                raise BadAnswer(
                    f"{name}: frames.wire: found no IPv{self._family} in an MTU of {mtu} bytes, expected it"
                )
            ceilings[name] = {
                "mtu": mtu, "frame_bytes": wire["frame_bytes"], "wire_bytes": wire["wire_bytes"],
                "mss_bytes": family["mss_bytes"], "segment_payload_bytes": family["segment_payload_bytes"],
                "goodput_bits_per_second": family["goodput_bits_per_second"],
            }  # fmt: skip
        return ceilings

    def hosts(self) -> Sequence[Host]:
        """The hosts in the order of the list."""
        return self._hosts

    def predict(self, conditions: Conditions, size_bytes: int) -> float | None:  # noqa: ARG002
        """None, because there is no model of the user's network."""
        return None

    def begin(self, watch: Sequence[str] = ()) -> float:  # noqa: ARG002
        """The start of the measurement; there is no fabric to meter, but something else may hold a host's CPUs."""
        for host in self._hosts:
            host.agent.request("held.begin")
        self._begun = time.monotonic()
        return self._begun

    def changing(
        self,
        changes: Sequence[Mapping[str, Any]],  # noqa: ARG002
        begun_seconds: float,  # noqa: ARG002
    ) -> AbstractContextManager[list[Json]]:
        """Does nothing: studies with changes are rejected for this testbed."""
        return nullcontext([])

    def end(self) -> Json:
        """The time since `begin`, and the CPUs that were held; by host, what could not be measured of that."""
        elapsed = time.monotonic() - self._begun
        holds = {host.name: host.agent.request("held.end") for host in self._hosts}
        return {
            "elapsed_seconds": elapsed, "fabric": None, "kernel_ports": None, "cpus": [], "softirqs": [],
            "held": [{"host": name, **cpu} for name, hold in holds.items() for cpu in hold["held"]],
            "held_not_measured": {name: hold["not_measured"] for name, hold in holds.items() if hold["not_measured"]},
            "agent": {"cpu_seconds": 0.0},
        }  # fmt: skip

    def ports(self) -> Sequence[Json]:
        """None: there is no fabric."""
        return ()

    def fetch(self, spool: int) -> bytes:
        """Always raises AgentFailure: only the hosts' agents have spools."""
        raise AgentFailure(f"spool {spool}: this testbed has no spools, expected a spool of a host's agent")

    def down(self) -> None:
        """Undoes all changes; hosts that do not confirm it are reported, and undo them when their lease expires."""
        self._hosts = []
        leases, self._leases = self._leases, None
        for line in leases.end() if leases is not None else ():
            self._unrestored.append(line)
            self._say(line)

    def unrestored(self) -> list[str]:
        """What was not as before, or was not confirmed, when changes were last undone."""
        lines, self._unrestored = self._unrestored, []
        return lines

    def close(self) -> None:
        """Undoes all changes and ends the agents, which undo any that remain."""
        self.down()
        for agent in self._reopened:
            agent.close()
        self._listed.close()


def _user(agent: Requests) -> int:
    greeting: Mapping[str, object] = getattr(agent, "about", {})
    return int(str(greeting.get("user_id", 0)))


def old_connections(sockets: Iterable[Mapping[str, Any]], address: str) -> dict[str, Any]:
    """The established ones of a host's sockets (`sockets.read`) at one of its addresses: count and first few."""
    rows = [
        {"local": socket["local"], "remote": socket["remote"], "mss_bytes": socket["mss_bytes"]}
        for socket in sockets
        if socket["state"] == "established" and _host(socket["local"]) == address
    ]
    return {"count": len(rows), "connections": rows[:MOST_LISTED]}


def _host(endpoint: str) -> str:
    return endpoint.rpartition(":")[0].strip("[]").removeprefix("::ffff:")
