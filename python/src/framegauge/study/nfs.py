"""The workload `nfs` of a study file: clients read and write files of a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    StrictInt,
    model_serializer,
    model_validator,
)

from framegauge.apps.nfs import LARGEST_BLOCK, LARGEST_DATAGRAM_BLOCK
from framegauge.apps.nfs.files import PAGE_BYTES
from framegauge.files.types import Bytes, Durations, OneOrMore, Problem, Seconds, Sizes
from framegauge.metrics import Metric
from framegauge.study.frequencies import Frequencies
from framegauge.study.parameters import Parameters, above_zero, grid

__all__ = ["Nfs"]

USUAL_DEPTH, MOST_DEPTH = 4, 256
SMALLEST_TIMER_SECONDS, LARGEST_TIMER_SECONDS = 0.01, 60.0

Transport = Literal["tcp", "udp"]
Operation = Literal["read", "write"]
Access = Literal["sequential", "random"]
Version = Literal[3, 4]
Depth = Annotated[StrictInt, Field(ge=1, le=MOST_DEPTH)]
Depths = OneOrMore[Depth]


class Nfs(Parameters):
    """Calls of `block` bytes that clients make to a server of NFS: the last host is the server, all others are clients,
    each with a file of `size` of its own.

    `depth` calls are under way at all times (a closed loop), unless calls are due at a `rate` per client. Over UDP a
    call that is not answered is sent again after `retransmit`, after twice the time if it still is not, and so on.
    """

    key: ClassVar[str] = "nfs"
    reconnects: ClassVar[bool] = True
    needs_rack: ClassVar[bool] = True
    obeys_nagle: ClassVar[bool] = True

    version: OneOrMore[Version] = [3]
    transport: OneOrMore[Transport] = ["tcp"]
    operation: OneOrMore[Operation] = ["read"]
    access: OneOrMore[Access] = ["sequential"]
    block: Sizes = [64 << 10]
    depth: Depths | None = None
    rate: Frequencies = [None]
    duration: Durations = [2.0]
    size: Bytes = 16 << 20
    retransmit: Seconds = 1.1

    @model_validator(mode="after")
    def _consistent(self) -> Nfs:
        above_zero(self, "block", "duration")
        for block in self.block:
            if block % PAGE_BYTES or block > LARGEST_BLOCK:
                expected = f"a multiple of {PAGE_BYTES} bytes, at most {LARGEST_BLOCK >> 20} MiB"
                raise Problem(("block",), block, expected)
        if "udp" in self.transport and max(self.block) > LARGEST_DATAGRAM_BLOCK:
            expected = f"at most {LARGEST_DATAGRAM_BLOCK >> 10} KiB over UDP, whose datagrams end at 64 KiB"
            raise Problem(("block",), max(self.block), expected)
        if "udp" in self.transport and 4 in self.version:
            raise Problem(("version",), 4, "3 with transport: udp (RFC 7530 section 3.1 rules UDP out)")
        if self.size < max(self.block) or self.size % PAGE_BYTES:
            expected = f"a multiple of {PAGE_BYTES} bytes, at least a block ({max(self.block)})"
            raise Problem(("size",), self.size, expected)
        if not SMALLEST_TIMER_SECONDS <= self.retransmit <= LARGEST_TIMER_SECONDS:
            expected = f"{SMALLEST_TIMER_SECONDS:g} s to {LARGEST_TIMER_SECONDS:g} s"
            raise Problem(("retransmit",), f"{self.retransmit:g} s", expected)
        if None not in self.rate and self.depth is not None:
            raise Problem(("depth",), self.depth, "no such key with a rate, which says when calls are due")
        if None in self.rate and self.depth is None:
            self.depth = [USUAL_DEPTH]
        return self

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without a depth where there is none."""
        return {name: value for name, value in handler(self).items() if name != "depth" or value is not None}

    @property
    def declares(self) -> Mapping[str, Metric]:
        """Operations a second, and the latency of the slowest twentieth of them."""
        return {"operations": Metric("per_second", True), "latency_p95": Metric("seconds", False)}

    @property
    def unset_nagle(self) -> str | None:
        """Only a stream has Nagle's algorithm."""
        return "no such factor with transport: udp, which has no Nagle setting" if "udp" in self.transport else None

    def conditions(self) -> list[dict[str, Any]]:
        """Every combination; only a closed loop has a depth."""
        axes: dict[str, list[Any]] = {
            "version": self.version, "transport": self.transport, "operation": self.operation, "access": self.access,
            "block_bytes": self.block, "duration_seconds": self.duration,
        }  # fmt: skip
        loops: list[dict[str, Any]] = []
        for rate in self.rate:
            depths = [{}] if rate is not None else [{"depth": item} for item in self.depth or ()]
            loops += [{"rate_per_second": rate, **depth} for depth in depths]
        fixed = {"file_bytes": self.size, "retransmit_seconds": self.retransmit}
        return [{**item, **loop} for item in grid(axes, fixed) for loop in loops]
