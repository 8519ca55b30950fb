"""The settings of the invented rack: its goodput model and its faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from framegauge.testbeds.base import Json

__all__ = ["FAULTS", "BuiltRack", "FakeError", "FakeModel", "Fault"]

# Everything that can be sabotaged: each must be caught by one of the checks of a run.
FAULTS = (
    "mtu", "mss", "frames", "offloads", "aggregates", "congestion_control", "shaper", "sysctl", "rtt",
    "late", "ring", "fabric_cpu", "displaced", "host_cpu", "conservation", "nstat", "ceiling",
    "metrics_cache", "lost_stream",
)  # fmt: skip


class FakeError(Exception):
    """An error answer: code, message, data."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any]) -> None:
        self.code, self.message, self.data = code, message, dict(data)
        super().__init__(message)


@dataclass(frozen=True)
class Fault:
    """One sabotage, where `when` holds (given the params of `rack.up` and the number of the rack)."""

    kind: str
    when: Callable[[Json, int], bool] = lambda _up, _number: True

    def __post_init__(self) -> None:
        if self.kind not in FAULTS:
            raise ValueError(f"{self.kind}: expected one of {', '.join(FAULTS)}")


@dataclass
class FakeModel:
    """`goodput_loss` is taken from the arm for which `loses` holds."""

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
    """What is up: the params it was asked with, and what has flowed since."""

    up: Json
    number: int
    sent: dict[str, int] = field(default_factory=dict)  # frames by host
    data: dict[str, int] = field(default_factory=dict)  # of these, with payload
    elapsed: float = 0.0
    syns: int = 0
    sending: Json = field(default_factory=dict)  # what the serving end's sending sockets said

    @property
    def names(self) -> list[str]:
        """Of the hosts, in order."""
        return [host["name"] for host in self.up["hosts"]]

    @property
    def mtus(self) -> dict[str, int]:
        """By host."""
        return {host["name"]: host["mtu"] for host in self.up["hosts"]}
