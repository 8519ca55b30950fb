"""The share of the few against 1: intervals by the formula, verdicts by the margin, and one family for all levels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest
from scipy import stats

from framegauge.metrics import SHARE_OF_FEW
from framegauge.statistics.few import Standing, shares
from framegauge.statistics.pairs import Row
from framegauge.statistics.sequential import StoppingRule

MARGIN = 0.25
SYMMETRIC = (-0.3, -0.2, -0.1, 0.0, 0.0, 0.1, 0.2, 0.3)  # of logarithms: without skewness, so Student's t holds


def rows(arm: str, logs: Sequence[float], cell: int = 0, excluded: Sequence[int] = ()) -> list[Row]:
    role = {"baseline": "baseline", "control": "control"}.get(arm, "treatment")
    level = arm if role == "treatment" else "taildrop"
    return [
        Row(block, cell, arm, role, level, "stream", {"skew": cell}, {SHARE_OF_FEW: math.exp(each)}, block in excluded)
        for block, each in enumerate(logs)
    ]


def half_width(logs: Sequence[float], alpha: float = 0.05) -> float:
    count = len(logs)
    mean = sum(logs) / count
    deviation = math.sqrt(sum((each - mean) ** 2 for each in logs) / (count - 1))
    return float(stats.t.ppf(1 - alpha / 2, count - 1)) * deviation / math.sqrt(count)


def test_the_interval_is_that_of_the_mean_logarithm() -> None:
    (found,) = shares(rows("baseline", [each - 2.0 for each in SYMMETRIC]), MARGIN)
    assert found.share.ratio == pytest.approx(math.exp(-2))
    assert found.share.low == pytest.approx(math.exp(-2 - half_width(SYMMETRIC)))
    assert found.share.high == pytest.approx(math.exp(-2 + half_width(SYMMETRIC)))
    assert (found.standing, found.runs, found.level) == (Standing.LESS, 8, "taildrop")


@pytest.mark.parametrize(
    ("centre", "spread", "blocks", "standing"),
    [
        (0.2, 0.1, 8, Standing.LESS),
        (1.0, 0.1, 8, Standing.FAIR),
        (1.0, 0.1, 7, Standing.UNDECIDED),  # that all get as much needs eight blocks, as elsewhere
        (0.2, 0.1, 3, Standing.LESS),
        (2.0, 0.1, 8, Standing.MORE),
        (1.25, 0.1, 8, Standing.UNDECIDED),
        (1.0, 2.0, 8, Standing.UNDECIDED),
        (0.2, 0.1, 1, Standing.UNDECIDED),  # without an interval
    ],
)
def test_verdicts_follow_from_the_interval(centre: float, spread: float, blocks: int, standing: Standing) -> None:
    logs = [math.log(centre) + spread * each for each in SYMMETRIC[:blocks]]
    logs = [each - sum(logs) / blocks + math.log(centre) for each in logs]
    (found,) = shares(rows("baseline", logs), MARGIN)
    assert found.standing is standing
    assert found.is_settled is (standing is not Standing.UNDECIDED)


def test_the_baseline_and_its_control_are_one_level() -> None:
    low, high = [-2.0 - each for each in SYMMETRIC], [-2.0 + each for each in SYMMETRIC]
    found = shares([*rows("baseline", low), *rows("control", high), *rows("sfq", SYMMETRIC)], MARGIN)
    assert [(each.level, each.runs) for each in found] == [("taildrop", 16), ("sfq", 8)]
    assert (found[0].share.low, found[0].share.high) == pytest.approx((math.exp(-2), math.exp(-2)))


def test_all_levels_and_cells_are_one_family() -> None:
    """The claim of one level of four needs an interval at 5 % / 4, unless the others are settled first (Holm)."""
    edge = math.log(1 / (1 + MARGIN))
    between = (half_width(SYMMETRIC) + half_width(SYMMETRIC, 0.05 / 4)) / 2
    near = rows("baseline", [each + edge - between for each in SYMMETRIC])  # settled at 5 %, not at a quarter of it
    assert shares(near, MARGIN)[0].standing is Standing.LESS
    open_ = [rows("baseline", [9 * each for each in SYMMETRIC], cell) for cell in (1, 2, 3)]
    assert shares([*near, *itertools.chain(*open_)], MARGIN)[0].standing is Standing.UNDECIDED
    clear = [rows("baseline", [each - 5 for each in SYMMETRIC], cell) for cell in (1, 2, 3)]
    found = shares([*near, *itertools.chain(*clear)], MARGIN)
    assert [each.standing for each in found] == [Standing.LESS] * 4
    assert [each.cell for each in found] == [0, 1, 2, 3]


def test_looks_spend_the_error() -> None:
    found, once = (shares(rows("baseline", SYMMETRIC), MARGIN, rule)[0] for rule in (StoppingRule(16), None))
    assert found.share.high is not None
    assert once.share.high is not None
    assert found.share.high > once.share.high


def test_what_is_lost_or_doubted_has_no_verdict() -> None:
    far = [each - 3 for each in SYMMETRIC]
    assert shares(rows("baseline", far, excluded=range(3)), MARGIN)[0].standing is Standing.LESS
    (lost,) = shares(rows("baseline", far, excluded=range(5)), MARGIN)
    assert (lost.standing, lost.runs, lost.lost_blocks) == (Standing.NOT_JUDGED, 3, 5)
    assert shares(rows("baseline", far, excluded=range(8)), MARGIN) == []
    assert shares(rows("baseline", far), MARGIN, is_doubted=True)[0].standing is Standing.SUSPECT
