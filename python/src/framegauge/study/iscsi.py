"""The workload `iscsi` of a study file: clients read and write a disk of a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StrictInt, model_validator

from framegauge.apps.iscsi import LARGEST_SEGMENT_BYTES, MOST_DEPTH, PAGE_BYTES
from framegauge.files.types import Bytes, Durations, OneOrMore, Problem, Sizes
from framegauge.metrics import Metric
from framegauge.study.frequencies import Frequencies
from framegauge.study.parameters import Parameters, above_zero, grid

__all__ = ["Iscsi"]

LARGEST_DISK = 64 << 30
USUAL_DEPTH = 8

Operation = Literal["read", "write"]
Access = Literal["sequential", "random"]
Depth = Annotated[StrictInt, Field(ge=1, le=MOST_DEPTH)]


class Iscsi(Parameters):
    """Blocks that clients read from a disk, or write to it, over iSCSI: the last host is the target, whose disk of
    `size` is in its memory, all others are clients.

    Each client has one session, on which `depth` requests are under way at all times (a closed loop), unless requests
    are due at a `rate` per client.
    """

    key: ClassVar[str] = "iscsi"
    reconnects: ClassVar[bool] = True
    starts_programs: ClassVar[bool] = True
    needs_rack: ClassVar[bool] = True
    obeys_nagle: ClassVar[bool] = True

    operation: OneOrMore[Operation] = ["read"]
    access: OneOrMore[Access] = ["random"]
    block: Sizes = [8 << 10]
    depth: OneOrMore[Depth] = [USUAL_DEPTH]
    rate: Frequencies = [None]
    duration: Durations = [2.0]
    size: Bytes = 64 << 20

    @model_validator(mode="after")
    def _consistent(self) -> Iscsi:
        above_zero(self, "block", "duration")
        for block in self.block:
            if block % PAGE_BYTES or block > LARGEST_SEGMENT_BYTES:
                expected = f"a multiple of {PAGE_BYTES} bytes, at most {LARGEST_SEGMENT_BYTES >> 10} KiB"
                raise Problem(("block",), block, expected)
        if not max(self.block) <= self.size <= LARGEST_DISK or self.size % PAGE_BYTES:
            expected = f"a multiple of {PAGE_BYTES} bytes, from a block ({max(self.block)}) to {LARGEST_DISK >> 30} GiB"
            raise Problem(("size",), self.size, expected)
        if self.rate != [None] and self.depth != [USUAL_DEPTH]:  # which a resolved study has, too
            raise Problem(("depth",), self.depth, "no such key with a rate, which says when requests are due")
        return self

    @property
    def declares(self) -> Mapping[str, Metric]:
        """Operations a second, and the latency of the slowest twentieth of them."""
        return {"operations": Metric("per_second", True), "latency_p95": Metric("seconds", False)}

    def conditions(self) -> list[dict[str, Any]]:
        """Every combination."""
        axes: dict[str, list[Any]] = {
            "operation": self.operation, "access": self.access, "block_bytes": self.block,
            "rate_per_second": self.rate, "duration_seconds": self.duration,
        }  # fmt: skip
        if self.rate == [None]:
            axes["depth"] = self.depth
        return grid(axes, {"disk_bytes": self.size})
