"""The workload `ceph` of a study file, made into the workload that runs; and the memory that it takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from framegauge.agents.binary import find_nodelay
from framegauge.quantities import print_bytes
from framegauge.study.blocks import Slot, block_order
from framegauge.study.model import Study, host_mtus
from framegauge.workloads.ceph import START_SECONDS, Ceph, Cluster, ceph
from framegauge.workloads.fio import Load

__all__ = ["available_bytes", "ceph_of", "lacking_memory"]

MEMORY = "/proc/meminfo"
_OF_LOAD = ("operation", "access", "block_bytes", "depth", "rate_per_second", "duration_seconds")


def ceph_of(study: Study, slot: Slot, factors: Mapping[str, Any], seed: int) -> Ceph:
    """The workload of a slot: the first host is the client, the second the monitor. All arms of a block touch the same
    places of the image."""
    settings, params = study.workloads[slot.cell.place].ceph, slot.cell.parameters
    if settings is None:
        raise ValueError(f"workload {slot.cell.place} is no ceph")
    names, nagle = study.testbed.host_names, factors["nagle"]
    cluster = Cluster(
        names[0], names[1], names[2:], params["replication"], settings.image, settings.store, params["storage_network"],
        settings.within,
    )  # fmt: skip
    load = Load(
        **{name: params[name] for name in _OF_LOAD},
        read_share=settings.read_share,
        seed=seed,
        logged=bool(study.changes),
    )
    return ceph(
        cluster,
        load,
        mtu=host_mtus(factors["mtu"], names),
        nagle=nagle,
        nagle_on=names,
        preload=find_nodelay if nagle is not None else None,
        expect_seconds=START_SECONDS + load.duration_seconds if settings.expect is None else settings.expect,
    )


def available_bytes(text: str) -> int | None:
    """The memory that is available, from the text of /proc/meminfo; None if it does not tell."""
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable" and rest.split()[1:] == ["kB"] and rest.split()[0].isdecimal():
            return int(rest.split()[0]) << 10
    return None


def lacking_memory(study: Study, available: int | None = None) -> list[dict[str, str]]:
    """What a study's clusters lack of this machine's memory, as a requirement."""
    if all(item.ceph is None for item in study.workloads):
        return []
    has = available_bytes(Path(MEMORY).read_text()) if available is None else available
    slots = [slot for slot in block_order(study, 0) if study.workloads[slot.cell.place].ceph is not None]
    factors = [{**slot.cell.factors, study.treatment: slot.arm.level} for slot in slots]
    most = max(ceph_of(study, slot, item, 0).cluster.memory_bytes for slot, item in zip(slots, factors, strict=True))
    if has is None or most <= has:
        return []
    return [
        {
            "name": f"{print_bytes(most)} of memory", "needed_for": "workload ceph",
            "found": f"{print_bytes(has)} available", "remedy": "a smaller `image`, fewer hosts, or store: memstore",
        }
    ]  # fmt: skip
