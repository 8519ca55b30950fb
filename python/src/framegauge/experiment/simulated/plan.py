"""The runs of a simulated study or sweep, in the order in which they are numbered and written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.experiment.planning import stated_conditions
from framegauge.study.blocks import Slot, block_order
from framegauge.study.model import Study, cells
from framegauge.study.sweep import Point

__all__ = ["Planned", "blocks"]


@dataclass(frozen=True)
class Planned:
    """One run: its number, the study at its point of the sweep, its slot there, its cell in the folder, and the
    conditions that results state."""

    number: int
    study: Study
    slot: Slot
    cell: int
    conditions: Mapping[str, Any]

    @property
    def key(self) -> tuple[int, int, str]:
        """Block, cell and arm, as those of a finished run."""
        return self.slot.block, self.cell, self.slot.arm.name


def blocks(points: Sequence[Point]) -> list[list[Planned]]:
    """The runs of every block: of each point after the other, in the order that its study draws."""
    offsets = [0]
    for point in points:
        offsets.append(offsets[-1] + len(cells(point.study)))
    stated = _stated(points)
    found: list[list[Planned]] = []
    number = 0
    for block in range(points[0].study.blocks):
        found.append([])
        for place, point in enumerate(points):
            for slot in block_order(point.study, block):
                number += 1
                cell = offsets[place] + slot.cell.index
                found[-1].append(Planned(number, point.study, slot, cell, stated[cell]))
    return found


def _stated(points: Sequence[Point]) -> list[dict[str, Any]]:
    """The conditions of every cell. The keys of a sweep are stated only where nothing else tells the cells apart:
    a swept factor is among a cell's conditions anyway."""
    found: list[dict[str, Any]] = []
    workloads: list[str] = []
    swept: list[Mapping[str, str]] = []
    for point in points:
        slots = {slot.cell.index: slot for slot in block_order(point.study, 0)}
        for index in sorted(slots):
            found.append(stated_conditions(point.study, slots[index]))
            workloads.append(slots[index].cell.workload)
            swept.append(point.at)
    names = [json.dumps([work, each], sort_keys=True) for work, each in zip(workloads, found, strict=True)]
    if len(set(names)) == len(names):
        return found
    return [{**each, **_numbers(at)} for each, at in zip(found, swept, strict=True)]


def _numbers(at: Mapping[str, str]) -> dict[str, Any]:
    return {key: int(value) if value.isdecimal() else value for key, value in at.items()}
