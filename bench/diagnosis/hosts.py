"""The two hosts of a scene: processes in network namespaces of their own, whose one device the wire holds.

A namespace lives as long as its process, so nothing is left behind, whatever ends it.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

CLONE_NEWNET, PR_SET_PDEATHSIG = 0x40000000, 1
TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0
IFF_TUN, IFF_NO_PI, IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
CHECKSUM, TSO4, TSO6 = 1, 2, 4
DEVICE = "wire"
NAP_SECONDS = 0.002
Program = Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Host:
    """One host: its addresses (the first is its own, more are other hosts' behind the same device) and settings."""

    addresses: tuple[str, ...]
    mtu: int
    has_offloads: bool = False
    sysctls: Mapping[str, str] = field(default_factory=dict)
    route: str = ""


@dataclass
class Running:
    """A host's process, the other end of its device, and the socket on which it answers."""

    process: int
    device: int
    answers: socket.socket
    ready: int = -1


def start(host: Host, program: Program) -> Running:
    """Fork a host. It makes its namespace, hands over its device, waits for "go", and answers with a JSON object."""
    here, there = socket.socketpair()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            here.close()
            # It may wait for a wire that nobody holds any more.
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            _live(host, program, there)
            code = 0
        finally:
            os._exit(code)
    there.close()
    message, descriptors, _, _ = socket.recv_fds(here, 1000, 1)
    if not descriptors:
        os.waitpid(process, 0)
        raise OSError(f"a host could not be made: {message.decode(errors='replace')}")
    os.set_blocking(descriptors[0], False)
    return Running(process, descriptors[0], here)


def _live(host: Host, program: Program, answers: socket.socket) -> None:
    try:
        device = _make(host)
    except BaseException as problem:
        answers.send(repr(problem).encode())
        raise
    socket.send_fds(answers, [b"device"], [device])
    os.close(device)
    answers.recv(2)  # "go"
    waits = Waits()
    try:
        found = program()
    except BaseException:
        found = {"problem": traceback.format_exc()[-2000:]}
    found["counters"] = counters()
    found["waited_seconds"] = waits.longest_seconds
    answers.sendall(json.dumps(found).encode())
    answers.shutdown(socket.SHUT_WR)
    answers.recv(3)  # "end": until then the namespace lives, so that the last packets have somewhere to go


def _make(host: Host) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    flags = IFF_TUN | IFF_NO_PI | (IFF_VNET_HDR if host.has_offloads else 0)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), flags))
    if host.has_offloads:
        fcntl.ioctl(device, TUNSETOFFLOAD, CHECKSUM | TSO4 | TSO6)
    for name, value in {"net.ipv6.conf.all.accept_dad": "0", **host.sysctls}.items():
        with open("/proc/sys/" + name.replace(".", "/"), "w", encoding="ascii") as file:
            file.write(value)
    lines = ["link set lo up", f"link set {DEVICE} mtu {host.mtu} txqueuelen 10000 up"]
    for address in host.addresses:
        bits, more = (128, " nodad") if ":" in address else (32, "")
        lines.append(f"addr add {address}/{bits} dev {DEVICE}{more}")
    any_address = "::/0" if ":" in host.addresses[0] else "0.0.0.0/0"
    lines.append(f"route add {any_address} dev {DEVICE} {host.route}")
    done = subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise OSError(f"ip: {done.stderr.strip()}")
    return device


def counters() -> dict[str, int]:
    """The kernel's counters of TCP in this namespace, those that are not 0."""
    found = {}
    for file in ("/proc/net/netstat", "/proc/net/snmp"):
        with open(file, encoding="ascii") as lines:
            rows = [line.split() for line in lines]
        for names, values in zip(rows[::2], rows[1::2], strict=True):
            if names[0] in ("TcpExt:", "Tcp:"):
                found |= {name: int(value) for name, value in zip(names[1:], values[1:], strict=True) if value != "0"}
    return found


class Waits:
    """How long this process waits for a CPU at most: a thread that sleeps briefly is late by as much."""

    def __init__(self) -> None:
        self.longest_seconds = 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            begun = time.monotonic()
            time.sleep(NAP_SECONDS)
            self.longest_seconds = max(self.longest_seconds, time.monotonic() - begun - NAP_SECONDS)


def end(hosts: Sequence[Running]) -> None:
    """Kill what still runs, and forget it."""
    for host in hosts:
        os.kill(host.process, signal.SIGKILL)
        os.waitpid(host.process, 0)
        os.close(host.device)
        host.answers.close()
