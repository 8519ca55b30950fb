"""Makes this host's kernel learn the MTU of a path from a router: `remember.py 4|6 ADDRESS MTU`. Standard library only.

It runs inside a host as a separate program, and ends with 0 once the kernel reports that MTU for the path.
"""

from __future__ import annotations

import socket
import sys
import time

__all__ = ["learn"]

# linux/in.h and linux/in6.h; Python has no names for these.
IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, DO = 10, 23, 2
IP_MTU, IPV6_MTU = 14, 24
PORT = 9
PATIENCE_SECONDS = 5.0


def learn(family: int, address: str, mtu: int) -> int:
    """Sends packets one byte too large until a router has reported it; returns the MTU that the kernel then assumes."""
    kind, level = (socket.AF_INET, socket.IPPROTO_IP) if family == 4 else (socket.AF_INET6, socket.IPPROTO_IPV6)
    discover, mtu_option = (IP_MTU_DISCOVER, IP_MTU) if family == 4 else (IPV6_MTU_DISCOVER, IPV6_MTU)
    headers = 28 if family == 4 else 48
    deadline = time.monotonic() + PATIENCE_SECONDS
    with socket.socket(kind, socket.SOCK_DGRAM) as probe:
        probe.setsockopt(level, discover, DO)
        probe.connect((address, PORT))
        while (path_mtu := probe.getsockopt(level, mtu_option)) != mtu and time.monotonic() < deadline:
            try:
                probe.send(bytes(mtu + 1 - headers))
            except OSError:
                continue  # the error of the previous packet, which is reported now
            time.sleep(0.002)
    return path_mtu


if __name__ == "__main__":
    believed = learn(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    if believed != int(sys.argv[3]):
        sys.exit(f"found a path MTU of {believed} to {sys.argv[2]} in the kernel, expected {sys.argv[3]}")
