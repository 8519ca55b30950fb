"""Loads of many kinds on the rack, read at MTU 1500, beside the packets that came at 9000.

Recorded by bench/truth/estimate_loads.py on Linux 6.18, without connections one by one.
"""

from __future__ import annotations

import json
import lzma
from typing import Any

import pytest
from helpers.support import ROOT

from framegauge.estimate.document import estimate

RATE = 200e6
LOADS: list[dict[str, Any]] = json.loads(
    lzma.decompress((ROOT / "python/tests/recorded/estimate-loads.json.xz").read_bytes())
)


def ratio(load: dict[str, Any]) -> dict[str, float]:
    found: dict[str, float] = estimate(load["readings"], [9000], RATE)["total"][0]["packets"]["ratio"]
    return found


@pytest.mark.parametrize("load", LOADS, ids=[load["load"] for load in LOADS])
def test_the_packets_that_came_are_within_the_bounds(load: dict[str, Any]) -> None:
    """New connections acknowledge segments one by one, as many as they like, and answers go with one another."""
    found = ratio(load)
    assert found["least"] <= load["came"] <= found["most"]
    assert found["least"] <= found["estimate"] <= found["most"]


def test_most_bounds_say_something() -> None:
    """Half of them are no wider than 1.3; a bound that nothing breaks is easy."""
    widths = sorted(found["most"] / found["least"] for found in map(ratio, LOADS))
    assert len(LOADS) >= 20
    assert widths[len(widths) // 2] < 1.35
