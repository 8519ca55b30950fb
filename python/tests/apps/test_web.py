"""The event calendar: its data and its users are the same in every run, and the account of a run adds up."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from framegauge.apps.web import content, cpu, driver, files, pages
from framegauge.apps.web.browser import COUNT_PATH, Browser
from framegauge.apps.web.ledger import Ledger, spread
from framegauge.apps.web.limits import LIMITS, Rule, quantile
from framegauge.apps.web.visits import MIX, Request, Visit

Answer = Callable[[str, str, bytes], bytes | None]


def test_the_data_are_the_same_every_time_and_refer_to_one_another() -> None:
    tables = {name: list(content.rows(name)) for name in content.TABLES}
    assert tables == {name: list(content.rows(name)) for name in content.TABLES}
    assert {name: {len(row) for row in rows} for name, rows in tables.items()} == {
        name: {len(columns)} for name, columns in content.TABLES.items()
    }
    persons, events = ({row[0] for row in tables[name]} for name in ("person", "event"))
    assert {row[5] for row in tables["event"]} <= persons
    assert {row[0] for row in tables["tagged"]} == {row[0] for row in tables["guest"]} == events
    assert {row[1] for row in tables["guest"]} <= persons
    assert {row[1] for row in tables["tagged"]} == {content.tag(number) for number in range(content.TAGS)}


def test_images_have_the_sizes_that_are_said(tmp_path: Path) -> None:
    files.make(tmp_path, 3000)
    for kind, number in itertools.product(files.KINDS, range(content.IMAGES)):
        found = (tmp_path / kind / str(number)).stat().st_size
        assert found == content.image_bytes(kind, number, 3000) <= files.MOST_BYTES
    assert content.image_bytes("poster", 0, 1) == content.SMALLEST_POSTER_BYTES
    assert content.image_bytes("poster", content.IMAGES - 1, 1) == content.LARGEST_POSTER_BYTES


def test_a_user_does_the_same_in_every_run_and_others_do_otherwise() -> None:
    def first(seed: int, user: int) -> list[tuple[Request, float]]:
        visit = Visit(seed, user, 5.0)
        return [(request, visit.think_seconds()) for request in itertools.islice(visit.requests(), 200)]

    assert first(1, 7) == first(1, 7)
    assert first(1, 7) != first(1, 8) != first(2, 8)
    assert first(1, 7)[0][0].operation == "login"
    thought = [time for user in range(40) for _, time in first(3, user)]
    assert sum(thought) / len(thought) == pytest.approx(5.0, rel=0.05)
    assert max(thought) <= 25.0
    asked = [request.operation for user in range(40) for request, _ in first(3, user)[1:]]
    for operation, share in MIX.items():
        assert asked.count(operation) / len(asked) == pytest.approx(share / 100, abs=0.012)
    assert MIX.keys() == LIMITS.keys()
    assert sum(MIX.values()) == 100


def test_quantiles_are_those_of_the_definition() -> None:
    ordered = [float(each) for each in range(1, 11)]
    assert [quantile(ordered, share) for share in (0.5, 0.9, 0.91, 1.0)] == [5.0, 9.0, 10.0, 10.0]
    assert quantile([], 0.9) == spread([])["mean_seconds"] == 0.0
    assert spread([3.0, 1.0])["mean_seconds"] == 2.0


def test_only_what_ends_in_the_steady_time_counts_and_every_request_is_accounted_for() -> None:
    ledger = Ledger(begin_seconds=10.0, end_seconds=20.0)
    for begun, ended in ((8.0, 9.5), (9.0, 11.0), (15.0, 16.0), (19.0, 21.0)):
        ledger.sent += 1
        ledger.answered("page", 100, begun, ended)
        ledger.done("home", begun, ended)
    ledger.sent += 1
    ledger.failed("/x", ConnectionResetError("gone"))
    found = {**ledger.as_json(), **ledger.window.as_json(Rule()), **ledger.window.details()}
    assert found["operations"] == 2
    assert found["operations_per_second"] == 0.2
    assert found["by_operation"]["home"]["mean_seconds"] == 1.5
    assert found["open_at_end"] == 1
    assert found["requests"] == {"sent": 5, "answered": 4, "failed": 1}
    assert found["failures"] == ["/x: ConnectionResetError: gone"]
    assert found["parts"]["page"]["stalled"] == 2
    assert found["judged"] == {}
    assert found["few"] == list(LIMITS)


def test_an_operation_is_judged_by_its_quantile_once_there_are_enough_of_it() -> None:
    """Of ten, the slowest may exceed the limit at 90 %; of nine, nobody can say."""
    rule = Rule()
    assert rule.least == 10
    assert Rule(share=0.5).least == 2
    assert Rule(share=0.99).least == 100
    fine = rule.judged({"home": [0.5] * 9 + [60.0], "login": [60.0] * 9})
    assert fine["judged"] == {"home": {"found_seconds": 0.5, "limit_seconds": 1.0}}
    assert fine["beyond"] == []
    assert fine["few"] == [name for name in LIMITS if name != "home"]
    slow = Rule({**LIMITS, "home": 0.4}).judged({"home": [0.5] * 9 + [60.0]})
    assert slow["beyond"] == ["home: found 0.5 s at 90 %, expected at most 0.4 s"]
    assert rule.judged({"home": [0.5] * 8 + [2.0] * 2})["beyond"] == ["home: found 2 s at 90 %, expected at most 1 s"]


def test_an_operation_that_is_older_than_its_limit_is_beyond_it_before_it_ends() -> None:
    """Of twelve that began, nobody knows when seven will end; but five are too old already."""
    ledger = Ledger(begin_seconds=0.0, end_seconds=10.0)
    for user in range(5):
        ledger.begins(user, "home", 1.0)
        ledger.ends(user)
        ledger.done("home", 1.0, 1.5)
    for user in range(7):
        ledger.begins(user, "home", 5.0 if user < 5 else 9.5)
    ledger.close()
    found = ledger.window.as_json(Rule())
    assert found["beyond"] == ["home: found 5 s at 90 %, expected at most 1 s"]
    assert found["operations"] == 5
    assert Ledger(0.0, 10.0).window.as_json(Rule())["judged"] == {}


@pytest.mark.parametrize(
    ("beyond", "users"), [([False, False, True], 20), ([True], 0), ([False, False, False], 0), ([False, True], 10)]
)
def test_a_site_bears_the_users_of_the_last_step_before_the_one_that_exceeds(beyond: list[bool], users: int) -> None:
    """If no step does, or the first one, then a run does not show it."""
    told = [
        {"users": 10 * place, "operations_per_second": 2.0 * place, "beyond": ["home: slow"] * slow}
        for place, slow in enumerate(beyond, 1)
    ]
    assert driver.saturation(told) == {"users": users, "operations_per_second": users / 5}


def test_the_cpu_time_of_a_tree_includes_what_has_ended() -> None:
    before = cpu.tree_seconds({"own": os.getpid()})["own"]
    child = os.spawnlp(os.P_WAIT, "sh", "sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done")
    assert child == 0
    assert cpu.tree_seconds({"own": os.getpid()})["own"] >= before + 0.01
    assert cpu.tree_seconds({"none": 2**22 + 1}) == {"none": 0.0}


def test_the_cpu_time_of_a_program_is_finer_than_a_tick() -> None:
    """A server that uses less than a tick in a second would else have used nothing, or a whole one."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None
        program.stdin.write(b"x")
        program.stdin.flush()
        assert program.stdout is not None
        assert program.stdout.read(1) == b"x"
        used = cpu.tree_seconds({"cat": program.pid})["cat"]
    assert used > 0
    assert not (100 * used).is_integer()


def test_no_program_uses_less_than_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a child that has ended what is left is whole ticks."""
    readings = iter([1.019, 1.012, 1.013, 1.055])
    monkeypatch.setattr(cpu, "tree_seconds", lambda roots: dict.fromkeys(roots, next(readings)))
    monkeypatch.setattr(cpu, "INTERVAL_SECONDS", 0.01)

    async def sampled() -> dict[str, Any]:
        sampler = cpu.Sampler({"database": 1})
        await sampler.run(time.monotonic() + 0.03)
        return sampler.as_json()

    assert asyncio.run(sampled())["database"]["least"] == 0


async def served(answer: Answer, work: Callable[[int], Awaitable[None]]) -> None:
    """A server whose answers are those of a function of method, path and body; None closes the connection."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with_body = b""
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                length = next((int(line[15:]) for line in head.split("\r\n") if line.startswith("Content-Length")), 0)
                with_body = await reader.readexactly(length)
                method, path, _ = head.split(" ", 2)
                data = answer(method, path, with_body)
                if data is None:
                    break
                writer.write(data)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        await work(server.sockets[0].getsockname()[1])


def ok(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def whole(method: str, path: str, body: bytes) -> bytes:
    """The site as it must be, without servers behind it."""
    kind = path.split("/")[1]
    if kind == "static":
        return ok(content.STATIC[path.split("/")[2]][1])
    if kind == "image":
        return ok(content.image(path.split("/")[2], int(path.split("/")[3]), 500))
    events = [{"id": each, "title": "A", "day": 1, "place": "B", "about": "C"} for each in range(3)]
    return ok(pages.home(events).encode())


HOME = Request("home", "GET", "/", "<h1>What is on</h1>")


def shown(answer: Answer) -> Ledger:
    """The account of one page."""
    ledger = Ledger(0.0, 1e12)

    async def work(port: int) -> None:
        browser = Browser("127.0.0.1", port, 500, ledger)
        assert await browser.show(HOME) == (ledger.failures == 0)
        browser.close()

    asyncio.run(served(answer, work))
    assert ledger.sent == ledger.answers + ledger.failures
    return ledger


def test_a_page_is_fetched_with_all_of_its_parts() -> None:
    found = shown(whole).window.details()
    assert {name: part["count"] for name, part in found["parts"].items()} == {"page": 1, "static": 2, "thumbnail": 3}
    assert found["parts"]["thumbnail"]["mean_bytes"] == 500


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda path: b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", "502 Bad Gateway"),
        (lambda path: ok(b"x"), "found 1 bytes, expected 500"),
        (lambda path: None, "IncompleteReadError"),
        (lambda path: b"HTTP/1.1 200 OK\r\n\r\n", "expected status 200 and a length"),
    ],
)
def test_an_answer_that_is_not_right_is_a_failure(wrong: Callable[[str], bytes | None], words: str) -> None:
    ledger = shown(lambda method, path, body: wrong(path) if "/image/" in path else whole(method, path, body))
    assert ledger.failures
    assert words in ledger.as_json()["failures"][0]


def test_the_balancers_own_count_leaves_the_question_for_it_out() -> None:
    """In the words of nginx 1.22, for eight connections and 120 requests."""
    words = b"Active connections: 1 \nserver accepts handled requests\n 8 8 120 \nReading: 0 Writing: 1 Waiting: 0 \n"
    found: list[int] = []

    async def work(port: int) -> None:
        browser = Browser("127.0.0.1", port, 500, Ledger(0.0, 1.0))
        found.append(await browser.count())
        browser.close()

    asyncio.run(served(lambda method, path, body: ok(words) if path == COUNT_PATH else None, work))
    assert found == [119]


def test_a_page_that_is_cut_off_is_a_failure() -> None:
    ledger = shown(lambda method, path, body: ok(b"<h1>What is on</h1>"))
    assert "expected it whole" in ledger.as_json()["failures"][0]
