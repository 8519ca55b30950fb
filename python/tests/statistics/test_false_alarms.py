"""The page of false alarms: peers' rules as they are documented, noises as they are said to be, and every one listed."""

import math

import numpy as np
import pytest
from helpers.support import ROOT, bench, by_length
from scipy import stats

from framegauge.statistics import sides, unpaired
from framegauge.statistics.verdict import Verdict

false_alarms, tools = bench("truth.false_alarms"), bench("truth.tools")
noises, audited = bench("truth.noises"), bench("truth.audited")
ALL = {name: each for group in false_alarms.described().values() for name, each in group.items()}
NEW = audited.audited()


def pairs(runs, count=40, shift=0.0):
    random = np.random.default_rng(runs)
    return random.normal(0, 0.01, (count, runs)), random.normal(shift, 0.01, (count, runs))


@pytest.mark.parametrize("runs", false_alarms.RUNS)
def test_compare_is_judged_as_framegauge_compare_does(runs):
    base, new = pairs(runs, shift=0.02)
    base[:10] = np.cumsum(base[:10], axis=1)  # runs that depend on each other
    for one, other, said in zip(base, new, tools.compare(base, new), strict=True):
        (found,) = sides.judge([sides.Sets("goodput", 1e-12, list(np.exp(one)), list(np.exp(other)))])
        assert {Verdict.BETTER: 1, Verdict.WORSE: -1}.get(found.verdict, 0) == said


def test_peers_are_judged_as_they_document_it():
    base, new = pairs(12, shift=0.008)
    base[:5] = np.round(base[:5], 2)  # ties
    new[:5] = np.round(new[:5], 2)
    for one, other, u, t, gate in zip(
        base, new, tools.benchstat(base, new), tools.hyperfine(base, new), tools.gate(base, new), strict=True
    ):
        assert (u != 0) == (stats.mannwhitneyu(other, one).pvalue < 0.05)
        assert (t != 0) == (stats.ttest_ind(np.exp(other), np.exp(one), equal_var=False).pvalue < 0.05)
        assert gate == 0
    assert set(tools.gate(base, base + 0.06)) == {1}
    assert set(tools.gate(base, base - 0.06)) == {-1}


@pytest.mark.parametrize("name", NEW)
def test_arms_are_equal_but_for_the_effect(name):
    """The median over studies of the difference of both arms: 0 to five of its errors, but where an arm is not alike."""
    noise, random = NEW[name], np.random.default_rng(3)
    orders = [noises.tool_order(1, 12, False, seed) for seed in range(40)]
    means = [
        float((logs[:, 0, -1] - logs[:, 0, 0]).mean())
        for number in range(200)
        for logs in [noise.values(random, orders[number % 40], np.zeros(1))]
    ]
    if name in ("treated, lowest lost", "carry-over"):
        assert abs(np.mean(means)) > 0.001, "what it says of one arm is there"
    else:
        error = 1.4826 * np.median(np.abs(means - np.median(means))) / math.sqrt(len(means))
        assert abs(np.median(means)) <= 5 * 1.2533 * error + 1e-9


@pytest.mark.soak(2)
@pytest.mark.parametrize("name", [name for name, each in NEW.items() if each.guaranteed])
def test_studies_keep_their_promise_on_every_noise_that_has_one(name):
    count = by_length(60, 2000)
    for runs in (6, 12):
        orders = [noises.tool_order(1, runs, False, seed) for seed in range(60)]
        logs = false_alarms._drawn(NEW[name], orders, count, 0.0, (1, runs))
        for median in (False, True):
            wrong = false_alarms._in_a_study(NEW[name], runs, logs, false_alarms.TINY, median) != 0
            assert np.mean(wrong) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / count)


def test_the_page_has_every_noise_and_tool():
    text = (ROOT / "docs/measured/false-alarms.md").read_text()
    for name in ALL:
        assert text.count(f"\n| {name} | ") == len(false_alarms.RUNS), name
    for name in tools.TOOLS:
        assert f"| {name} |" in text
    for name, each in ALL.items():
        assert (f"\n- {name}: {each.what}" in text) is not each.guaranteed


def test_the_page_is_made_of_the_figures():
    found = {name: {"false": 0.03, "power": 0.7} for name in false_alarms.COLUMNS} | {"Otava": {}}
    rows = [
        {"noise": "x", "what": "y", "group": "G", "guaranteed": guaranteed, "runs": runs, "found": found}
        for runs in false_alarms.RUNS
        for guaranteed in (True, False)
    ]
    text = false_alarms.page(rows, 2000, None)
    assert "its standard error is 0.5 points at 5 %" in " ".join(text.split())
    assert "| 6 | 3.0; 0 of 1 | 3.0; 0 of 1 |" in text
    assert "| x | yes | 3.0 / 70 | 3.0 / 70 | 3.0 / 70 | 3.0 / 70 | 3.0 / 70 | 3.0 / 70 | – | 3.0 / 70 |" in text


@pytest.mark.parametrize("runs", range(2, unpaired.SERIES))
def test_runs_that_remember_and_are_too_few_to_show_it_are_rarely_called_different(runs):
    """As long a memory as the interval allows for. With the degrees of freedom of independent runs it was 7 % of 7."""
    random, count = np.random.default_rng(20261129 + runs), 6000
    places = np.arange(runs)
    root = np.linalg.cholesky(unpaired.MEMORY ** np.abs(places[:, None] - places[None, :]))
    base, new = (0.01 * random.normal(size=(count, runs)) @ root.T for _ in range(2))
    assert np.mean(tools.compare(base, new) != 0) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / count)
