"""The workloads of a study file that are only simulated, made into those that run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from framegauge.study.blocks import Slot
from framegauge.study.model import Study
from framegauge.workloads.base import Workload
from framegauge.workloads.incast import Incast
from framegauge.workloads.shuffle import Shuffle

__all__ = ["MAKERS"]

MAKERS: Mapping[str, Callable[[Study, Slot, dict[str, Any]], Workload]] = {
    "incast": lambda _study, slot, _factors: Incast(**slot.cell.parameters),
    "shuffle": lambda _study, slot, _factors: Shuffle(**slot.cell.parameters),
}
