"""Hosts of the user's own that something else held up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from helpers.support import STUDY

from framegauge.evidence import fidelity, held
from framegauge.experiment import planning
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order

ASKED = study_file.parse(STUDY, "x")
CONDITIONS = replace(planning.conditions_of(ASKED, block_order(ASKED, 0)[0]), testbed="hosts")


def record(longest_seconds: float, **more: Any) -> dict[str, Any]:
    """One CPU of alpha was held for half of a run of two seconds, in pieces of which this was the longest."""
    held = {"host": "alpha", "cpu": 3, "count": 9, "seconds": 1.0, "longest_seconds": longest_seconds}
    measure = {"elapsed_seconds": 2.0, "fabric": None, "cpus": [], "held": [held], **more}
    return {"measure": measure}


@pytest.mark.parametrize(
    ("longest", "reasons"),
    [
        (0.0199, []),
        (0.031, ["CPU 3 of alpha held by something else: at most 20 ms, found 31 ms"]),
        (0.0203, ["CPU 3 of alpha held by something else: at most 20 ms, found 20.3 ms"]),
    ],
)
def test_only_a_long_piece_is_a_reason(longest: float, reasons: list[str]) -> None:
    found = fidelity.assess(CONDITIONS, record(longest))
    assert found.reasons == reasons
    assert found.readings["held_seconds"] == 1.0
    assert found.readings["held_longest_seconds"] == longest


@pytest.mark.parametrize(
    ("seconds", "cpu", "reasons"),
    [
        (0.1, 0.4, ["at most 2% of the time, found 5.0%", "at most 2% of a CPU, found 20.0%"]),
        (0.0402, 0.0402, ["at most 2% of the time, found 2.01%", "at most 2% of a CPU, found 2.01%"]),
        (0.040001, 0.040001, ["at most 2% of the time, found 2.00005%", "at most 2% of a CPU, found 2.00005%"]),
    ],
)
def test_a_reason_shows_on_which_side_of_its_limit_a_run_is(seconds: float, cpu: float, reasons: list[str]) -> None:
    """Never "at most 2%, found 2%"."""
    run = record(0.001, rivals={"cpu_seconds": cpu, "names": ["other"]})
    run["measure"]["held"][0]["seconds"] = seconds
    shaped = replace(CONDITIONS, bits_per_second=10**9)
    told = [*fidelity._held(shaped, run), *fidelity._rivals(shaped, run)]
    assert [line.split(": ")[1] for line in told] == reasons


def test_what_an_agent_may_not_measure_is_told_by_host() -> None:
    lines = {"beta": ["held CPUs: no real-time scheduling on 2 of 2 CPUs (CAP_SYS_NICE)"]}
    assert fidelity.not_measured(record(0.0, held_not_measured=lines)) == [f"beta: {lines['beta'][0]}"]
    assert fidelity.not_measured(record(0.0)) == []


@pytest.mark.parametrize(("seconds", "is_judged"), [(0.0, True), (0.0099, True), (0.0101, False), (0.039, False)])
def test_a_tail_of_a_run_that_was_held_is_not_that_of_the_network(seconds: float, is_judged: bool) -> None:
    shaped = replace(CONDITIONS, testbed="fabric", bits_per_second=10**9)
    run = record(0.002)
    run["measure"]["held"][0]["seconds"] = seconds
    metrics = {"latency_p50": 3e-4, "latency_p99": 4e-4, "goodput": 9e8}
    kept, lacking = held.without_tails(metrics, shaped, run)
    assert ("latency_p99" in kept) is is_judged
    assert kept.keys() | lacking.keys() == metrics.keys()
    assert {"latency_p50", "goodput"} <= kept.keys()
    if not is_judged:
        assert lacking["latency_p99"].startswith(f"something else held a CPU of the hosts for {seconds / 2:.2%} of")


def test_what_holds_the_users_own_hosts_takes_nothing_from_their_figures() -> None:
    """The kernel's own work for packets looks the same there."""
    assert held.share(CONDITIONS, record(0.004)) is None
