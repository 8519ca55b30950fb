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
    asked = study.workloads[slot.cell.place].shuffle
    if asked is None:
        raise ValueError(f"workload {slot.cell.place} is no shuffle")
    return Shuffle(**slot.cell.parameters, workers=asked.workers, seed=seed if asked.order == "random" else 0)


def _users(study: Study, slot: Slot, factors: Mapping[str, Any], seed: int) -> Users:
    asked = study.workloads[slot.cell.place].users
    if asked is None:
        raise ValueError(f"workload {slot.cell.place} is no users")
    given = dict(slot.cell.parameters)
    responses = asked.distribution(given.pop("response_sizes"))
    return Users(**given, responses=responses, nagle=factors["nagle"], seed=seed)


def _arrivals(study: Study, slot: Slot, factors: Mapping[str, Any], seed: int) -> Arrivals:
    asked, bed = study.workloads[slot.cell.place].arrivals, study.testbed
    if asked is None or bed.link.rate is None:
        raise ValueError(f"workload {slot.cell.place} is no arrivals on a link with a rate")
    given = dict(slot.cell.parameters)
    sizes = asked.distribution(given.pop("flow_sizes"))
    return Arrivals(
        **given, sizes=sizes, bits_per_second=bed.link.rate, rtt_seconds=factors["rtt"] or 0.0,
        topology=bed.topology.as_json(), seed=seed,
    )  # fmt: skip


def _replay(study: Study, slot: Slot, _factors: Mapping[str, Any], seed: int) -> Replay:
    asked = study.workloads[slot.cell.place].replay
    if asked is None:
        raise ValueError(f"workload {slot.cell.place} is no replay")
    return Replay(asked.recording(), **slot.cell.parameters, seed=seed)


# By key: from a study, a slot, the levels of its factors, and the seed of its block.
MAKERS: Mapping[str, Callable[[Study, Slot, Mapping[str, Any], int], Workload]] = {
    "shuffle": _shuffle,
    "users": _users,
    "arrivals": _arrivals,
    "replay": _replay,
}
