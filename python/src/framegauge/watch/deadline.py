"""HTTP connections whose whole answer comes in time: a socket's own limit is one for each byte, and a server that sends
a byte now and then would hold whoever waits for it."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

__all__ = ["Deadline"]


class Deadline:
    """The time for all of an answer, from the first attempt to connect to its last byte; then its sockets are cut."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_over = False
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []

    @contextlib.contextmanager
    def begun(self) -> Iterator[None]:
        """The time runs while this is entered."""
        timer = threading.Timer(self.seconds, self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def handlers(self, context: ssl.SSLContext | None) -> list[urllib.request.BaseHandler]:
        """What opens connections for urllib that this limits."""

        def plain(host: str, /, **options: Any) -> http.client.HTTPConnection:
            return _Plain(self, host, **options)

        def encrypted(host: str, /, **options: Any) -> http.client.HTTPConnection:
            return _Encrypted(self, host, **options)

        class Http(urllib.request.HTTPHandler):
            def http_open(self, req: urllib.request.Request) -> Any:
                return self.do_open(plain, req)

        class Https(urllib.request.HTTPSHandler):
            def https_open(self, req: urllib.request.Request) -> Any:
                return self.do_open(encrypted, req, context=context)

        return [Http(), Https(context=context)]

    def hold(self, connected: socket.socket) -> None:
        """Takes a socket that is connected into those that are cut; TimeoutError once the time is over."""
        with self._lock:
            self._sockets.append(connected)
            if self.is_over:
                raise TimeoutError("the time for the answer is over")

    def _cut(self) -> None:
        with self._lock:
            self.is_over = True
            for connected in self._sockets:
                with contextlib.suppress(OSError):  # it is closed already
                    # Not that of ssl, which would go on as if there had been no encryption.
                    socket.socket.shutdown(connected, socket.SHUT_RDWR)


class _Plain(http.client.HTTPConnection):
    def __init__(self, deadline: Deadline, host: str, **options: Any) -> None:
        super().__init__(host, **options)
        self._deadline = deadline

    def connect(self) -> None:
        """Connects, and has the deadline hold the socket."""
        super().connect()
        self._deadline.hold(self.sock)


class _Encrypted(http.client.HTTPSConnection):
    def __init__(self, deadline: Deadline, host: str, **options: Any) -> None:
        super().__init__(host, **options)
        self._deadline = deadline

    def connect(self) -> None:
        """Connects, agrees on keys, and has the deadline hold the socket."""
        super().connect()
        self._deadline.hold(self.sock)
