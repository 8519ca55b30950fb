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
    all_blocks: list[list[Planned]] = []
    number = 0
    for block in range(points[0].study.blocks):
        all_blocks.append([])
        for place, point in enumerate(points):
            for slot in block_order(point.study, block):
                number += 1
                cell = offsets[place] + slot.cell.index
                all_blocks[-1].append(Planned(number, point.study, slot, cell, stated[cell]))
    return all_blocks


def _stated(points: Sequence[Point]) -> list[dict[str, Any]]:
    """The conditions of every cell. Keys of a sweep are stated only where nothing else tells the cells apart: a swept
    factor is among a cell's conditions anyway."""
    entries: list[tuple[str, dict[str, Any], Point]] = []
    for point in points:
        slots = {slot.cell.index: slot for slot in block_order(point.study, 0)}
        entries += [
            (slots[index].cell.workload, stated_conditions(point.study, slots[index]), point) for index in sorted(slots)
        ]
    needed = list(points[0].at)
    for key in points[0].at:
        fewer = [other_key for other_key in needed if other_key != key]
        names = [
            json.dumps([work, _with(conditions, point, fewer)], sort_keys=True) for work, conditions, point in entries
        ]
        needed = fewer if len(set(names)) == len(names) else needed
    return [_with(conditions, point, needed) for _, conditions, point in entries]


def _with(conditions: Mapping[str, Any], point: Point, keys: Sequence[str]) -> dict[str, Any]:
    """Conditions with those of these keys of the sweep."""
    return {**conditions, **dict(_condition(point, key) for key in keys)}


def _condition(point: Point, key: str) -> tuple[str, Any]:
    """A key of the sweep as a condition: under the factor's name where it is the setting that a factor has."""
    if key == "testbed.link.buffer" and point.study.factors.buffer is None:
        return "buffer_bytes", point.study.testbed.link.buffer
    value = point.at[key]
    return key, int(value) if value.isdecimal() else value
