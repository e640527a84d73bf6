"""A batch as it is stored in a segment: one encapsulated message of Arrow's IPC stream, with a checksum in it.

    ff ff ff ff | length of the metadata | metadata (a flatbuffer) ............... | body
                                           custom_metadata: "crc32" = 8 hex digits, "marks" if it brings some

A stream of these is a plain Arrow IPC stream: any Arrow library reads it. The checksum is CRC-32 over the whole
message with the digits as tildes. It distinguishes a batch that was written from one of which only the length reached
the disk. It is read and inserted by the few lines of flatbuffer code below, so that a batch can be found, counted and
checked without being decoded (Arrow's format/Message.fbs and format/Schema.fbs have the tables).
"""

import re
import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from fanlight_archive.arrow import ipc, pa
from fanlight_archive.errors import Corrupt

PREFIX: Final = 8  # the continuation marker and the length of the metadata
METADATA_MAX: Final = 1 << 20  # a larger value is not a valid length: a batch here has about 2 KiB
END: Final = b"\xff\xff\xff\xff\0\0\0\0"  # of the stream

_CONTINUATION: Final = 0xFFFFFFFF
# What a message can begin with: the marker, and behind it a length of at most METADATA_MAX.
_BEGINNING: Final = re.compile(rb"\xff{4}(?=..[\x00-\x10]\x00)", re.DOTALL)
_BLANK: Final = b"~" * 8
_KEY: Final = b"crc32"
_MARKS: Final = b"marks"
_SCHEMA, _RECORD_BATCH = 1, 3  # MessageHeader, the union of format/Message.fbs


class Frame(NamedTuple):
    """A message of the stream, by its head."""

    kind: int
    size: int  # bytes, head and body
    rows: int
    crc: bytes  # the digits; b"" if there are none
    crc_at: int  # where they are, from the beginning of the message


class _Table:
    """A table of a flatbuffer: fields by their number. Out of bounds raises struct.error."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self.vtable = at - _i32(data, at)

    def slot(self, field: int) -> int:
        """Where a field's value is; 0 if it is not there."""
        at = 4 + 2 * field
        if at >= _u16(self.data, self.vtable):
            return 0
        offset = _u16(self.data, self.vtable + at)
        return self.at + offset if offset else 0

    def follow(self, field: int) -> int:
        """Where a field that is a reference leads; 0 if it is not there."""
        slot = self.slot(field)
        return slot + _u32(self.data, slot) if slot else 0


def _u16(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<H", data, _positive(at))[0])


def _u32(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", data, _positive(at))[0])


def _i32(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<i", data, _positive(at))[0])


def _i64(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<q", data, _positive(at))[0])


def _positive(at: int) -> int:
    if at < 0:
        raise struct.error("a reference that leads out of the message")  # Python would count from the end
    return at


def metadata_size(prefix: bytes) -> int | None:
    """The length of the metadata by the first 8 bytes of a message; None if no message begins so, 0 at the end."""
    if len(prefix) < PREFIX or _u32(prefix, 0) != _CONTINUATION:
        return None
    size = _i32(prefix, 4)
    return size if 0 <= size <= METADATA_MAX else None


def frame(head: bytes) -> Frame | None:
    """What the head of a message (prefix and metadata) says of it; None if it is not a valid one."""
    try:
        message = _Table(head, PREFIX + _u32(head, PREFIX))
        kind, body = message.slot(1), message.slot(3)
        header = message.follow(2)
        size = len(head) + (_i64(head, body) if body else 0)
        number = head[kind] if kind else 0
        rows = 0
        if number == _RECORD_BATCH:
            length = _Table(head, header).slot(0)
            rows = _i64(head, length) if length else 0
        crc_at = _crc_at(head, message)
    except (struct.error, IndexError):
        return None
    if size < len(head) or rows < 0 or number not in (_SCHEMA, _RECORD_BATCH):
        return None
    return Frame(number, size, rows, head[crc_at : crc_at + 8] if crc_at else b"", crc_at)


def _crc_at(head: bytes, message: _Table) -> int:
    """Where the digits of the checksum are; 0 if there are none."""
    at, size = _metadata(head, message, _KEY)
    return at if size == len(_BLANK) else 0


def _metadata(head: bytes, message: _Table, wanted: bytes) -> tuple[int, int]:
    """Where the value of a key of `custom_metadata` is, and how long it is; (0, 0) if there is none."""
    pairs = message.follow(4)
    for number in range(_u32(head, pairs) if pairs else 0):
        at = pairs + 4 + 4 * number
        pair = _Table(head, at + _u32(head, at))
        key, value = pair.follow(0), pair.follow(1)
        if head[key + 4 : key + 4 + _u32(head, key)] == wanted:
            return value + 4, _u32(head, value)
    return 0, 0


def marks(head: bytes) -> bytes:
    """The marks that a batch brings, by its head, which has been found sound; b"" for none."""
    at, size = _metadata(head, _Table(head, PREFIX + _u32(head, PREFIX)), _MARKS)
    return head[at : at + size]


def is_batch(found: Frame) -> bool:
    return found.kind == _RECORD_BATCH and found.crc_at > 0


def batches_in(data: bytes) -> Iterator[tuple[int, Frame]]:
    """Where batches begin in bytes that may be damaged, by their heads; they need not be whole."""
    for match in _BEGINNING.finditer(data):
        at = match.start()
        size = metadata_size(data[at : at + PREFIX])
        found = frame(data[at : at + PREFIX + size]) if size else None
        if found is not None and is_batch(found):
            yield at, found


def is_schema(found: Frame) -> bool:
    return found.kind == _SCHEMA


def whole(found: Frame, data: bytes) -> bool:
    """Whether the bytes of a message are those that its checksum was made of."""
    at = found.crc_at
    if len(data) != found.size or not at:
        return False
    view = memoryview(data)
    crc = zlib.crc32(view[at + 8 :], zlib.crc32(_BLANK, zlib.crc32(view[:at])))
    return found.crc == b"%08x" % crc


def encode_schema(schema: Any) -> bytes:
    """The message that a stream begins with."""
    return bytes(memoryview(schema.serialize()))


def encode(batch: Any, compression: str | None = None, marks: bytes = b"") -> list[memoryview | bytes]:
    """The message of a batch, in pieces to be written one after the other. Marks of at most half of METADATA_MAX."""
    sink = pa.BufferOutputStream()
    writer = ipc.new_stream(sink, batch.schema, options=ipc.IpcWriteOptions(compression=compression))
    writer.write_batch(batch, custom_metadata={_KEY: _BLANK, **({_MARKS: marks} if marks else {})})
    stream = memoryview(sink.getvalue())
    message = stream[len(encode_schema(batch.schema)) :]
    size = metadata_size(bytes(message[:PREFIX]))
    found = frame(bytes(message[: PREFIX + size])) if size else None
    if found is None or not is_batch(found) or found.crc != _BLANK or found.size != len(message):
        raise AssertionError("this pyarrow writes a batch in another way than Arrow's format has it")
    at = found.crc_at
    crc = zlib.crc32(message)
    return [message[:at], b"%08x" % crc, message[at + 8 :]]


def decode(data: bytes, schema: Any) -> Any:
    """The batch of a message. Raises Corrupt."""
    try:
        return ipc.read_record_batch(pa.py_buffer(data), schema)
    except (pa.ArrowException, OSError) as error:
        raise Corrupt(f"a batch that does not decode: {error}") from error
