"""Every example can answer its question, as `framegauge plan` foresees it; nothing runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.support import ROOT

from framegauge.experiment import forecast
from framegauge.statistics.power import POWER
from framegauge.study import file as study_file

STUDIES = sorted((ROOT / "examples").glob("*.yaml"))
MOST_SECONDS = 20 * 60.0
LONG = "-long"  # ends the name of the twin that answers what a short example cannot


def planned(path: Path) -> dict[str, Any]:
    """What `framegauge plan` says of an example."""
    return forecast.forecast(study_file.load(path), {}, {})


def blind(plan: dict[str, Any]) -> list[str]:
    """The metrics that decide, and in which the study would not find that there is no difference."""
    return [
        metric["metric"]
        for metric in plan["reach"]
        if metric["primary"] and metric["finds_equality_with_probability"] < POWER
    ]


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_an_example_finds_what_it_asks_or_its_long_twin_does(path: Path) -> None:
    twin = path.with_stem(f"{path.stem}{LONG}")
    # Hours of runs are no first study, so they are only for what a shorter one cannot answer.
    is_twin = path.stem.endswith(LONG) and path.with_stem(path.stem.removesuffix(LONG)) in STUDIES
    plan = planned(path)
    assert plan["seconds"] <= plan["budget_seconds"]
    assert is_twin or plan["seconds"] <= MOST_SECONDS
    assert blind(plan) == [] or blind(planned(twin)) == []


def test_what_cannot_be_found_is_seen() -> None:
    """Two blocks show no equality, and a spread of 5 % none within 2 %."""
    text = (ROOT / "examples/pair.yaml").read_text()
    few = forecast.forecast(study_file.parse(text.replace("blocks: 12", "blocks: 2"), "few.yaml"), {}, {})
    assert blind(few) == ["goodput", "completion_time"]
    noisy = forecast.forecast(study_file.parse(text, "noisy.yaml"), {}, {"completion_time": 0.05})
    assert blind(noisy) == ["completion_time"]
