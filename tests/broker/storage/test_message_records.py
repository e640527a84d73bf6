"""Messages as records: nearly all have a short head, and a long one says what does not fit in."""

import math
import struct
from typing import Any

import pytest

from fanlight_broker.storage.message_records import came_at, message_record, read_head, read_message
from fanlight_broker.storage.records import BadRecord
from fanlight_broker.wire.message import Message
from tests.broker.wire.formats import LineFormat

FORMAT = LineFormat("lines")
FORMATS = {FORMAT.family: FORMAT}
SHORT_HEAD, HEAD = 22, 42  # bytes


def message(payload: bytes = b"payload", fields: bytes = b"", syntax: int = 0, **said: Any) -> Message:
    return Message(FORMAT, b"a/b", syntax, payload, fields=fields, **said)


def record(sent: Message, wall: float = 0.0) -> bytes:
    return message_record(sent, 7, wall)


@pytest.mark.parametrize(
    ("sent", "head"),
    [
        (message(), SHORT_HEAD),
        (message(b""), SHORT_HEAD),
        (message(b"", b"fields"), SHORT_HEAD),
        (message(qos=2, retain=True, syntax=1, format_data=255), SHORT_HEAD),
        (message(b"x" * 65_534, b"y" * 65_534), SHORT_HEAD),
        (message(b"x" * 65_535), HEAD),
        (message(fields=b"y" * 65_535), HEAD),
        (message(format_data=256), HEAD),
        (message(expires_at=1e9), HEAD),
        (message(expires_at=1e300), HEAD),
        (message(fields=b"12345678", expiry_hole=4), HEAD),
    ],
)
def test_a_message_is_what_its_record_says(sent: Message, head: int) -> None:
    body = record(sent)
    assert len(body) == head + len(FORMAT.family) + len(b"a/b") + len(sent.fields) + len(sent.payload)
    read = read_message(body, FORMATS, 0.0)
    for name in ("topic", "payload", "fields", "qos", "retain", "syntax", "expiry_hole", "format_data"):
        assert getattr(read, name) == getattr(sent, name)
    assert read.expires_at == (math.inf if math.isinf(sent.expires_at) else min(sent.expires_at, 2**60 / 1000))
    found = read_head(body)
    assert (found.number, found.slots, found.end, found.nbytes) == (7, (), len(body), read.nbytes)
    assert came_at(body) == 0


def test_a_long_head_that_says_no_more_than_a_short_one_is_read() -> None:
    """As all were written before there were short ones."""
    sent = message(qos=1)
    rest = record(sent)[SHORT_HEAD:]
    body = struct.pack("<QQIIIIiHBBBB", 7, 0, 7, 0, 0xFFFFFFFF, 0, -1, 3, 1, 0, len(FORMAT.family), 0) + rest
    read = read_message(body, FORMATS, 0.0)
    assert (read.topic, read.payload, read.qos, read.expires_at) == (b"a/b", b"payload", 1, math.inf)


@pytest.mark.parametrize("sent", [message(), message(expires_at=1e9)])
def test_what_ends_too_soon_is_no_message(sent: Message) -> None:
    body = record(sent)
    for size in range(len(body)):
        with pytest.raises(BadRecord):
            read_message(body[:size], FORMATS, 0.0)


def test_a_payload_outside_its_fields_is_refused() -> None:
    body = bytearray(record(message(b"", b"fields")))
    body[16:18] = (7).to_bytes(2, "little")  # where it is among them
    with pytest.raises(BadRecord, match="behind the fields"):
        read_message(bytes(body), FORMATS, 0.0)
