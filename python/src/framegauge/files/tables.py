"""Arrow files that others wrote: nothing is unpacked beyond a limit, and no value lies outside its buffer."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.ipc

__all__ = ["Unfit", "table", "written"]

MAGIC = b"ARROW1\x00\x00"
ALIGNED = 64
# The fields of Message and RecordBatch in Arrow's Message.fbs, and the offset of a dictionary's RecordBatch.
HEADER_TYPE, HEADER = 1, 2
BUFFERS, COMPRESSION = 2, 3
DICTIONARY_BATCH, RECORD_BATCH = 2, 3
DICTIONARY_DATA = 1


class Unfit(ValueError):
    """A file that is no Arrow file, or whose content is not what it must be."""


def table(data: bytes, most_bytes: int) -> pa.Table:
    """The table in an Arrow file; Unfit if it is none, or takes more than `most_bytes` once it is unpacked.

    It is read as a stream from its beginning, so that its footer leads nowhere else. Every offset in it is checked:
    Arrow itself trusts them, and reads outside of its buffers if they are wrong.
    """
    if not data.startswith(MAGIC):
        raise Unfit("found no Arrow file, expected one")
    # Writers fill up to the alignment of what follows, which is 8 or 64 bytes.
    begin = next((offset for offset in range(len(MAGIC), ALIGNED + 1, 8) if any(data[offset : offset + 8])), len(MAGIC))
    body = pa.py_buffer(data).slice(begin)
    try:
        unpacked = 0
        for message in _messages(body):
            unpacked += _unpacked_bytes(message)
            if unpacked > most_bytes:
                raise Unfit(f"found a table of more than {most_bytes} bytes, expected at most that many")
        result = pyarrow.ipc.open_stream(body).read_all()
        result.validate(full=True)
    except (pa.ArrowException, OSError, struct.error, IndexError) as error:
        raise Unfit(f"found no Arrow file ({error}), expected one") from None
    return result


def written(found: pa.Table) -> bytes:
    """A table as an Arrow file."""
    sink = pa.BufferOutputStream()
    with pyarrow.ipc.new_file(sink, found.schema) as writer:
        writer.write_table(found)
    return bytes(sink.getvalue().to_pybytes())


def _messages(body: pa.Buffer) -> Iterator[pa.ipc.Message]:
    reader = pyarrow.ipc.MessageReader.open_stream(body)
    while True:
        try:
            yield reader.read_next_message()
        except StopIteration:
            return


def _unpacked_bytes(message: pa.ipc.Message) -> int:
    """The bytes that a message takes in memory: those of its body, or what its compressed buffers say they will be."""
    whole = message.metadata.to_pybytes()
    place = _at(whole, 0)
    batch = _field(whole, place, HEADER)
    kind = _field(whole, place, HEADER_TYPE)
    if batch is None or kind is None or whole[kind] not in (DICTIONARY_BATCH, RECORD_BATCH):
        return 0
    batch = _at(whole, batch)
    if whole[kind] == DICTIONARY_BATCH:
        inner = _field(whole, batch, DICTIONARY_DATA)
        if inner is None:
            return 0
        batch = _at(whole, inner)
    if _field(whole, batch, COMPRESSION) is None:
        return int(message.body.size)
    buffers = _field(whole, batch, BUFFERS)
    total = 0
    if buffers is not None:
        begin = _at(whole, buffers)
        for number in range(struct.unpack_from("<I", whole, begin)[0]):
            offset, length = struct.unpack_from("<qq", whole, begin + 4 + 16 * number)
            if length > 0:
                (size,) = struct.unpack_from("<q", message.body, offset)
                total += max(size, length)
    return total


def _at(whole: bytes, place: int) -> int:
    """Where an offset of a flatbuffer leads."""
    return place + int(struct.unpack_from("<I", whole, place)[0])


def _field(whole: bytes, place: int, number: int) -> int | None:
    """Where a field of a flatbuffer's table is, None if it has its default."""
    names = place - int(struct.unpack_from("<i", whole, place)[0])
    if 4 + 2 * number >= struct.unpack_from("<H", whole, names)[0]:
        return None
    (offset,) = struct.unpack_from("<H", whole, names + 4 + 2 * number)
    return place + int(offset) if offset else None
