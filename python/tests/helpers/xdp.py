"""An XDP program on an interface of a network namespace, as long as the block runs: it lets everything pass, or not."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import threading
from collections.abc import Iterator


def _instruction(code: int, registers: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, registers, offset, value)


# linux/bpf.h: a program that returns XDP_PASS, its commands and types.
PASS = _instruction(0xB7, value=2) + _instruction(0x95)
PROG_LOAD, LINK_CREATE = 5, 28
TYPE_XDP, ATTACH_XDP = 6, 37
HAS_FRAGS = 1 << 5
DRIVER, GENERIC = 1 << 2, 1 << 1
BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
NEWNET = 0x40000000


def damaging(over_bytes: int, share: float, place: int) -> bytes:
    """A program that overwrites a byte of such a share of the frames that are larger, by chance, and lets all pass.
    The byte at `place` must not be 0x5A before."""
    assert place < over_bytes
    return b"".join([
        _instruction(0x61, 0x16),  # r6 = data
        _instruction(0x61, 0x13, 4),  # r3 = data_end
        _instruction(0xBF, 0x62),  # r2 = r6
        _instruction(0x07, 2, 0, over_bytes),  # r2 += over_bytes
        _instruction(0x2D, 0x32, 4),  # if r2 > r3: pass
        _instruction(0x85, value=7),  # r0 = bpf_get_prandom_u32()
        _instruction(0x57, 0, 0, 0xFF),  # r0 &= 255
        _instruction(0x35, 0, 1, round(256 * share)),  # if r0 >= …: pass
        _instruction(0x72, 6, place, 0x5A),  # data[place] = 0x5A
        PASS,
    ])  # fmt: skip


@contextlib.contextmanager
def passing(
    namespace: str, interface: str, frags: bool = False, generic: bool = False, code: bytes = PASS
) -> Iterator[None]:
    """`frags`: it takes frames in fragments. `code`: another program. Nothing of it is left after."""
    program = _load(frags, code)
    held: list[int] = []
    failed: list[OSError] = []

    def attach() -> None:
        """In a thread of its own, which alone enters the namespace."""
        libc = ctypes.CDLL(None, use_errno=True)
        place = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
        try:
            if libc.setns(place, NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            index = _index(interface)
            mode = GENERIC if generic else DRIVER
            held.append(_bpf(LINK_CREATE, struct.pack("<IIII", program, index, ATTACH_XDP, mode)))
        except OSError as error:
            failed.append(error)
        finally:
            os.close(place)

    thread = threading.Thread(target=attach)
    thread.start()
    thread.join()
    try:
        if failed:
            raise failed[0]
        yield
    finally:
        for each in [*held, program]:
            os.close(each)


def _index(interface: str) -> int:
    index = ctypes.CDLL(None, use_errno=True).if_nametoindex(interface.encode())
    if index == 0:
        raise OSError(ctypes.get_errno(), interface)
    return int(index)


def _load(frags: bool, program: bytes) -> int:
    code, licence = ctypes.create_string_buffer(program), ctypes.create_string_buffer(b"GPL")
    places = ctypes.addressof(code), ctypes.addressof(licence)
    flags = HAS_FRAGS if frags else 0
    asked = struct.pack("<IIQQIIQII16s", TYPE_XDP, len(program) // 8, *places, 0, 0, 0, 0, flags, b"pass")
    return _bpf(PROG_LOAD, asked)


def _bpf(command: int, asked: bytes) -> int:
    buffer = ctypes.create_string_buffer(asked, max(len(asked), 128))
    libc = ctypes.CDLL(None, use_errno=True)
    found = int(libc.syscall(BPF, command, buffer, len(buffer)))
    if found < 0:
        raise OSError(ctypes.get_errno(), f"bpf {command}")
    return found
