"""The NFS client's messages, from their specifications, and how it takes and repeats them."""

from __future__ import annotations

import queue
import socket
import struct
import threading
from collections.abc import Callable
from typing import IO

import pytest

from framegauge.apps.nfs import files
from framegauge.apps.nfs.client import Asked, Client
from framegauge.apps.nfs.rpc import Call, Credential, marked, message, results
from framegauge.apps.nfs.transports import Tcp
from framegauge.apps.nfs.versions import VERSIONS, Version3, Version4
from framegauge.apps.nfs.xdr import BadMessage, Reader, opaque, uint

REPLY = uint(7, 1, 0, 0, 0, 0)  # of call 7: accepted, no verifier, success (RFC 5531 section 9)


def test_opaque_data_is_padded_to_whole_units() -> None:
    """RFC 4506 section 4.11: "sillyprog" has nine bytes and three of padding."""
    assert opaque(b"sillyprog") == b"\0\0\0\x09sillyprog\0\0\0"
    assert bytes(Reader(memoryview(opaque(b"sillyprog") + uint(5))).opaque()) == b"sillyprog"
    reader = Reader(memoryview(opaque(b"sillyprog") + uint(5)))
    reader.opaque()
    assert reader.uint() == 5
    with pytest.raises(BadMessage, match="found a message of 20 bytes, expected 24 or more"):
        reader.uints(1)


def test_a_call_has_the_fields_of_rfc_5531_in_their_order() -> None:
    found = message(7, Call(100003, 3, 6, b"argument", "READ"), Credential("h1"))
    head = uint(7, 0, 2, 100003, 3, 6)
    # AUTH_SYS: stamp, machine name, uid, gid, no further groups; then no verifier.
    credential = uint(1, 24, 0) + opaque(b"h1") + uint(0, 0, 0)
    assert found == head + credential + uint(0, 0) + b"argument"
    assert marked(b"1234") == b"\x80\0\0\x041234"


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (uint(7, 0, 0), "READ: found a message of kind 0, expected a reply"),
        (uint(7, 1, 1, 1), r"READ: found the call denied \(reason 1\), expected it accepted"),
        (uint(7, 1, 0, 0, 0, 2), "READ: found version unavailable, expected success"),
        (uint(7, 1, 0, 0, 0, 9), "READ: found failure 9, expected success"),
        (uint(7, 1), "found a message of 8 bytes, expected 12 or more"),
    ],
)
def test_a_reply_without_results_says_why(reply: bytes, line: str) -> None:
    with pytest.raises(BadMessage, match=line):
        results(memoryview(reply), "READ")


def read_reply_3(data: bytes, attributes: bool = True) -> bytes:
    return REPLY + uint(0, 1) + bytes(84) + uint(len(data), 0) + opaque(data) if attributes else (
        REPLY + uint(0, 0, len(data), 0) + opaque(data)
    )  # fmt: skip


def test_an_answer_of_8_kib_has_the_published_size() -> None:
    """24 bytes of RPC, 4 of status, 88 of attributes, 12 of count, end of file and length: 128. With UDP's and IP's headers
    the datagram of 8,192 bytes has 8,348."""
    reply = read_reply_3(bytes(8192))
    assert len(reply) == 8320
    assert len(reply) + 8 + 20 == 8348
    protocol = Version3()
    assert bytes(protocol.taken_read(results(memoryview(reply), "READ"))) == bytes(8192)
    assert bytes(protocol.taken_read(results(memoryview(read_reply_3(b"12345678", False)), "READ"))) == b"12345678"
    with pytest.raises(BadMessage, match=r"READ: found status STALE \(70\), expected OK"):
        protocol.taken_read(results(memoryview(REPLY + uint(70, 0)), "READ"))


def test_version_4_reads_with_the_anonymous_stateid() -> None:
    protocol = Version4()
    protocol.file = b"handle.."
    call = protocol.read(1 << 33, 4096)
    assert (call.program, call.version, call.procedure) == (100003, 4, 1)
    # COMPOUND without a tag, minor version 0, two operations: PUTFH and READ (RFC 7530 sections 16.20 and 16.23).
    expected = uint(0, 0, 2, 22) + opaque(b"handle..") + uint(25) + bytes(16) + struct.pack(">QI", 1 << 33, 4096)
    assert call.arguments == expected
    taken = uint(0, 0, 2, 22, 0, 25, 0, 1) + opaque(b"data")
    assert bytes(protocol.taken_read(results(memoryview(REPLY + taken), "READ"))) == b"data"
    with pytest.raises(BadMessage, match="found a result of operation 24, expected one of 22"):
        protocol.taken_read(results(memoryview(REPLY + uint(0, 0, 2, 24, 0, 25, 0, 1) + opaque(b"data")), "READ"))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_is_answered_by_what_was_written_and_a_verifier(version: int) -> None:
    protocol = VERSIONS[version]()
    protocol.file = b"handle"
    assert protocol.write(4096, b"12345678").arguments.endswith(
        uint(0, 8) + b"12345678" if version == 4 else b"12345678"
    )
    body = {
        3: uint(0, 1) + bytes(24) + uint(1) + bytes(84) + uint(8, 0) + b"verifier",
        4: uint(0, 0, 2, 22, 0, 38, 0, 8, 0) + b"verifier",
    }[version]
    assert protocol.taken_write(results(memoryview(REPLY + body), "WRITE")) == (8, b"verifier")


def test_every_page_has_its_offset_and_a_wrong_one_is_found() -> None:
    data = files.pages(8192, 12288, bytes(files.PAGE_BYTES - files.STAMP_BYTES))
    assert len(data) == 12288
    assert files.page_wrong(memoryview(data), 8192) is None
    assert files.page_wrong(memoryview(data), 4096) is not None
    last = files.page_wrong(memoryview(data[:8192] + bytes(4096)), 8192)
    assert last == "found 0000000000000000 in the page at 16384, expected 0000000000004000"


def listening(kind: socket.SocketKind) -> socket.socket:
    found = socket.socket(socket.AF_INET, kind)
    found.bind(("127.0.0.1", 0))
    found.settimeout(10)
    return found


def test_records_come_whole_however_they_are_cut() -> None:
    with listening(socket.SOCK_STREAM) as server:
        server.listen()
        way = Tcp(*server.getsockname())
        far, _ = server.accept()
    sent = [bytes([each]) * (1000 * each) for each in range(1, 6)]
    whole = b"".join(marked(each) for each in sent)
    found: list[bytes] = []
    with far:
        for begin in range(0, len(whole), 777):
            far.sendall(whole[begin : begin + 777])
            way.socket.setblocking(True)
            found += map(bytes, way.arrived())
    assert found == sent
    assert dict(way.received) == {1000 * each + 4: 1 for each in range(1, 6)}
    with pytest.raises(BadMessage, match="closed by the server, expected an answer"):
        list(way.arrived())
    way.close()


def asked(port: int, **change: object) -> Asked:
    given: dict[str, object] = {
        "server": "127.0.0.1", "name": "file", "version": 3, "transport": "udp", "operation": "read",
        "access": "sequential", "block_bytes": 4096, "size_bytes": 4096, "depth": 1, "rate_per_second": None,
        "duration_seconds": 0.05, "retransmit_seconds": 0.02, "seed": 1, "reconnects": 0, **change,
    }  # fmt: skip
    return Asked(**given, port=port, mount_port=port)  # type: ignore[arg-type]


def answering(server: socket.socket, ignored: Callable[[int], bool]) -> None:
    """A server of one file that answers calls, but for those that it ignores, by their number."""

    def serve() -> None:
        number = 0
        while True:
            try:
                call, client = server.recvfrom(65536)
            except (OSError, TimeoutError):
                return
            xid, _, _, program, _, procedure = struct.unpack(">6I", call[:24])
            head = uint(xid, 1, 0, 0, 0, 0)
            if program == 100005 or procedure == 3:
                server.sendto(head + uint(0) + opaque(b"handle"), client)
                continue
            number += 1
            if not ignored(number):
                reply = head + read_reply_3(files.pages(0, 4096, bytes(4088)))[24:]
                server.sendto(reply, client)

    threading.Thread(target=serve, daemon=True).start()


def test_a_call_without_an_answer_is_sent_again_until_it_has_one() -> None:
    """Of the first call, the first two datagrams are ignored: it takes the timer and twice that again."""
    with listening(socket.SOCK_DGRAM) as server:
        answering(server, lambda number: number <= 2)
        found = Client(asked(server.getsockname()[1])).run()
    sent, received = (sum(found[way].values()) for way in ("sent", "received"))
    assert found["calls"] == found["answered"] >= 1
    assert found["unanswered"] == 0
    # A busy machine lets further timers pass; what is answered twice is counted.
    assert found["sent_again"] >= 2
    assert sent == found["calls"] + 2 + found["sent_again"]
    assert received == found["calls"] + 2 + found["duplicates"]
    assert max(map(int, found["latency_microseconds"])) >= 60_000


def test_what_is_never_answered_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("framegauge.apps.nfs.client.DRAIN_SECONDS", 0.1)
    with listening(socket.SOCK_DGRAM) as server:
        answering(server, lambda number: True)
        found = Client(asked(server.getsockname()[1], depth=3)).run()
    assert (found["calls"], found["answered"], found["unanswered"]) == (3, 0, 3)
    assert found["sent_again"] >= 3


@pytest.mark.parametrize("operation", ["read", "write"])
def test_over_tcp_too_and_the_connection_is_reset_without_a_commit(
    monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """As behind a port that drops large frames: calls or answers never arrive whole, and nothing behind them does."""
    monkeypatch.setattr("framegauge.apps.nfs.client.DRAIN_SECONDS", 0.1)
    ended: queue.Queue[tuple[list[int], str]] = queue.Queue()
    with listening(socket.SOCK_STREAM) as server:
        server.listen()
        threading.Thread(target=ignoring, args=(server, ended), daemon=True).start()
        port = server.getsockname()[1]
        found = Client(asked(port, transport="tcp", operation=operation, depth=3)).run()
        procedures, how = ended.get(timeout=10)
    assert (found["calls"], found["answered"], found["unanswered"]) == (3, 0, 3)
    assert procedures == [3, *[{"read": 6, "write": 7}[operation]] * 3]  # LOOKUP, and then no COMMIT (RFC 1813)
    assert how == "reset"


def ignoring(server: socket.socket, ended: queue.Queue[tuple[list[int], str]]) -> None:
    """A server over TCP that mounts and finds a file, and answers nothing else; how the connection to it ended. The first
    connection is that of the files; the mount has one of its own."""
    far, _ = server.accept()
    mounting, _ = server.accept()
    procedures: list[int] = []

    def answer(stream: IO[bytes], way: socket.socket) -> None:
        head = stream.read(4)
        call = stream.read(int.from_bytes(head, "big") & 0x7FFFFFFF)
        if not call:
            raise EOFError
        xid, _, _, program, _, procedure = struct.unpack(">6I", call[:24])
        if program != 100005:
            procedures.append(procedure)
        if program == 100005 or procedure == 3:
            way.sendall(marked(uint(xid, 1, 0, 0, 0, 0) + uint(0) + opaque(b"handle")))

    with mounting, mounting.makefile("rb") as stream:
        answer(stream, mounting)
    try:
        with far, far.makefile("rb") as stream:
            while True:
                answer(stream, far)
    except EOFError:
        ended.put((procedures, "closed"))
    except ConnectionResetError:
        ended.put((procedures, "reset"))


def test_a_server_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("framegauge.apps.nfs.client.ANSWER_SECONDS", 0.1)
    with listening(socket.SOCK_DGRAM) as server:
        port = server.getsockname()[1]
        with pytest.raises(BadMessage, match=f"MNT: found no answer from 127.0.0.1 port {port} within 0.1 s"):
            Client(asked(port)).run()


def breaking(server: socket.socket, after: int) -> None:
    """A server over TCP that breaks its first connection instead of the answer to a READ, and answers everything after."""

    def serve() -> None:
        number, files_ = 0, files.pages(0, 4096, bytes(4088))
        while True:
            try:
                far, _ = server.accept()
            except (OSError, TimeoutError):
                return
            threading.Thread(target=answer, args=(far, number, files_), daemon=True).start()
            number += 1

    def answer(far: socket.socket, number: int, data: bytes) -> None:
        taken = 0
        with far, far.makefile("rb") as stream:
            while head := stream.read(4):
                call = stream.read(int.from_bytes(head, "big") & 0x7FFFFFFF)
                xid, _, _, program, _, procedure = struct.unpack(">6I", call[:24])
                reply = uint(xid, 1, 0, 0, 0, 0)
                if program == 100005 or procedure == 3:
                    far.sendall(marked(reply + uint(0) + opaque(b"handle")))
                    continue
                taken += 1
                # The first connection is that of the files; the mount has one of its own.
                if number == 0 and taken > after:
                    return
                far.sendall(marked(reply + read_reply_3(data)[24:]))

    threading.Thread(target=serve, daemon=True).start()


def test_a_connection_that_ends_is_opened_again_and_its_calls_are_sent_over_the_new_one() -> None:
    with listening(socket.SOCK_STREAM) as server:
        server.listen()
        breaking(server, 2)
        port = server.getsockname()[1]
        found = Client(asked(port, transport="tcp", depth=3, reconnects=1)).run()
        assert found["reconnected"] == 1
        assert found["calls"] == found["answered"] > 3
        # What was under way was sent again: one call to three, as some may have been answered.
        assert 1 <= found["sent_again"] <= 3
        assert sum(found["course"]["answered"]) == found["answered"]
    with listening(socket.SOCK_STREAM) as server:
        server.listen()
        breaking(server, 2)
        port = server.getsockname()[1]
        with pytest.raises(BadMessage, match="closed by the server, expected an answer"):
            Client(asked(port, transport="tcp", depth=1)).run()


def test_calls_at_a_rate_are_due_at_even_distances() -> None:
    with listening(socket.SOCK_DGRAM) as server:
        answering(server, lambda number: False)
        found = Client(asked(server.getsockname()[1], rate_per_second=400.0, retransmit_seconds=5.0)).run()
    # 0.05 s at 400 a second, the first at once; none is left out, however late the machine is.
    assert found["calls"] == found["answered"] == 20
    assert found["ended_seconds"] - found["began_seconds"] >= 0.05 - 1e-6  # times have the rounding of their size
