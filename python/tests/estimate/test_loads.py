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
# What leaves much unknown: small windows, new connections whose windows open, data both ways.
HARD = {
    "window of 8 KiB, uploads, RTT of 5 ms", "window of 12 kB, three answers per connection",
    "window of 20 kB, a slow reader", "200 kB both ways at once", "new connections, 300 kB, RTT of 40 ms",
    "nginx and curl, 90 kB, one after another",
}  # fmt: skip


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
    """Half of those that are usual are no wider than 1.3, and half of all no wider than 1.5; a bound that nothing breaks
    is easy."""
    usual = [load for load in LOADS if load["load"] not in HARD]
    assert len(usual) == len(LOADS) - len(HARD) >= 20
    assert median_width(usual) < 1.35
    assert median_width(LOADS) < 1.5


def median_width(loads: list[dict[str, Any]]) -> float:
    """By which factor the upper bound is above the lower one."""
    widths = sorted(bound["most"] / bound["least"] for bound in map(ratio, loads))
    return widths[len(widths) // 2]


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
