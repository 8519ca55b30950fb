"""Runs inside the hosts of a lab: `lab_probe.py capture` and `lab_probe.py send FLOWS.json`. Standard library only.

capture prints "ready", answers small datagrams, and on SIGTERM prints the largest datagram of every flow that came in, in bytes
of its IP packet, as AF_PACKET saw it. send sends datagrams of given sizes without trusting any cached path MTU, and tells what
errors came back: before the next size it waits for the answer to a small datagram, so nothing is under way any more.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import sys
from typing import Any

PORT = 7878
SOL_PACKET, PACKET_STATISTICS, SO_RCVBUFFORCE, ETH_P_ALL = 263, 6, 33, 3
OUTGOING = 4
# linux/in.h, linux/in6.h, linux/errqueue.h
PROBE = 3
LEVEL = {4: socket.IPPROTO_IP, 6: socket.IPPROTO_IPV6}
DISCOVER = {4: 10, 6: 23}
RECEIVE_ERRORS = {4: 11, 6: 25}
KIND = {4: socket.AF_INET, 6: socket.AF_INET6}
HEADERS = {4: 28, 6: 48}
ORIGINS = {1: "local", 2: "icmp", 3: "icmp"}
SMALL, MOST_TRIES, ANSWER_SECONDS = b"small", 100, 0.1


def capture() -> None:
    ended, end = os.pipe()
    os.set_blocking(end, False)
    signal.set_wakeup_fd(end)
    signal.signal(signal.SIGTERM, lambda *_: None)
    largest: dict[str, int] = {}
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL)) as wire,
        contextlib.ExitStack() as all_,
    ):
        wire.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 256 << 20)
        answering = [all_.enter_context(socket.socket(KIND[family], socket.SOCK_DGRAM)) for family in (4, 6)]
        answering[1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        for each, anybody in zip(answering, ("0.0.0.0", "::"), strict=True):
            each.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 256 << 20)
            each.bind((anybody, PORT))
        print("ready", flush=True)
        while True:
            readable = select.select([wire, ended, *answering], [], [])[0]
            for each in answering:
                if each in readable:
                    data, peer = each.recvfrom(65535)
                    if data.startswith(SMALL):
                        each.sendto(data, peer)
            if wire in readable:
                note(wire, largest)
            elif ended in readable:
                break
        dropped = struct.unpack("II", wire.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
    print(json.dumps({"largest": largest, "dropped": dropped}))


def note(wire: socket.socket, largest: dict[str, int]) -> None:
    """One packet as it came in: that of an overlay comes twice, inside and out."""
    head = bytearray(128)
    # With MSG_TRUNC the length is that of the packet, not of what there was room for.
    length, about = wire.recvfrom_into(head, len(head), socket.MSG_TRUNC)
    data = bytes(head)
    if about[2] == OUTGOING or length < 28:
        return
    if data[0] >> 4 == 4:
        header, protocol = (data[0] & 15) * 4, data[9]
        size, source = struct.unpack("!H", data[2:4])[0], socket.inet_ntop(socket.AF_INET, data[12:16])
    else:
        header, protocol = 40, data[6]
        size, source = 40 + struct.unpack("!H", data[4:6])[0], socket.inet_ntop(socket.AF_INET6, data[8:24])
    source_port, port = struct.unpack("!HH", data[header : header + 4])
    if protocol == socket.IPPROTO_UDP and port == PORT:
        assert size == length, (size, length)  # the header says what the wire has: no aggregate, no fragment
        flow = f"{source} {source_port}"
        largest[flow] = max(largest.get(flow, 0), size)


def errors(probe: socket.socket) -> list[list[Any]]:
    """What the kernel has been told about this flow: origin, MTU."""
    found = []
    with contextlib.suppress(BlockingIOError):
        while True:
            _, control, _, _ = probe.recvmsg(65535, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
            for _, _, data in control:
                _, origin, kind, code, _, mtu, _ = struct.unpack("IBBBBII", data[:16])
                found.append([ORIGINS.get(origin, origin), mtu, kind, code])
    return found


def send(flow: dict[str, Any]) -> dict[str, Any]:
    """All sizes of one flow, ascending."""
    family, told = flow["family"], []
    with socket.socket(KIND[family], socket.SOCK_DGRAM) as probe:
        probe.setsockopt(LEVEL[family], DISCOVER[family], PROBE)
        probe.setsockopt(LEVEL[family], RECEIVE_ERRORS[family], 1)
        probe.bind((flow["source"], 0))
        probe.connect((flow["destination"], PORT))
        ask(probe, -1)
        for number, size in enumerate(flow["sizes"]):
            for _ in range(flow["repeat"]):
                told += push(probe, bytes(size - HEADERS[family]))
            told += ask(probe, number)
        port = probe.getsockname()[1]
    return {**flow, "source_port": port, "told": told}


def push(probe: socket.socket, data: bytes) -> list[list[Any]]:
    """Send one datagram; an error that was pending is told, and does not count as sent."""
    told: list[list[Any]] = []
    for _ in range(3):
        try:
            probe.send(data)
            break
        except OSError:
            told += errors(probe)
    return told + errors(probe)


def ask(probe: socket.socket, number: int) -> list[list[Any]]:
    """Until a small datagram is answered."""
    told, question = [], SMALL + struct.pack("!i", number)
    for _ in range(MOST_TRIES):
        told += push(probe, question)
        while select.select([probe], [], [], ANSWER_SECONDS)[0]:
            try:
                if probe.recv(100) == question:
                    return told + errors(probe)
            except OSError:
                told += errors(probe)
    sys.exit(f"no answer from {probe.getpeername()}")


if __name__ == "__main__":
    if sys.argv[1] == "capture":
        capture()
    else:
        with open(sys.argv[2], encoding="utf-8") as file:
            print(json.dumps([send(each) for each in json.load(file)]))
