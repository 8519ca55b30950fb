"""Settings beside a treatment: each alone, and both together, on values whose ratios are known."""

from __future__ import annotations

import math

import pytest

from framegauge.statistics.competitors import competitors
from framegauge.statistics.ratio import ALPHA
from framegauge.statistics.sequential import StoppingRule

# Each cell's conditions; TSO doubles the baseline, the treatment gives half as much again, both together 2.4 times.
CONDITIONS = {
    0: {"rtt_seconds": 0.1, "tso": False}, 1: {"rtt_seconds": 0.1, "tso": True},
    2: {"rtt_seconds": 0.2, "tso": False}, 3: {"rtt_seconds": 0.2, "tso": True},
}  # fmt: skip


def sides(noise: float = 0.0, blocks: int = 6) -> dict[int, dict[int, tuple[float, float]]]:
    found = {}
    for cell, levels in CONDITIONS.items():
        base = 100.0 if levels["rtt_seconds"] == 0.1 else 50.0
        pair = (2.0, 2.4) if levels["tso"] else (1.0, 1.5)
        found[cell] = {
            block: (base * pair[0] * math.exp(noise * (-1) ** (block + cell)), base * pair[1])
            for block in range(blocks)
        }
    return found


def test_the_three_ratios_are_those_of_the_values() -> None:
    [found] = competitors(sides(), CONDITIONS, ["tso"], StoppingRule())
    assert (found.name, found.first, found.level, found.pairs) == ("tso", False, True, 2)
    for ratio, expected in ((found.alone, 2.0), (found.treatment, 1.5), (found.together, 2.4)):
        assert ratio.ratio == pytest.approx(expected)
        assert ratio.blocks == 6


def test_only_pairs_of_cells_that_are_alike_in_all_else_are_compared() -> None:
    lone = {**CONDITIONS, 3: {"rtt_seconds": 0.3, "tso": True}}
    [found] = competitors(sides(), lone, ["tso"], StoppingRule())
    assert found.pairs == 1
    assert not list(competitors(sides(), {0: CONDITIONS[0], 3: CONDITIONS[3]}, ["tso"], StoppingRule()))
    assert not list(competitors(sides(), CONDITIONS, ["nagle"], StoppingRule()))


def test_a_block_that_lacks_a_run_does_not_count() -> None:
    values = sides()
    del values[1][5]
    [found] = competitors(values, CONDITIONS, ["tso"], StoppingRule())
    assert found.alone.blocks == found.together.blocks == 5


def test_a_study_that_looks_often_has_wider_intervals() -> None:
    [once] = competitors(sides(0.01), CONDITIONS, ["tso"], StoppingRule())
    [often] = competitors(sides(0.01), CONDITIONS, ["tso"], StoppingRule(12))
    assert once.alone.alpha == ALPHA
    assert often.alone.low < once.alone.low < 2 < once.alone.high < often.alone.high
