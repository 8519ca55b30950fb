"""The page of the published study: which of Hadoop's figures are on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.support import STUDY, bench

from framegauge.cli import commands
from framegauge.experiment.planning import stated_conditions
from framegauge.results.journal import Saved, read
from framegauge.study import file as study_file
from framegauge.study.blocks import order
from framegauge.summary import document as summary

reproduction, published_hadoop = bench("reproduction"), bench("published_hadoop")
published_arms, published_rows = bench("published_arms"), bench("published_rows")


def measured(folder: Path) -> tuple[Saved, dict[str, Any]]:
    """A study on the invented network, and its summary."""
    asked = study_file.parse(STUDY, "study.yaml")
    commands.run_study(asked, folder, False, lambda _: None, lambda _: None)
    saved = read(folder)
    return saved, summary.summarise(saved)


def test_hadoop_has_rows_for_what_was_measured_and_none_otherwise(tmp_path: Path) -> None:
    saved, found = measured(tmp_path / "published-terasort")
    page = reproduction.page([saved], [found], "here")
    assert ", job time" not in page
    assert "Hadoop is not included, and " in page
    assert "\nHadoop's study (`--hadoop`) takes ten hours" in page
    # As if the time had been that of a sort.
    first = next(each for each in found["verdicts"] if each["treatment"].get("mtu") == 9000)
    sorts = []
    for nagle in (False, True):
        conditions = {**first["conditions"], "job": "terasort", "nagle": nagle}
        sorts.append({**first, "workload": "mapreduce", "metric": "job_time", "conditions": conditions})
    found["verdicts"] = sorts
    page = reproduction.page([saved], [found], "here")
    table = page.partition("## What may explain")[0]
    rows = [line for line in table.splitlines() if line.startswith("| mapreduce")]
    assert [("Nagle off" in row, "Nagle on" in row) for row in rows] == [(True, False), (False, True)]
    assert all(", job time, MTU 9000 | completion about 4 % longer at 1500 | " in row for row in rows)
    assert "Hadoop sorts 1 GB instead of 100, and " in page
    assert "--hadoop" not in page


def test_what_hadoop_is_compared_with_is_what_was_published() -> None:
    ranges = {
        (each["conditions"]["job"], each["metric"]): (each["low"], each["high"]) for each in published_hadoop.figures()
    }
    for key, ratio in (
        (("terasort", "job_time"), 1 / 1.04),
        (("terasort", "shuffle_time"), 421 / 440),
        (("terasort", "task_cpu_time"), 3.192 / 3.221),
        (("grep", "receiver_cycles"), 2.658 / 2.660),
    ):
        assert ranges[key][0] < ratio < ranges[key][1]
    assert all(Path(__file__).parents[3].joinpath(study).is_file() for study in published_hadoop.STUDIES.values())


def verdict(low: float, high: float, **conditions: Any) -> dict[str, Any]:
    """A verdict on goodput with this interval; its ratio is in the middle."""
    return {
        "workload": "stream", "metric": "goodput", "unit": "bits_per_second", "conditions": conditions,
        "baseline": {"mtu": 1500, "estimate": 1e8}, "treatment": {"mtu": 9000, "estimate": 1e8},
        "ratio": (low * high) ** 0.5, "ci95": [low, high], "verdict": "better",
    }  # fmt: skip


def figure(low: float, high: float, *arms: Any) -> Any:
    """A published figure of the study "own", of transfers of 1 MB."""
    return published_rows.Published("own", "as published", low, high, {"size_bytes": 1_000_000}, arms=arms)


MEGABYTE = {"size_bytes": 1_000_000}
SMALL_BUFFER = {**MEGABYTE, "buffer_bytes": 65536}
LARGE_BUFFER = {**MEGABYTE, "buffer_bytes": 524288}


def test_a_figure_is_answered_where_nothing_else_is_varied() -> None:
    summaries = {
        "own": {
            "verdicts": [
                verdict(1.1, 1.2, **LARGE_BUFFER),
                verdict(1.3, 1.4, **SMALL_BUFFER),
                verdict(1.5, 1.6, size_bytes=2_000_000, buffer_bytes=524288),
                {**verdict(2.0, 2.1, **LARGE_BUFFER), "metric": "receiver_cpu_cost"},
            ]
        },
        "other": {"verdicts": [verdict(1.7, 1.8, **MEGABYTE)]},
    }
    assert [each["ci95"] for each in published_arms.answers(summaries, figure(1.0, 2.0))] == [[1.1, 1.2]]
    assert list(published_arms.answers({}, figure(1.0, 2.0))) == []


@pytest.mark.parametrize(
    ("interval", "explains", "helps"),
    [
        ((1.9, 2.1), True, True),  # to where it was published
        ((1.5, 1.6), False, True),  # half-way
        ((1.09, 1.21), False, False),  # as without it
        ((0.7, 0.8), False, False),  # the other way
        ((0.5, 4.0), False, False),  # anywhere
        ((3.0, 3.1), False, True),  # beyond, and nearer
        ((30.0, 31.0), False, False),  # beyond, and farther
    ],
)
def test_an_arm_explains_what_it_moves_there(interval: Sequence[float], explains: bool, helps: bool) -> None:
    arm = published_rows.Arm("arm", "a smaller buffer")
    asked = figure(1.9, 2.2, arm)
    row = verdict(1.1, 1.2, **MEGABYTE)
    (found,) = published_arms.judged({"arm": {"verdicts": [verdict(*interval, **MEGABYTE)]}}, asked, row)
    assert (found.explains, found.helps) == (explains, helps)
    assert found.moved == pytest.approx((interval[0] * interval[1]) ** 0.5 / (1.1 * 1.2) ** 0.5)
    assert found.moved_ci95[0] < found.moved < found.moved_ci95[1]
    # Wider than either interval alone.
    assert found.moved_ci95[1] / found.moved_ci95[0] > max(1.2 / 1.1, interval[1] / interval[0])


def test_the_nearest_arm_comes_first_and_one_not_measured_is_left_out() -> None:
    arms = [published_rows.Arm(name, name) for name in ("far", "near", "missing")]
    summaries = {
        "far": {"verdicts": [verdict(1.3, 1.31, **MEGABYTE)]},
        "near": {"verdicts": [verdict(1.8, 1.81, **MEGABYTE)]},
    }
    found = published_arms.judged(summaries, figure(1.9, 2.2, *arms), verdict(1.1, 1.2, **MEGABYTE))
    assert [each.arm.said for each in found] == ["near", "far"]


def test_every_figure_and_arm_names_a_study_that_is_there_and_has_what_it_asks_for() -> None:
    folder = Path(__file__).parents[3] / "bench/published"
    assert {path.stem for path in folder.glob("*.yaml")} == {*published_rows.STUDIES, "terasort"}
    for asked in published_rows.PUBLISHED:
        assert has(folder, asked.study, asked.metric, asked.conditions), asked
        for arm in asked.arms:
            assert has(folder, arm.study, arm.metric or asked.metric, arm.conditions), arm


def has(folder: Path, name: str, metric: str, conditions: Mapping[str, Any]) -> bool:
    """Whether a study judges a metric, and measures it in these conditions."""
    study = study_file.load(folder / f"{name}.yaml")
    return metric in study.margins.shares() and any(
        all(stated.get(key) == pytest.approx(value) for key, value in conditions.items() if key in stated)
        for stated in (stated_conditions(study, slot) for slot in order(study))
    )
