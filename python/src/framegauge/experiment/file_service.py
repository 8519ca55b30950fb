"""The workload `nfs` of a study file, made into the workload that runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framegauge.experiment.block_storage import nagle_on, reconnects
from framegauge.study.blocks import Slot
from framegauge.study.model import Study, host_mtus
from framegauge.workloads.nfs import Load, Nfs, nfs

__all__ = ["nfs_of"]


def nfs_of(study: Study, slot: Slot, factors: Mapping[str, Any], seed: int) -> Nfs:
    """The workload of a slot; all arms of a block read and write the same blocks."""
    if study.workloads[slot.cell.place].nfs is None:
        raise ValueError(f"workload {slot.cell.place} is no nfs")
    names = study.testbed.host_names
    load = Load(**slot.cell.parameters, seed=seed, reconnects=reconnects(study))
    return nfs(load, names, mtu=host_mtus(factors["mtu"], names), **nagle_on(names, factors))
