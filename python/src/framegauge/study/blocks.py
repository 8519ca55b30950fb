"""The order of a study's runs: randomised complete blocks, from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from framegauge.study.model import Arm, Cell, Study, arms, cells
from framegauge.study.turns import FEW_CELLS, cell_order, turns

__all__ = ["Slot", "block_order", "order"]


@dataclass(frozen=True)
class Slot:
    """One planned run. Its key is the same in every process that reads the same study."""

    block: int
    cell: Cell
    arm: Arm

    @property
    def key(self) -> tuple[int, int, str]:
        """Block, cell and arm, by which a resumed study finds finished runs."""
        return self.block, self.cell.index, self.arm.name


def block_order(study: Study, block: int) -> list[Slot]:
    """The slots of one block, in the order of their execution.

    Cells come in random order, and the arms of each cell one after the other: runs that are compared are close in time,
    so that slow drift of the machine cancels in the ratio. Each block has its own generator, so that a resumed study
    draws the same order.
    """
    everywhere, chosen = cells(study), arms(study)
    generator = cell_order(study.seed, block)
    planned: list[Slot] = []
    for cell in generator.sample(everywhere, len(everywhere)):
        if study.order == "random":
            order = chosen.copy()
            generator.shuffle(order)
        elif len(everywhere) <= FEW_CELLS:
            order = [chosen[arm] for arm in turns(study.seed, len(everywhere), len(chosen), block)[cell.index]]
        else:
            order = _balanced(study.seed, block, cell.index, chosen)
        planned += [Slot(block, cell, arm) for arm in order]
    return planned


def _balanced(seed: int, block: int, cell: int, chosen: list[Arm]) -> list[Arm]:
    """The order of a cell's arms among many cells: each has every position once in as many blocks as there are arms.

    The blocks of such a group are the rows of a random cyclic Latin square (two arms: AB then BA, or BA then AB), so
    whatever the first run of a cell suffers from falls on all arms alike (Fisher 1935, The Design of Experiments,
    chapter 5; for two arms, permuted blocks: Matts & Lachin 1988, Controlled Clinical Trials 9:327).
    """
    group, row = divmod(block, len(chosen))
    generator = random.Random(f"framegauge square {seed} {group} {cell}")
    square = generator.sample(chosen, len(chosen))
    shift = generator.sample(range(len(chosen)), len(chosen))[row]
    return square[shift:] + square[:shift]


def order(study: Study) -> list[Slot]:
    """Every slot of the study, block after block."""
    return [slot for block in range(study.blocks) for slot in block_order(study, block)]
