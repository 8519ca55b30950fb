"""The order of arms in studies of few cells: no period is in step with it, and no arm is always first."""

import itertools

import numpy as np
import pytest
from helpers.support import STUDY

from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.study.model import arms as arms_of, cells as cells_of
from framegauge.study.turns import FEW_CELLS, LAST, turns

SEEDS = range(30)


def signs(seed, blocks):
    """Of two arms in one cell: 1 where the first arm comes first."""
    return np.array([1 if turns(seed, 1, 2, block)[0] == (0, 1) else -1 for block in range(blocks)])


@pytest.mark.parametrize("blocks", [6, 8, 12, 20])
def test_no_period_is_in_step_with_two_arms(blocks):
    """By how much a wave looks like an effect, at worst: all of it if the order repeats with it."""
    phases = np.exp(2j * np.pi * np.outer(np.arange(1, 200) / 400, np.arange(blocks)))
    worst = [np.abs(phases @ signs(seed, blocks)).max() / blocks for seed in SEEDS]
    in_step = np.abs(phases @ np.tile([1, -1], blocks // 2)).max() / blocks
    assert in_step == pytest.approx(1, abs=0.01)
    assert max(worst) < 0.85
    assert np.mean(worst) < 0.72


@pytest.mark.parametrize(("cells", "arms"), [(1, 2), (1, 3), (2, 2), (4, 3), (1, 5)])
def test_each_arm_has_each_position_about_equally_often(cells, arms):
    for seed in range(10):
        counts = np.zeros((cells, arms, arms))
        for block in range(20):
            for cell, order in enumerate(turns(seed, cells, arms, block)):
                assert sorted(order) == list(range(arms))
                for position, arm in enumerate(order):
                    counts[cell, arm, position] += 1
            if block >= 4:  # the first look
                assert counts.max() < block + 1, "an arm had the same position in every block"
        assert np.abs(counts - 20 / arms).max() <= 4


def test_the_order_is_drawn_and_stays_as_it_was_drawn():
    drawn = {tuple(signs(seed, 12)) for seed in SEEDS}
    assert len(drawn) > 20
    assert signs(3, 12).tolist() == signs(3, 12).tolist()
    # A study of more blocks, or one that is resumed at a later block, goes on as it began.
    later = turns(77, 2, 3, 9)
    assert [turns(77, 2, 3, block) for block in range(10)][9] == later
    assert {order for block in range(LAST, LAST + 40) for order in turns(1, 1, 3, block)} == set(
        itertools.permutations(range(3))
    )


def test_studies_of_few_cells_take_these_turns():
    for levels in (FEW_CELLS, FEW_CELLS + 1):
        text = STUDY.replace(
            "factors:", f"factors:\n  rtt: {{levels: [{', '.join(f'{n} ms' for n in range(1, levels + 1))}]}}"
        )
        study = study_file.parse(text.replace("  rtt: 0.2 ms\n", ""), "x")
        count, names = len(cells_of(study)), [arm.name for arm in arms_of(study)]
        assert count == levels
        same = True
        for block in range(6):
            mine = {
                cell: [slot.arm.name for slot in block_order(study, block) if slot.cell.index == cell]
                for cell in range(count)
            }
            same &= mine == {
                cell: [names[arm] for arm in order]
                for cell, order in enumerate(turns(study.seed, count, len(names), block))
            }
        assert same is (levels <= FEW_CELLS)
