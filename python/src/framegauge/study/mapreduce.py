"""The workload `mapreduce` of a study file: a job on a Hadoop cluster whose every node is a host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StrictInt, model_validator

from framegauge.files.types import Bytes, OneOrMore, Problem, Seconds, Sizes, one_of
from framegauge.metrics import Metric
from framegauge.study.command import HostNames
from framegauge.study.parameters import Parameters, above_zero, grid

__all__ = ["MapReduce"]

Job = Literal["terasort", "grep"]
Jobs = OneOrMore[Job]
LEAST_BLOCK = 1 << 20  # of HDFS
ROW_BYTES = 100  # of teragen


class MapReduce(Parameters):
    """Hadoop's terasort or grep over `size` of rows that teragen has written: h1 is the master, all others, or some of
    them, are `workers`.

    `reduces`, `reduces_at_once` and `slots` (tasks at once on a worker) decide how the shuffle is spread, a reducer
    fetches from `at_once` hosts at a time; `block` and `replication` are HDFS's, which is on the workers, or on the
    master alone, with fewer programs. `within` is for each step of a run: the start, teragen, the job, and the check of
    its result.
    """

    key: ClassVar[str] = "mapreduce"
    obeys_nagle: ClassVar[bool] = True
    apps: ClassVar[tuple[str, ...]] = ("hadoop",)
    needs_rack: ClassVar[bool] = True

    job: Jobs = ["terasort"]
    size: Sizes = [100_000_000]
    workers: HostNames | None = None
    reduces: Annotated[StrictInt, Field(ge=1, le=1000)] | None = None
    reduces_at_once: Annotated[StrictInt, Field(ge=1, le=1000)] | None = None
    slots: Annotated[StrictInt, Field(ge=1, le=64)] = 3
    at_once: Annotated[StrictInt, Field(ge=1, le=1000)] = 5
    hdfs: Literal["workers", "master"] = "workers"
    block: Bytes = 32 << 20
    replication: Annotated[StrictInt, Field(ge=1, le=10)] = 1
    within: Seconds = 600.0
    expect: Seconds | None = None

    @model_validator(mode="after")
    def _consistent(self) -> MapReduce:
        above_zero(self, "size")
        for size in self.size:
            if size % ROW_BYTES:
                raise Problem(("size",), size, f"a multiple of {ROW_BYTES} bytes, the size of a row")
        if self.block < LEAST_BLOCK or self.block % 512:
            raise Problem(("block",), self.block, "at least 1 MiB, and a multiple of 512 bytes")
        if self.hdfs == "master" and self.replication > 1:
            raise Problem(("replication",), self.replication, "1 with hdfs: master, which is one host")
        return self

    @property
    def declares(self) -> Mapping[str, Metric]:
        """Completion time, and the shuffle's, by Hadoop's clock; CPU time of its tasks, and that per gigabyte."""
        times = {name: Metric("seconds", False) for name in ("job_time", "shuffle_time", "task_cpu_time")}
        return times | {"task_cpu_cost": Metric("core_seconds_per_gigabyte", False)}

    def conditions(self) -> list[dict[str, Any]]:
        """One condition per job and size."""
        return grid({"job": self.job, "size_bytes": self.size}, {})

    def misfits(self, hosts: Sequence[str]) -> Iterator[Problem]:
        """Problems with the names of workers; their paths are relative to these parameters."""
        least, others = max(2, self.replication), hosts[1:]
        for place, name in enumerate(self.workers or ()):
            if name not in others:
                yield Problem(("workers", place), name, f"{one_of(others)}: {hosts[0]} is the master")
        if self.workers is not None and not least <= len(self.workers) == len(set(self.workers)):
            yield Problem(("workers",), ", ".join(self.workers), f"at least {least} hosts, each once")

    def needed_hosts(self) -> tuple[int, str]:
        """A master, and as many workers as a block has copies."""
        return 1 + max(2, self.replication), "replication" if self.replication > 2 else ""
