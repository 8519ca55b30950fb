"""The workload `web` from recorded results of its driver."""

from __future__ import annotations

import json
from typing import Any

import pytest

from framegauge.errors import ProgramFailure
from framegauge.workloads.web import COMPONENTS, SATURATION, Load, Web, web

HOSTS = [f"h{number}" for number in range(1, 8)]
COUNTED = {"sent": 500, "answered": 500, "failed": 0, "received": 500}


def told(sockets: list[dict[str, Any]] | None = None, **change: Any) -> dict[str, Any]:
    site: Web = web(Load(users=5), HOSTS)
    printed = {"operations": 100, "requests": COUNTED, "failures": [], **change}
    watched = {host: {"sockets": sockets or []} for host in HOSTS}
    return dict(site.told([{"texts": {None: json.dumps(printed)}}], watched))


def socket(sent: int, received: int, loopback: bool = False, connections: int = 1) -> dict[str, Any]:
    return {"sent_bytes": sent, "received_bytes": received, "loopback": loopback, "connections": connections}


def test_a_request_that_fails_excludes_the_run_with_its_reason() -> None:
    counted = {**COUNTED, "answered": 499, "failed": 1}
    with pytest.raises(ProgramFailure) as failed:
        told(requests=counted, failures=["/event/3: Wrong: found 'HTTP/1.1 502 Bad Gateway'"])
    assert str(failed.value) == (
        "web: found 1 of 500 requests failed, expected none; /event/3: Wrong: found 'HTTP/1.1 502 Bad Gateway'"
    )


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"answered": 499}, "found 500 requests sent, 499 answered and 0 failed, expected all accounted for"),
        ({"answered": 500, "failed": 1}, "found 500 requests sent, 500 answered and 1 failed"),
        ({"received": 499}, "found 499 requests received by the balancer, expected 500 as sent"),
        ({"received": 501}, "found 501 requests received by the balancer, expected 500 as sent"),
    ],
)
def test_a_request_that_nobody_accounts_for_excludes_the_run(wrong: dict[str, int], line: str) -> None:
    with pytest.raises(ProgramFailure, match=line):
        told(requests={**COUNTED, **wrong})


def test_a_run_with_hardly_an_operation_says_what_to_change() -> None:
    with pytest.raises(ProgramFailure, match="found 19 operations in the steady time, expected 20 or more: more users"):
        told(operations=19)


def test_the_sizes_of_connections_are_kept_by_component() -> None:
    found = told([socket(5, 10), socket(1, 1), socket(7, 7, loopback=True), socket(900, 0, connections=40)])["web"][
        "flows"
    ]
    assert list(found) == list(COMPONENTS)
    assert found["database"] == {"connections": 42, "bytes": [2, 15]}


def test_of_many_connections_evenly_chosen_ones_are_kept() -> None:
    found = told([socket(each, 0) for each in range(5000)])["web"]["flows"]["web-1"]
    assert found["connections"] == 5000
    assert found["bytes"] == list(range(0, 5000, 10))


def step(users: int, beyond: list[str], judged: bool = True) -> dict[str, Any]:
    return {"users": users, "beyond": beyond, "judged": {"home": {}} if judged else {}}


SLOW = ["home: found 2 s at 90 %, expected at most 1 s"]


@pytest.mark.parametrize(
    ("steps", "users", "why"),
    [
        ([step(50, []), step(100, SLOW)], 50, None),
        ([step(50, SLOW)], 0, f"50 users exceed limits ({SLOW[0]}); a smaller `first` may find how many do not"),
        ([step(50, []), step(100, [])], 0, "100 users exceed no limit; a larger `most` may find how many do"),
    ],
)
def test_a_run_that_does_not_show_how_many_users_a_site_bears_says_why(
    steps: list[dict[str, Any]], users: int, why: str | None
) -> None:
    found = told(steps=steps, saturation={"users": users, "operations_per_second": 1.0})
    assert found.get("not_measured") == (None if why is None else dict.fromkeys(SATURATION, why))


def test_a_step_with_too_few_operations_to_judge_excludes_the_run() -> None:
    steps = [step(50, []), step(100, [], judged=False)]
    with pytest.raises(ProgramFailure, match="too few operations of every kind with 100 users"):
        told(steps=steps, saturation={"users": 0, "operations_per_second": 0.0})


def test_a_run_in_steps_is_expected_to_take_the_time_of_all() -> None:
    one = web(Load(users=5, ramp_up_seconds=5.0, steady_seconds=20.0), HOSTS)
    four = web(Load(steps=(5, 10, 15, 20), ramp_up_seconds=5.0, steady_seconds=20.0), HOSTS)
    assert four.expected_seconds(None) - one.expected_seconds(None) == 75.0
    assert four.clients[0].within_seconds - one.clients[0].within_seconds == 75.0
    assert four.clients[0].argv[-5:] == ("--users", "5", "10", "15", "20")
    assert set(four.metrics_) == set(SATURATION)
