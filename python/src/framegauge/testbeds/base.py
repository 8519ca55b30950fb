"""The interface of testbeds: fresh hosts under stated conditions, and meters around a measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Protocol

from framegauge.agents.pipe import Json, Pending, Progress, Requests
from framegauge.errors import AgentFailure
from framegauge.networks import topologies
from framegauge.networks.capabilities import BUILT, Capabilities

__all__ = [
    "NO_AGGREGATES",
    "PLACES",
    "Conditions",
    "Host",
    "Json",
    "Pending",
    "Place",
    "Progress",
    "Requests",
    "Testbed",
    "afterwards",
    "is_qdisc",
]

_IF_GIVEN = (
    "storage_mtu", "route_mtu", "hw_gro", "initial_window_segments", "initial_receive_window_segments",
    "slow_start_threshold_segments", "pacing", "mptcp", "plpmtud",
)  # fmt: skip
NO_AGGREGATES: Mapping[str, int] = MappingProxyType({})
# The folders in which an agent finds programs to start in a host, in addition to its PATH
# (crates/linux/src/process.rs).
PLACES = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


@contextmanager
def afterwards(put_back: Callable[[], object]) -> Iterator[None]:
    """Calls `put_back` on every way out of the block.

    If the block failed, or was interrupted, that error is passed on, and not a failure of `put_back`, which a lost
    agent causes as well.
    """
    try:
        yield
    except BaseException:
        with suppress(AgentFailure):
            put_back()
        raise
    put_back()


@dataclass(frozen=True)
class Conditions:
    """The conditions of a run, in base units.

    `mtu` names the hosts, in order. `storage_mtu` is that of all second NICs; None: their hosts'. `route_mtu` is that
    of all routes of hosts; None: their interfaces'. `bits_per_second` None: unshaped. `nagle` None: the workload's
    default. Any other None means that a setting is left unchanged, which happens only on the user's own hosts.
    `network` has the keys of `rack.up` that describe how hosts are joined and differ from their defaults
    (pipe/README.md). `shaping` False: no shaper bounds the hosts' queues. `changes` are made
    during the run, in this order: `at_seconds` from the start of the measurement, and `set`, the params of `rack.set`.
    `gso_bytes` and `gro_bytes` are the largest aggregates that the hosts' stacks build and merge; `aggregate_bytes` is
    what the shaper leaves room for. `hw_gro` is GRO in the hardware of the user's own hosts. The initial windows are
    those of the hosts' routes; None: the kernel's own. `pacing` and `mptcp` are levels of networks.pacing and
    networks.multipath, `plpmtud` is whether QUIC probes path MTUs; None: the workload's default.
    """

    testbed: Literal["fabric", "kernel", "hosts", "simulation"]
    mtu: Mapping[str, int]
    rtt_seconds: float
    tso: bool | None
    lro: bool | None
    gro: bool | None
    checksum: bool | None
    congestion_control: str | None
    bits_per_second: int | None
    buffer_bytes: int
    port_mtu: int
    moderation_seconds: float
    aggregate_bytes: int
    shaper_factor: float
    shaper_burst_bytes: int
    family: int
    sysctls: Mapping[str, str] = field(default_factory=dict)
    nagle: bool | None = None
    qdisc: str | None = None
    network: Mapping[str, Any] = field(default_factory=dict)
    shaping: bool = True
    overlay: str | None = None
    changes: Sequence[Mapping[str, Any]] = ()
    gso_bytes: int | None = None
    gro_bytes: int | None = None
    hw_gro: bool | None = None
    initial_window_segments: int | None = None
    initial_receive_window_segments: int | None = None
    slow_start_threshold_segments: int | None = None
    pacing: str | None = None
    mptcp: str | None = None
    plpmtud: bool | None = None
    storage_mtu: int | None = None
    route_mtu: int | None = None

    def mtus(self, host: str, nic: int = 1) -> list[int]:
        """All MTUs that a host's NIC of this number has in a run, in order: one, unless it is changed."""
        start_mtu = self.mtu[host] if nic == 1 or self.storage_mtu is None else self.storage_mtu
        names, changes = (host, f"{host}.{nic}"), [change["set"] for change in self.changes]
        return [start_mtu, *(change["mtu"] for change in changes if change.get("host") in names and "mtu" in change)]

    def sent_mtus(self, host: str, nic: int = 1) -> list[int]:
        """The largest packets that a host sends by a NIC, in order: routes may be held at less than its MTUs."""
        return [mtu if self.route_mtu is None else min(mtu, self.route_mtu) for mtu in self.mtus(host, nic)]

    @property
    def first_mtus(self) -> list[int]:
        """The MTUs of hosts at the beginning, and that of the storage network if it has one of its own."""
        return [*self.mtu.values(), *([] if self.storage_mtu is None else [self.storage_mtu])]

    def set_on(self, one: str, other: str, key: str) -> list[Any]:
        """The values of a key of `rack.set` that changes give to the link from one node to another, in order."""
        changes = [change["set"] for change in self.changes if "from" in change["set"] and key in change["set"]]
        return [change[key] for change in changes if topologies.setting([change], one, other)]

    @property
    def capabilities(self) -> Capabilities:
        """What the testbed can do."""
        return BUILT[self.testbed]

    @property
    def hosts(self) -> list[str]:
        """Names of the hosts, in order."""
        return list(self.mtu)

    @property
    def hosts_and_link(self) -> Json:
        """The hosts, and what every link is unless `network` says otherwise, as racks and simulations take them."""
        second = {} if self.storage_mtu is None else {"second_mtu": self.storage_mtu}
        return {
            "hosts": [{"name": name, "mtu": mtu, **second} for name, mtu in self.mtu.items()],
            "link": {
                "bits_per_second": self.bits_per_second,
                "rtt_seconds": self.rtt_seconds,
                "buffer_bytes": self.buffer_bytes,
                "port_mtu": self.port_mtu,
            },
        }

    def as_json(self) -> Json:
        """The conditions for the record of a run; those that only some studies have are left out where nobody asks."""
        return {name: value for name, value in asdict(self).items() if value is not None or name not in _IF_GIVEN}


def is_qdisc(reading: Mapping[str, object], asked: str) -> bool:
    """Whether a queue discipline, as read, is the requested one; "default" is the kernel's choice."""
    return reading["default"] is True if asked == "default" else reading["kind"] == asked


@dataclass(frozen=True)
class Host:
    """A running host: its name, its address, and its agent. `addresses`: of all its NICs, `address` first."""

    name: str
    address: str
    agent: Requests
    addresses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.addresses:
            object.__setattr__(self, "addresses", (self.address,))


@dataclass(frozen=True)
class Place:
    """The interface and address that a host uses for data."""

    interface: str
    address: str


class Testbed(Protocol):
    """The place where runs happen. It has one set of hosts at a time; `up` makes fresh ones, `again` keeps them."""

    scope: str
    is_private: bool  # no other traffic crosses its hosts' interfaces
    outlives_agents: bool  # a run that lost a host's agent is only a gap: the next may reach the host again

    def requirements(self, bits_per_second: int | None, aggregates: Mapping[str, int] = NO_AGGREGATES) -> Json:
        """The missing and the degraded requirements: `{"missing": […], "degraded": […]}`. `aggregates`: the largest
        gso_size and gro_size that will be asked for, if they are BIG TCP."""
        ...

    def standing(self) -> Mapping[str, Requests]:
        """The agents of hosts that are there before `up`; empty where it builds them."""
        ...

    def about(self) -> Json:
        """Versions and kernel, for environment.json."""
        ...

    def up(self, conditions: Conditions) -> Json:
        """Build fresh hosts; Refused if the kernel or device cannot honour the conditions."""
        ...

    def again(self, conditions: Conditions) -> Json | None:
        """As `up`, for the hosts that are up: what runs on them stays. None if they cannot be given these conditions,
        and must be built anew. Racks can only be given other MTUs."""
        ...

    def hosts(self) -> Sequence[Host]:
        """The hosts that are up, in order."""
        ...

    def predict(self, conditions: Conditions, size_bytes: int) -> float | None:
        """The time that a new connection takes for `size_bytes` by the slow-start model; None if it does not apply."""
        ...

    def begin(self, watch: Sequence[str] = ()) -> float:
        """Starts the testbed's own meters; returns the time of that, on the clock that its hosts share."""
        ...

    def changing(
        self, changes: Sequence[Mapping[str, Any]], begun_seconds: float
    ) -> AbstractContextManager[list[Json]]:
        """Makes changes (as in Conditions) at their times after `begin`, until the block is left. The yielded list
        receives each of them in order, with `made_seconds` and the names `changed`, or with the `error`."""
        ...

    def end(self) -> Json:
        """Stops the meters: the result of `measure.end`."""
        ...

    def ports(self) -> Sequence[Json]:
        """The counters of all ports since the network is up, as in the result of `measure.end`; none without a
        fabric."""
        ...

    def fetch(self, spool: int) -> bytes:
        """A spool of the testbed itself, such as drops."""
        ...

    def down(self) -> None:
        """Takes the hosts down, if any are up."""
        ...

    def unrestored(self) -> list[str]:
        """What of the hosts was not as before when it was last put back, a line each; every line is said once."""
        ...

    def close(self) -> None:
        """Takes the hosts down, and ends the processes of the testbed."""
        ...
