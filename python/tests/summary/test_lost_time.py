"""Where the time of connections went: shares that add up, and words that tell no more than is known."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from framegauge.results.runs import Run
from framegauge.summary import caveats, lost_time

TAP = {"packets": 100, "kept_packets": 100, "given_up_packets": 0, "dropped_packets": 0, "cpu_seconds": 1e-4}
MTU = "mtu"


def run(block: int, level: int, seconds: dict[str, float], payload: int = 1000, tap: Any = None, **more: Any) -> Run:
    role = "baseline" if level == 1500 else "treatment"
    diagnosis = {
        "connections": 1, "payload_bytes": payload, "seconds": seconds, "kinds": {}, "captures": {"h1": tap or TAP},
    }  # fmt: skip
    made: dict[str, Any] = {
        "number": 2 * block + (level != 1500) + 1, "block": block, "cell": 0, "arm": role if level == 1500 else str(level),
        "role": role, "level": level, "attempt": 0, "workload": "rr", "conditions": {}, "metrics": {}, "excluded": [],
        "degraded": [], "readings": {"diagnosis": diagnosis},
    }  # fmt: skip
    return Run(**{**made, **more})


def test_a_cause_that_costs_more_is_named_with_its_share_of_the_whole() -> None:
    runs = [
        each
        for block in range(4)
        for each in (
            run(block, 1500, {"network_limited": 0.8, "application_limited": 0.2}),
            run(
                block,
                9000,
                {"network_limited": 0.8, "nagle_delayed_ack": 0.6 + 0.01 * block, "application_limited": 0.2},
            ),
        )
    ]
    (entry,) = lost_time.entries(runs, MTU)
    assert (entry["baseline"], entry["treatment"], entry["blocks"]) == ({MTU: 1500}, {MTU: 9000}, 4)
    assert entry["change"]["share"] == pytest.approx(0.615)
    assert entry["causes"][0]["cause"] == "nagle_delayed_ack"
    assert entry["causes"][0]["treatment"] == pytest.approx(0.615 / 1.615, rel=0.01)
    (line,) = lost_time.lines({"lost_time": [entry], "verdicts": []})
    assert line.startswith("MTU 9000: time of connections per byte +6")
    assert "nagle_delayed_ack +6" in line
    assert "network_limited" not in line
    assert [row[1] for row in lost_time.rows({"lost_time": [entry]})] == [
        "all", "nagle_delayed_ack", "application_limited", "network_limited",
    ]  # fmt: skip


def test_chance_is_not_named() -> None:
    noise = (0.1, -0.1, 0.05)
    runs = [
        each
        for block, more in enumerate(noise)
        for each in (run(block, 1500, {"network_limited": 1.0}), run(block, 9000, {"network_limited": 1.0 + more}))
    ]
    (line,) = lost_time.lines({"lost_time": lost_time.entries(runs, MTU)})
    assert line.endswith("; no cause changed by more than chance")


def test_excluded_undiagnosed_and_silent_runs_do_not_count() -> None:
    base = run(0, 1500, {"network_limited": 1.0})
    assert lost_time.entries([base, run(0, 9000, {"network_limited": 1.0}, excluded=["fidelity: late"])], MTU) == []
    assert lost_time.entries([base, run(0, 9000, {}, payload=0)], MTU) == []
    assert lost_time.entries([base, run(0, 9000, {"x": 1.0}, readings={})], MTU) == []
    assert lost_time.entries([base, run(1, 9000, {"network_limited": 1.0})], MTU) == []  # of another block


def test_captures_that_lack_packets_are_told() -> None:
    cut = {**TAP, "given_up_packets": 7}
    runs = [run(0, 1500, {"network_limited": 1.0}), run(0, 9000, {"network_limited": 2.0}, tap=cut)]
    (line,) = lost_time.lines({"lost_time": lost_time.entries(runs, MTU)})
    assert line.endswith("(captures of 1 run lack packets)")
    (said,) = caveats.caveats([], "emulated", runs)
    assert "1000 ns of CPU" in said


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from("abcdef"), st.floats(1e-6, 10), min_size=1),
            st.dictionaries(st.sampled_from("abcdef"), st.floats(1e-6, 10), min_size=1),
            st.integers(1, 10**9),
            st.integers(1, 10**9),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_the_causes_changes_add_up_to_the_whole(blocks: list[tuple[Any, Any, int, int]]) -> None:
    runs = [
        each
        for block, (one, other, sent, more) in enumerate(blocks)
        for each in (run(block, 1500, one, sent), run(block, 9000, other, more))
    ]
    (entry,) = lost_time.entries(runs, MTU)
    whole = entry["change"]["share"]
    assert math.fsum(each["change"]["share"] for each in entry["causes"]) == pytest.approx(whole, rel=1e-6, abs=1e-6)
    for side in ("baseline", "treatment"):
        assert math.fsum(each[side] for each in entry["causes"]) == pytest.approx(1, rel=1e-6)
    assert list(lost_time.lines({"lost_time": [entry]}))
