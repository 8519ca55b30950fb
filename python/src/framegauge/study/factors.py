"""The factors of a study, and the meters that run alongside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import PlainValidator, StrictBool, StrictStr, WithJsonSchema, model_validator

from framegauge.files.types import Aggregate, Bytes, Factor, Model, Mtu, Ppm, Problem, Qdisc, Seconds
from framegauge.networks import multipath, pacing
from framegauge.study.queue import QueueFactor

__all__ = ["NETWORK", "OFFLOADS", "Factors", "Meters", "nic_of"]

# The parts of a NIC that `offloads` switches together, and that a factor of their own can single out.
OFFLOADS = ("tso", "lro", "gro", "checksum")
# Factors of the network. Without a level, the testbed's setting holds; for ECN, the kernel's.
NETWORK = ("queue", "routing", "buffer", "skew", "shaping", "ecn", "overlay")
OWN_PACE = "bbr"  # algorithms whose names begin so pace by themselves
Probing = Literal[0, 1, 2]
Pacing = Annotated[
    str,
    PlainValidator(pacing.level),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "string"}], "description": pacing.EXPECTED}),
]
Multipath = Annotated[
    str,
    PlainValidator(multipath.level),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": False},
                {"type": "string"},
                {"type": "integer", "minimum": 1, "maximum": multipath.MOST},
            ],
            "description": multipath.EXPECTED,
        }
    ),
]
Routing = Literal["ecmp", "spraying", "equal-length", "equal-length-random"]


class Factors(Model):
    """What is varied, or held fixed.

    A level of `mtu` is one MTU, or one per host (`default`: of all others); `storage` in it is that of all second NICs,
    and `routes` the MTU at which all hosts hold their routes, so that they send no larger packets and take in those of
    their interface.
    `tso`, `lro`, `gro` and `checksum` default to `offloads`. On the user's own hosts, factors that are not given stay
    unchanged; `qdisc` and `hw_gro` exist only there. `hw_gro` is GRO in the NIC's hardware, which `offloads` leaves
    alone. `queue` and `buffer` apply to every switch port, `skew` is how much faster the switches' ports to hosts are
    than all others, `shaping: off` leaves a host's queue unbounded. `gso_size` and `gro_size` are the largest
    aggregates of both IP families; above 65536 they are BIG TCP. `mtu_probing` is the sysctl net.ipv4.tcp_mtu_probing.
    `pacing` is that of sending sockets by TCP itself: off, on at the kernel's rate, or at most a rate per flow.
    `mptcp` is off, or the number of subflows of each connection. `plpmtud` is whether QUIC looks for the path MTU by
    probes, or sends 1200 bytes at most. `tuning` names sets of settings, the study's `tunings`; `as-is` is none.
    """

    mtu: Factor[Mtu]
    rtt: Factor[Seconds] | None = None
    offloads: Factor[StrictBool] | None = None
    tso: Factor[StrictBool] | None = None
    lro: Factor[StrictBool] | None = None
    gro: Factor[StrictBool] | None = None
    hw_gro: Factor[StrictBool] | None = None
    checksum: Factor[StrictBool] | None = None
    moderation: Factor[Seconds] | None = None
    congestion_control: Factor[StrictStr] | None = None
    nagle: Factor[StrictBool] | None = None
    qdisc: Factor[Qdisc] | None = None
    queue: QueueFactor | None = None
    routing: Factor[Routing] | None = None
    buffer: Factor[Bytes] | None = None
    skew: Factor[Ppm] | None = None
    shaping: Factor[StrictBool] | None = None
    ecn: Factor[StrictBool] | None = None
    overlay: Factor[Literal["none", "vxlan", "geneve"]] | None = None
    gso_size: Factor[Aggregate] | None = None
    gro_size: Factor[Aggregate] | None = None
    mtu_probing: Factor[Probing] | None = None
    pacing: Factor[Pacing] | None = None
    mptcp: Factor[Multipath] | None = None
    plpmtud: Factor[StrictBool] | None = None
    tuning: Factor[StrictStr] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Factors:
        paced = [name for name in self.levels("congestion_control") if str(name).startswith(OWN_PACE)]
        if paced and pacing.OFF in self.levels("pacing"):
            raise Problem(
                ("pacing",), pacing.OFF, f"on, or a rate, with congestion_control {paced[0]}, which always paces"
            )
        if self.mptcp is not None and set(self.levels("pacing")) - {None, pacing.OFF}:
            raise Problem(
                ("pacing",), ", ".join(self.levels("pacing")), "off with mptcp: the kernel paces no such socket"
            )
        return self

    def levels(self, name: str) -> list[Any]:
        """The levels of one factor; [None] if it is not given."""
        factor = getattr(self, name)
        return [None] if factor is None else list(factor.levels)


class Meters(Model):
    """The meters that run alongside the workload; each has a cost (`framegauge docs cpu-cost`).

    `idle` is how long the idle hosts are measured before each run. `watch` names ports of the network, such as
    switch>h1, whose events within 5 ms of their longest run of drops are all kept. `diagnose` captures the headers on
    every host during each run, and tells where the time of its connections went.
    """

    cpu: StrictBool = True
    wire: StrictBool = True
    idle: Seconds = 0.2
    watch: list[StrictStr] = []
    diagnose: StrictBool = False

    @model_validator(mode="after")
    def _consistent(self) -> Meters:
        if self.cpu and self.idle == 0:
            raise Problem(("idle",), 0, "more than 0: a host's idle use is subtracted (or cpu: false)")
        return self


def nic_of(factors: Mapping[str, Any]) -> dict[str, Any]:
    """The levels of tso, lro, gro and checksum, which default to `offloads`; None: left unchanged."""
    return {name: factors["offloads"] if factors[name] is None else factors[name] for name in OFFLOADS}
