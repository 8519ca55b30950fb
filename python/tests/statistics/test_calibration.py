"""Are the statistics as good as they say? A fast form of bench/truth/calibration.py; the bounds are those of chance."""

import json
import math

import pytest
from helpers.support import bench, by_length

from framegauge.statistics.ratio import estimate

calibration = bench("truth.calibration")

STUDIES, FEW = by_length(600, 4000), by_length(60, 1000)
pytestmark = pytest.mark.soak(1)
NOISES = calibration.noises()


def chance(share, studies):
    """Three standard errors of a share."""
    return 3 * math.sqrt(share * (1 - share) / studies)


@pytest.mark.parametrize("name", NOISES)
def test_fixed_intervals_hold_the_truth(name):
    held = calibration.fixed_coverage(NOISES[name], 12, STUDIES)
    assert 0.93 - chance(0.93, STUDIES) <= held <= 0.97 + chance(0.97, STUDIES)


@pytest.mark.thorough
@pytest.mark.parametrize("name", NOISES)
def test_intervals_hold_the_truth_when_the_study_stopped_by_itself(name):
    draw = NOISES[name]
    margin = 1.5 * calibration.spread_of(draw)
    for effect in (1.0, 1 + margin):
        found = calibration.stopped(draw, effect, margin, 20, STUDIES)
        assert sum(each.low <= effect <= each.high for each in found) / STUDIES >= 0.95 - chance(0.95, STUDIES)
        if effect > 1:
            equal = sum(each.verdict == "no practical difference" for each in found) / STUDIES
            assert equal <= 0.05 + chance(0.05, STUDIES)


@pytest.mark.parametrize("name", NOISES)
def test_equal_arms_are_rarely_called_different(name):
    assert calibration.false_claims(NOISES[name], 8, FEW) <= 0.05 + chance(0.05, FEW)


def test_a_large_effect_is_found_early():
    margin = 1.5 * calibration.spread_of(calibration.normal)
    found = calibration.stopped(calibration.normal, 1 + 4 * margin, margin, 30, FEW)
    assert all(each.verdict == "better" for each in found)
    assert max(each.blocks for each in found) < 30


def test_intervals_that_are_too_narrow_would_be_noticed(monkeypatch):
    monkeypatch.setattr(calibration, "estimate", lambda before, after: estimate(before, after, alpha=0.12))
    assert calibration.fixed_coverage(calibration.normal, 12, STUDIES) < 0.93 - chance(0.93, STUDIES)


def test_the_noise_is_that_of_real_studies():
    document = json.loads(calibration.NOISE.read_text())
    assert document["made_by"]
    for series in document["series"].values():
        assert all(len(block) == calibration.ARMS for each in series for block in each)
        assert sum(len(each) for each in series) >= 40
