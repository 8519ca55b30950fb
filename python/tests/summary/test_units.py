"""Values with their intervals, in one unit."""

from __future__ import annotations

import pytest

from framegauge.summary import units


@pytest.mark.parametrize(
    ("mean", "interval", "unit", "said"),
    [
        (50.23e6, [48.91e6, 51.56e6], "bits_per_second", "+50.2 Mb/s (+48.9 to +51.6)"),
        (-20e-6, [-22.4e-6, -17.6e-6], "seconds", "\u221220.0 us (\u221222.4 to \u221217.6)"),
        (0.001, [-0.012, 0.014], "core_seconds_per_gigabyte", "+0.001 s/GB (\u22120.012 to +0.014)"),
        (0.021, [0.02, 0.022], "index", "+0.0210 (+0.0200 to +0.0220)"),
        (1234.0, [-2000.0, 4468.0], "per_second", "+1,234 per second (\u22122,000 to +4,468)"),
        (2e6, None, "bits_per_second", "+2.0 Mb/s"),
        (0.0, [0.0, 0.0], "seconds", "0 us (0 to 0)"),
    ],
)
def test_a_difference_is_as_fine_as_its_interval_is_wide(
    mean: float, interval: list[float] | None, unit: str, said: str
) -> None:
    assert units.difference(mean, interval, unit) == said
