"""What a switch in the middle of runs did, as the summary has it: known ratios, their verdicts and their words."""

from __future__ import annotations

from typing import Any

import pytest

from framegauge.results.journal import Run
from framegauge.summary.switch import entries, lines

MARGINS = {"latency_p50": 0.1, "sender_cpu_cost": 0.05, "iops": 0.02}
RUNS = 8


def one(host: str, switched: bool, before: dict[str, float] | None, after: dict[str, float] | None) -> dict[str, Any]:
    return {"host": host, "switched": switched, "before": before, "after": after}


def rates(operations: float, latency: float) -> dict[str, float | None]:
    return {"operations_per_second": operations, "mean_latency_seconds": latency, "packets_per_second": None}


def used(packets: float, cpu: float) -> dict[str, float]:
    return {"packets_per_second": packets, "cpu_seconds_per_second": cpu}


def run(number: int, hosts: list[dict[str, Any]], clients: list[dict[str, Any]] | None = None, **change: Any) -> Run:
    """A block of 64 KiB per OSD goes on, and packets become a quarter; odd runs are 1 % above even ones."""
    clients = clients or [one("h1", True, rates(40, 0.010), rates(40, 0.0101))]
    told = {"begun_seconds": 1, "ended_seconds": 2, "clients": clients, "hosts": hosts, "kept": []}
    given: dict[str, Any] = {
        "number": number, "block": number, "cell": 0, "arm": "baseline", "role": "baseline", "level": 1500, "attempt": 0,
        "workload": "ceph", "conditions": {}, "metrics": {}, "excluded": [], "readings": {"switch": told}, **change,
    }  # fmt: skip
    return Run(**given)


def of(found: list[dict[str, Any]], quantity: str) -> dict[str, Any]:
    (mine,) = [each for each in found if each["quantity"] == quantity]
    return mine


def hosts(noise: float = 1.0) -> list[dict[str, Any]]:
    """Four times fewer packets in all, though the monitor's few stay as they are; the same CPU."""
    return [
        one("h1", True, used(1000, 0.2), used(240 * noise, 0.2 * noise)), one("h2", True, used(8, 0.01), used(8, 0.01)),
        one("h3", True, used(3000, 0.4), used(754 * noise, 0.4 * noise)),
    ]  # fmt: skip


def test_a_quarter_of_the_packets_and_equal_cpu_and_latency_have_their_verdicts() -> None:
    runs = [run(number, hosts(1.01 if number % 2 else 0.99)) for number in range(RUNS)]
    found = entries(runs, MARGINS, "mtu")
    packets, cpu = of(found, "packets_per_second"), of(found, "cpu_seconds_per_second")
    # (240 + 754) / 4008 with 1 % of noise, and the monitor's 8.
    assert packets["ratio"] == pytest.approx(0.25, rel=0.001)
    assert (packets["verdict"], packets["margin"], packets["margin_of"]) == ("better", 0.05, None)
    assert (packets["before"], packets["after"]) == (4008, pytest.approx(1002, rel=0.001))
    assert (cpu["verdict"], cpu["margin"], cpu["margin_of"]) == ("no practical difference", 0.05, "sender_cpu_cost")
    latency = of(found, "mean_latency_seconds")
    assert (latency["verdict"], latency["ratio"]) == ("no practical difference", pytest.approx(1.01))
    assert (latency["margin"], latency["margin_of"]) == (0.1, "latency_p50")
    assert of(found, "operations_per_second")["margin_of"] == "iops"
    assert all(each["beside"] is None and each["level"] == {"mtu": 1500} and each["runs"] == RUNS for each in found)
    # All four share the risk: their intervals are wider than each one's own.
    assert packets["judged"][0] < packets["ci95"][0] < packets["ci95"][1] < packets["judged"][1]
    told = list(lines({"switch": found, "faithful": True, "verdicts": [{"workload": "ceph", "conditions": {}}]}))
    assert told[0].startswith("MTU 1500: packets per second \u221275")
    assert "to 1/4.00 (1/3.95 to 1/4.05)" in told[0]
    assert told[0].endswith(": better (margin 5 %, 8 runs)")


def test_hosts_that_are_not_switched_are_taken_off() -> None:
    """All hosts lose a tenth meanwhile; the switched ones half besides."""
    some = [one("h1", True, used(1000, 1), used(450, 1)), one("h3", False, used(100, 1), used(90, 1))]
    found = of(entries([run(number, some) for number in range(3)], MARGINS, "mtu"), "packets_per_second")
    assert found["ratio"] == pytest.approx(0.45)
    assert found["beside"]["ratio"] == pytest.approx(0.5)
    assert found["judged"] == pytest.approx([0.5, 0.5])


def test_the_baseline_comes_first_whichever_arm_ran_first() -> None:
    runs = [run(0, hosts(), arm="a", role="treatment", level=9000), run(1, hosts())]
    assert [each["level"]["mtu"] for each in entries(runs, MARGINS, "mtu")] == [1500] * 4 + [9000] * 4


def test_without_readings_of_hosts_packets_are_those_of_clients_and_cpu_is_not_known() -> None:
    client = one("h1", True, {**rates(9, 1), "packets_per_second": 100}, {**rates(9, 1), "packets_per_second": 50})  # type: ignore[dict-item]
    for none in ([], [one("h1", True, None, None)]):
        found = entries([run(number, none, [client]) for number in range(2)], {}, "mtu")
        assert [each["quantity"] for each in found] == [
            "packets_per_second", "mean_latency_seconds", "operations_per_second",
        ]  # fmt: skip
        assert of(found, "packets_per_second")["ratio"] == pytest.approx(0.5)


def test_runs_that_do_not_count_and_studies_without_a_switch_tell_nothing() -> None:
    assert entries([run(0, hosts(), excluded=["fidelity: late"]), run(1, [], readings={})], MARGINS, "mtu") == []
    assert list(lines({"faithful": True, "verdicts": []})) == []
