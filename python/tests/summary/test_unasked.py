"""Which number leads, and what must be said although the study did not ask."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from helpers.schemas import conforms
from helpers.support import ROOT
from helpers.verdicts import BETTER, one, summary

from framegauge.cli.main import main
from framegauge.results.journal import read
from framegauge.statistics.judge import judge
from framegauge.statistics.pairs import Row
from framegauge.statistics.sequential import StoppingRule
from framegauge.summary import unasked
from framegauge.summary.document import summarise
from framegauge.summary.schema import summary_schema
from framegauge.summary.sentence import Kind, answer

MARGINS = {"fairness": 0.02}


def rows(factor: float, gain: float = 1.2, **conditions: Any) -> list[Row]:
    """Eight blocks: `gain` of the fairness, and the goodput times `factor`."""
    made, draws = [], random.Random(1)
    for block in range(8):
        for arm, level in (("baseline", 1500), ("treatment", 9000)):
            treated = arm == "treatment"
            noise = 1 + 0.002 * draws.random()
            metrics = {
                "fairness": 0.7 * noise * (gain if treated else 1),
                "goodput": 9e8 * noise * (factor if treated else 1),
            }
            made.append(Row(block, 0, arm, arm, level, "stream", conditions, metrics, False))
    return made


@pytest.mark.parametrize(
    ("factor", "gain", "margins", "expected"),
    [
        (0.1, 1.2, MARGINS, ["goodput"]),
        (0.99, 1.2, MARGINS, []),  # inside its usual margin
        (1.5, 1.2, MARGINS, []),
        (0.1, 0.8, MARGINS, []),  # nothing is claimed to be better
        (0.1, 1.2, {**MARGINS, "goodput": 0.02}, []),  # a verdict of its own says so
    ],
)
def test_a_gain_is_told_with_what_became_worse_beside_it(
    factor: float, gain: float, margins: dict[str, float], expected: list[str]
) -> None:
    runs, rule = rows(factor, gain), StoppingRule(None, ())
    found = unasked.worse(runs, margins, rule, judge(runs, margins, rule))
    assert [one.metric for one in found] == expected


def test_a_headline_is_no_yes_where_a_metric_without_a_margin_is_worse() -> None:
    lost = {
        **one("worse"),
        "baseline": {"mtu": 1500, "estimate": 9.26e8},
        "treatment": {"mtu": 9000, "estimate": 7.8e7},
    }
    found = answer(summary(one(BETTER, "fairness"), unasked=[lost]))
    assert found.kind is Kind.DEPENDS
    assert found.text == (
        "It depends on the metric: jumbo frames (MTU 9000) raise the fairness of the flows by 5.3 % here, compared with MTU "
        "1500; but goodput is worse (926 Mb/s → 78 Mb/s), for which this study states no margin."
    )
    many = answer(summary(one(BETTER, "fairness"), unasked=[lost] * 4)).text
    assert many.count("is worse") == 2
    assert "and 2 more, for which" in many


def test_metrics_of_the_last_transfer_lead_where_it_decides() -> None:
    margins = {"goodput": 0.02, "fairness": 0.02, "completion_time": 0.02}
    for pattern, expected in (("many-to-one", "completion_time"), ("one-to-one", "goodput")):
        runs = rows(1.0, pattern=pattern)
        for run in runs:
            run.metrics["completion_time"] = 1e9 / run.metrics["goodput"]  # type: ignore[index]
        found = unasked.leading_first(judge(runs, margins, StoppingRule(None, ())))
        assert found[0].metric == expected
        assert len(found) == 3


@pytest.mark.agent
def test_eight_answers_at_once_take_as_long_as_the_last(tmp_path: Path) -> None:
    """One of eight flows waits for a timer of 200 ms with jumbo frames, and the median flow is faster."""
    out = tmp_path / "out"
    assert main(["simulate", str(ROOT / "examples/simulate.yaml"), "--seeds", "8", "--out", str(out)]) == 0
    found = summarise(read(out))
    conforms(found, summary_schema())
    cubic = [each for each in found["verdicts"] if each["conditions"]["congestion_control"] == "cubic"]
    assert cubic[0]["metric"] == "completion_time"
    assert cubic[0]["verdict"] == "worse"
    assert cubic[0]["treatment"]["estimate"] > 0.1
    assert "the time until all bulk transfers have ended" in answer(found).text
