"""The median of differences as the estimator of a metric: declared, judged as the mean is, and better beside outliers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers.support import STUDY, bench, by_length

from framegauge.errors import StudyError
from framegauge.results.shapes import Plan
from framegauge.statistics import medians, robust
from framegauge.statistics.judge import judge
from framegauge.statistics.sequential import StoppingRule
from framegauge.statistics.verdict import Verdict
from framegauge.study import file as study_file
from framegauge.study.estimators import LAST_LOOK

noises, studies = bench("truth.noises"), bench("truth.studies")
EVERY = noises.noises()


def outliers(random, order):
    """Runs that repeat to 1 %, of which one in a hundred is fifty times as large."""
    shape = order.place.shape
    return random.normal(0, 0.01, shape) + math.log(50) * (random.random(shape) < 0.01)


NOISE = replace(EVERY["normal"], name="outliers", values=noises._added(outliers), edge=0.02)


def chance(share, count):
    """Three standard errors of a share."""
    return 3 * math.sqrt(share * (1 - share) / count)


@pytest.mark.parametrize("name", ["normal", "heavy tails", "bursts", "heavy", "var16"])
@pytest.mark.parametrize("cells", [1, 8])
def test_it_keeps_the_promise_of_the_mean(name, cells):
    count = by_length(200, 4000) // (1 if cells == 1 else 4)
    for effect, shrunk in ((0.0, 15.0), (1.0, 1.0), (-1.0, 1.0)):
        noise = replace(EVERY[name], edge=EVERY[name].edge / shrunk)
        found = studies.run(studies.Case(noise, (effect,) * cells, 12, median=True), count)
        assert found.false_direction <= 0.05 + chance(0.05, count)
        assert found.false_none <= 0.05 + chance(0.05, count)
        assert found.suspect <= 0.05 + chance(0.05, count)
        assert found.covers >= 0.94 - chance(0.94, count * cells)


def test_it_finds_what_outliers_hide_from_the_mean():
    """One run in a hundred is fifty times as large: an effect of 6 %, of runs that repeat to 1 %, in 20 blocks."""
    count = by_length(150, 2000)
    mean, median = (studies.run(studies.Case(NOISE, (3.0,), 20, median=each), count) for each in (False, True))
    assert mean.directed < 0.9
    assert median.directed > 0.95


def test_the_rules_for_many_studies_are_those_of_the_judge():
    for cells, stops in ((1, True), (3, False)):
        case = studies.Case(NOISE, (1.5,) * cells, 12, stops, median=True)
        random = np.random.default_rng(6)
        drawn = [studies.drawn(case, random, number) for number in range(4)]
        found = studies.rule.end(np.stack([logs for _, logs in drawn]), studies.plan_of(case))
        for number, (order, logs) in enumerate(drawn):
            judged = studies.ended(case, logs, order)
            assert judged.blocks == found.blocks[number]
            assert [math.log(each.low) for each in judged.alone] == pytest.approx(list(found.low[number]))
            assert [each is Verdict.BETTER for each in judged.verdicts] == list(found.verdicts[number] == 1)


def test_the_interval_is_that_of_the_signed_rank_test():
    logs = np.random.default_rng(1).normal(0.02, 0.01, 12)
    found = medians.estimate([1.0] * 12, list(np.exp(logs)))
    centre, low, high = robust.middle(logs)
    assert (math.log(found.ratio), math.log(found.low), math.log(found.high)) == pytest.approx((centre, low, high))
    assert found.assumption == medians.ASSUMPTION
    # Its spread is that of normal values with as wide an interval, for the number of blocks that would settle it.
    assert found.log_deviation == pytest.approx(logs.std(ddof=1), rel=0.4)


def test_too_few_blocks_have_no_interval_and_say_how_many_have():
    case = studies.Case(EVERY["normal"], (5.0,), 5)
    order, logs = studies.drawn(case, np.random.default_rng(2), 1)
    rows = studies._rows(case, order, logs)
    found = judge(rows, {"goodput": 0.01}, estimators={"goodput": medians.MEDIAN})[1]
    assert found.verdict is Verdict.UNDECIDED
    assert (found.ratio.low, found.ratio.high) == (None, None)
    assert "no interval from 5 blocks: the median of differences needs 6 for this level" in found.warnings


@pytest.mark.parametrize("given", ["median of differences", "{goodput: median of differences}"])
def test_a_study_declares_it_for_all_metrics_or_for_some(given):
    text = STUDY.replace("blocks: 6", "blocks: 12") + f"estimator: {given}\n"
    study = study_file.parse(text, "x")
    names = ["goodput", "completion_time"] if given[0] == "m" else ["goodput"]
    assert study.estimators() == dict.fromkeys(names, "median of differences")
    assert study_file.parse(study_file.dump(study), "resolved") == study
    plan = {"question": "?", "scope": "x", "treatment": "mtu", "margins": {"goodput": 0.01}}
    assert Plan.model_validate(plan | {"estimators": {"goodput": "median of differences"}})


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("estimator: {latency_p50: mean}", "estimator.latency_p50"),
        ("estimator: median", "median of differences"),
        (
            "estimator: median of differences",
            "blocks: found 6, expected at least 8, for the median of differences in 2",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(given, found):
    with pytest.raises(StudyError) as raised:
        study_file.parse(f"{STUDY}{given}\n", "x")
    assert found in str(raised.value)


@pytest.mark.parametrize("comparisons", [1, 2, 4, 8, 24, 60])
def test_as_many_blocks_are_asked_for_as_have_an_interval(comparisons):
    for stop in ("settled", "blocks"):
        least = math.ceil(1 + math.log2(comparisons / LAST_LOOK[stop]))
        rule = StoppingRule(least if stop == "settled" else None)
        assert robust.left_out(least, rule.nominal(0.05 / comparisons, least)) > 0
