"""The workload `nfs` from recorded results of its clients."""

from __future__ import annotations

import json
from typing import Any

import pytest

from framegauge.errors import ProgramFailure
from framegauge.workloads.counts import quantile
from framegauge.workloads.nfs import Load, Nfs, nfs

HOSTS = ["h1", "h2", "h3"]


def printed(**change: Any) -> dict[str, Any]:
    return {
        "began_seconds": 10.0, "ended_seconds": 12.0, "calls": 100, "answered": 100, "unanswered": 0, "sent_again": 0,
        "duplicates": 0, "payload_bytes": 100 * 8192, "sent": {"112": 100}, "received": {"8324": 100},
        "latency_microseconds": {str(each): 1 for each in range(1, 101)}, **change,
    }  # fmt: skip


def told(first: dict[str, Any], second: dict[str, Any], **load: Any) -> tuple[Nfs, dict[str, Any]]:
    made = nfs(Load(block_bytes=8192, **load), HOSTS)
    done = [{"host": host, "texts": {None: json.dumps(one)}} for host, one in zip(HOSTS, (first, second), strict=False)]
    return made, dict(made.told(done, {}))


def test_the_last_host_serves_and_all_others_are_clients() -> None:
    made = nfs(Load(rate_per_second=50.0, seed=7), HOSTS)
    assert [task.hosts for task in made.servers] == [("h3",)]
    assert [task.hosts for task in made.clients] == [("h1",), ("h2",)]
    assert made.prepare[0].argv[-4:] == ("h1", "h2", "--size-bytes", str(16 << 20))
    seeds = [task.argv[task.argv.index("--seed") + 1] for task in made.clients]
    assert seeds == ["7", "8"]
    assert all(task.argv[task.argv.index("--rate-per-second") + 1] == "50.0" for task in made.clients)
    # Every step has a limit.
    assert all(task.within_seconds < 60 for task in made.clients)
    assert made.servers[0].ready is not None
    assert made.servers[0].ready.within_seconds == 30


@pytest.mark.parametrize(("transport", "udp"), [("tcp", "false"), ("udp", "true")])
def test_the_server_offers_what_is_asked_for_and_nothing_else(transport: str, udp: str) -> None:
    text = nfs(Load(transport=transport), HOSTS).servers[0].templates["ganesha.conf"]
    assert f"Enable_UDP = {udp};" in text
    assert f"Transports = {transport.upper()};" in text
    assert "Protocols = 3;" in text
    assert 'Pseudo = "/files"' in text
    assert not [word for word in ("VERSION", "PORT;", "LARGEST", "TRANSPORT;", "MOUNTS") if f"= {word}" in text]


def test_figures_are_those_of_all_clients_together() -> None:
    second = printed(
        began_seconds=11.0, ended_seconds=13.0, latency_microseconds={str(each): 1 for each in range(101, 201)}
    )
    made, record = told(printed(), second)
    assert record["active_seconds"] == 3.0
    assert record["bytes"] == 200 * 8192
    assert (record["senders"], record["receivers"]) == (["h3"], ["h1", "h2"])
    assert record["received_bytes"] == {"h1": 819200, "h2": 819200}
    found = made.metrics(record, {})
    assert found == pytest.approx(
        {
            "latency_p50": 100e-6, "latency_p95": 190e-6, "latency_p99": 198e-6,
            "goodput": 8 * 200 * 8192 / 3, "operations": 200 / 3,
        }
    )  # fmt: skip
    assert record["not_measured"] == {}


def test_writes_go_the_other_way() -> None:
    _, record = told(printed(), printed(), operation="write")
    assert (record["senders"], record["receivers"]) == (["h1", "h2"], ["h3"])
    assert record["received_bytes"] == {"h3": 2 * 819200}


def test_calls_without_an_answer_are_slower_than_all_others() -> None:
    lossy = printed(answered=90, unanswered=10, payload_bytes=90 * 8192, latency_microseconds={"5": 90})
    made, record = told(printed(), lossy, transport="udp")
    found = made.metrics(record, {})
    assert "latency_p99" not in found
    assert record["not_measured"] == {"latency_p99": "190 calls were answered and 10 not: too few for that quantile"}
    assert record["not_proved"] == []


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_client_without_any_answer_is_a_result(transport: str) -> None:
    """Of both clients one works; of none, there is nothing to measure."""
    none = printed(answered=0, unanswered=100, payload_bytes=0, received={}, latency_microseconds={})
    made, record = told(printed(), none, transport=transport)
    assert record["answers"] == {"h1": {"asked": 100, "answered": 100}, "h2": {"asked": 100, "answered": 0}}
    assert made.metrics(record, {})["operations"] == 50
    # Over TCP, what was under way may have been sent or not; at most 512 bytes of each message are no data.
    first, second = (each.get("given_up") for each in record["messages"]["clients"].values())
    assert first is None
    assert second == (dict.fromkeys(("sent", "received"), 100 * 8704) if transport == "tcp" else None)
    made, record = told(none, none, transport=transport)
    assert made.metrics(record, {}) == {}
    assert set(record["not_measured"]) == {"latency_p50", "latency_p95", "latency_p99"}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"answered": 99}, "nfs: h1: found 100 calls, 99 answered and 0 not: not all"),
        ({"payload_bytes": 1}, "nfs: h1: found 1 bytes, expected 100 times 8192"),
        (
            {"answered": 99, "unanswered": 1, "payload_bytes": 99 * 8192},
            "found 1 of 100 calls without an answer 5 s after the end, expected none over TCP",
        ),
    ],
)
def test_what_does_not_add_up_excludes_the_run(change: dict[str, Any], line: str) -> None:
    with pytest.raises(ProgramFailure, match=line):
        told(printed(**change), printed())


@pytest.mark.parametrize(
    ("counts", "share", "unanswered", "value"),
    [
        ({1: 50, 2: 50}, 0.5, 0, 1),
        ({1: 50, 2: 50}, 0.51, 0, 2),
        ({1: 98, 9: 2}, 0.99, 0, 9),
        ({1: 99}, 0.99, 0, None),  # of 100 or more
        ({1: 99, 9: 1}, 0.99, 0, 1),
        ({1: 90}, 0.95, 10, None),
        ({1: 95}, 0.95, 5, 1),
    ],
)
def test_quantiles_are_by_the_nearest_rank(
    counts: dict[int, int], share: float, unanswered: int, value: int | None
) -> None:
    assert quantile(counts, share, unanswered) == value
