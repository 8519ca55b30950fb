"""Serves the live page of one results folder on loopback, under a token that nobody can guess: read-only.

The page is made when it is asked for and the folder has changed since: without a reader the server only waits. Its
threads run when nothing else wants a CPU (SCHED_IDLE), since the study's hosts may be on the same ones.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from framegauge import listening
from framegauge.errors import FramegaugeError
from framegauge.live import folder as files
from framegauge.results.lock import is_held

if TYPE_CHECKING:
    from framegauge.live.state import Reader

__all__ = ["LOOPBACK", "address_of", "idly", "new_token", "served"]

LOOPBACK = "127.0.0.1"
# The report is a file of the folder, which may be somebody else's: whatever is in it loads nothing and sees no server.
_SANDBOX = "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


class _Server(listening.Server):
    """A page may take as long as idle time is scarce."""

    connection_seconds = 120.0


def new_token() -> str:
    """Part of an address that nobody can guess."""
    return secrets.token_urlsafe(16)


def address_of(socket_: socket.socket, token: str) -> str:
    """Where the page of a socket that listens is."""
    return f"http://{LOOPBACK}:{socket_.getsockname()[1]}/{token}/"


def idly() -> None:
    """Puts this thread, and those that it starts, behind all others."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


class _Pages:
    """The page of a folder, made again only if the folder has changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reader: Reader | None = None
        self._lock = threading.Lock()
        self._of: tuple[object, ...] | None = None
        self._made = b""

    def get(self) -> tuple[bytes, bool]:
        """The page now, and whether it is the report."""
        if files.has_ended(self._folder):
            with contextlib.suppress(OSError):
                return (self._folder / files.REPORT).read_bytes(), True
        with self._lock:
            now = (*files.stamps(self._folder), is_held(self._folder))
            if now != self._of:
                self._made, self._of = self._make().encode(), now
            return self._made, False

    def _make(self) -> str:
        # Tables and charts take a second to import, which is for whoever asks for the page.
        from framegauge.live import page
        from framegauge.live.state import Reader

        if not (self._folder / files.PLAN).exists():
            return page.message("The study has not begun yet.")
        self._reader = self._reader or Reader(self._folder)
        try:
            return page.page(self._reader.read())
        except (FramegaugeError, OSError) as error:
            return page.message(f"It cannot be shown: {error}")


def _handler(get: Callable[[], tuple[bytes, bool]], token: str) -> type[BaseHTTPRequestHandler]:
    """What answers requests for the page that `get` makes."""

    class Handler(BaseHTTPRequestHandler):
        """Methods are found by their names, which is how http.server asks for them."""

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def __getattr__(self, name: str) -> object:
            if name.startswith("do_"):
                return self._refuse
            raise AttributeError(name)

        def _answer(self, with_body: bool) -> None:
            if not hmac.compare_digest(urlsplit(self.path).path.encode(), f"/{token}/".encode()):
                self._send(404, b"found no such page\n", with_body)
                return
            body, is_report = get()
            self._send(200, body, with_body, "text/html", is_report)

        def _refuse(self) -> None:
            self._send(405, b"found another method, expected GET or HEAD\n", True)

        def _send(
            self, code: int, body: bytes, with_body: bool, kind: str = "text/plain", is_report: bool = False
        ) -> None:
            self.send_response(code)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("X-Frame-Options", "DENY")
            if code == 405:
                self.send_header("Allow", "GET, HEAD")
            if is_report:
                self.send_header("Content-Security-Policy", _SANDBOX)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def version_string(self) -> str:
            """No more than what anybody may know."""
            return "framegauge"

        def log_message(self, *_: object) -> None:
            """Requests are no news."""

    return Handler


@contextlib.contextmanager
def served(socket_: socket.socket, token: str, folder: Path) -> Iterator[None]:
    """Serves the folder's page at `address_of` the socket until the block is left; closes the socket."""
    server = _Server(socket_, _handler(_Pages(folder).get, token))
    thread = threading.Thread(target=server.serve_forever, name="live", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
