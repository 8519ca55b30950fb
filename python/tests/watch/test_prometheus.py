"""The client of Prometheus before servers that are strict, broken or hostile: real sockets, in this process."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

from framegauge.cli import main as cli
from framegauge.errors import InputError
from framegauge.watch import prometheus
from framegauge.watch.model import Server
from framegauge.watch.prometheus import BadQuery, Prometheus, Unanswered

Respond = Callable[[BaseHTTPRequestHandler], None]
TIMES = [100.0, 115.0, 130.0]
EMPTY = {"status": "success", "data": {"resultType": "matrix", "result": []}}


@contextmanager
def serving(respond: Respond) -> Iterator[str]:
    """A server that answers so; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            respond(self)

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def answer(document: object, code: int = 200, headers: dict[str, str] | None = None) -> Respond:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()

    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return respond


def ask(url: str, **more: object) -> list[prometheus.Series]:
    return Prometheus(Server(url=url, **more)).ask("up", TIMES)


def test_values_are_placed_by_their_times_and_what_is_no_number_is_missing():
    result = [
        {"metric": {"instance": "a"}, "values": [[100, "1.5"], [130, "NaN"]]},
        {"metric": {}, "values": [[115.001, "+Inf"]]},
    ]
    with serving(answer({"status": "success", "data": {"resultType": "matrix", "result": result}})) as url:
        first, second = ask(url)
    assert first.labels == {"instance": "a"}
    assert np.array_equal(first.values, [1.5, np.nan, np.nan], equal_nan=True)
    assert np.isnan(second.values).all()


def test_the_query_and_its_times_are_sent_as_a_form_and_the_secret_as_a_header(tmp_path, monkeypatch):
    seen = []

    def respond(handler: BaseHTTPRequestHandler) -> None:
        seen.append((handler.path, urllib.parse.parse_qs(handler.body.decode()), handler.headers["Authorization"]))
        answer(EMPTY)(handler)

    (tmp_path / "token").write_text("t0ken\n")
    monkeypatch.setenv("PASSWORD", "s3cret")
    with serving(respond) as url:
        ask(url + "/prom/", token_file=str(tmp_path / "token"))
        ask(url, username="u", password_env="PASSWORD")
        ask(url)
    path, form, token = seen[0]
    assert path == "/prom/api/v1/query_range"
    assert form == {"query": ["up"], "start": ["100.000"], "end": ["130.000"], "step": ["15.000"], "timeout": ["30s"]}
    assert token == "Bearer t0ken"
    assert seen[1][2] == "Basic " + base64.b64encode(b"u:s3cret").decode()
    assert seen[2][2] is None


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_gets_no_secret(code, tmp_path):
    """Of a POST, urllib itself refuses 307 and 308 alone, and sends all headers along."""
    (tmp_path / "token").write_text("t0ken")
    asked = []
    with (
        serving(lambda handler: asked.append(handler.headers["Authorization"])) as other,
        serving(answer(b"", code, {"Location": other})) as url,
        pytest.raises(Unanswered, match="found a redirect"),
    ):
        ask(url, token_file=str(tmp_path / "token"))
    assert asked == []


@pytest.mark.parametrize(
    ("respond", "message"),
    [
        (answer({"status": "error", "error": "secret t0ken"}, 401), "found HTTP 401, expected a token or a password"),
        (answer(b"<html>", 502), "found HTTP 502, expected an answer of Prometheus"),
        (answer(b"<html>"), "found an answer that is no JSON"),
        (answer(b"[" * 100_000), "found an answer that is no JSON"),
        (answer([]), "found an answer of another form"),
        (
            answer({"status": "success", "data": {"resultType": "matrix", "result": [{"values": [[1]]}]}}),
            "of another form",
        ),
        (
            answer({"status": "success", "data": {"resultType": "vector", "result": []}}),
            "found a vector, expected a matrix",
        ),
        (lambda handler: handler.connection.close(), "found no answer"),
        (answer({"status": "error", "error": "bad\x1b[2Jdata\nline"}, 422), "found HTTP 422: bad.\\[2Jdata line"),
    ],
)
def test_what_is_no_answer_is_one_line(respond, message):
    with serving(respond) as url, pytest.raises(Unanswered, match=message) as error:
        ask(url)
    assert "\n" not in str(error.value)
    assert "t0ken" not in str(error.value)


def test_an_answer_without_end_is_not_read(monkeypatch):
    monkeypatch.setattr(prometheus, "MOST_BYTES", 1000)

    def respond(handler: BaseHTTPRequestHandler) -> None:
        """Until the reader has left, or the time limit of the answer has run out."""
        handler.send_response(200)
        handler.end_headers()
        with contextlib.suppress(OSError):
            while True:
                handler.wfile.write(b" " * 1000)

    with serving(respond) as url, pytest.raises(Unanswered, match="more than 1000 bytes"):
        ask(url, timeout="5 s")


def test_too_many_series_ask_for_a_narrower_query(monkeypatch):
    monkeypatch.setattr(prometheus, "MOST_SERIES", 2)
    many = {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "values": []}] * 3}}
    with serving(answer(many)) as url, pytest.raises(BadQuery, match="found 3 series, expected at most 2"):
        ask(url)


def test_a_server_that_says_nothing_is_left():
    waiting = threading.Event()
    with serving(lambda _: waiting.wait(20) and None) as url:
        try:
            with pytest.raises(Unanswered, match=r"timed out|no whole answer within 0\.1 s"):
                ask(url, timeout="100 ms")
        finally:
            waiting.set()


@pytest.mark.parametrize("text", ["", "two\nlines", "t\x00"])
def test_a_secret_that_is_none_is_an_error_without_it(text, tmp_path):
    (tmp_path / "token").write_text(text)
    with pytest.raises(InputError, match=r"prometheus.token_file: .*found no token, expected one line of text"):
        Prometheus(Server(url="http://x", token_file=str(tmp_path / "token")))
    with pytest.raises(InputError, match="found no file"):
        Prometheus(Server(url="http://x", token_file=str(tmp_path / "none")))


def test_a_server_that_is_gone_leaves_no_earlier_answer_in_the_textfile(tmp_path, capsys):
    with serving(answer(EMPTY)) as url:
        pass
    file, metrics = tmp_path / "watch.yaml", tmp_path / "framegauge.prom"
    file.write_text(f"prometheus: {url}\nchange: {{at: 2026-11-10T13:00:00Z, hosts: [a]}}\ncontrol: [b]\n")
    metrics.write_text("framegauge_watch_gate 0\n")
    assert cli.main(["watch", str(file), "--textfile", str(metrics)]) == 2
    assert "found no answer" in capsys.readouterr().err
    assert "framegauge_watch_gate 2.0" in metrics.read_text()


@pytest.mark.parametrize("after", [b"", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 500 No\r\nContent-Length: 9999\r\n\r\n"])
def test_a_server_that_sends_a_byte_now_and_then_is_left(after):
    """Before its head, and within it; the time for one byte is never over."""
    left = threading.Event()

    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(after)
        with contextlib.suppress(OSError):
            for _ in range(2000):
                if left.wait(0.005):
                    return
                handler.wfile.write(b"H")

    with serving(respond) as url:
        try:
            with pytest.raises(Unanswered, match=r"found no (whole )?answer"):
                ask(url, timeout="100 ms")
        finally:
            left.set()
