"""Serves the latest metrics over HTTP, on loopback unless told otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from framegauge.listening import Server, listen

__all__ = ["served"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


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

    server = Server(listen(address, "--listen"), Handler)
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
