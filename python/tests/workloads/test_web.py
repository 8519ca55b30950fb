"""The workload `web` from recorded results of its driver."""

from __future__ import annotations

import json
from typing import Any

import pytest

from framegauge.errors import ProgramFailure
from framegauge.workloads.web import COMPONENTS, Load, Web, web

HOSTS = [f"h{number}" for number in range(1, 8)]


def told(sockets: list[dict[str, Any]] | None = None, **change: Any) -> dict[str, Any]:
    site: Web = web(Load(users=5), HOSTS)
    printed = {"operations": 100, "requests": {"sent": 500, "answered": 500, "failed": 0}, "failures": [], **change}
    watched = {host: {"sockets": sockets or []} for host in HOSTS}
    return site.told([{"texts": {None: json.dumps(printed)}}], watched)["web"]


def socket(sent: int, received: int, loopback: bool = False, connections: int = 1) -> dict[str, Any]:
    return {"sent_bytes": sent, "received_bytes": received, "loopback": loopback, "connections": connections}


def test_a_request_that_fails_excludes_the_run_with_its_reason() -> None:
    counted = {"sent": 500, "answered": 499, "failed": 1}
    with pytest.raises(ProgramFailure) as failed:
        told(requests=counted, failures=["/event/3: Wrong: found 'HTTP/1.1 502 Bad Gateway'"])
    assert str(failed.value) == (
        "web: found 1 of 500 requests failed, expected none; /event/3: Wrong: found 'HTTP/1.1 502 Bad Gateway'"
    )


def test_a_request_that_nobody_accounts_for_excludes_the_run() -> None:
    with pytest.raises(ProgramFailure, match="found 0 of 500 requests failed"):
        told(requests={"sent": 500, "answered": 499, "failed": 0})


def test_a_run_with_hardly_an_operation_says_what_to_change() -> None:
    with pytest.raises(ProgramFailure, match="found 19 operations in the steady time, expected 20 or more: more users"):
        told(operations=19)


def test_the_sizes_of_connections_are_kept_by_component() -> None:
    found = told([socket(5, 10), socket(1, 1), socket(7, 7, loopback=True), socket(900, 0, connections=40)])["flows"]
    assert list(found) == list(COMPONENTS)
    assert found["database"] == {"connections": 42, "bytes": [2, 15]}


def test_of_many_connections_evenly_chosen_ones_are_kept() -> None:
    found = told([socket(each, 0) for each in range(5000)])["flows"]["web-1"]
    assert found["connections"] == 5000
    assert found["bytes"] == list(range(0, 5000, 10))
