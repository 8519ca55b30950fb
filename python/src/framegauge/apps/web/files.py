"""The site's images on the file server: made there, and read from it over NFS by the library libnfs."""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import os
import queue
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from framegauge.apps.web import content

__all__ = ["LIBRARY", "FileServer", "make"]

LIBRARY = "libnfs.so.13"
MOST_BYTES = 1 << 16  # more than any image has
KINDS = ("thumbnail", "poster")


class FileServer:
    """Several connections to an NFS server, each used by one thread at a time."""

    def __init__(self, url: str, connections: int) -> None:
        self._library = _library()
        self._free: queue.SimpleQueue[ctypes.c_void_p] = queue.SimpleQueue()
        for number in range(connections):
            self._free.put(self._mounted(url, f"{socket.gethostname()} {os.getpid()} {number}"))

    def read(self, name: str) -> bytes:
        """A whole file; OSError with the server's reason."""
        with self._borrowed() as context:
            file = ctypes.c_void_p()
            self._check(context, self._library.nfs_open(context, name.encode(), os.O_RDONLY, ctypes.byref(file)))
            try:
                buffer = ctypes.create_string_buffer(MOST_BYTES)
                length = self._library.nfs_read(context, file, ctypes.c_uint64(MOST_BYTES), buffer)
                self._check(context, length)
                return buffer.raw[:length]
            finally:
                self._library.nfs_close(context, file)

    def _mounted(self, url: str, name: str) -> ctypes.c_void_p:
        context = ctypes.c_void_p(self._library.nfs_init_context())
        # Two clients of one name would end each other's leases (NFS4ERR_EXPIRED).
        self._library.nfs4_set_client_name(context, name.encode())
        self._library.nfs4_set_verifier(context, hashlib.sha256(name.encode()).hexdigest()[:8].encode())
        parsed = self._library.nfs_parse_url_dir(context, url.encode())
        if not parsed:
            raise OSError(f"{url}: {self._library.nfs_get_error(context).decode()}")
        server, path = ctypes.cast(parsed, ctypes.POINTER(ctypes.c_char_p))[:2]
        self._check(context, self._library.nfs_mount(context, server, path))
        return context

    @contextmanager
    def _borrowed(self) -> Iterator[ctypes.c_void_p]:
        context = self._free.get()
        try:
            yield context
        finally:
            self._free.put(context)

    def _check(self, context: ctypes.c_void_p, answer: int) -> None:
        if answer < 0:
            raise OSError(-answer, f"NFS: {self._library.nfs_get_error(context).decode()}")


def _library() -> ctypes.CDLL:
    """libnfs with the types of what is used of it (libnfs.h of version 4)."""
    library = ctypes.CDLL(LIBRARY)
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    library.nfs_init_context.restype = pointer
    library.nfs_parse_url_dir.argtypes, library.nfs_parse_url_dir.restype = [pointer, text], pointer
    library.nfs_get_error.argtypes, library.nfs_get_error.restype = [pointer], text
    library.nfs4_set_client_name.argtypes = library.nfs4_set_verifier.argtypes = [pointer, text]
    library.nfs_mount.argtypes = [pointer, text, text]
    library.nfs_open.argtypes = [pointer, text, ctypes.c_int, ctypes.POINTER(pointer)]
    library.nfs_read.argtypes = [pointer, pointer, ctypes.c_uint64, text]
    library.nfs_close.argtypes = [pointer, pointer]
    return library


def make(folder: Path, thumbnail_bytes: int) -> None:
    """Writes all images below a folder: KIND/NUMBER."""
    for kind in KINDS:
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for number in range(content.IMAGES):
            (folder / kind / str(number)).write_bytes(content.image(kind, number, thumbnail_bytes))


def main() -> None:
    """Makes the images."""
    parser = argparse.ArgumentParser(description="Writes the images of the event calendar.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--thumbnail-bytes", type=int, required=True)
    options = parser.parse_args()
    make(options.folder, options.thumbnail_bytes)


if __name__ == "__main__":
    main()
