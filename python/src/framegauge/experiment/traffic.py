"""The workloads of a study file that are only simulated, made into those that run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from framegauge.study.blocks import Slot
from framegauge.study.model import Study
from framegauge.workloads.arrivals import Arrivals
from framegauge.workloads.base import Workload
from framegauge.workloads.replay import Replay
from framegauge.workloads.shuffle import Shuffle
from framegauge.workloads.users import Users

__all__ = ["MAKERS"]


def _shuffle(study: Study, slot: Slot, _factors: Mapping[str, Any], seed: int) -> Shuffle:
    settings = study.workloads[slot.cell.place].shuffle
    if settings is None:
        raise ValueError(f"workload {slot.cell.place} is no shuffle")
    return Shuffle(**slot.cell.parameters, workers=settings.workers, seed=seed if settings.order == "random" else 0)


def _users(study: Study, slot: Slot, factors: Mapping[str, Any], seed: int) -> Users:
    settings = study.workloads[slot.cell.place].users
    if settings is None:
        raise ValueError(f"workload {slot.cell.place} is no users")
    parameters = dict(slot.cell.parameters)
    responses = settings.distribution(parameters.pop("response_sizes"))
    return Users(**parameters, responses=responses, nagle=factors["nagle"], seed=seed)


def _arrivals(study: Study, slot: Slot, factors: Mapping[str, Any], seed: int) -> Arrivals:
    settings, bed = study.workloads[slot.cell.place].arrivals, study.testbed
    if settings is None or bed.link.rate is None:
        raise ValueError(f"workload {slot.cell.place} is no arrivals on a link with a rate")
    parameters = dict(slot.cell.parameters)
    sizes = settings.distribution(parameters.pop("flow_sizes"))
    return Arrivals(
        **parameters, sizes=sizes, bits_per_second=bed.link.rate, rtt_seconds=factors["rtt"] or 0.0,
        topology=bed.topology.as_json(), seed=seed,
    )  # fmt: skip


def _replay(study: Study, slot: Slot, _factors: Mapping[str, Any], seed: int) -> Replay:
    settings = study.workloads[slot.cell.place].replay
    if settings is None:
        raise ValueError(f"workload {slot.cell.place} is no replay")
    return Replay(settings.recording(), **slot.cell.parameters, seed=seed)


# By key: from a study, a slot, the levels of its factors, and the seed of its block.
MAKERS: Mapping[str, Callable[[Study, Slot, Mapping[str, Any], int], Workload]] = {
    "shuffle": _shuffle,
    "users": _users,
    "arrivals": _arrivals,
    "replay": _replay,
}
