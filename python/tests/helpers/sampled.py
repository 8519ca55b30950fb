"""What hosts of a lab send and take in, looked at many times a second: is anything lost, and for how long?"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from helpers.switched import Lab

CLONE_NEWNET = 0x40000000
SIOCGIFMTU = 0x8921
IP_MTU, IPV6_MTU = 14, 24
EVERY_SECONDS = 0.02


class Eyes:
    """Sockets in every host, which the kernel answers for those hosts."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._sockets = {name: self._opened(namespace) for name, namespace in lab.hosts.items()}
        self.out: set[str] = set()  # hosts to which no packet can come at all
        self.ports: dict[
            str, int
        ] = {}  # by host, what the switch's port to it takes in, if that is less than the lab's

    def _opened(self, namespace: str) -> tuple[socket.socket, socket.socket]:
        found: list[socket.socket] = []

        def enter() -> None:
            with Path("/run/netns", namespace).open() as file:
                if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            found.extend(socket.socket(family, socket.SOCK_DGRAM) for family in (socket.AF_INET, socket.AF_INET6))

        # Only this thread moves there; sockets stay where they were opened.
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        one, other = found
        return one, other

    def mtu(self, name: str) -> int | None:
        """Of its interface; None while it has none."""
        with contextlib.suppress(OSError):
            asked = struct.pack("16si", b"eth1", 0)
            return int(struct.unpack("16si", fcntl.ioctl(self._sockets[name][0], SIOCGIFMTU, asked))[1])
        return None

    def sends(self, name: str) -> int:
        """The largest packet to another host, of either IP version; 0 while it has no way there."""
        other = next(each for each in self._lab.hosts if each != name)
        found = [0]
        for place, (one, level, option) in enumerate(
            zip(self._sockets[name], (socket.IPPROTO_IP, socket.IPPROTO_IPV6), (IP_MTU, IPV6_MTU), strict=True)
        ):
            with contextlib.suppress(OSError):
                one.connect((self._lab.address(other, 6 if place else 4), 9))
                found.append(one.getsockopt(level, option))
        return max(found)

    def loses(self) -> bool:
        """Whether one sends more than another takes in."""
        there = [name for name in self._lab.hosts if name not in self.out]
        taken = [min(mtu, self.ports.get(name, mtu)) for name in there if (mtu := self.mtu(name)) is not None]
        return bool(taken) and max(self.sends(name) for name in there) > min(taken)

    def close(self) -> None:
        for pair in self._sockets.values():
            for each in pair:
                each.close()


@contextlib.contextmanager
def watching(lab: Lab) -> Iterator[tuple[Eyes, list[float]]]:
    """Looks until the block is left; the list has the seconds of each time in which something was lost."""
    eyes, over, times = Eyes(lab), threading.Event(), [0.0]

    def look() -> None:
        begun: float | None = None
        while not over.wait(EVERY_SECONDS):
            now = time.monotonic()
            if eyes.loses():
                begun = now if begun is None else begun
                times[-1] = now - begun
            elif begun is not None:
                begun = None
                times.append(0.0)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield eyes, times
    finally:
        over.set()
        thread.join()
        eyes.close()


def processes_in(namespace: str) -> list[int]:
    """Whatever runs in a namespace."""
    there = os.stat(f"/run/netns/{namespace}").st_ino
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{pid}/ns/net").st_ino == there:
                found.append(int(pid))
    return found
