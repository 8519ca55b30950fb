"""The server of the live page: one address, read-only, and nothing left of it."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import followed, pages
from helpers.followed import Recorded

from framegauge import listening
from framegauge.errors import InputError
from framegauge.live import beside, server


@pytest.fixture
def folder(recorded: Recorded, tmp_path: Path) -> Path:
    return recorded.begun(tmp_path / "out", 30)


@pytest.fixture
def where(folder: Path) -> Iterator[tuple[int, str]]:
    with followed.served(folder) as (socket_, token):
        yield socket_.getsockname()[1], token


def asked(port: int, path: str, method: str = "GET") -> tuple[http.client.HTTPResponse, str]:
    connection = http.client.HTTPConnection(server.LOOPBACK, port, timeout=200)
    connection.request(method, path)
    answer = connection.getresponse()
    return answer, answer.read().decode()


def test_the_page_is_whole_and_says_why_runs_do_not_count(where: tuple[int, str], folder: Path) -> None:
    text = (folder / "runs.jsonl").read_text().replace('"excluded": []', f'"excluded": ["load: {pages.TAGS}"]', 1)
    (folder / "runs.jsonl").write_text(text)
    answer, body = asked(where[0], f"/{where[1]}/")
    assert answer.status == 200
    assert answer.headers["Cache-Control"] == "no-store"
    page = pages.check(body)
    assert "Not running, and stopped before run 31 of 72 (1 excluded: load not carried)" in page.all("main")[0].text
    assert f"load: {pages.TAGS}" in page.all("main")[0].text
    refresh = [each for each in page.all("meta") if each.attributes.get("http-equiv") == "refresh"]
    assert [each.attributes["content"] for each in refresh] == ["5"]
    assert asked(where[0], f"/{where[1]}/", "HEAD")[1] == ""


@pytest.mark.parametrize("path", ["/", "/{}", "/{}x/", "/{}/report.html", "/%2e%2e/"])
def test_another_address_is_not_found(where: tuple[int, str], path: str) -> None:
    answer, body = asked(where[0], path.format(where[1]))
    assert (answer.status, body) == (404, "found no such page\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "LOCK"])
def test_other_methods_are_refused(where: tuple[int, str], method: str) -> None:
    answer, _ = asked(where[0], f"/{where[1]}/", method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_it_follows_the_folder_and_ends_with_the_report(
    recorded: Recorded, where: tuple[int, str], folder: Path
) -> None:
    path = f"/{where[1]}/"
    before = asked(where[0], path)[1]
    assert asked(where[0], path)[1] == before
    recorded.grow(folder, 40)
    assert "run 41 of 72" in asked(where[0], path)[1]
    (folder / "runs.jsonl").write_text("{}\n{}\n")
    assert "It cannot be shown: " in asked(where[0], path)[1]
    (folder / "report.html").write_bytes((recorded.folder / "report.html").read_bytes())
    answer, body = asked(where[0], path)
    assert body == (recorded.folder / "report.html").read_text()
    assert answer.headers["Content-Security-Policy"].startswith("sandbox allow-scripts; default-src 'none'")


def test_it_is_on_loopback_alone_and_leaves_no_thread(folder: Path) -> None:
    before = threading.active_count()
    with listening.listen((server.LOOPBACK, 0), "--live") as socket_:
        assert server.address_of(socket_, "token") == f"http://127.0.0.1:{socket_.getsockname()[1]}/token/"
        with server.served(socket_, "token", folder):
            assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            InputError, match=rf"^--live: found no way to listen at 127\.0\.0\.1:{port} \(.*\), expected"
        ):
            listening.listen((server.LOOPBACK, port), "--live")


def test_beside_a_study_it_is_a_process_that_runs_when_nothing_else_does(recorded: Recorded, tmp_path: Path) -> None:
    place = tmp_path / "out"
    with beside.page(place, 0) as (address, wait):
        port, path = int(address.split(":")[2].split("/")[0]), "/" + address.split("/", 3)[3]
        assert "The study has not begun yet." in asked(port, path)[1]
        recorded.begun(place, 30)
        assert "run 31 of 72" in asked(port, path)[1]
        process = wait.__self__  # type: ignore[attr-defined]
        policies = {
            (task / "stat").read_text().rsplit(")", 1)[1].split()[38]
            for task in Path(f"/proc/{process.pid}/task").iterdir()
        }
        assert policies == {"5"}  # SCHED_IDLE
        assert path.strip("/").encode() not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
    assert process.returncode == 0
    with pytest.raises(ConnectionRefusedError):
        asked(port, path)
