"""The number of further blocks that decides a comparison, against closed formulas and by going on."""

import math

import numpy as np
import pytest
from helpers.support import by_length
from scipy import stats

from framegauge.statistics.assurance import ASSURANCE, _chance, more_blocks
from framegauge.statistics.ratio import Ratio, estimate, quantile

# Five standard errors: too few would be decided by chance in 3 of ten million tests. An advice that supposes effect and
# spread to stay exactly as measured is followed by a verdict in 55 % to 62 % of studies.
STUDIES, ERRORS = by_length(250, 1000), by_length(5, 3)


def test_a_single_block_tells_no_spread_and_an_effect_on_the_edge_needs_too_many():
    assert more_blocks(estimate([1.0], [1.0]), 0.01) is None
    on_the_edge = Ratio(1.01, 1.0, 1.02, 100, 0.05, 0.05)
    assert more_blocks(on_the_edge, 0.01) is None


def test_blocks_that_do_not_vary_decide_at_once_unless_equality_needs_more():
    same = estimate([1.0] * 4, [1.0] * 4)
    assert more_blocks(same, 0.01) == 1
    assert more_blocks(same, 0.01, least=8) == 4
    assert more_blocks(estimate([1.0] * 4, [1.1] * 4), 0.01, least=8) == 1


@pytest.mark.parametrize("effect", [0.0, 0.006, 0.03])
def test_with_many_blocks_the_chance_is_that_of_the_normal_distribution(effect):
    """Effect and spread are known then, but for what the blocks so far leave open of the effect."""
    edge, deviation, before, more = 0.01, 0.05, 2000, 400
    found = Ratio(math.exp(effect), 1.0, 1.0, before, deviation, 0.05)
    count = before + more
    # The mean of all blocks, as predicted from the first ones.
    spread = deviation * math.sqrt(1 / before + 1 / more) * more / count
    half = quantile(count - 1, 0.05) * deviation / math.sqrt(count)
    mean = stats.norm(effect, spread)
    inside = max(0.0, mean.cdf(edge - half) - mean.cdf(half - edge))
    expected = inside + mean.sf(edge + half) + mean.cdf(-edge - half)
    assert _chance(found, edge, None, 0, more) == pytest.approx(expected, abs=0.02)
    better = mean.sf(-edge + half) + mean.cdf(-edge - half)
    assert _chance(found, edge, -1, 0, more) == pytest.approx(better, abs=0.02)


@pytest.mark.soak(0.2)
@pytest.mark.parametrize("before", [6, 12])
def test_who_goes_on_as_advised_gets_a_verdict_in_four_of_five_studies(before):
    """Over effects of all sizes, as the assurance supposes."""
    random, decided, advised = np.random.default_rng(4), 0, 0
    margin, deviation = 0.02, 0.02
    while advised < STUDIES:
        effect = random.uniform(-0.2, 0.2)
        logs = random.normal(effect, deviation, before)
        found = estimate([1.0] * before, list(np.exp(logs)))
        more = None if _is_decided(found, margin) else more_blocks(found, margin, most=500)
        if more is not None:
            advised += 1
            logs = np.concatenate([logs, random.normal(effect, deviation, more)])
            decided += _is_decided(estimate([1.0] * len(logs), list(np.exp(logs))), margin)
    assert decided / advised >= ASSURANCE - ERRORS * math.sqrt(ASSURANCE * (1 - ASSURANCE) / advised)


def _is_decided(found, margin):
    return not (found.low <= 1 + margin <= found.high or found.low <= 1 / (1 + margin) <= found.high)
