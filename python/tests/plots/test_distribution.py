"""Cumulative distributions: their axis, and the corners of their lines."""

from __future__ import annotations

import pytest

from framegauge.plots import distribution, draw, rows
from framegauge.plots.distribution import Line, Panel


@pytest.mark.parametrize(
    ("values", "powers"),
    [
        ([5.0, 800.0], (0, 3)),
        ([0.0], (0, 1)),
        ([0.0, 500.0], (2, 3)),
        ([], (0, 1)),
        ([1000.0], (3, 4)),
        ([1000.0, 1000.1], (3, 4)),
    ],
)
def test_the_axis_goes_from_one_power_of_ten_to_another(values: list[float], powers: tuple[int, int]) -> None:
    assert distribution.decades(values) == powers


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.013, 0.018], [0.01, 0.02]),
        ([0.0015, 0.03], [0.001, 0.002, 0.005, 0.01, 0.02, 0.05]),
        ([0.0006, 0.9], [0.0005, 0.01, 0.1, 1.0]),
        ([1.0, 1.0], [1.0, 2.0]),
        ([0.0], [1.0, 2.0]),
    ],
)
def test_an_axis_that_is_close_has_round_ends_around_all_values(values: list[float], ticks: list[float]) -> None:
    assert distribution.between(values) == ticks


def test_a_line_rises_by_the_share_of_values_at_each_size() -> None:
    corners = list(distribution._steps([10.0, 10.0, 20.0, 40.0], 1.0, 100.0))
    assert corners == [(1.0, 0.0), (10.0, 0.5), (20.0, 0.75), (40.0, 1.0), (100.0, 1.0)]
    assert list(distribution._steps([], 1.0, 100.0)) == []


def test_of_many_values_a_line_has_few_corners_and_ends_at_all_of_them() -> None:
    corners = list(distribution._steps([float(each) for each in range(1, 10_001)], 1.0, 1e5))
    assert len(corners) <= distribution.MOST_POINTS + 3
    assert corners[-2:] == [(10_000.0, 1.0), (1e5, 1.0)]
    assert all(share == size / 10_000 for size, share in corners[1:-1])


def test_every_panel_and_every_arm_is_named() -> None:
    arms = [rows.Row("", "MTU 1500", role="baseline"), rows.Row("", "MTU 9000", role="first")]
    panels = [Panel(name, "median 1 kB", [Line(arm, [500.0, 2e6]) for arm in arms]) for name in ("web-1", "files")]
    drawn = draw.svg(distribution.distributions(panels, "bytes"))
    for words in ("MTU 1500", "MTU 9000", "web-1", "files", "median 1 kB", "100 B", "10 MB"):
        assert f">{words}<" in drawn
