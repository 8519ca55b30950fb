"""An iSCSI session by the library libiscsi: one connection, several requests under way (RFC 7143).

libiscsi is what QEMU's initiator uses. It needs no kernel module, and calls back when a response has arrived, so that
each request has a time of its own.
"""

from __future__ import annotations

import ctypes
import os
import select
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from framegauge.apps.iscsi import SECTOR_BYTES

__all__ = ["LIBRARY", "Answer", "Session"]

LIBRARY = "libiscsi.so.7"
LUN = 1
CONNECTS_SECONDS = 0.01
NO_LIMIT = 0  # of libiscsi, for a request
AT_ONCE = struct.pack("ii", 1, 0)  # struct linger: close() sends RST, and drops what is not sent yet (socket(7))
INITIATOR = b"iqn.2026-01.net.framegauge:initiator"
NORMAL_SESSION = 2  # iscsi.h
UNDERFLOW = 1  # scsi-lowlevel.h: SCSI_RESIDUAL_UNDERFLOW
_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class _Task(ctypes.Structure):
    """The first members of struct scsi_task (scsi-lowlevel.h)."""

    _fields_ = (
        ("status", ctypes.c_int),
        ("cdb_size", ctypes.c_int),
        ("xfer_dir", ctypes.c_int),
        ("expxferlen", ctypes.c_int),
        ("cdb", ctypes.c_ubyte * 16),
        ("residual_status", ctypes.c_int),
        ("residual", ctypes.c_size_t),
    )


@dataclass(frozen=True)
class Answer:
    """The response to a request. `status`: 0 if all is well; `bytes`: how many were read or written."""

    slot: int
    status: int
    bytes: int


class Session:
    """A disk of a target. `slots` requests can be under way; each has a buffer, and `on_answer` is called with its end.

    Login and logout end with an error after `limit_seconds`. Requests have no limit of their own: the caller gives up
    those without an answer (`abort`). With `reconnects` a connection that ends is opened again so many times at most,
    and what was under way is asked for again.
    """

    def __init__(
        self, address: str, target: str, slots: int, block_bytes: int, limit_seconds: int,
        on_answer: Callable[[Answer], None], reconnects: int = 0,
    ) -> None:  # fmt: skip
        self._library, self._block_bytes, self._on_answer = _library(), block_bytes, on_answer
        self.buffers = [ctypes.create_string_buffer(block_bytes) for _ in range(slots)]
        self.failure: BaseException | None = None
        self.sent_again = 0  # requests that were under way when a connection was opened again
        self._under_way = 0
        self._back = _CALLBACK(self._called)
        self._context = self._library.iscsi_create_context(INITIATOR)
        self._library.iscsi_set_session_type(self._context, NORMAL_SESSION)
        self._library.iscsi_set_targetname(self._context, target.encode())
        self._library.iscsi_set_timeout(self._context, limit_seconds)
        self._limit_seconds, self._is_given_up = limit_seconds, False
        self._library.iscsi_set_noautoreconnect(self._context, 0 if reconnects else 1)
        self._library.iscsi_set_reconnect_max_retries(self._context, reconnects)
        if self._library.iscsi_full_connect_sync(self._context, address.encode(), LUN) != 0:
            raise OSError(f"{address}: {self._words()}")
        self._library.iscsi_set_timeout(self._context, NO_LIMIT)
        self._sockets = {self._socket()}

    @property
    def connections(self) -> int:
        """How many have logged in so far."""
        return len(self._sockets)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is None and not self._is_given_up:
            self._library.iscsi_set_timeout(self._context, self._limit_seconds)
            if self._library.iscsi_logout_sync(self._context) == 0:
                self._sockets.add(self._socket())  # a connection may have been opened again for it
        self._on_answer = lambda _: None  # which requests under way would be given
        self._library.iscsi_destroy_context(self._context)

    def abort(self) -> None:
        """Has the session end without a logout, whose answer would wait behind those that do not come. The connection
        is reset, so that neither end goes on sending again what does not arrive."""
        self._is_given_up = True
        if (file := self._library.iscsi_get_fd(self._context)) >= 0:
            with socket.socket(fileno=os.dup(file)) as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)

    def read(self, slot: int, sector: int) -> None:
        """Begins to read a block into the buffer of a slot."""
        task = self._library.iscsi_read10_task(
            self._context, LUN, sector, self._block_bytes, SECTOR_BYTES, 0, 0, 0, 0, 0, self._back, slot
        )
        if not task:
            raise OSError(f"read: {self._words()}")
        self._library.scsi_task_add_data_in_buffer(task, self._block_bytes, self.buffers[slot])
        self._under_way += 1

    def write(self, slot: int, sector: int) -> None:
        """Begins to write the buffer of a slot."""
        task = self._library.iscsi_write10_task(
            self._context, LUN, sector, self.buffers[slot], self._block_bytes, SECTOR_BYTES, 0, 0, 0, 0, 0,
            self._back, slot,
        )  # fmt: skip
        if not task:
            raise OSError(f"write: {self._words()}")
        self._under_way += 1

    def serve(self, seconds: float) -> None:
        """Sends and receives what there is, once; waits for it at most so long. OSError if the session fails."""
        events = self._library.iscsi_which_events(self._context)
        file = self._library.iscsi_get_fd(self._context)  # another one after the connection was opened again
        reads = [file] if events & select.POLLIN else []
        writes = [file] if events & select.POLLOUT else []
        if not events:  # it waits for the moment at which it connects again
            seconds = min(seconds, CONNECTS_SECONDS)
        readable, writable, _ = select.select(reads, writes, [], max(0.0, seconds))
        ready = (select.POLLIN if readable else 0) | (select.POLLOUT if writable else 0)
        under_way = self._under_way
        if self._library.iscsi_service(self._context, ready) < 0:
            raise OSError(f"the session ended: {self._words()}")
        if self._library.iscsi_is_logged_in(self._context) and (now := self._socket()) not in self._sockets:
            self._sockets.add(now)
            self.sent_again += under_way
        if self.failure is not None:
            raise self.failure

    def _called(self, _context: int, status: int, task: int, slot: int | None) -> None:
        """A callback must not raise: ctypes would print it, and go on."""
        self._under_way -= 1
        try:
            result = ctypes.cast(task, ctypes.POINTER(_Task))[0] if task else None
            missing = result.residual if result is not None and result.residual_status == UNDERFLOW else 0
            answer = Answer(slot or 0, status, self._block_bytes - missing if status == 0 else 0)
            if task:
                self._library.scsi_free_scsi_task(task)
            self._on_answer(answer)
        except BaseException as error:
            self.failure = error

    def _socket(self) -> int:
        """The inode of the socket: libiscsi gives a new connection the number of the old one's file."""
        return os.fstat(self._library.iscsi_get_fd(self._context)).st_ino

    def _words(self) -> str:
        return str(self._library.iscsi_get_error(self._context).decode(errors="replace")).strip()


def _library() -> ctypes.CDLL:
    """libiscsi with the types of what is used of it (iscsi.h of version 1.19)."""
    library = ctypes.CDLL(LIBRARY)
    pointer, text, number, word = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint32
    library.iscsi_create_context.argtypes, library.iscsi_create_context.restype = [text], pointer
    library.iscsi_get_error.argtypes, library.iscsi_get_error.restype = [pointer], text
    library.iscsi_set_targetname.argtypes = [pointer, text]
    for name in ("iscsi_set_session_type", "iscsi_set_timeout", "iscsi_set_noautoreconnect", "iscsi_service",
                 "iscsi_set_reconnect_max_retries"):  # fmt: skip
        getattr(library, name).argtypes = [pointer, number]
    for name in (
        "iscsi_get_fd",
        "iscsi_is_logged_in",
        "iscsi_which_events",
        "iscsi_logout_sync",
        "iscsi_destroy_context",
    ):
        getattr(library, name).argtypes = [pointer]
    library.iscsi_full_connect_sync.argtypes = [pointer, text, number]
    flags = [number] * 5
    library.iscsi_read10_task.argtypes = [pointer, number, word, word, number, *flags, _CALLBACK, pointer]
    library.iscsi_write10_task.argtypes = [pointer, number, word, text, word, number, *flags, _CALLBACK, pointer]
    library.iscsi_read10_task.restype = library.iscsi_write10_task.restype = pointer
    library.scsi_task_add_data_in_buffer.argtypes = [pointer, number, text]
    library.scsi_free_scsi_task.argtypes, library.scsi_free_scsi_task.restype = [pointer], None
    return library
