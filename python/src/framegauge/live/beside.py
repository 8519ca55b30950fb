"""The live page beside a study that runs: a process of its own, so that it takes nothing from the study's.

It is given the socket that listens, and ends when its standard input does: with the block of `page`, or with the
study's process, however that ends. Ctrl-C does not reach it.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

from framegauge import listening
from framegauge.live import server

__all__ = ["main", "page"]

ENDS_SECONDS = 10.0


@contextlib.contextmanager
def page(folder: Path, port: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """The address of a folder's page while the block runs, and what waits for the end of its process. InputError if the
    port cannot be taken; 0 is a free one."""
    token = server.new_token()
    with listening.listen((server.LOOPBACK, port), "--live") as socket_:
        address = server.address_of(socket_, token)
        # The token is not among its arguments, which every user of this machine can read.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "framegauge.live.beside", str(socket_.fileno()), str(folder.absolute())],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=[socket_.fileno()], start_new_session=True,
        )  # fmt: skip
    stdin = cast(IO[bytes], process.stdin)
    try:
        with contextlib.suppress(OSError):  # of a process that has ended, which is no reason to end the study
            stdin.write(f"{token}\n".encode())
            stdin.flush()
        yield address, process.wait
    finally:
        with contextlib.suppress(OSError):
            stdin.close()
        try:
            process.wait(ENDS_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    """The process itself."""
    server.idly()
    descriptor, folder = sys.argv[1:]
    token = sys.stdin.buffer.readline().decode().strip()
    with server.served(socket.socket(fileno=int(descriptor)), token, Path(folder)):
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
