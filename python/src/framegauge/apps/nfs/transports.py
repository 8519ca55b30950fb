"""The ways to a server: one TCP connection, or one UDP socket. Both count every message by its size, RPC included."""

from __future__ import annotations

import socket
import struct
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterator

from framegauge.apps.nfs import LARGEST_BLOCK
from framegauge.apps.nfs.rpc import MARK_BYTES, marked, record_bytes
from framegauge.apps.nfs.xdr import BadMessage

__all__ = ["TRANSPORTS", "Closed", "Transport"]

CONNECT_SECONDS = 5.0
MOST_MESSAGE_BYTES = LARGEST_BLOCK + 4096  # of a call or an answer, with its headers
DATAGRAM_BYTES = 1 << 16
BUFFER_BYTES = 1 << 20  # asked for; the kernel's limits hold
AT_ONCE = struct.pack("ii", 1, 0)  # struct linger: close() sends RST, and drops what is not sent yet (socket(7))


class Closed(BadMessage, ConnectionError):
    """The other end has closed the connection."""


class Transport(ABC):
    """A socket that never blocks. `sent` and `received`: the number of messages by their bytes, with record marks."""

    is_datagrams: bool

    def __init__(self, address: str, port: int) -> None:
        self.where = f"{address} port {port}"
        self.socket = self._opened(address, port)
        self.socket.setblocking(False)
        self.sent: Counter[int] = Counter()
        self.received: Counter[int] = Counter()

    @abstractmethod
    def _opened(self, address: str, port: int) -> socket.socket:
        """The socket, connected."""

    @abstractmethod
    def send(self, message: bytes) -> None:
        """Sends a message, now or as soon as there is room."""

    @abstractmethod
    def flush(self) -> None:
        """Sends what waits."""

    @abstractmethod
    def arrived(self) -> Iterator[memoryview]:
        """The messages that are there; each may be overwritten when the next is taken."""

    @property
    @abstractmethod
    def waits(self) -> bool:
        """Whether something waits to be sent."""

    def close(self) -> None:
        """Closes the socket."""
        self.socket.close()

    def abort(self) -> None:
        """Closes the socket, and has neither end of a connection go on sending again what does not arrive."""
        if not self.is_datagrams:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        self.close()


class Tcp(Transport):
    """A connection, with Nagle's algorithm off, as NFS clients have it."""

    is_datagrams = False

    def _opened(self, address: str, port: int) -> socket.socket:
        connection = socket.create_connection((address, port), CONNECT_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._out: deque[memoryview] = deque()
        self._buffer = bytearray(2 * MOST_MESSAGE_BYTES)
        self._view = memoryview(self._buffer)
        self._begin = self._end = 0
        return connection

    def send(self, message: bytes) -> None:
        """Queues the record behind those that wait."""
        record = marked(message)
        self.sent[len(record)] += 1
        self._out.append(memoryview(record))
        self.flush()

    def flush(self) -> None:
        """Sends as much as the socket takes."""
        while self._out:
            try:
                done = self.socket.send(self._out[0])
            except BlockingIOError:
                return
            if done < len(self._out[0]):
                self._out[0] = self._out[0][done:]
                return
            self._out.popleft()

    @property
    def waits(self) -> bool:
        """Whether the socket had no room."""
        return bool(self._out)

    def arrived(self) -> Iterator[memoryview]:
        """Reads once, and takes all whole records."""
        try:
            count = self.socket.recv_into(self._view[self._end :])
        except BlockingIOError:
            return
        if not count:
            raise Closed(f"found the connection to {self.where} closed by the server, expected an answer")
        self._end += count
        while self._end - self._begin >= MARK_BYTES:
            begin = self._begin + MARK_BYTES
            length = record_bytes(bytes(self._view[self._begin : begin]))
            if length > MOST_MESSAGE_BYTES:
                raise BadMessage(f"found a record of {length} bytes, expected at most {MOST_MESSAGE_BYTES}")
            if self._end < begin + length:
                break
            self.received[MARK_BYTES + length] += 1
            self._begin = begin + length
            yield self._view[begin : begin + length]
        # The rest moves to the front when no whole record would fit behind it.
        if self._begin == self._end:
            self._begin = self._end = 0
        elif len(self._buffer) - self._begin < MOST_MESSAGE_BYTES + MARK_BYTES:
            rest_bytes = self._end - self._begin
            self._view[:rest_bytes] = bytes(self._view[self._begin : self._end])
            self._begin, self._end = 0, rest_bytes


class Udp(Transport):
    """Datagrams from and to one address."""

    is_datagrams = True

    def _opened(self, address: str, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_DGRAM)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            connection.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
        connection.connect((address, port))
        self._buffer = bytearray(DATAGRAM_BYTES)
        self._view = memoryview(self._buffer)
        self._out: deque[bytes] = deque()
        return connection

    def send(self, message: bytes) -> None:
        """Sends one datagram."""
        self._out.append(message)
        self.flush()

    def flush(self) -> None:
        """Sends as many datagrams as the socket takes."""
        while self._out:
            try:
                self.socket.send(self._out[0])
            except BlockingIOError:
                return
            self.sent[len(self._out.popleft())] += 1

    @property
    def waits(self) -> bool:
        """Whether the socket had no room."""
        return bool(self._out)

    def arrived(self) -> Iterator[memoryview]:
        """All datagrams that are there."""
        while True:
            try:
                length = self.socket.recv_into(self._buffer)
            except BlockingIOError:
                return
            self.received[length] += 1
            yield self._view[:length]


TRANSPORTS: dict[str, type[Transport]] = {"tcp": Tcp, "udp": Udp}
