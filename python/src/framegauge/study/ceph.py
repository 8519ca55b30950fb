"""The workload `ceph`: a block device of a Ceph cluster, and the program fio that writes and reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StrictInt, model_validator

from framegauge.files.types import Bytes, Durations, Flags, OneOrMore, Problem, Seconds, Share, Sizes
from framegauge.metrics import Metric
from framegauge.study.frequencies import Frequencies
from framegauge.study.parameters import Parameters, above_zero, grid

__all__ = ["Ceph"]

Operation = Literal["write", "read", "mixed"]
Operations = OneOrMore[Operation]
Access = Literal["sequential", "random"]
Accesses = OneOrMore[Access]
Depth = Annotated[StrictInt, Field(ge=1, le=1024)]
Depths = OneOrMore[Depth]
Copies = Annotated[StrictInt, Field(ge=1, le=10)]
Replication = OneOrMore[Copies]
Store = Literal["memstore", "bluestore"]
OBJECT_BYTES = 4 << 20  # of an RBD image
LEAST_BLOCK = 512
OTHERS = 2  # hosts: the client, and the monitor


class Ceph(Parameters):
    """fio on an RBD image: h1 is the client, h2 the monitor, and every other host an OSD.

    `operation` mixed reads `read_share` of all blocks and writes the others. `rate` is the number of blocks per second
    that are offered, of reads and writes together; null: as many as `depth` outstanding ones make. The `image` is
    written once before anything is measured. `store` is where OSDs keep data, both in memory. `storage_network` puts
    replication on the second NIC of the OSDs. `within` is for each step of a run: the start of each daemon, and the
    making of the image.
    """

    key: ClassVar[str] = "ceph"
    obeys_nagle: ClassVar[bool] = True
    reconnects: ClassVar[bool] = True
    starts_programs: ClassVar[bool] = True
    needs_rack: ClassVar[bool] = True

    operation: Operations = ["write"]
    access: Accesses = ["random"]
    block: Sizes = [64 << 10]
    depth: Depths = [4]
    rate: Frequencies = [None]
    duration: Durations = [5.0]
    replication: Replication = [3]
    read_share: Share = 0.5
    image: Bytes = 64 << 20
    store: Store = "memstore"
    storage_network: Flags = [False]
    within: Seconds = 60.0
    expect: Seconds | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Ceph:
        above_zero(self, "duration")
        for block in self.block:
            if block < LEAST_BLOCK or block % LEAST_BLOCK or block > OBJECT_BYTES:
                raise Problem(
                    ("block",), block, f"a multiple of {LEAST_BLOCK} bytes up to 4 MiB, the size of an object"
                )
        if self.image < OBJECT_BYTES or self.image % OBJECT_BYTES:
            raise Problem(("image",), self.image, "a multiple of 4 MiB, the size of an object")
        percent = 100 * self.read_share
        if not 1 <= percent <= 99 or abs(percent - round(percent)) > 1e-9:
            raise Problem(("read_share",), f"{percent:g} %", "1 % to 99 %, without fractions")
        for rate in self.rate:
            if rate is not None and (rate != int(rate) or ("mixed" in self.operation and not self._mixes(rate))):
                expected = "a whole number of blocks per second, of which at least one is read and one written"
                raise Problem(("rate",), rate, expected if "mixed" in self.operation else expected.partition(",")[0])
        if self.within < 1:
            raise Problem(("within",), f"{self.within:g} s", "1 s or more")
        # A resolved file has every key.
        if self.read_share != type(self).model_fields["read_share"].default and "mixed" not in self.operation:
            raise Problem(("read_share",), self.read_share, "no such key without operation: mixed")
        return self

    def _mixes(self, rate: float) -> bool:
        """Whether some of so many blocks are read and some written: fio has a rate of whole blocks for each."""
        return 1 <= round(rate * self.read_share) <= rate - 1

    @property
    def declares(self) -> Mapping[str, Metric]:
        """Blocks per second, and a latency beside those that are built in."""
        return {"iops": Metric("per_second", True), "latency_p95": Metric("seconds", False)}

    def conditions(self) -> list[dict[str, Any]]:
        """Every combination of the lists."""
        axes: dict[str, list[Any]] = {
            "operation": self.operation, "access": self.access, "block_bytes": self.block, "depth": self.depth,
            "rate_per_second": self.rate, "duration_seconds": self.duration, "replication": self.replication,
            "storage_network": self.storage_network,
        }  # fmt: skip
        return grid(axes, {"store": self.store})

    def needed_hosts(self) -> tuple[int, str]:
        """The client, the monitor, and an OSD for each copy."""
        return OTHERS + max(self.replication), "replication"

    def misfits(self, nics_of_hosts: int, family: int, has_storage_mtu: bool) -> Iterator[Problem]:
        """Problems with NICs that are not there or not used, and with IPv6. `has_storage_mtu`: some level of the factor
        `mtu` has one of the storage network."""
        if family != 4:
            yield Problem((), f"family: {family}", "testbed.family 4: the daemons listen on IPv4")
        if True in self.storage_network and nics_of_hosts < OTHERS:
            expected = "false, or hosts with two NICs (topology: {rack: {nics: 2}} gives each two)"
            yield Problem(("storage_network",), True, expected)
        if has_storage_mtu and False in self.storage_network:
            expected = "storage_network: true, because a level of factors.mtu has an MTU of the storage network"
            yield Problem(("storage_network",), False, expected)
