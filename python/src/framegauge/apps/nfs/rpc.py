"""ONC RPC version 2 (RFC 5531): calls with AUTH_SYS, their replies, and record marking for TCP."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from framegauge.apps.nfs.xdr import BadMessage, Reader, opaque, uint

__all__ = ["MARK_BYTES", "Call", "Credential", "marked", "message", "results", "xid_of"]

MARK_BYTES = 4  # before each record over TCP (RFC 5531 section 11)
LAST_FRAGMENT = 1 << 31
CALL, REPLY = 0, 1
RPC_VERSION = 2
AUTH_NONE, AUTH_SYS = 0, 1
ACCEPTED = 0
# Why a call was accepted and still failed (RFC 5531 section 9).
_ACCEPT = {
    1: "program unavailable", 2: "version unavailable", 3: "procedure unavailable", 4: "garbage arguments",
    5: "system error",
}  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A procedure of a program with its arguments."""

    program: int
    version: int
    procedure: int
    arguments: bytes
    name: str


class Credential:
    """AUTH_SYS (RFC 5531 appendix A), as root without further groups."""

    def __init__(self, machine: str) -> None:
        body = uint(0) + opaque(machine.encode()) + uint(0, 0, 0)
        self.encoded = uint(AUTH_SYS) + opaque(body) + uint(AUTH_NONE, 0)


def message(xid: int, call: Call, credential: Credential) -> bytes:
    """A call as it goes over the wire."""
    head = uint(xid, CALL, RPC_VERSION, call.program, call.version, call.procedure)
    return head + credential.encoded + call.arguments


def marked(data: bytes) -> bytes:
    """A message as the only fragment of a record."""
    return uint(LAST_FRAGMENT | len(data)) + data


def record_bytes(mark: bytes) -> int:
    """The length of the record behind its mark; BadMessage if the record has further fragments."""
    (value,) = struct.unpack(">I", mark)
    if not value & LAST_FRAGMENT:
        raise BadMessage("found a record of several fragments, expected one")
    return int(value & ~LAST_FRAGMENT)


def xid_of(data: memoryview) -> int:
    """Which call a message answers."""
    return Reader(data).uint()


def results(data: memoryview, name: str) -> Reader:
    """What the procedure returned, as a reader; BadMessage if the call was not carried out."""
    reader = Reader(data)
    _xid, kind, stat = reader.uints(3)
    if kind != REPLY:
        raise BadMessage(f"{name}: found a message of kind {kind}, expected a reply ({REPLY})")
    if stat != ACCEPTED:
        raise BadMessage(f"{name}: found the call denied (reason {reader.uint()}), expected it accepted")
    reader.uint()  # the flavor of the verifier
    reader.opaque()
    if accepted := reader.uint():
        raise BadMessage(f"{name}: found {_ACCEPT.get(accepted, f'failure {accepted}')}, expected success")
    return reader
