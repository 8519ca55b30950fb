"""What every testbed offers: fresh hosts under stated conditions, and meters around a measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from framegauge.agents.pipe import Json, Pending, Progress, Requests
from framegauge.errors import AgentFailure
from framegauge.networks import topologies

__all__ = [
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

# Where an agent finds what it starts in a host, whatever else its own PATH names (crates/linux/src/process.rs).
PLACES = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


@contextmanager
def afterwards(put_back: Callable[[], object]) -> Iterator[None]:
    """Put something back on every way out of the block.

    If the block failed, or was interrupted, that is what passes on: not the failure to put back that a lost
    agent then causes too.
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
    """Everything that a run is to be under, in base units.

    `mtu` names the hosts, in order. `bits_per_second` None: unshaped. `nagle` None: as the workload has it. What else
    is None is left as it is; only hosts of the user's own have that. `network` has those keys of `rack.up` that
    say how hosts are joined and are not at their default (pipe/README.md). `shaping` False: no shaper bounds the hosts'
    queues. `changes` are made while the run is under way, in this order: `at_seconds` from the begin of the
    measurement, and the params of `rack.set`, as `set`.
    """

    testbed: Literal["fabric", "kernel", "hosts"]
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

    def mtus(self, host: str) -> list[int]:
        """Every MTU that a host has in a run, in order: one, unless it is changed."""
        asked = [each["set"] for each in self.changes]
        return [self.mtu[host], *(each["mtu"] for each in asked if each.get("host") == host)]

    def set_on(self, one: str, other: str, key: str) -> list[Any]:
        """What the link from one node to another has in turn of this key of `rack.set`, from the first change on."""
        asked = [each["set"] for each in self.changes if "from" in each["set"] and key in each["set"]]
        return [each[key] for each in asked if topologies.setting([each], one, other)]

    @property
    def hosts(self) -> list[str]:
        """Names of the hosts, in order."""
        return list(self.mtu)

    def as_json(self) -> Json:
        """For the record of a run."""
        return asdict(self)


def is_qdisc(reading: Mapping[str, object], asked: str) -> bool:
    """Whether a queue discipline, as it was read, is what was asked for; "default" is the kernel's choice."""
    return reading["default"] is True if asked == "default" else reading["kind"] == asked


@dataclass(frozen=True)
class Host:
    """A host that is up: its name, its address, and its agent. `addresses`: of all its NICs, `address` first."""

    name: str
    address: str
    agent: Requests
    addresses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.addresses:
            object.__setattr__(self, "addresses", (self.address,))


@dataclass(frozen=True)
class Place:
    """Where a host's data go in and out."""

    interface: str
    address: str


class Testbed(Protocol):
    """Where runs happen. One set of hosts at a time; `up` always makes fresh ones."""

    scope: str
    is_private: bool  # nobody else's traffic crosses its hosts' interfaces
    outlives_agents: bool  # a run in which a host's agent is lost is a gap, and the next may find it again

    def requirements(self, bits_per_second: int | None) -> Json:
        """What is missing, and what is degraded: `{"missing": […], "degraded": […]}`."""
        ...

    def about(self) -> Json:
        """Versions and kernel, for the environment."""
        ...

    def up(self, conditions: Conditions) -> Json:
        """Build fresh hosts; Refused if the kernel or device cannot honour the conditions."""
        ...

    def hosts(self) -> Sequence[Host]:
        """The hosts that are up, in order."""
        ...

    def predict(self, conditions: Conditions, size_bytes: int) -> float | None:
        """How long one new connection should take for so much, by slow start; None where no model says."""
        ...

    def begin(self, watch: Sequence[str] = ()) -> float:
        """Start the testbed's own meters; when that was, on the clock that its hosts share."""
        ...

    def changing(
        self, changes: Sequence[Mapping[str, Any]], begun_seconds: float
    ) -> AbstractContextManager[list[Json]]:
        """Make changes (as in Conditions) at their moments after `begin`, until the block is left. What is yielded
        gets, in order, each with `made_seconds` and what was `changed`, or with the `error`."""
        ...

    def end(self) -> Json:
        """Stop them: the result of `measure.end`."""
        ...

    def fetch(self, spool: int) -> bytes:
        """A spool of the testbed itself (drops)."""
        ...

    def down(self) -> None:
        """Take the hosts away; nothing to do if none are up."""
        ...

    def close(self) -> None:
        """Down, and end whatever runs the testbed."""
        ...
