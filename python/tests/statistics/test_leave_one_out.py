"""Which blocks are left out: too few to matter for time, and all that could change a verdict."""

import math

import numpy as np
import pytest
from helpers.support import by_length

from framegauge.statistics import doubts, leave_one_out, medians
from framegauge.statistics.ratio import estimate
from framegauge.statistics.shapes import Shape
from framegauge.statistics.verdict import decide, edges

KINDS = {
    "mean": (estimate, leave_one_out.of_means),
    "skewed": (
        lambda before, after, alpha: estimate(before, after, alpha, hull=1.3),
        lambda logs, alpha, ends: leave_one_out.of_means(logs, alpha, ends, hull=1.3),
    ),
    "one side varies": (
        lambda before, after, alpha: estimate(before, after, alpha, shape=Shape(1.1, 0.7)),
        lambda logs, alpha, ends: leave_one_out.of_means(logs, alpha, ends, shape=Shape(1.1, 0.7)),
    ),
    "median": (medians.estimate, leave_one_out.of_medians),
}


def drawn(random, count):
    """Log ratios whose interval ends near an edge of the margin: outliers, ties and blocks that do not vary too."""
    logs = random.normal(random.choice([0, 0.01, -0.02]), random.choice([0.001, 0.01, 0.03]), count)
    logs[random.random(count) < random.choice([0, 0.1])] += random.choice([-0.3, 0.05, 2.0])
    return np.round(logs, int(random.choice([2, 3, 12])))


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_block_on_which_a_verdict_depends_is_tried(kind):
    of_some, trials = KINDS[kind]
    random, changed = np.random.default_rng(7), 0
    for _ in range(by_length(150, 5000)):
        count = int(random.integers(6, 24))
        logs, margin, alpha = drawn(random, count), random.choice([0.01, 0.03]), random.choice([0.05, 0.003])
        before, after = [1.0] * count, [math.exp(each) for each in logs]
        logs = doubts.log_ratios(before, after)
        without = [
            decide(of_some(before[1:], after[:block] + after[block + 1 :], alpha), margin, True)
            for block in range(count)
        ]
        tried = trials(logs, alpha, edges(margin))
        assert tried == sorted(set(tried))
        for verdict in set(without):
            assert without.index(verdict) in tried or verdict in [without[each] for each in tried]
            first = next(each for each in tried if without[each] is verdict)
            assert first == without.index(verdict)
        changed += len(set(without)) > 1
    assert changed > 10


@pytest.mark.parametrize(("kind", "count"), [("mean", 50_000), ("skewed", 50_000), ("median", 2_500)])
def test_few_of_many_blocks_are_tried(kind, count):
    logs = np.random.default_rng(3).normal(0.02, 0.05, count)
    assert len(KINDS[kind][1](logs, 0.05, edges(0.02))) < 10
    assert len(KINDS[kind][1](np.full(count, math.log(1.02)), 0.05, edges(0.02))) < 10


def test_the_judge_names_the_block_as_when_it_tried_them_all():
    """Eleven blocks beyond the margin and one far out: without it the verdict is another."""
    after = [1.012] * 11 + [1.5]
    before = [1.0] * 12
    judged = estimate(before, after)
    assert len(doubts.log_ratios(before, after)) == judged.blocks
    tried = leave_one_out.of_means(doubts.log_ratios(before, after), judged.alpha, edges(0.01))
    assert 11 in tried
