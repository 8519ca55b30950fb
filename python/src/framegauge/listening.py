"""An HTTP server of few threads, for loopback: strangers who say nothing, or a byte now and then, are cut off."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from framegauge.errors import InputError

__all__ = ["Server", "listen"]

MOST_CONNECTIONS = 16  # at the same time; a monitor or a browser needs a few, for milliseconds


def listen(address: tuple[str, int], option: str) -> socket.socket:
    """A socket that listens; InputError names `option` if the address cannot be taken."""
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(64)
        return listening
    except (OSError, OverflowError) as error:
        listening.close()
        where = f"{address[0]}:{address[1]}"
        raise InputError(f"{option}: found no way to listen at {where} ({error}), expected a free port") from None


class Server(ThreadingHTTPServer):
    """Serves a socket that listens, and closes it at the end."""

    connection_seconds = 5.0  # no connection lasts longer

    def __init__(self, listening: socket.socket, handler: type[BaseHTTPRequestHandler]) -> None:
        self._until: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        super().__init__(listening.getsockname()[:2], handler, bind_and_activate=False)
        self.socket.close()  # its own, which is not bound
        self.socket = listening

    def process_request(self, request: socket.socket, client_address: Any) -> None:  # type: ignore[override]
        """A thread for the connection if there is one left; otherwise it is closed."""
        with self._lock:
            full = len(self._until) >= MOST_CONNECTIONS
            if not full:
                self._until[request] = time.monotonic() + self.connection_seconds
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
