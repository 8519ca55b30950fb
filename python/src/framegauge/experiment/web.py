"""The workload `web` of a study file, made into the workload that runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framegauge.agents.binary import find_nodelay
from framegauge.study.blocks import Slot
from framegauge.study.model import Study, host_mtus
from framegauge.workloads.web import Load, Web, web

__all__ = ["web_of"]


def web_of(study: Study, slot: Slot, factors: Mapping[str, Any], seed: int) -> Web:
    """The workload of a slot; all arms of a block have the same users."""
    settings = study.workloads[slot.cell.place].web
    if settings is None:
        raise ValueError(f"workload {slot.cell.place} is no web")
    parameters = dict(slot.cell.parameters)
    if (rule := settings.saturate) is not None:
        parameters |= {"users": 0, "steps": rule.steps, "limits_seconds": rule.limits, "share": rule.quantile}
    names, nagle = study.testbed.host_names, factors["nagle"]
    return web(
        Load(**parameters, seed=seed),
        names,
        mtu=host_mtus(factors["mtu"], names),
        nagle=nagle,
        nagle_on=settings.nagle_hosts(names),
        preload=find_nodelay if nagle is not None else None,
    )
