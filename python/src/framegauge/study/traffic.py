"""The workloads of a study file that are only simulated: traffic as applications make it, without the applications."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, StrictInt, model_validator

from framegauge.files.types import Bytes, Problem, Seconds, Sizes, as_list
from framegauge.study.parameters import Parameters, above_zero, grid

__all__ = ["TRAFFIC", "Incast", "Shuffle"]

MOST_FLOWS = 1_000_000  # of a run: more than ten times what the largest published simulations have

Count = Annotated[StrictInt, Field(ge=1, le=10_000)]
Counts = Annotated[
    list[Count], BeforeValidator(as_list, json_schema_input_type=Count | list[Count]), Field(min_length=1)
]


class Traffic(Parameters):
    """Traffic that is only simulated, of a network of any size."""

    only_simulated: ClassVar[bool] = True

    sample: Seconds = 0.01


class Incast(Traffic):
    """The last host asks `servers` hosts at once, and each answers with `unit`, or with its stripe of `block`.

    The next of `rounds` begins when all of the one before have ended. `unit` is the server request unit: with more
    servers, more is on its way at once. With `block`, the same amount comes from more servers.
    """

    key: ClassVar[str] = "incast"

    unit: Sizes | None = None
    block: Sizes | None = None
    servers: Counts
    rounds: Annotated[StrictInt, Field(ge=1, le=100_000)] = 20
    request: Bytes = 100

    @model_validator(mode="after")
    def _consistent(self) -> Incast:
        if (self.unit is None) == (self.block is None):
            found = "neither" if self.unit is None else "both"
            raise Problem((), found, "exactly one of unit and block")
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


class Shuffle(Traffic):
    """Every host fetches `size` from every other, at most `at_once` fetches at a time.

    Host 1 begins with host 2, host 2 with host 3, and so on, so that no host is asked by all at once. Each of `at_once`
    fetchers of a host takes every so-manieth of the others in turn, the next when it has the one before.
    """

    key: ClassVar[str] = "shuffle"

    size: Sizes
    at_once: Counts = [5]
    request: Bytes = 100

    @model_validator(mode="after")
    def _consistent(self) -> Shuffle:
        above_zero(self, "size")
        if self.request == 0:
            raise Problem(("request",), 0, "more than 0")
        return self

    def conditions(self) -> list[dict[str, Any]]:
        """Every combination of sizes and numbers of fetches."""
        fixed = {"request_bytes": self.request, "sample_seconds": self.sample}
        return grid({"size_bytes": self.size, "at_once": self.at_once}, fixed)

    def needed_hosts(self) -> tuple[int, str]:
        """Two."""
        return 2, ""

    def misfits(self, hosts: int) -> Iterator[Problem]:
        """Problems with too many hosts; their paths are relative to these parameters."""
        if hosts * (hosts - 1) > MOST_FLOWS:
            yield Problem((), f"{hosts} hosts", f"at most {MOST_FLOWS} fetches: each host has one from every other")


TRAFFIC: tuple[type[Parameters], ...] = (Incast, Shuffle)
