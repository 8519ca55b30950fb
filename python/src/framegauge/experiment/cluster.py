"""The workload `mapreduce` of a study file, made into the workload that runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framegauge.agents.binary import find_nodelay
from framegauge.apps import store
from framegauge.study.blocks import Slot
from framegauge.study.model import Study, host_mtus
from framegauge.workloads.command import Command
from framegauge.workloads.hadoop import Cluster
from framegauge.workloads.mapreduce import ROW_BYTES, MapReduce

__all__ = ["mapreduce_of"]

# Of a run on two CPUs: what a cluster takes, what each worker adds (two daemons, and tasks of three jobs), and bytes a
# second. They give the runs of docs/measured/workloads.md within 5 %.
START_SECONDS, WORKER_SECONDS, BYTES_PER_SECOND = 25.0, 40.0, 4e6
LIGHT_WORKER_SECONDS = 10.0  # of one daemon, and tasks of one job


def mapreduce_of(study: Study, slot: Slot, factors: Mapping[str, Any]) -> MapReduce:
    """The workload of a slot: the first host is the master. There are at least as many maps as workers."""
    spec = study.workloads[slot.cell.place].mapreduce
    if spec is None:
        raise ValueError(f"workload {slot.cell.place} is no mapreduce")
    names, size, nagle = study.testbed.host_names, slot.cell.parameters["size_bytes"], factors["nagle"]
    workers = spec.workers or names[1:]
    worker_seconds = LIGHT_WORKER_SECONDS if spec.hdfs == "master" else WORKER_SECONDS
    guess = START_SECONDS + worker_seconds * len(workers) + size / BYTES_PER_SECOND
    base = Command(
        name="mapreduce", clients=(), metrics_={}, mtu=host_mtus(factors["mtu"], names), nagle=nagle, nagle_on=names,
        preload=find_nodelay if nagle is not None else None,
        expect_seconds=guess if spec.expect is None else spec.expect,
    )  # fmt: skip
    cluster = Cluster(
        files=str(store.folder(store.named("hadoop"))), master=names[0], workers=workers, block_bytes=spec.block,
        replication=spec.replication, slots=spec.slots, is_stored_on_master=spec.hdfs == "master",
        at_once=spec.at_once, reduces_at_once=spec.reduces_at_once or 0,
    )  # fmt: skip
    return MapReduce.of(
        cluster, slot.cell.parameters["job"], rows=size // ROW_BYTES, maps=max(len(workers), -(-size // spec.block)),
        reduces=spec.reduces or len(workers), within=spec.within, base=base,
    )  # fmt: skip
