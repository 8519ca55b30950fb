"""Loads of many kinds on the rack, read at MTU 1500, beside the packets that came at 9000.

Recorded by bench/truth/estimate_loads.py on Linux 6.18, without connections one by one where they are many.
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
    """Half of them are no wider than 1.5; a bound that nothing breaks is easy. Narrower ones were broken by small windows,
    new connections and data both ways."""
    widths = sorted(found["most"] / found["least"] for found in map(ratio, LOADS))
    assert len(LOADS) >= 20
    assert widths[len(widths) // 2] < 1.5


WINDOWS = [load for load in LOADS if load["load"].startswith("window of")]


@pytest.mark.parametrize("load", WINDOWS, ids=[load["load"] for load in WINDOWS])
def test_only_windows_of_few_larger_segments_make_a_bound_wide(load: dict[str, Any]) -> None:
    """64 KiB are seven larger segments; of 8 to 20 kB a sender cuts them to half, and that is told by the sender alone."""
    found = ratio(load)
    assert (found["most"] / found["least"] > 1.8) is ("64 KiB" not in load["load"])
    if "64 KiB" not in load["load"]:
        alone = {name: {**each, "connections": [
            {**connection, "receiver_limited_seconds": 0.0} for connection in each["connections"]
        ]} for name, each in load["readings"].items()}  # fmt: skip
        assert load["came"] < estimate(alone, [9000], RATE)["total"][0]["packets"]["ratio"]["least"]
