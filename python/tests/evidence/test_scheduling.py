"""scheduling.py and what fidelity and costs make of it: what the hosts got, not whether the machine was idle."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.support import STUDY

from framegauge.evidence import costs, fidelity, scheduling
from framegauge.experiment import planning
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order

ASKED = study_file.parse(STUDY, "x")
CONDITIONS = planning.conditions_of(ASKED, block_order(ASKED, 0)[0])
NOTHING = {"run_seconds": 0.0, "waited_seconds": 0.0, "turns": 0}


def got(
    generators: float = 0.0,
    waited: float = 0.0,
    programs: float = 0.0,
    programs_waited: float | None = 0.0,
    precedence: str = "real time",
    gave_way: float = 0.0,
) -> dict[str, Any]:
    return {
        "scheduling": {
            "precedence": precedence,
            "generators": {"run_seconds": generators, "waited_seconds": waited, "turns": 1},
            "receive_path": NOTHING,
            "programs": {"run_seconds": programs, "waited_seconds": programs_waited, "gave_way_seconds": gave_way},
        }
    }


def record(after: dict[str, Any], busy: float, elapsed: float = 2.0) -> dict[str, Any]:
    """Two hosts on one CPU beside the fabric's: h2 idles, the CPU was busy for a share of the time."""
    cpu = dict.fromkeys((f"{state}_seconds" for state in ("user", "nice", "iowait", "irq", "softirq", "steal")), 0.0)
    mine = {**cpu, "cpu": 0, "role": "hosts", "system_seconds": busy * elapsed, "idle_seconds": (1 - busy) * elapsed}
    fabric = {**cpu, "cpu": 1, "role": "fabric", "system_seconds": elapsed, "idle_seconds": 0.0}
    return {
        "counters_before": {"h1": got(), "h2": got()},
        "counters_after": {"h1": after, "h2": got()},
        "measure": {
            "elapsed_seconds": elapsed,
            "cpus": [mine, fabric],
            "fabric": {"thread": {"cpu_seconds": 0.8, "scheduling": "fifo"}},
        },
    }


def headroom(run: dict[str, Any]) -> list[str]:
    return list(fidelity._headroom(CONDITIONS, run))


def test_the_time_of_others_is_to_spare_for_hosts_that_go_first() -> None:
    run = record(got(generators=0.8), busy=1.0)
    shares = scheduling.of_run(run)
    assert shares is not None
    assert (shares.own, shares.others, shares.idle) == (pytest.approx(0.4), pytest.approx(0.6), 0.0)
    assert shares.precedes
    assert shares.is_shared
    assert headroom(run) == []


def test_hosts_that_use_all_of_their_cpu_are_unfaithful_on_an_idle_machine_too() -> None:
    run = record(got(generators=1.96), busy=0.98)
    assert headroom(run) == ["CPU time to spare (hosts): at least 3%, found 2.0%"]


@pytest.mark.parametrize(
    ("after", "reasons"),
    [
        (got(programs=0.5, programs_waited=0.002, gave_way=0.5), []),
        (
            got(programs=0.5, programs_waited=0.2, gave_way=0.5),
            ["programs of a host waited for a CPU: at most 0.5% of the time, found 10.0%"],
        ),
        (
            got(programs=0.5, programs_waited=None, gave_way=0.5),
            ["idle CPU (hosts), as waits are not measured: at least 3%, found 0.0%"],
        ),
        (
            got(generators=0.5, waited=0.1, precedence="nice"),
            ["programs of a host waited for a CPU: at most 0.5% of the time, found 5.0%"],
        ),
        (got(generators=0.5, waited=0.001, precedence="ordinary"), []),
    ],
)
def test_what_has_no_precedence_must_not_have_waited(after: dict[str, Any], reasons: list[str]) -> None:
    assert headroom(record(after, busy=1.0)) == reasons
    # Whoever finds an idle CPU does not wait for one but for its own siblings.
    assert headroom(record(after, busy=0.9)) == []


def test_what_has_prepared_a_run_and_ended_before_it_does_not_count() -> None:
    early, late = got(programs=0.2, gave_way=0.2), got(programs=0.9, programs_waited=0.7, gave_way=0.2)
    run = record(late, busy=1.0)
    run["counters_before"]["h1"] = early
    shares = scheduling.of_run(run)
    assert shares is not None
    assert shares.precedes
    assert headroom(run) == []


def test_records_without_these_readings_are_judged_by_idle_time() -> None:
    run = record(got(generators=0.5), busy=1.0)
    del run["counters_before"]["h2"]["scheduling"]
    assert scheduling.of_run(run) is None
    assert dict(scheduling.readings(run)) == {}
    assert headroom(run) == ["idle CPU (hosts): at least 3%, found 0.0%"]


def test_a_fabric_without_real_time_needs_an_idle_cpu() -> None:
    run = record(got(generators=0.5), busy=0.5)
    run["measure"]["fabric"]["thread"]["scheduling"] = "other"
    assert headroom(run) == ["idle CPU (fabric): at least 3%, found 0.0%"]


def test_costs_beside_other_programs_are_not_judged_and_say_why() -> None:
    used = {"cpu_seconds": 0.4, "instructions": 1000, "cycles": 2000}
    idle = {"cpu_seconds": 0.0, "instructions": 0, "cycles": 0}
    part = {"elapsed_seconds": 2.0, "programs": used, "receive_path": idle, "polls": 1, "not_measured": []}
    before = {**part, "programs": idle}
    for busy, present in ((0.2, True), (0.24, True), (0.26, False), (1.0, False)):
        run = record(got(generators=0.4), busy=busy) | {
            "workload": {"bytes": 10**9, "senders": ["h1"], "receivers": ["h1"]},
            "cpu": {"h1": part, "h2": before},
            "cpu_idle": {"h1": before, "h2": before},
        }
        metrics, lacking = costs.metrics(run), costs.not_measured(run)
        assert ("sender_cpu_cost" in metrics) is present
        assert ("receiver_cycles" in metrics) is present
        assert metrics["sender_instructions"] == 1000  # what others do is not counted there
        assert set(lacking) == set(costs.COUNTED) - set(metrics)
    assert lacking["sender_cpu_cost"] == "the machine was busy: other programs used 80% of the hosts' CPUs"
