"""The workload `quic` of a study file: long transfers by QUIC, which finds the path MTU by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import model_validator

from framegauge.files.types import Durations, Flows, Problem, Seconds, Sizes
from framegauge.study.parameters import Parameters, above_zero, grid

__all__ = ["Quic"]

# Of the agents (crates/agent/src/generators/quic.rs).
MOST_FLOWS = 512
ALGORITHMS = ("cubic", "reno")


class Quic(Parameters):
    """The first host sends to the last by QUIC: `size` (repeated until `repeat` has passed) or `duration`, on `flows`
    connections at the same time."""

    key: ClassVar[str] = "quic"
    unprobed: ClassVar[str | None] = None

    size: Sizes | None = None
    duration: Durations | None = None
    flows: Flows = [1]
    repeat: Seconds = 0.5

    @model_validator(mode="after")
    def _consistent(self) -> Quic:
        if (self.size is None) == (self.duration is None):
            text = "neither" if self.size is None else "both"
            raise Problem((), text, "exactly one of size and duration")
        above_zero(self, "size", "duration")
        if max(self.flows) > MOST_FLOWS:
            raise Problem(("flows",), max(self.flows), f"at most {MOST_FLOWS}")
        return self

    @property
    def unmarked(self) -> str | None:
        """QUIC asks for marks on its own, whatever the kernel's TCP does (RFC 9000 section 13.4)."""
        return f"no such factor with workload {self.key}: QUIC uses ECN whatever net.ipv4.tcp_ecn is"

    def strange(self, algorithms: Sequence[str | None]) -> str | None:
        """What a study with other algorithms than QUIC's own must have instead."""
        others = [name for name in algorithms if name not in (None, *ALGORITHMS)]
        return f"{' or '.join(ALGORITHMS)} with workload {self.key}, which has no other" if others else None

    def conditions(self) -> list[dict[str, Any]]:
        """Each has one of size_bytes and duration_seconds."""
        axes: dict[str, list[Any]] = (
            {"size_bytes": self.size} if self.size is not None else {"duration_seconds": self.duration or []}
        )
        return grid({**axes, "flows": self.flows}, {"repeat_seconds": self.repeat})
