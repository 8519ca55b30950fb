"""Serves the latest metrics over HTTP, on loopback unless told otherwise."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from framegauge.errors import InputError

__all__ = ["served"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MOST_CONNECTIONS = 16  # at the same time; a monitor needs one, for milliseconds
CONNECTION_SECONDS = 5.0


class _Server(ThreadingHTTPServer):
    """Has few threads, none of them for long: strangers who say nothing, or a byte now and then, are cut off."""

    request_queue_size = 64

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._until: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: socket.socket, client_address: Any) -> None:  # type: ignore[override]
        """A thread for the connection if there is one left; otherwise it is closed."""
        with self._lock:
            full = len(self._until) >= MOST_CONNECTIONS
            if not full:
                self._until[request] = time.monotonic() + CONNECTION_SECONDS
        if full:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Called every half a second: cuts off connections whose time is over."""
        now = time.monotonic()
        with self._lock:
            for request in [each for each, until in self._until.items() if now > until]:
                with suppress(OSError):  # its peer has left
                    request.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
        """The end of a connection."""
        with self._lock:
            self._until.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Who leaves early is no news."""


@contextmanager
def served(address: tuple[str, int]) -> Iterator[tuple[str, Callable[[str], None]]]:
    """Where they are, as ADDRESS:PORT, and what publishes a new text; 503 until the first. InputError if the
    address of --listen cannot be taken."""
    latest: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(404, "found no such page, expected /metrics")
                return
            if not latest:
                self.send_error(503, "there is no result yet")
                return
            body = latest[-1]
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Scrapes are no news."""

    try:
        server = _Server(address, Handler)
    except (OSError, OverflowError) as error:
        where = f"{address[0]}:{address[1]}"
        raise InputError(f"--listen: found no way to listen at {where} ({error}), expected a free port") from None
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def publish(text: str) -> None:
        latest[:] = [text.encode()]

    try:
        yield f"{server.server_address[0]!s}:{server.server_address[1]}", publish
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
