"""What a run's position does, against effects that are known."""

import math

import numpy as np
import pytest

from framegauge.statistics import positions
from framegauge.statistics.pairs import Row, all_pairs

ARMS = ("baseline", "control", "9000")
SQUARE = ((0, 1, 2), (1, 2, 0), (2, 0, 1))  # arms by position


def rows(blocks, effects, noise=0.001, seed=1, square=SQUARE):
    """Runs of two cells: each position has its effect, each arm, block and cell another level."""
    random, found = np.random.default_rng(seed), []
    for cell in range(2):
        for block in range(blocks):
            for position, arm in enumerate(square[block % len(square)]):
                log = effects[position] + 0.3 * arm + 0.5 * block + cell + random.normal(0, noise)
                role = ARMS[arm] if arm < 2 else "treatment"
                found.append(
                    Row(block, cell, ARMS[arm], role, 9000 if arm == 2 else 1500, "stream", {}, {"goodput": math.exp(log)},
                        excluded=False, number=len(found))
                )  # fmt: skip
    return found


def test_it_is_found_among_all_else_that_varies():
    runs = rows(6, (-0.02, 0.01, 0.01))
    found = positions.estimate(runs, "goodput", positions.places(runs))
    assert found.effects == pytest.approx([-0.02, 0.01, 0.01], abs=0.002)
    assert found.chance < 1e-6
    assert found.size == pytest.approx(math.expm1(0.03), abs=0.002)


def test_where_there_is_none_it_is_rarely_found():
    chances = []
    for seed in range(300):
        runs = rows(6, (0, 0, 0), seed=seed)
        chances.append(positions.estimate(runs, "goodput", positions.places(runs)).chance)
    for level in (0.01, 0.05, 0.5):
        assert np.mean(np.array(chances) < level) == pytest.approx(level, abs=3 * math.sqrt(level * (1 - level) / 300))


@pytest.mark.parametrize(("blocks", "expected"), [(6, 0.0), (7, 1 / 7)])
def test_a_ratio_has_of_it_what_the_blocks_do_not_balance(blocks, expected):
    """In the first block of the square the treatment is last; after whole squares nothing is left."""
    runs = rows(blocks, (-0.02, 0.01, 0.01), noise=0)
    places = positions.places(runs)
    found = positions.estimate(runs, "goodput", places)
    treatment = next(each for each in all_pairs(runs, {"goodput": 0.01}) if not each.is_control)
    # The mean of the two references is first and second: -0.005; the treatment is third: 0.01.
    assert positions.tilt(treatment, found, places) == pytest.approx(0.015 * expected, abs=1e-9)


def test_arms_that_always_have_the_same_position_tell_nothing():
    runs = rows(6, (-0.02, 0.01, 0.01), square=(SQUARE[0],))
    assert positions.estimate(runs, "goodput", positions.places(runs)) is None
    assert positions.estimate([], "goodput", {}) is None


def test_a_repeated_run_has_the_position_of_the_first():
    runs = rows(3, (0, 0, 0))
    first = runs[0]
    again = [*runs[1:], Row(first.block, first.cell, first.arm, first.role, 1500, "stream", {}, {}, False, number=99)]
    lost = Row(first.block, first.cell, first.arm, first.role, 1500, "stream", {}, {}, True, number=first.number)
    assert positions.places([*again, lost]) == positions.places(runs)
