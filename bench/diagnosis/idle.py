"""Connections on which nothing happens for a while, and nothing is wrong."""

# ruff: noqa: RUF009 (options are frozen)

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass

from bench.diagnosis.programs import Options, Program, finish, read_all


@dataclass(frozen=True)
class Idle(Program):
    """Requests of the receiver, answers of the sender, and then `rest` seconds of nothing until one end closes.

    `by_receiver`: the client closes, not the server. `cut`: it does so by a reset, as servers do that forget idle
    connections. `keepalive`: after a second of silence the client's kernel asks whether the other end lives.
    """

    asks: int
    request: int
    answer: int
    rest: float
    by_receiver: bool = False
    cut: bool = False
    keepalive: bool = False
    sender_options: Options = Options(nodelay=True)
    receiver_options: Options = Options(nodelay=True)

    def send(self, connection: socket.socket) -> None:
        for _ in range(self.asks):
            read_all(connection, self.request)
            connection.sendall(bytes(self.answer))
        self._end(connection, not self.by_receiver)

    def receive(self, connection: socket.socket) -> None:
        if self.keepalive:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
        for _ in range(self.asks):
            connection.sendall(bytes(self.request))
            read_all(connection, self.answer)
        self._end(connection, self.by_receiver)

    def _end(self, connection: socket.socket, closes: bool) -> None:
        if not closes:
            read_all(connection)
            if not self.cut:
                connection.shutdown(socket.SHUT_WR)
            return
        time.sleep(self.rest)
        if self.cut:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            finish(connection)
