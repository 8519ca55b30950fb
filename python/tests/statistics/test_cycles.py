"""A period in the values of runs is named, and none where there is none."""

import dataclasses
import math

import numpy as np
import pytest
from helpers.support import bench, by_length

from framegauge.statistics import cycles, doubts
from framegauge.statistics.judge import judge

noises, studies = bench("truth.noises"), bench("truth.studies")
EVERY = noises.noises()


def runs(name, number, cells=1, blocks=12, control=True):
    case = studies.Case(EVERY[name], (0.0,) * cells, blocks, control=control)
    order, logs = studies.drawn(case, np.random.default_rng(number), number)
    return studies._rows(case, order, logs)


@pytest.mark.parametrize(("cells", "blocks"), [(1, 12), (2, 8)])
def test_a_wave_of_two_blocks_is_found_with_its_period(cells, blocks):
    found = [cycles.estimate(runs("period 2", number, cells, blocks), "goodput") for number in range(20)]
    clear = [each for each in found if each.chance < 0.01]
    assert len(clear) > 0.8 * len(found)
    assert all(each.period == pytest.approx(2 * 3 * cells, rel=0.1) for each in clear)


@pytest.mark.parametrize("name", ["normal", "block", "drifting", "heavy tails", "pos"])
def test_other_noise_rarely_has_a_period(name):
    count = by_length(60, 1000)
    chances = [cycles.estimate(runs(name, number), "goodput").chance for number in range(count)]
    assert np.mean([each < 0.02 for each in chances]) <= 0.02 + 3 * math.sqrt(0.02 * 0.98 / count)


def test_few_blocks_and_many_cells_are_not_asked():
    assert cycles.estimate(runs("period 2", 1, blocks=7), "goodput") is None
    assert cycles.estimate(runs("period 2", 1, cells=5, blocks=8), "goodput") is None
    same = [dataclasses.replace(row, metrics={"goodput": 1.0}) for row in runs("normal", 1)]
    assert cycles.estimate(same, "goodput") is None


def test_every_comparison_of_the_metric_says_so():
    found = judge(runs("period 2", 1), {"goodput": 0.02})
    for each in found:
        (line,) = [line for line in each.warnings if "period" in line]
        assert line == (
            "runs vary with a period of about 6 runs: something acts at regular times, and may look like an effect"
        )
    assert not any("period" in line for each in judge(runs("normal", 3), {"goodput": 0.02}) for line in each.warnings)
    assert doubts.periodic(cycles.Cycle(6.0, 0.004), 1)
    assert not doubts.periodic(cycles.Cycle(6.0, 0.004), 3), "one of three metrics by chance"


def test_lost_runs_leave_gaps_and_no_period():
    rows = [dataclasses.replace(row, excluded=row.number % 5 == 0) for row in runs("period 2", 4)]
    assert cycles.estimate(rows, "goodput").period == pytest.approx(6, rel=0.1)
