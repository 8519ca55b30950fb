"""`refusing.py CALL PROGRAM ARGUMENT …`: becomes the program, to which the kernel refuses that call as many containers do."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
NUMBERS = {
    "bpf": {"x86_64": 321, "aarch64": 280},
    "io_uring": {"x86_64": 425, "aarch64": 425},  # io_uring_setup
}
EPERM, ALLOW, ERRNO = 1, 0x7FFF_0000, 0x0005_0000
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06


class Filter(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def refuse(call: str) -> None:
    """From now on, in this process and in what it starts."""
    steps = (
        (LOAD_WORD, 0, 0, 0),  # the call's number
        (JUMP_IF_EQUAL, 0, 1, NUMBERS[call][platform.machine()]),
        (RETURN, 0, 0, ERRNO | EPERM),
        (RETURN, 0, 0, ALLOW),
    )
    program = Filter(len(steps), b"".join(struct.pack("HBBI", *step) for step in steps))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program))):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    refuse(sys.argv[1])
    os.execvp(sys.argv[2], sys.argv[2:])
