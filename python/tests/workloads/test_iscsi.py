"""The workload `iscsi` from recorded results of its clients."""

from __future__ import annotations

import json
from typing import Any

import pytest

from framegauge.errors import ProgramFailure
from framegauge.testbeds.base import Json
from framegauge.workloads.counts import quantile
from framegauge.workloads.iscsi import Iscsi, Load, iscsi, messages


def told(clients: list[dict[str, Any]], **load: Any) -> tuple[Iscsi, dict[str, Any]]:
    hosts = [f"h{number}" for number in range(1, len(clients) + 2)]
    disk = iscsi(Load(block_bytes=8192, **load), hosts)
    done = [{"host": host, "texts": {None: json.dumps(one)}} for host, one in zip(hosts, clients, strict=False)]
    return disk, dict(disk.told(done, {}))


def client(answered: int = 200, unanswered: int = 0, began: float = 10.0, **change: Any) -> dict[str, Any]:
    return {
        "began_seconds": began, "ended_seconds": began + 2, "requests": answered + unanswered,
        "begun": answered + unanswered, "asked_again": 0, "logged_in_again": 0, "sent_again": 0,
        "answered": answered, "unanswered": unanswered,
        "payload_bytes": 8192 * answered, "latency_microseconds": {"100": answered - 10, "900": 10}, **change,
    }  # fmt: skip


def test_operations_and_goodput_are_those_of_all_clients_over_their_whole_time() -> None:
    disk, record = told([client(), client(began=11.0)])
    found = disk.metrics(record, {})
    assert found["operations"] == pytest.approx(400 / 3)
    assert found["goodput"] == pytest.approx(8 * 8192 * 400 / 3)
    assert (found["latency_p50"], found["latency_p95"]) == (pytest.approx(100e-6), pytest.approx(100e-6))
    assert found["latency_p99"] == pytest.approx(900e-6)
    assert (record["senders"], record["receivers"]) == (["h3"], ["h1", "h2"])


def test_writes_go_the_other_way() -> None:
    _, record = told([client()], operation="write")
    assert (record["senders"], record["receivers"], record["received_bytes"]) == (["h1"], ["h2"], {"h2": 200 * 8192})


def test_requests_without_an_answer_are_slower_than_all_others() -> None:
    disk, record = told([client(answered=197, unanswered=3)])
    found = disk.metrics(record, {})
    assert "latency_p99" not in found
    assert record["not_measured"] == {"latency_p99": "197 requests were answered and 3 not: too few for that quantile"}
    assert found["latency_p95"] == pytest.approx(900e-6)


def test_a_client_without_any_answer_is_a_result() -> None:
    disk, record = told([client(0, 200, latency_microseconds={})])
    assert record["answers"] == {"h1": {"asked": 200, "answered": 0}}
    assert disk.metrics(record, {}) == {}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"requests": 201}, "h1: found 201 requests, 200 answered and 0 not, expected all accounted for"),
        ({"payload_bytes": 4096}, "h1: found 4096 bytes, expected 8192 for each of 200 requests"),
    ],
)
def test_what_does_not_add_up_excludes_the_run(change: dict[str, Any], line: str) -> None:
    with pytest.raises(ProgramFailure, match=line):
        told([client(**change)])


def test_the_block_is_in_the_response_to_a_read_and_in_the_command_of_a_write() -> None:
    """Besides the PDUs of the session: 1096 bytes of the client, 592 of the target."""
    one = {"begun": 10, "answered": 9, "asked_again": 0, "logged_in_again": 0, "sent_again": 0}
    read = messages(Load(block_bytes=4096), one)
    write = messages(Load(block_bytes=4096, operation="write"), one)
    assert read["sent"]["48"] == 3 + 10
    assert read["received"]["4144"] == 9
    assert write["sent"]["4144"] == 10
    assert write["received"]["48"] == 3 + 9
    total = {way: sum(int(size) * count for size, count in read[way].items()) for way in ("sent", "received")}
    assert total == {"sent": 1096 + 480, "received": 592 + 9 * 4144}


def test_bytes_of_requests_that_were_given_up_may_have_been_sent_or_not() -> None:
    """And there is no logout, which is 48 bytes of each side."""
    one = {"begun": 10, "answered": 0, "asked_again": 0, "logged_in_again": 0, "sent_again": 0}
    read = messages(Load(block_bytes=4096), one)
    write = messages(Load(block_bytes=4096, operation="write"), one)
    assert read["given_up"] == {"sent": 11 * 48, "received": 10 * 4144 + 48}
    assert write["given_up"] == {"sent": 10 * 4144 + 48, "received": 11 * 48}
    assert "given_up" not in messages(Load(), {**one, "answered": 10})


def test_a_connection_that_is_opened_again_logs_in_again() -> None:
    """The target sends the block of its first read, and says then that it was none."""
    one = {"begun": 10, "answered": 10, "sent_again": 0}
    once, again = (messages(Load(), {**one, "asked_again": times, "logged_in_again": times}) for times in (0, 2))
    assert more(once, again) == {"sent": 2 * (480 + 464 + 48), "received": 2 * (380 + 48 + 68 + 8240)}
    assert "given_up" not in again
    write = Load(operation="write")
    once, again = (messages(write, {**one, "asked_again": times, "logged_in_again": times}) for times in (0, 2))
    assert more(once, again) == {"sent": 2 * (480 + 464 + 8240), "received": 2 * (380 + 48 + 68)}


def test_a_connection_that_is_opened_again_for_the_logout_has_no_request() -> None:
    """And the logout may have been sent on the one before it, too."""
    one = {"begun": 10, "answered": 10, "asked_again": 0, "sent_again": 0}
    once, again = (messages(Load(), {**one, "logged_in_again": times}) for times in (0, 1))
    assert again.pop("given_up") == {"sent": 48, "received": 48}
    assert more(once, again) == {"sent": 480 + 464, "received": 380 + 48}


def test_a_request_that_was_under_way_when_its_connection_ended_may_have_been_sent_and_answered_twice() -> None:
    """Of each connection that is opened again: all requests that were under way, of which one is asked for once more."""
    one = {"begun": 10, "answered": 10, "asked_again": 1, "logged_in_again": 1, "sent_again": 4}
    assert messages(Load(block_bytes=4096), one)["given_up"] == {"sent": 4 * 48, "received": 4 * 4144}
    write = Load(block_bytes=4096, operation="write")
    assert messages(write, one)["given_up"] == {"sent": 4 * 4144, "received": 4 * 48}
    assert messages(write, {**one, "answered": 9})["given_up"] == {"sent": 5 * 4144 + 48, "received": 5 * 48 + 48}


def more(once: Json, again: Json) -> dict[str, int]:
    """How many bytes one account has more than another, by way."""
    return {
        way: sum(int(size) * (count - once[way].get(size, 0)) for size, count in again[way].items()) for way in again
    }


def test_a_quantile_is_the_nearest_rank() -> None:
    """1000 values of 1 to 1000: by definition the 50 % quantile is 500 and the 99 % quantile 990."""
    counts = dict.fromkeys(range(1, 1001), 1)
    assert [quantile(counts, share) for share in (0.5, 0.95, 0.99)] == [500, 950, 990]
    assert quantile({7: 100}, 0.99) == 7
    assert quantile({7: 99}, 0.99) is None
    assert quantile({1: 50}, 0.5, unanswered=51) is None
