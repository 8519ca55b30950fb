"""What a change of MTUs did to a workload, from a record whose course is known."""

from __future__ import annotations

from typing import Any

import pytest

from framegauge.evidence.switch import readings

BEGUN = 1000.0


def client(answered: list[int], gaps: list[tuple[float, float]]) -> dict[str, Any]:
    """One that begins 0.1 s after the measurement, in windows of 50 ms, each answer after 2 ms."""
    return {
        "began_seconds": BEGUN + 0.1,
        "course": {
            "window_seconds": 0.05, "answered": answered, "latency_seconds": [0.002 * each for each in answered],
            # 1000 packets a second, and from 0.5 s after its beginning 300.
            "packets": [[at / 20, 50 * min(at, 10) + 15 * max(0, at - 10)] for at in range(len(answered))],
            "gaps": [{"begun_seconds": BEGUN + at, "seconds": seconds} for at, seconds in gaps],
        },
    }  # fmt: skip


def record(**work: Any) -> dict[str, Any]:
    """Routes of h1 and h2 are held at 0.5 s, and released at 0.6 s; h3 is not switched."""
    sets = [({"host": "h1", "route_mtu": 1500}, 0.5), ({"host": "h1", "mtu": 9000}, 0.52), ({"host": "h2", "mtu": 9000}, 0.53),
            ({"host": "h1", "route_mtu": 0}, 0.6)]  # fmt: skip
    return {
        "begun_seconds": BEGUN,
        "changes": [{"at_seconds": 0.5, "set": asked, "made_seconds": at, "error": None} for asked, at in sets],
        "workload": work,
    }


def test_rates_are_of_whole_windows_and_the_stall_is_of_the_switch() -> None:
    """Windows begin at 0.1 s: eight are before 0.5 s, two in the switch, and of ten the last is not whole."""
    answered = [10] * 8 + [1, 2] + [20] * 10
    one, other = client(answered, [(0.3, 0.01), (0.51, 0.2), (1.7, 0.3)]), client(answered, [(0.2, 0.01)])
    found = readings(record(iscsi={"clients": {"h1": one, "h3": other}}))["switch"]
    assert (found["begun_seconds"], found["ended_seconds"]) == (0.5, 0.6)
    first, second = found["clients"]
    assert (first["host"], first["switched"]) == ("h1", True)
    assert (second["host"], second["switched"]) == ("h3", False)
    assert first["before"] == {
        "seconds": pytest.approx(0.4), "operations_per_second": pytest.approx(200), "mean_latency_seconds": pytest.approx(0.002),
        "packets_per_second": pytest.approx(1000),
    }  # fmt: skip
    assert first["after"]["operations_per_second"] == pytest.approx(400)
    assert first["after"]["seconds"] == pytest.approx(0.45)
    assert first["after"]["packets_per_second"] == pytest.approx(300)
    assert (first["usual_gap_seconds"], first["stall_seconds"]) == (0.01, 0.2)
    assert second["stall_seconds"] is None


def mark(at: float, packets: float, cpu: float) -> dict[str, dict[str, float]]:
    return {
        "h1": {"at_seconds": at, "packets": packets, "cpu_seconds": cpu},
        "h3": {"at_seconds": at, "packets": 0, "cpu_seconds": 0},
    }


def test_hosts_are_compared_by_readings_that_lie_wholly_before_or_after() -> None:
    """The client begins at 0.1 s, the switch is from 0.5 to 0.6 s, and the last whole window ends at 1.05 s. An idle host
    uses 0.1 s of CPU per second."""
    marks = [
        mark(0.0, 1_000_000, 9), mark(0.2, 1000, 1.0), mark(0.4, 1200, 1.1), mark(0.55, 9999, 5),
        mark(0.6, 2000, 2.0), mark(1.0, 2100, 2.1), mark(1.1, 9999, 9),
    ]  # fmt: skip
    part = {"cpu_seconds": 0.1, "instructions": None, "cycles": None}
    idle = {"elapsed_seconds": 2.0, "programs": part, "receive_path": part}
    asked = record(iscsi={"clients": {"h1": client([10] * 20, [])}})
    found = readings({**asked, "marks": marks, "cpu_idle": {"h1": idle, "h3": {**idle, "receive_path": None}}})[
        "switch"
    ]
    first, second = found["hosts"]
    assert (first["host"], first["switched"], second["host"], second["switched"]) == ("h1", True, "h3", False)
    assert first["before"] == {
        "seconds": pytest.approx(0.2), "packets_per_second": pytest.approx(1000), "cpu_seconds_per_second": pytest.approx(0.4),
    }  # fmt: skip
    assert first["after"] == {
        "seconds": pytest.approx(0.4), "packets_per_second": pytest.approx(250), "cpu_seconds_per_second": pytest.approx(0.15),
    }  # fmt: skip
    # Less than an idle host is nothing.
    assert second["after"]["cpu_seconds_per_second"] == 0
    few = readings({**asked, "marks": marks[:2], "cpu_idle": {"h1": idle, "h3": idle}})["switch"]["hosts"][0]
    assert (few["before"], few["after"]) == (None, None)


@pytest.mark.parametrize("key", ["nfs", "ceph"])
def test_every_workload_that_counts_in_windows_is_looked_at(key: str) -> None:
    (found,) = readings(record(**{key: {"clients": {"h1": client([10] * 20, [])}}}))["switch"]["clients"]
    assert found["before"]["operations_per_second"] == pytest.approx(200)


def test_a_client_that_was_not_there_before_has_nothing_to_compare() -> None:
    late = {**client([10] * 10, []), "began_seconds": BEGUN + 0.7}
    found = readings(record(iscsi={"clients": {"h1": late}}))["switch"]["clients"][0]
    assert found["before"] is None
    assert found["after"]["operations_per_second"] == pytest.approx(200)


def test_connections_that_went_on_are_told_with_their_mss() -> None:
    def life(first: float, last: float, mss: int) -> dict[str, Any]:
        return {
            "host": "h1",
            "other": "h3",
            "mss_bytes": [mss],
            "first_seconds": BEGUN + first,
            "last_seconds": BEGUN + last,
        }

    opened_again_while_others_were_to_come = life(0.59, 2.0, 8948)
    lifetimes = [
        life(0.1, 2.0, 1448), life(0.1, 0.59, 1448), opened_again_while_others_were_to_come, life(0.62, 2.0, 8948)
    ]  # fmt: skip
    work = {"iscsi": {"clients": {"h1": client([10] * 20, [])}}, "lifetimes": lifetimes}
    (kept,) = readings(record(**work))["switch"]["kept"]
    assert kept == {"host": "h1", "other": "h3", "mss_bytes": [1448], "seconds": pytest.approx(1.4)}


def test_without_a_course_or_a_change_of_mtus_there_is_nothing_to_tell() -> None:
    assert readings(record()) == {}
    assert readings({**record(iscsi={"clients": {"h1": client([1], [])}}), "changes": []}) == {}
