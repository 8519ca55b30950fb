"""The workload `incast` of a study file: synchronized reads of a client from many servers, on hosts or simulated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import Field, StrictInt, model_validator

from framegauge.files.types import Bytes, Problem, Seconds, Sizes
from framegauge.quantities import print_bytes
from framegauge.study.parameters import Parameters, above_zero, grid
from framegauge.study.traffic import Counts

__all__ = ["Incast"]

# The limits of agents (crates/agent/src/generators/incast.rs).
MOST_BYTES = 1 << 24  # of a request or an answer
MOST_SERVERS = 512
MOST_ANSWERS = 20_000_000  # of a run


class Incast(Parameters):
    """The last host asks `servers` hosts at once, and each answers with `unit`, or with its stripe of `block`.

    The next of `rounds` begins when all of the one before have ended. `unit` is the server request unit: with more
    servers, more is on its way at once. With `block`, the same amount comes from more servers. `sample` says how often
    queues are sampled where it is simulated.
    """

    key: ClassVar[str] = "incast"
    obeys_nagle: ClassVar[bool] = True

    unit: Sizes | None = None
    block: Sizes | None = None
    servers: Counts
    rounds: Annotated[StrictInt, Field(ge=1, le=100_000)] = 20
    request: Bytes = 100
    sample: Seconds = 0.01

    @model_validator(mode="after")
    def _consistent(self) -> Incast:
        if (self.unit is None) == (self.block is None):
            text = "neither" if self.unit is None else "both"
            raise Problem((), text, "exactly one of unit and block")
        above_zero(self, "unit", "block")
        if self.request == 0:
            raise Problem(("request",), 0, "more than 0")
        if self.block is not None and min(self.block) < max(self.servers):
            expected = f"at least {max(self.servers)}: a byte from each of the servers"
            raise Problem(("block",), min(self.block), expected)
        return self

    def conditions(self) -> list[dict[str, Any]]:
        """Each has one of unit_bytes and block_bytes."""
        amounts = {"unit_bytes": self.unit} if self.unit is not None else {"block_bytes": self.block or []}
        fixed = {"rounds": self.rounds, "request_bytes": self.request, "sample_seconds": self.sample}
        return grid({**amounts, "servers": self.servers}, fixed)

    def needed_hosts(self) -> tuple[int, str]:
        """The servers and the client."""
        return max(self.servers) + 1, "servers"

    def misfits(self) -> Iterator[Problem]:
        """Problems on hosts, which a simulation does not have; their paths are relative to these parameters."""
        name, sizes = ("unit", self.unit) if self.unit is not None else ("block", self.block or [])
        least = 1 if self.unit is not None else min(self.servers)
        if max(sizes) > MOST_BYTES * least:
            text = print_bytes(max(sizes))
            yield Problem((name,), text, "at most 16 MiB from each server, except on testbed simulator")
        if self.request > MOST_BYTES:
            yield Problem(("request",), print_bytes(self.request), "at most 16 MiB, except on testbed simulator")
        if max(self.servers) > MOST_SERVERS:
            yield Problem(("servers",), max(self.servers), f"at most {MOST_SERVERS}, except on testbed simulator")
        if (answers := max(self.servers) * self.rounds) > MOST_ANSWERS:
            expected = f"at most {MOST_ANSWERS}, except on testbed simulator: fewer rounds"
            yield Problem(("rounds",), f"{answers} answers", expected)
