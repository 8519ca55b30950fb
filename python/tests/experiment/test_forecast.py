"""What a study would find, said before it runs."""

import json
import math
import re
import statistics

import numpy as np
import pytest
from helpers.support import ROOT, STUDY
from scipy import integrate, stats

from framegauge.cli import main as cli
from framegauge.experiment import forecast
from framegauge.statistics import power
from framegauge.statistics.power import REFERENCE_OF_TWO, Spread, reach, upper_limit
from framegauge.statistics.ratio import quantile
from framegauge.statistics.sequential import StoppingRule
from framegauge.study import file as study_file


@pytest.mark.parametrize(
    ("spread", "blocks", "margin", "comparisons"), [(0.02, 8, 0.02, 8), (0.01, 6, 0.02, 1), (0.03, 20, 0.02, 3)]
)
@pytest.mark.parametrize("may_stop", [True, False])
def test_what_is_foretold_happens(spread, blocks, margin, comparisons, may_stop):
    found = reach(spread, blocks, margin, comparisons, StoppingRule(blocks if may_stop else None))
    random, studies = np.random.default_rng(20261121), 20_000
    values = random.normal(0, spread, size=(studies, blocks))
    half = quantile(blocks - 1, found.alpha) * values.std(axis=1, ddof=1) / math.sqrt(blocks)
    edge, mean = math.log1p(margin), values.mean(axis=1)
    better = (mean + math.log(found.better) - half > edge).mean()
    equal = ((mean + half < edge) & (mean - half > -edge)).mean()
    assert better == pytest.approx(0.8, abs=0.01)
    assert equal == pytest.approx(found.equal_power, abs=0.01)
    assert math.log(found.half_width) == pytest.approx(half.mean(), rel=0.15)


@pytest.mark.parametrize("blocks", [6, 8, 12, 20])
def test_what_early_looks_cost_is_not_more_than_is_said(blocks):
    """Studies that look at every block from the fifth on, of an effect that one look finds with 80 %."""
    rule, fixed = StoppingRule(blocks), reach(1.0, blocks, 0.0)
    random, studies = np.random.default_rng(20261129), 20_000
    values = random.normal(math.log(fixed.better), 1.0, size=(studies, blocks))
    is_found = np.zeros(studies, dtype=bool)
    for look in range(5, blocks + 1):
        seen = values[:, :look]
        half = quantile(look - 1, rule.nominal(0.05, look)) * seen.std(axis=1, ddof=1) / math.sqrt(look)
        is_found |= seen.mean(axis=1) - half > 0
    cost = reach(1.0, blocks, 0.0, rule=rule).looks_cost
    assert fixed.looks_cost == pytest.approx(0)
    assert 0.8 - cost <= is_found.mean() <= 0.8 - cost / 2


@pytest.mark.parametrize("degrees", [1, 2, 7, 40, 499])
@pytest.mark.parametrize(("critical", "edge"), [(1.96, 3.0), (2.5, 8.0), (12.0, 20.0), (4.0, 0.5)])
def test_the_chance_of_equality_is_the_integral_over_the_spread(degrees, critical, edge):
    def part(chi):
        inside = 2 * stats.norm.cdf(edge - critical * chi) - 1
        return inside * stats.chi2.pdf(degrees * chi * chi, degrees) * 2 * degrees * chi

    expected, _ = integrate.quad(part, 0.0, edge / critical, limit=200)
    assert power._equal(critical, edge, degrees) == pytest.approx(expected, abs=1e-6)


def test_no_spread_finds_everything():
    found = reach(0.0, 4, 0.01)
    assert (found.half_width, found.equal_power) == (1.0, 1.0)
    assert found.better == pytest.approx(1.01)


def test_the_blocks_that_are_advised_are_enough_and_one_less_is_not():
    study = study_file.parse(STUDY.replace("blocks: 6", "blocks: 6\nstop: blocks"), "study.yaml")
    found = forecast.forecast(study, {}, {"goodput": 0.02})["reach"][0]
    comparisons, needed = 2, found["blocks_for_equality"]
    own = 0.02 * REFERENCE_OF_TWO  # the A/A control's runs are the baseline's, too
    assert reach(own, needed, 0.01, comparisons).equal_power >= 0.8
    assert reach(own, needed - 1, 0.01, comparisons).equal_power < 0.8


def test_a_spread_is_the_one_told_else_the_pilots_else_assumed():
    study = study_file.parse(STUDY, "study.yaml")
    found = forecast.forecast(study, {"completion_time": [Spread(0.02, 3)] * 3}, {"goodput": 0.004})
    assert [(each["spread"], each["spread_is"]) for each in found["reach"]] == [
        (0.004, "given"),
        # The upper 80 % limit of 6 degrees of freedom: 0.02 sqrt(6 / 3.070).
        (pytest.approx(0.02796, abs=1e-5), "pilot"),
    ]
    assumed = forecast.forecast(study, {}, {})["reach"]
    assert {each["spread_is"] for each in assumed} == {"assumed"}


@pytest.mark.parametrize(
    ("testbed", "metric", "source"),
    [
        ("{kind: rack}", "goodput", "assumed"), ("{kind: rack}", "fairness", "guessed"),
        ("{kind: simulator}", "goodput", "guessed"), ("{kind: veth}", "goodput", "guessed"),
        ("{kind: ssh, machines: [a, b]}", "goodput", "guessed"),
    ],
)  # fmt: skip
def test_a_spread_that_no_study_has_measured_is_a_guess_and_said_so(testbed, metric, source):
    text = STUDY.replace("{kind: fake}", testbed).replace("goodput: 1 %, completion_time: 2 %", f"{metric}: 5 %")
    found = forecast.forecast(study_file.parse(text, "study.yaml"), {}, {})
    assert [each["spread_is"] for each in found["reach"]] == [source]
    last = list(forecast.lines(found))[-1]
    assert last.startswith("guessed: no study has measured this spread here") is (source == "guessed")
    other = text.replace("stream: {size", "ftp: {size")
    if "ssh" not in testbed and "simulator" not in testbed:  # which run no ftp
        found = forecast.forecast(study_file.parse(other, "study.yaml"), {}, {})
        assert [each["spread_is"] for each in found["reach"]] == ["guessed"]
    given = forecast.forecast(study_file.parse(text, "study.yaml"), {}, {metric: 0.01})
    assert [each["spread_is"] for each in given["reach"]] == ["given"]


def test_primary_metrics_take_nothing_from_one_another():
    """As they are judged: each family has its 5 %."""
    both = study_file.parse(STUDY, "study.yaml")
    first = study_file.parse(STUDY + "primary: [goodput]\n", "study.yaml")
    alone = study_file.parse(STUDY.replace(", completion_time: 2 %", ""), "study.yaml")
    reach_of = {
        name: forecast.forecast(study, {}, {}) for name, study in (("both", both), ("first", first), ("alone", alone))
    }
    assert [each["primary"] for each in reach_of["first"]["reach"]] == [True, False]
    assert all(each["primary"] for each in reach_of["both"]["reach"])
    assert reach_of["first"]["reach"][0] == reach_of["alone"]["reach"][0]
    for one, other in zip(reach_of["first"]["reach"], reach_of["both"]["reach"], strict=True):
        assert one["half_width"] < other["half_width"]
    assert "goodput come first" in "\n".join(forecast.lines(reach_of["first"]))


def test_the_order_is_the_one_that_is_run(study, execute):
    planned = forecast.forecast(study, {}, {})["order"]
    _, runs = execute(study)
    assert [run.excluded for run in runs if run.excluded] == []
    assert [(run.block, run.role, run.level) for run in runs] == [
        (slot["block"], slot["role"], slot["mtu"]) for slot in planned
    ]


@pytest.mark.thorough
def test_from_the_command_line(study_path, tmp_path, capsys):
    out = tmp_path / "out"
    assert cli.main(["study", str(study_path), "--out", str(out)]) == 0
    capsys.readouterr()
    assert cli.main(["plan", str(study_path), "--pilot", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "18 runs: 6 blocks of 1 cell x 3 arms" in printed
    assert "(pilot)" in printed
    assert re.findall("[0-9]%", printed) == []
    assert cli.main(["plan", str(study_path), "--json", "--seed", "7"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["seed"], document["runs"], len(document["order"])) == (7, 18, 18)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["nowhere.yaml"], "nowhere.yaml: "),
        (["--preset", "demo", "--noise", "latency_p50=1 %"], '--noise: found "latency_p50=1 %", expected METRIC=SHARE'),
        (["--preset", "demo", "--noise", "goodput=fast"], "--noise goodput: "),
        (["--preset", "demo", "--pilot", "/nowhere"], "/nowhere: found no results.json"),
        (["--preset", "demo", "--seed", "-1"], "--seed: found -1"),
    ],
)
def test_what_cannot_be_planned_is_one_line(words, line, capsys):
    assert cli.main(["plan", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"framegauge: {line}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("workload", "source"),
    [
        ("datagrams: {bulk: {flows: 4}}", "assumed"), ("datagrams: {}", "guessed"),
    ],
)  # fmt: skip
def test_the_spreads_of_datagrams_were_measured_beside_bulk(workload, source):
    text = (
        "testbed: {kind: rack, topology: rack, hosts: 3}\nfactors: {mtu: [1500, 9000]}\n"
        f"workloads: [{{{workload}}}]\nmargins: {{delay_p99: 10 %, delivered: 1 %}}\n"
    )
    found = forecast.forecast(study_file.parse(text, "study.yaml"), {}, {})["reach"]
    assert {each["metric"]: each["spread"] for each in found} == {"delay_p99": 0.038, "delivered": 0.0023}
    assert {each["spread_is"] for each in found} == {source}


def test_the_assumed_spread_is_that_of_real_studies():
    series = json.loads((ROOT / "bench/truth/noise.json").read_text())["series"]
    for metric, studies in series.items():
        spread = statistics.stdev(block[1] - block[0] for block in studies[0])
        assert spread == pytest.approx(forecast.MEASURED[metric], rel=0.1), metric


@pytest.mark.parametrize(("samples", "blocks"), [(1, 3), (1, 5), (8, 3)])
def test_a_pilot_keeps_the_promise(samples, blocks):
    """The effect that is said to be found with 80 % is found so often, whatever the pilot saw: with its own spread a
    pilot of three blocks gave 61 % to 69 %."""
    random, power, studies = np.random.default_rng(20261125), [], 400
    for _ in range(studies):
        seen = [Spread(float(random.normal(0, 0.01, blocks).std(ddof=1)), blocks) for _ in range(samples)]
        found = reach(upper_limit(seen), 12, 0.02)
        values = random.normal(math.log(found.better), 0.01, size=(200, 12))
        half = quantile(11, found.alpha) * values.std(axis=1, ddof=1) / math.sqrt(12)
        power.append((values.mean(axis=1) - half > math.log1p(0.02)).mean())
    assert np.mean(power) >= 0.8
    assert np.mean(np.array(power) >= 0.8) == pytest.approx(0.8, abs=0.08)
