"""costs.py: what hosts used, less their idle use; and an account that closes."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from framegauge.evidence import costs
from framegauge.results.journal import read
from framegauge.study import file as study_file
from framegauge.summary import document as summary


def use(seconds: float, instructions: int | None = None, cycles: int | None = None) -> dict[str, Any]:
    return {"cpu_seconds": seconds, "instructions": instructions, "cycles": cycles}


def reading(programs: dict[str, Any], path: dict[str, Any] | None, elapsed: float = 2.0) -> dict[str, Any]:
    return {
        "elapsed_seconds": elapsed, "programs": programs, "receive_path": path, "polls": 1000,
        "meter_seconds": 0.0001, "not_measured": [],
    }  # fmt: skip


def record() -> dict[str, Any]:
    """h1 sends half a gigabyte to h2 in two seconds on two CPUs, of which one and a half seconds were idle."""
    cpu = {"idle_seconds": 0.75, "iowait_seconds": 0.0, "steal_seconds": 0.05}
    return {
        "workload": {"bytes": 500_000_000, "senders": ["h1"], "receivers": ["h2"]},
        "cpu": {
            "h1": reading(use(0.1, 400, 900), use(0.2, 800, 1000)),
            "h2": reading(use(0.3, 1000, 2000), use(0.5, 3000, 4000)),
        },
        "cpu_idle": {
            "h1": reading(use(0.0, 0, 0), use(0.0, 0, 0), 0.2),
            "h2": reading(use(0.01, 10, 20), use(0.02, 30, 40), 0.2),
        },
        "measure": {
            "elapsed_seconds": 2.0,
            "cpus": [cpu, cpu],
            "fabric": {"thread": {"cpu_seconds": 0.9}, "hosts": [{"host": "h2", "written_frames": 4000}]},
            "agent": {"cpu_seconds": 0.05},
        },
        "controller_seconds": 0.05,
        "counters_before": {name: {"interface": {"rx_packets": 0}} for name in ("h1", "h2")},
        "counters_after": {name: {"interface": {"rx_packets": 2000}} for name in ("h1", "h2")},
    }


def test_the_idle_use_of_the_same_host_is_subtracted() -> None:
    found = costs.metrics(record())
    # (0.3 + 0.5) - (0.01 + 0.02) / 0.2 * 2.0 = 0.5 s for half a gigabyte
    assert found["receiver_cpu_cost"] == pytest.approx(1.0)
    assert found["receiver_instructions"] == pytest.approx(2 * (4000 - 40 / 0.2 * 2.0))
    assert found["receiver_cycles"] == pytest.approx(2 * (6000 - 60 / 0.2 * 2.0))
    assert found["sender_cpu_cost"] == pytest.approx(0.6)
    assert found.keys() == costs.COUNTED.keys()


def test_what_could_not_be_counted_is_absent_and_says_why() -> None:
    whole = record()
    whole["cpu"]["h2"]["programs"]["instructions"] = None
    whole["cpu"]["h2"]["not_measured"] = ["count instructions with perf_event_open: No such file or directory"]
    assert "receiver_instructions" not in costs.metrics(whole)
    assert costs.not_measured(whole) == {
        "receiver_instructions": "count instructions with perf_event_open: No such file or directory"
    }
    whole["cpu"]["h1"]["receive_path"] = None
    whole["cpu"]["h1"]["not_measured"] = ["receive path: the interface has no NAPI thread"]
    assert costs.not_measured(whole)["sender_cpu_cost"] == "receive path: the interface has no NAPI thread"


def test_a_study_without_the_meter_has_none_of_it() -> None:
    whole = record()
    del whole["cpu"]
    assert (costs.metrics(whole), costs.readings(whole), costs.disagreements(whole)) == ({}, {}, [])
    assert costs.not_measured(whole)["receiver_cycles"] == "the study has the CPU meter off"


def test_hosts_fabric_framegauge_and_the_rest_are_the_whole_system() -> None:
    found = costs.accounts(record())
    assert found["system"] == pytest.approx(2.4)
    assert found["hosts"] == {"h1": pytest.approx(0.3), "h2": pytest.approx(0.8)}
    assert found["unattributed"] == pytest.approx(2.4 - 1.1 - 0.9 - 0.1)
    shares = costs.readings(record())
    parts = ("hosts", "fabric", "framegauge", "unattributed")
    assert sum(shares[f"cpu_share_{name}"] for name in parts) == pytest.approx(1)
    assert shares["frames_per_poll"] == {"h1": 2.0, "h2": 4.0}
    assert not costs.disagreements(record())


def test_parts_that_exceed_the_whole_are_a_broken_meter() -> None:
    whole = record()
    whole["cpu"]["h2"]["programs"]["cpu_seconds"] = 1.0
    assert costs.disagreements(whole) == [
        "CPU time of hosts, fabric and framegauge: 2.800 s is more than the system's 2.400 s"
    ]


def test_what_is_stolen_from_idle_cpus_counts_twice_and_breaks_no_meter() -> None:
    # The parts are 2 s. Two CPUs idle for half of 2 s each; 0.2 s of that was stolen, so that 1.8 s seem used.
    whole = record()
    whole["cpu"]["h2"]["programs"]["cpu_seconds"] = 0.2
    whole["measure"]["cpus"] = [{"idle_seconds": 1.0, "iowait_seconds": 0.0, "steal_seconds": 0.1}] * 2
    assert costs.accounts(whole)["system"] == pytest.approx(1.8)
    assert not costs.disagreements(whole)
    # Not stolen but idle: the clock of a CPU is not wrong by more than a tick.
    whole["measure"]["cpus"] = [{"idle_seconds": 1.1, "iowait_seconds": 0.0, "steal_seconds": 0.0}] * 2
    assert len(costs.disagreements(whole)) == 1


@given(st.floats(0.1, 1.9), st.floats(0, 0.05), st.floats(0, 0.05), st.floats(0, 1))
def test_the_clock_of_ticks_never_accuses_a_meter(busy: float, phase: float, waited: float, stolen: float) -> None:
    # One CPU, told in whole ticks from a moment within one; some of its idle time was waiting, some was stolen.
    def ticks(seconds: float) -> float:
        return (int((phase + seconds) * 100) - int(phase * 100)) / 100

    idle = 2.0 - busy
    whole = record()
    for host in whole["cpu"].values():
        host["programs"] = host["receive_path"] = use(0.0)
    whole["measure"]["fabric"]["thread"]["cpu_seconds"] = busy - 0.1
    whole["measure"]["cpus"] = [{
        "idle_seconds": ticks(idle - min(waited, idle)), "iowait_seconds": ticks(min(waited, idle)),
        "steal_seconds": ticks(stolen * idle),
    }]  # fmt: skip
    assert not costs.disagreements(whole)


@given(st.floats(0.1, 10), st.floats(0, 1), st.floats(0.05, 5))
def test_an_idle_load_that_goes_on_in_the_run_costs_nothing(elapsed: float, rate: float, idle: float) -> None:
    whole = copy.deepcopy(record())
    for field, length in (("cpu", elapsed), ("cpu_idle", idle)):
        whole[field]["h2"] = reading(use(rate * length), use(rate * length), length)
    found = costs.metrics(whole).get("receiver_cpu_cost", 0.0)
    assert found == pytest.approx(0.0, abs=1e-9)


def test_a_summary_says_where_cpu_time_went_and_what_it_is_no_evidence_for(execute: Any, tmp_path: Path) -> None:
    text = """
testbed: {kind: fake}
factors: {mtu: [1500, 9000]}
workloads: [{stream: {size: 1 MB}}]
blocks: 2
margins: {receiver_cpu_cost: 5 %, receiver_instructions: 2 %}
"""
    execute(study_file.parse(text, "x"))
    found = summary.summarise(read(tmp_path / "out"))
    parts = ("hosts", "fabric", "framegauge", "unattributed")
    assert sum(found["cpu"][name] for name in parts) == pytest.approx(1, abs=0.05)
    assert len(found["caveats"]) == 2
    assert found["not_measured"] == [{"metric": "receiver_instructions", "why": "instructions and cycles: invented"}]
    assert {each["unit"] for each in found["verdicts"]} == {"core_seconds_per_gigabyte"}
