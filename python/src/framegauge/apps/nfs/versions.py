"""The procedures of NFS version 3 (RFC 1813) and of version 4.0 (RFC 7530) that reading and writing a file take.

Version 4 reads and writes with the anonymous stateid of all zeros (RFC 7530 section 9.1.4.3), without opening the file:
nobody else uses it, and what goes over the wire for each call is the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from framegauge.apps.nfs import FOLDER
from framegauge.apps.nfs.rpc import Call
from framegauge.apps.nfs.xdr import BadMessage, Reader, opaque, uint, ulong

__all__ = ["MOUNT", "VERSIONS", "Protocol"]

MOUNT, MOUNT_VERSION, MNT = 100005, 3, 1  # RFC 1813 appendix I
NFS = 100003
UNSTABLE = 0  # a COMMIT follows, as clients that write files do
STATUS = {
    1: "PERM", 2: "NOENT", 5: "IO", 13: "ACCES", 20: "NOTDIR", 21: "ISDIR", 22: "INVAL", 27: "FBIG", 28: "NOSPC",
    30: "ROFS", 70: "STALE", 10001: "BADHANDLE", 10004: "NOTSUPP", 10006: "SERVERFAULT", 10008: "DELAY", 10013: "GRACE",
}  # fmt: skip


def _ok(status: int, name: str) -> None:
    if status:
        raise BadMessage(f"{name}: found status {STATUS.get(status, '')} ({status}), expected OK (0)")


class Protocol(ABC):
    """One version. `find` comes first; it sets the file that all other calls are about."""

    version: int
    file: bytes

    @abstractmethod
    def find(self, ask: Callable[[Call], Reader], name: str) -> None:
        """Finds the file of that name in the exported folder, and keeps its handle."""

    @abstractmethod
    def read(self, offset: int, length: int) -> Call:
        """READ."""

    @abstractmethod
    def taken_read(self, reader: Reader) -> memoryview:
        """The data of READ's answer."""

    @abstractmethod
    def write(self, offset: int, data: bytes) -> Call:
        """WRITE, without waiting for stable storage."""

    @abstractmethod
    def taken_write(self, reader: Reader) -> tuple[int, bytes]:
        """The number of bytes written, and the server's verifier, which changes if it may have lost data."""

    @abstractmethod
    def commit(self) -> Call:
        """COMMIT of all data."""

    @abstractmethod
    def taken_commit(self, reader: Reader) -> bytes:
        """The server's verifier."""


class Version3(Protocol):
    """RFC 1813: the handle of the exported folder comes from the program MOUNT."""

    version = 3
    ATTRIBUTES_BYTES = 84  # fattr3, section 2.5
    LOOKUP, READ, WRITE, COMMIT = 3, 6, 7, 21

    def find(self, ask: Callable[[Call], Reader], name: str) -> None:
        """MNT and LOOKUP."""
        answer = ask(Call(MOUNT, MOUNT_VERSION, MNT, opaque(FOLDER.encode()), "MNT"))
        _ok(answer.uint(), f"MNT of {FOLDER}")
        root = bytes(answer.opaque())
        answer = ask(self._call(self.LOOKUP, opaque(root) + opaque(name.encode()), "LOOKUP"))
        _ok(answer.uint(), f"LOOKUP of {name}")
        self.file = bytes(answer.opaque())

    def _call(self, procedure: int, arguments: bytes, name: str) -> Call:
        return Call(NFS, self.version, procedure, arguments, name)

    def _attributes(self, reader: Reader) -> None:
        if reader.uint():
            reader.skip(self.ATTRIBUTES_BYTES)

    def _weak_cache_data(self, reader: Reader) -> None:
        if reader.uint():
            reader.skip(24)  # size, mtime and ctime before the call
        self._attributes(reader)

    def read(self, offset: int, length: int) -> Call:
        """Section 3.3.6."""
        return self._call(self.READ, opaque(self.file) + ulong(offset) + uint(length), "READ")

    def taken_read(self, reader: Reader) -> memoryview:
        """Section 3.3.6."""
        _ok(reader.uint(), "READ")
        self._attributes(reader)
        reader.uints(2)  # count, eof
        return reader.opaque()

    def write(self, offset: int, data: bytes) -> Call:
        """Section 3.3.7."""
        head = opaque(self.file) + ulong(offset) + uint(len(data), UNSTABLE)
        return self._call(self.WRITE, head + opaque(data), "WRITE")

    def taken_write(self, reader: Reader) -> tuple[int, bytes]:
        """Section 3.3.7."""
        _ok(reader.uint(), "WRITE")
        self._weak_cache_data(reader)
        count, _committed = reader.uints(2)
        return count, reader.fixed(8)

    def commit(self) -> Call:
        """Section 3.3.21."""
        return self._call(self.COMMIT, opaque(self.file) + ulong(0) + uint(0), "COMMIT")

    def taken_commit(self, reader: Reader) -> bytes:
        """Section 3.3.21."""
        _ok(reader.uint(), "COMMIT")
        self._weak_cache_data(reader)
        return reader.fixed(8)


class Version4(Protocol):
    """RFC 7530: everything is an operation of COMPOUND."""

    version = 4
    COMPOUND = 1
    STATEID_BYTES = 16
    COMMIT, GETFH, LOOKUP, PUTFH, PUTROOTFH, READ, WRITE = 5, 10, 15, 22, 24, 25, 38

    def find(self, ask: Callable[[Call], Reader], name: str) -> None:
        """LOOKUP of each part of the path, from the root on."""
        names = [part for part in (*FOLDER.split("/"), name) if part]
        lookups = [uint(self.LOOKUP) + opaque(part.encode()) for part in names]
        answer = ask(self._compound([uint(self.PUTROOTFH), *lookups, uint(self.GETFH)], "LOOKUP"))
        self._taken(answer, [self.PUTROOTFH, *(self.LOOKUP for _ in names), self.GETFH], f"LOOKUP of {name}")
        self.file = bytes(answer.opaque())

    def _compound(self, operations: Sequence[bytes], name: str) -> Call:
        head = opaque(b"") + uint(0, len(operations))  # no tag, minor version 0
        return Call(NFS, self.version, self.COMPOUND, head + b"".join(operations), name)

    def _of_file(self, operation: bytes, name: str) -> Call:
        return self._compound([uint(self.PUTFH) + opaque(self.file), operation], name)

    def _taken(self, reader: Reader, operations: Sequence[int], name: str) -> None:
        """Reads on to the result of the last operation; the others have none but their status."""
        status = reader.uint()
        reader.opaque()
        _ok(status, name)
        count = reader.uint()
        if count != len(operations):
            raise BadMessage(f"{name}: found {count} results, expected {len(operations)}")
        for expected in operations:
            operation, status = reader.uints(2)
            if operation != expected:
                raise BadMessage(f"{name}: found a result of operation {operation}, expected one of {expected}")
            _ok(status, name)

    def read(self, offset: int, length: int) -> Call:
        """Section 16.23."""
        return self._of_file(uint(self.READ) + bytes(self.STATEID_BYTES) + ulong(offset) + uint(length), "READ")

    def taken_read(self, reader: Reader) -> memoryview:
        """Section 16.23."""
        self._taken(reader, (self.PUTFH, self.READ), "READ")
        reader.uint()  # eof
        return reader.opaque()

    def write(self, offset: int, data: bytes) -> Call:
        """Section 16.36."""
        head = uint(self.WRITE) + bytes(self.STATEID_BYTES) + ulong(offset) + uint(UNSTABLE)
        return self._of_file(head + opaque(data), "WRITE")

    def taken_write(self, reader: Reader) -> tuple[int, bytes]:
        """Section 16.36."""
        self._taken(reader, (self.PUTFH, self.WRITE), "WRITE")
        count, _committed = reader.uints(2)
        return count, reader.fixed(8)

    def commit(self) -> Call:
        """Section 16.3."""
        return self._of_file(uint(self.COMMIT) + ulong(0) + uint(0), "COMMIT")

    def taken_commit(self, reader: Reader) -> bytes:
        """Section 16.3."""
        self._taken(reader, (self.PUTFH, self.COMMIT), "COMMIT")
        return reader.fixed(8)


VERSIONS: Mapping[int, type[Protocol]] = {3: Version3, 4: Version4}
