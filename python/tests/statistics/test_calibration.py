"""Are the statistics as good as they say? A fast form of bench/truth/calibration.py; the bounds are those of chance."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from helpers.support import ROOT, bench, by_length

from framegauge.metrics import METRICS
from framegauge.statistics import judge, shapes
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order

calibration = bench("truth.calibration")
noises, page, studies, rule = (bench(f"truth.{name}") for name in ("noises", "calibration_page", "studies", "rule"))

MANY, FEW = by_length(80, 2000), by_length(20, 400)
EVERY = {**noises.noises(), **noises.metrics()}
PERIODIC = [name for name in EVERY if name.startswith("period")]
GUARANTEED = [name for name, each in EVERY.items() if not each.one_sided and name not in PERIODIC]
LONG = pytest.mark.soak(0.04)


def chance(share, count):
    """Three standard errors of a share."""
    return 3 * math.sqrt(share * (1 - share) / count)


def run(name, effects, count, planned=12, shrunk=1.0, **more):
    """So many studies of a noise, whose margin is so many times smaller than it is in the page."""
    noise = replace(EVERY[name], edge=EVERY[name].edge / shrunk)
    return studies.run(studies.Case(noise, effects, planned, **more), count)


def assert_rarely_wrong(found):
    bound = 0.05 + chance(0.05, found.studies)
    assert found.false_direction <= bound
    assert found.false_none <= bound
    assert found.suspect <= bound


@LONG
@pytest.mark.parametrize("name", GUARANTEED)
def test_fixed_intervals_hold_the_truth(name):
    found = run(name, (0.0,), 2 * MANY, stops=False)
    assert found.covers >= 0.93 - chance(0.93, 2 * MANY)
    if name not in ("arstep", "pos", "poslow"):  # what the order balances is still in the width of the interval
        assert found.covers <= 0.97 + chance(0.97, 2 * MANY)


@LONG
@pytest.mark.parametrize("name", GUARANTEED)
def test_an_effect_as_large_as_the_margin_is_rarely_judged_and_its_interval_holds_it(name):
    for effect in (-1.0,) if EVERY[name].only_worse else (1.0, -1.0):
        found = run(name, (effect,), MANY)
        assert_rarely_wrong(found)
        assert found.covers >= 0.95 - chance(0.95, MANY)


@LONG
@pytest.mark.thorough
@pytest.mark.parametrize("name", GUARANTEED)
def test_equal_arms_of_many_cells_are_rarely_called_different(name):
    assert_rarely_wrong(run(name, (0.0,) * 4, FEW, planned=8, shrunk=calibration.TINY))


@LONG
@pytest.mark.thorough
@pytest.mark.parametrize("name", GUARANTEED)
def test_large_effects_in_other_cells_do_not_loosen_the_rest(name):
    assert_rarely_wrong(run(name, (-3.0, -1.0) * 4, FEW))


def test_a_large_effect_is_found_early():
    found = run("normal", (4.0,), MANY, planned=30)
    assert found.directed == 1
    assert found.blocks < 8


def test_what_no_rule_can_guarantee_would_be_noticed():
    """A tenth of the treated runs stalls: the bounds above are exceeded by far, so they can be."""
    assert run("quiet10", (-1.0,), 100).false_none > 0.25
    assert run("quiet10", (1.0,), 100).false_direction > 0.25
    assert run("quiet10", (-1.0,), 100).covers < 0.8


@pytest.mark.parametrize("name", PERIODIC)
def test_a_disturbance_at_regular_times_misleads_few_studies(name):
    """In step with the order of two arms it was 26 % of studies of one cell, and intervals held the truth in 70 %."""
    count = by_length(200, 4000)
    for control in (True, False):
        found = run(name, (0.0,), count, shrunk=calibration.TINY, control=control)
        assert found.false_direction <= 0.08 + chance(0.08, count)
        assert found.covers >= 0.92 - chance(0.92, count)


@pytest.mark.parametrize(("name", "cells", "bound"), [
    ("skew1, quiet", 1, 0.07), ("skew1, quiet", 8, 0.05), ("skew1, quiet", 24, 0.05), ("skew0, quiet", 8, 0.05),
])  # fmt: skip
def test_one_skewed_arm_misleads_few_studies(name, cells, bound):
    """By Student's interval it was 10 % of studies of one cell, 18 % of eight and 27 % of 24, all blocks run."""
    count = by_length(400, 4000) // (1 if cells == 1 else 4)
    for stops in (True, False):
        found = run(name, (1.0,) * cells, count, stops=stops)
        assert found.false_any <= bound + chance(bound, count)
        assert found.covers >= 0.935 - chance(0.935, count)


def test_intervals_that_are_too_narrow_would_be_noticed(monkeypatch):
    monkeypatch.setattr(rule, "ALPHA", 0.15)
    assert run("normal", (0.0,), 6 * MANY, stops=False).covers < 0.93 - chance(0.93, 6 * MANY)


@pytest.mark.parametrize("name", EVERY)
def test_the_effect_is_what_it_is_said_to_be(name):
    """The mean log ratio over many runs, to 4.5 standard errors."""
    noise, random = EVERY[name], np.random.default_rng(3)
    for effect in (0.0, -noise.edge):
        means = []
        for seed in range(60):
            logs = noise.values(random, noises.tool_order(8, 12, True, seed), np.full(8, effect))
            means.append(float((logs[:, :, 2] - logs[:, :, :2].mean(axis=2)).mean()))
        assert np.mean(means) == pytest.approx(effect, abs=4.5 * np.std(means, ddof=1) / math.sqrt(60) + 1e-9)


def test_fairness_is_a_share():
    for name, each in EVERY.items():
        if each.metric == "fairness":
            logs = each.values(np.random.default_rng(4), noises.tool_order(8, 12, True, 1), np.full(8, -each.edge))
            assert logs.max() <= 0, name


def test_the_order_is_that_of_the_tool():
    text = noises.STUDY % "1 ms, 2 ms, 3 ms"
    study = study_file.parse(text, "x").model_copy(update={"blocks": 7, "seed": 5})
    order = noises.tool_order(3, 7, True, 5)
    case = studies.Case(EVERY["normal"], (0.0,) * 3, 7)
    rows = studies._rows(case, order, np.zeros(order.place.shape))
    slots = [slot for block in range(7) for slot in block_order(study, block)]
    assert [(row.block, row.cell, row.arm) for row in rows] == [slot.key for slot in slots]
    assert [row.role for row in rows] == [slot.arm.role for slot in slots]
    assert [row.number for row in rows] == list(range(len(rows)))
    assert (order.position.sum(axis=2) == 3).all()
    assert order.roles == ["baseline", "control", "treatment"]


PLANS = [(1, 0.0, 12, True, True), (8, -2.0, 12, True, False), (3, 1.0, 8, False, True)]


@pytest.mark.parametrize("name", ["normal", "skew1, quiet", "quiet10", "p99, alike", "fairness, one flow"])
@pytest.mark.parametrize(("cells", "effect", "planned", "stops", "control"), PLANS)
def test_the_rules_for_many_studies_are_those_of_the_judge(name, cells, effect, planned, stops, control):
    effect = -abs(effect) if EVERY[name].only_worse else effect
    case = studies.Case(EVERY[name], (effect,) * cells, planned, stops, control)
    assert_the_same(case, studies.plan_of(case))


def assert_the_same(case, plan):
    random, higher = np.random.default_rng(6), METRICS[case.noise.metric].higher_is_better
    words = {
        rule.UNDECIDED: "undecided", rule.NONE: "no practical difference", rule.SUSPECT: "suspect",
        rule.HIGHER: "better" if higher else "worse", rule.LOWER: "worse" if higher else "better",
    }  # fmt: skip
    drawn = [studies.drawn(case, random, number) for number in range(4)]
    found = rule.end(np.stack([logs for _, logs in drawn]), plan)
    for number, (order, logs) in enumerate(drawn):
        judged = studies.ended(case, logs, order)
        assert judged.blocks == found.blocks[number]
        assert list(map(str, judged.verdicts)) == [words[each] for each in found.verdicts[number]]
        for intervals, low, high in (
            (judged.alone, found.low, found.high), (judged.judged, found.judged_low, found.judged_high),
        ):  # fmt: skip
            assert [math.log(each.low) for each in intervals] == pytest.approx(list(low[number]))
            assert [math.log(each.high) for each in intervals] == pytest.approx(list(high[number]))


@pytest.mark.parametrize("name", ["normal", "fairness, alike"])
def test_the_earlier_rules_differ_only_in_what_is_new(name, monkeypatch):
    """Without a control, with all blocks run, and one shape for both arms, they are those of now."""
    monkeypatch.setattr(judge, "shape_of", lambda _: shapes.ALIKE)
    for effect in (0.0, -1.0, -2.0):
        case = studies.Case(EVERY[name], (effect,) * 4, 12, stops=False, control=False)
        assert_the_same(case, studies.plan_of(case, earlier=True))


def test_a_broken_promise_is_named():
    kept = {
        "table": "one", "studies": 1000, "cells": 1, "covers": 0.95, "judged_covers": 0.95,
        "false_direction": 0.02, "false_none": 0.02, "false_any": 0.04, "suspect": 0.01,
    }  # fmt: skip
    assert list(page.broken([kept])) == []
    for change, beyond in (
        ({"false_none": 0.06}, False),
        ({"false_any": 0.08}, True),
        ({"suspect": 0.06}, False),
        ({"covers": 0.9}, True),
    ):
        (found,) = page.broken([kept | change | ({"judged_covers": 0.9} if "covers" in change else {})])
        assert found[2:] == (*change.values(), beyond)


def test_the_page_has_every_noise_of_the_program():
    text = (ROOT / "docs/measured/calibration.md").read_text()
    listed = text.split("## The noises")[1].split("##")[0]
    for name, each in EVERY.items():
        assert f"| {name} | {each.what} |" in listed
        assert text.count(f"\n| {name} | ") >= 6, name  # in the tables of figures, too
    assert "Where no guarantee is possible" in text


def test_the_noise_is_that_of_real_studies():
    document = json.loads(noises.NOISE.read_text())
    assert document["made_by"]
    for series in document["series"].values():
        assert all(len(block) == 3 for each in series for block in each)
        assert sum(len(each) for each in series) >= 40


def test_noise_that_is_skewed_and_wider_in_one_arm_misleads_and_has_no_promise():
    """All arms stall equally often, the treated one for three times as long: its shape is that of the others."""
    assert not EVERY["stalls, wider"].guaranteed
    assert run("stalls, wider", (-1.0,), 500).false_any > 0.08
