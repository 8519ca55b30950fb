"""The settings of the invented rack: its goodput model and its faults."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from framegauge.networks import topologies
from framegauge.testbeds.base import Json

__all__ = ["AGGREGATE_FRAMES", "FAULTS", "STARTED_SECONDS", "BuiltRack", "FakeError", "FakeModel", "Fault"]

AGGREGATE_FRAMES = 8  # in each aggregate, sent or received
STARTED_SECONDS = 1000.0  # everything on the invented rack begins at the same moment of its clock

# All kinds of sabotage; each must be caught by one of the checks of a run.
FAULTS = (
    "mtu", "mss", "frames", "offloads", "aggregates", "congestion_control", "shaper", "sysctl", "rtt",
    "late", "ring", "fabric_cpu", "displaced", "waited", "rivals", "held", "host_cpu", "conservation", "nstat",
    "ceiling", "metrics_cache", "lost_stream", "merged", "coalesced", "checksums", "interrupts", "nodelay", "bridge",
    "segments", "unfinished", "account", "queue", "buffer", "skew", "network_rtt", "link_missing", "loss", "background",
    "unshaped", "ecn", "untagged", "own_buffers", "capped", "calls", "second_nic", "nic_missing", "router_mtu",
    "router_icmp", "router_missing", "change_late", "change_refused", "old_mss", "sizes", "big", "path_mtu", "pacing",
    "subflows", "windows", "storage_mss", "storage_frames",
)  # fmt: skip


class FakeError(Exception):
    """An error answer: code, message, data."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any]) -> None:
        self.code, self.message, self.data = code, message, dict(data)
        super().__init__(message)


@dataclass(frozen=True)
class Fault:
    """One kind of sabotage, for racks for which `when` holds (given the params of `rack.up` and the rack's number)."""

    kind: str
    when: Callable[[Json, int], bool] = lambda _up, _number: True

    def __post_init__(self) -> None:
        if self.kind not in FAULTS:
            raise ValueError(f"{self.kind}: expected one of {', '.join(FAULTS)}")


@dataclass
class FakeModel:
    """The settings of the model; `goodput_loss` is taken from the arm for which `loses` holds."""

    seed: int = 1
    noise: float = 0.003
    drift: float = 0.002
    goodput_loss: float = 0.0
    loses: Callable[[Json], bool] = lambda up: max(host["mtu"] for host in up["hosts"]) > 1500
    faults: Sequence[Fault] = ()
    missing: Sequence[Json] = ()
    degraded: Sequence[Json] = ()
    largest_mtu: int = 65521


@dataclass
class BuiltRack:
    """The rack that is up: the params of `rack.up`, and the traffic since then."""

    up: Json
    number: int
    noise: float = 1.0  # of this run's goodput
    sent: Counter[str] = field(default_factory=Counter)  # frames by host
    received: Counter[str] = field(default_factory=Counter)
    sent_by: Counter[str] = field(default_factory=Counter)  # frames by NIC
    received_by: Counter[str] = field(default_factory=Counter)
    data_sent: Counter[str] = field(default_factory=Counter)  # frames with payload
    data_received: Counter[str] = field(default_factory=Counter)
    data_bytes: Counter[str] = field(default_factory=Counter)  # frame bytes of data sent
    largest: dict[str, int] = field(default_factory=dict)  # frame with data, by sending host
    data_by: dict[str, Counter[str]] = field(default_factory=dict)  # by NIC: frames with data, bytes, the largest
    udp: dict[str, Counter[str]] = field(default_factory=dict)  # counters of nstat for datagrams, by host
    batched: Counter[str] = field(default_factory=Counter)  # datagrams beyond those counters, by host
    read_bytes: Counter[str] = field(default_factory=Counter)  # of QUIC's frames, without FCS, by host
    elapsed: float = 0.0
    metered_from: dict[str, float] = field(default_factory=dict)  # elapsed when the CPU meter began, by host
    # Client and server of each pair and the number of their NICs, from 0, with the MTUs of all hosts' NICs of that
    # number when its connections were opened, in order.
    connections: dict[tuple[str, str, int], list[dict[str, int]]] = field(default_factory=dict)
    # The time of each change from the start of the measurement, and the params of `rack.set`.
    changes: list[tuple[float, Json]] = field(default_factory=list)
    serving: dict[str, Json] = field(default_factory=dict)  # streams: the params of `stream.serve`, by host
    sending: dict[str, Json] = field(default_factory=dict)  # readings of a serving end's sending sockets
    nodelay: dict[str, bool] = field(default_factory=dict)
    answered: dict[str, Json] = field(default_factory=dict)  # requests and bytes by serving host
    _ends: dict[str, list[str]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of the hosts, in order."""
        return [host["name"] for host in self.up["hosts"]]

    @property
    def mtus(self) -> dict[str, int]:
        """The MTUs by host."""
        return {host["name"]: host["mtu"] for host in self.up["hosts"]}

    def mtus_at(self, seconds: float, nic: int = 0) -> dict[str, int]:
        """The MTUs of NICs of this number by host, this long after the start of the measurement."""
        mtus = {host["name"]: host.get("second_mtu", host["mtu"]) if nic else host["mtu"] for host in self.up["hosts"]}
        settings = [
            setting for moment, setting in self.changes if moment <= seconds and {"host", "mtu"} <= setting.keys()
        ]
        for setting in settings:
            if setting["host"] in ((host := topologies.node_of(setting["host"])), f"{host}.{nic + 1}"):
                mtus[host] = setting["mtu"]
        return mtus

    @property
    def headers(self) -> int:
        """Bytes of IP and TCP headers with timestamps."""
        return 52 if self.up["family"] == 4 else 72

    @property
    def topology(self) -> Json:
        """The requested topology, or the default."""
        return self.up.get("topology") or {"kind": "rack"}

    @property
    def routers(self) -> list[str]:
        """The names of the routers, in order."""
        return topologies.routers(self.topology)

    @functools.cached_property
    def links(self) -> list[tuple[str, str]]:
        """The links between ends."""
        return topologies.drawn_links(self.topology, self.names)

    @functools.cached_property
    def ways(self) -> topologies.Ways:
        """The routes between ends."""
        return topologies.Ways(self.links, self.routers)

    def ends(self, node: str) -> list[str]:
        """The ends of a host or a router, in order."""
        if node not in self._ends:
            self._ends[node] = topologies.ends_of(self.links, node)
        return self._ends[node]

    @functools.cached_property
    def _addresses(self) -> dict[str, str]:
        """The addresses by end."""
        members = [*self.names, *self.routers]
        numbered_ends = [(number, end) for number, name in enumerate(members, 1) for end in self.ends(name)]
        subnets = list(dict.fromkeys(self.ways.subnet(end) for _, end in numbered_ends))
        addresses = {}
        for number, end in numbered_ends:
            subnet = subnets.index(self.ways.subnet(end))
            prefix = f"10.77.{subnet}." if self.up["family"] == 4 else f"fd77:{subnet}::" if subnet else "fd77::"
            addresses[end] = f"{prefix}{number}"
        return addresses

    def address(self, node: str, nic: int = 0) -> str:
        """The address of one NIC of a host or a router."""
        return self._addresses[self.ends(node)[nic]]

    def place(self, address: str) -> tuple[str, int]:
        """The host with this address, and the number of the NIC that has it."""
        end = next(end for end, end_address in self._addresses.items() if end_address == address.strip("[]"))
        host = topologies.node_of(end)
        return host, self.ends(host).index(end)

    def host_at(self, address: str) -> str:
        """The host with this address."""
        return self.place(address)[0]

    def payload(self, one: str, other: str, seconds: float = 0.0, nic: int = 0) -> int:
        """The payload of a full segment between two hosts' NICs of a number, through any routers, on a connection that
        is opened this long after the start."""
        mtus = self.mtus_at(seconds, nic)
        smallest: int = min(mtus[one], mtus[other], *(mtu for mtu, _ in self._between(one, other)))
        return smallest - self.headers

    def is_black_hole(self, one: str, other: str) -> bool:
        """Whether full packets of the smaller of two hosts' MTUs are too large for a router without ICMP errors."""
        full = min(self.mtus[one], self.mtus[other])
        return any(mtu < full and icmp == "filtered" for mtu, icmp in self._between(one, other))

    def _between(self, sender: str, receiver: str) -> list[tuple[int, str]]:
        """MTU and ICMP of the routers between two hosts."""
        routers = {router["name"]: router for router in self.topology.get("routers", ())}
        names = self.ways.routers(self.ends(sender)[0], self.ends(receiver)[0]) or ()
        port_mtu = self.up["link"]["port_mtu"]
        return [(routers[name].get("mtu", port_mtu), routers[name].get("icmp", "on")) for name in names]

    def connect(self, client: str, server: str, times: int, nic: int = 0, seconds: float = 0.0) -> None:
        """Counts new connections: their SYNs, and the frames of opening and closing, by the hosts' NICs of `nic`."""
        states = self.connections.setdefault((client, server, nic), [])
        states += [mtus for mtus in [self.mtus_at(seconds, nic)] if mtus not in states[-1:]]
        self._frames(client, server, 3 * times, nic)
        self._frames(server, client, 2 * times, nic)

    def move(self, sender: str, receiver: str, size: int, times: int = 1, nic: int = 0, seconds: float = 0.0) -> int:
        """Counts payload from one host to another, and its acknowledgements; returns the number of data frames."""
        payload = self.payload(sender, receiver, seconds, nic)
        frames = math.ceil(size / payload)
        self._frames(sender, receiver, frames * times, nic)
        self._frames(receiver, sender, frames * times // 2, nic)
        self.data_sent[sender] += frames * times
        self.data_received[receiver] += frames * times
        self.data_bytes[sender] += (size + frames * (self.headers + 18)) * times
        full = min(size, payload) + self.headers + 18
        self.largest[sender] = max(full, self.largest.get(sender, 0))
        counts = self.data_by.setdefault(self.ends(sender)[nic], Counter())
        counts["frames"] += frames * times
        counts["bytes"] += (size + frames * (self.headers + 18)) * times
        counts["largest"] = max(full, counts["largest"])
        return frames * times

    def cast(self, sender: str, receiver: str, count: int, packets: int) -> None:
        """Counts datagrams from one host to another, so many packets each."""
        self._frames(sender, receiver, count * packets, 0)
        cut = count if packets > 1 else 0
        sent, received = (self.udp.setdefault(host, Counter()) for host in (sender, receiver))
        sent.update(UdpOutDatagrams=count, IpFragOKs=cut, IpFragCreates=cut * packets)
        received.update(UdpInDatagrams=count, IpReasmOKs=cut, IpReasmReqds=cut * packets)

    def datagram_packets(self, host: str) -> int:
        """The packets that carried a host's own datagrams."""
        counts: Counter[str] = self.udp.get(host, Counter())
        return counts["UdpOutDatagrams"] + counts["IpFragCreates"] - counts["IpFragOKs"] + self.batched[host]

    def _frames(self, sender: str, receiver: str, count: int, nic: int) -> None:
        self.sent[sender] += count
        self.received[receiver] += count
        self.sent_by[self.ends(sender)[nic]] += count
        self.received_by[self.ends(receiver)[nic]] += count

    def packets(self, host: str, way: str) -> int:
        """The number of packets on a host's interface, aggregates counted once; `way` is sent or received."""
        frames, data = (self.sent, self.data_sent) if way == "sent" else (self.received, self.data_received)
        merges = self.up["nic"]["tso" if way == "sent" else "lro"]
        return frames[host] - (data[host] - math.ceil(data[host] / AGGREGATE_FRAMES) if merges else 0)
