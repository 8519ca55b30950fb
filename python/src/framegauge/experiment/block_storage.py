"""The workload `iscsi` of a study file, made into the workload that runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from framegauge.agents.binary import find_nodelay
from framegauge.study.blocks import Slot
from framegauge.study.model import Study, host_mtus
from framegauge.workloads.iscsi import Iscsi, Load, iscsi

__all__ = ["iscsi_of", "nagle_on", "reconnects"]

RECONNECTS = 10  # of a client, if the study ends connections


def iscsi_of(study: Study, slot: Slot, factors: Mapping[str, Any], seed: int) -> Iscsi:
    """The workload of a slot; all arms of a block read and write the same blocks."""
    if study.workloads[slot.cell.place].iscsi is None:
        raise ValueError(f"workload {slot.cell.place} is no iscsi")
    names = study.testbed.host_names
    load = Load(**slot.cell.parameters, seed=seed, reconnects=reconnects(study))
    family = study.testbed.family
    return iscsi(load, names, family, mtu=host_mtus(factors["mtu"], names), **nagle_on(names, factors))


def nagle_on(hosts: Sequence[str], factors: Mapping[str, Any]) -> dict[str, Any]:
    """What has programs of these hosts obey the factor `nagle`; nothing without one."""
    nagle = factors["nagle"]
    return {} if nagle is None else {"nagle": nagle, "nagle_on": tuple(hosts), "preload": find_nodelay}


def reconnects(study: Study) -> int:
    """How often a client opens a connection again: only where the study ends some."""
    return RECONNECTS if any(change.reopen for change in study.changes) else 0
