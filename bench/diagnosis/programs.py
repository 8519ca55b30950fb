"""What the hosts of a scene do: small programs over real sockets. Each is data, with one method for each end.

The sender's host sends the data that matters; which end opens the connection is drawn.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.diagnosis.tcp_info import account, ends

PORT = 5000
SO_MAX_PACING_RATE = 47
CHUNK = 65536
Info = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where a host's end of the connections is: its addresses, those of the other, and whether it opens them."""

    own: tuple[str, ...]
    other: tuple[str, ...]
    opens: bool


def info(connection: socket.socket) -> Info:
    """What the kernel says of a connection, times in seconds; `kernel`: all of it (struct tcp_info)."""
    kernel = account(connection)
    return {
        "busy": kernel["tcpi_busy_time"] / 1e6,
        "rwnd_limited": kernel["tcpi_rwnd_limited"] / 1e6,
        "sndbuf_limited": kernel["tcpi_sndbuf_limited"] / 1e6,
        "rtt": kernel["tcpi_rtt"] / 1e6,
        "min_rtt": kernel["tcpi_min_rtt"] / 1e6,
        "total_retrans": kernel["tcpi_total_retrans"],
        "kernel": kernel,
    }


@dataclass(frozen=True)
class Options:
    """Socket options. Bytes; 0: the kernel's choice."""

    send_buffer: int = 0
    receive_buffer: int = 0
    mss: int = 0
    nodelay: bool = False
    pacing: int = 0
    # The default of Linux, but not of every machine: BBR, for one, goes on after a pause as before.
    congestion: str = "cubic"
    cork: bool = False

    def apply(self, each: socket.socket) -> None:
        for level, name, value in (
            (socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_buffer),
            (socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer),
            (socket.IPPROTO_TCP, socket.TCP_MAXSEG, self.mss),
            (socket.IPPROTO_TCP, socket.TCP_NODELAY, int(self.nodelay)),
            (socket.IPPROTO_TCP, socket.TCP_CORK, int(self.cork)),
            (socket.SOL_SOCKET, SO_MAX_PACING_RATE, self.pacing),
        ):
            if value:
                each.setsockopt(level, name, value)
        if self.congestion:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.congestion.encode())


def listen(place: Place, options: Options, port: int = PORT) -> socket.socket:
    each = socket.socket(socket.AF_INET6 if ":" in place.own[0] else socket.AF_INET)
    each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    options.apply(each)
    each.bind((place.own[0], port))
    each.listen(256)
    return each


def connect(place: Place, options: Options, own: str = "", port: int = PORT) -> socket.socket:
    each = socket.socket(socket.AF_INET6 if ":" in place.own[0] else socket.AF_INET)
    options.apply(each)
    if own:
        each.bind((own, 0))
    for _ in range(200):  # until the other host listens
        try:
            each.connect((place.other[0], port))
            return each
        except ConnectionRefusedError:
            each.close()
            raise
    raise TimeoutError


def read_all(connection: socket.socket, count: int = -1) -> int:
    """Read `count` bytes, or all until the other end has finished; how many there were."""
    got = 0
    while count < 0 or got < count:
        part = connection.recv(CHUNK if count < 0 else min(CHUNK, count - got))
        if not part:
            break
        got += len(part)
    return got


class Program:
    """What both hosts do. `connections` that follow one another, or run `together` from one address each."""

    sender_options = Options()
    receiver_options = Options()
    count = 1
    together = False

    def send(self, connection: socket.socket) -> None:
        """The sender's end of one connection; without more, it is closed."""

    def receive(self, connection: socket.socket) -> None:
        """The receiver's end, likewise."""

    def run(self, place: Place, is_sender: bool, ready: Callable[[], None]) -> Info:
        """One host's part; what the kernel says of its sockets."""
        options = self.sender_options if is_sender else self.receiver_options
        found: list[Info] = []

        def one(connection: socket.socket) -> None:
            with connection:
                of_both = {}
                try:
                    of_both = ends(connection)
                    (self.send if is_sender else self.receive)(connection)
                except (ConnectionError, TimeoutError) as problem:
                    found.append({"problem": type(problem).__name__, **of_both})
                    return
                found.append({**info(connection), **of_both})

        self._meet(place, options, one, ready)
        return {"sockets": found}

    def _meet(
        self, place: Place, options: Options, one: Callable[[socket.socket], None], ready: Callable[[], None]
    ) -> None:
        if not place.opens:
            listener = listen(place, options)
            ready()
            threads = []
            for _ in range(self.count):
                connection, _ = listener.accept()
                options.apply(connection)
                threads.append(threading.Thread(target=one, args=(connection,)))
                threads[-1].start()
                if not self.together:
                    threads[-1].join()
            for each in threads:
                each.join()
            return
        ready()
        if not self.together:
            for _ in range(self.count):
                one(connect(place, options))
            return
        opened = [connect(place, options, own) for own in self._sources(place)]
        self._at_once(opened, one)

    @staticmethod
    def _at_once(opened: list[socket.socket], one: Callable[[socket.socket], None]) -> None:
        begun = threading.Barrier(len(opened))

        def play(connection: socket.socket) -> None:
            begun.wait()
            one(connection)

        threads = [threading.Thread(target=play, args=(each,)) for each in opened]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    def _sources(self, place: Place) -> list[str]:
        return [place.own[number % len(place.own)] for number in range(self.count)]


def finish(connection: socket.socket) -> None:
    """Say that there is no more, and wait until the other end has said so."""
    connection.shutdown(socket.SHUT_WR)
    read_all(connection)


@dataclass(frozen=True)
class Stream(Program):
    """One transfer. After each `write` bytes the sender waits `pause` seconds.

    The receiver waits `late` seconds before it reads, and after each `read` bytes `rest` seconds, `rests` times.
    `alone`: of several connections together the first comes from one host, and all others from another.
    """

    size: int
    write: int = CHUNK
    pause: float = 0.0
    late: float = 0.0
    read: int = 0
    rest: float = 0.0
    rests: int = 1 << 30
    sender_options: Options = Options()
    receiver_options: Options = Options()
    count: int = 1
    together: bool = False
    alone: bool = False

    def _sources(self, place: Place) -> list[str]:
        return [place.own[0], *[place.own[1]] * (self.count - 1)] if self.alone else super()._sources(place)

    def send(self, connection: socket.socket) -> None:
        left = self.size
        while left:
            part = min(self.write, left)
            connection.sendall(bytes(part))
            left -= part
            if self.pause and left:
                time.sleep(self.pause)
        finish(connection)

    def receive(self, connection: socket.socket) -> None:
        time.sleep(self.late)
        for _ in range(self.rests):
            if not self.read or not read_all(connection, self.read):
                break
            time.sleep(self.rest)
        read_all(connection)
        connection.shutdown(socket.SHUT_WR)


@dataclass(frozen=True)
class Asks(Program):
    """Requests of the receiver, answers of the sender; the receiver thinks between. Sizes in bytes."""

    asks: int
    request: int
    answer: int
    think: float = 0.0
    sender_options: Options = Options(nodelay=True)
    receiver_options: Options = Options(nodelay=True)
    count: int = 1
    together: bool = False

    def send(self, connection: socket.socket) -> None:
        for _ in range(self.asks):
            read_all(connection, self.request)
            connection.sendall(bytes(self.answer))
        read_all(connection)
        connection.shutdown(socket.SHUT_WR)

    def receive(self, connection: socket.socket) -> None:
        for number in range(self.asks):
            connection.sendall(bytes(self.request))
            read_all(connection, self.answer)
            if self.think and number + 1 < self.asks:
                time.sleep(self.think)
        finish(connection)


@dataclass(frozen=True)
class SplitWrites(Program):
    """Messages in two writes, a head and a body, of which the receiver answers the whole: Nagle's victims.

    The receiver delays its acknowledgements, as one that answers does; `nodelay` is the cure.
    """

    messages: int
    head: int
    body: int
    answer: int = 1
    nodelay: bool = False
    think: float = 0.0

    @property
    def sender_options(self) -> Options:  # type: ignore[override]
        return Options(nodelay=self.nodelay)

    def send(self, connection: socket.socket) -> None:
        for _ in range(self.messages):
            connection.sendall(bytes(self.head))
            connection.sendall(bytes(self.body))
            read_all(connection, self.answer)
            time.sleep(self.think)
        finish(connection)

    def receive(self, connection: socket.socket) -> None:
        for _ in range(self.messages):
            left = self.head + self.body
            while left:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
                left -= len(connection.recv(left))
            connection.sendall(bytes(self.answer))
        read_all(connection)
        connection.shutdown(socket.SHUT_WR)


@dataclass(frozen=True)
class CutOff(Program):
    """Transfers that the sender, or with `by_receiver` the receiver, ends by a reset (SO_LINGER 0)."""

    size: int
    after: int
    by_receiver: bool = False
    count: int = 1
    together: bool = False

    def send(self, connection: socket.socket) -> None:
        connection.sendall(bytes(self.size))
        if self.by_receiver:
            read_all(connection)
            return
        connection.recv(1)
        self._reset(connection)

    def receive(self, connection: socket.socket) -> None:
        read_all(connection, self.after)
        if self.by_receiver:
            self._reset(connection)
            return
        connection.sendall(b"k")
        read_all(connection)

    @staticmethod
    def _reset(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@dataclass(frozen=True)
class Refused(Program):
    """Connections to a port where nobody listens; the scene needs the host that opens them only."""

    tries: int = 1

    def run(self, place: Place, is_sender: bool, ready: Callable[[], None]) -> Info:  # noqa: ARG002
        ready()
        for _ in range(self.tries if place.opens else 0):
            try:
                connect(place, Options(), port=PORT + 1).close()
            except ConnectionRefusedError:
                continue
        return {"sockets": []}
