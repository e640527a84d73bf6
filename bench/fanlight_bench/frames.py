"""Frames of the native protocol, as far as a load needs them: docs/native-protocol.md, sections 2 and 3.

The load implements the protocol itself and does not use the SDK: what is measured is the broker, and a fault
in the SDK must not hide one in the broker. Nothing here is called once per message.
"""

import struct
from collections.abc import Mapping
from typing import Any

import msgpack  # type: ignore[import-untyped, unused-ignore]

HELLO, WELCOME, PUBLISH, MESSAGE, RECEIPT, SUBSCRIBE, OK = 1, 2, 3, 4, 5, 6, 7
ERROR, GOODBYE = 13, 14
VERSION = 1
SYNTAXES = {"amqp": 0, "mqtt": 1}

NULL_SERVER = "null"   # what the null broker says it is
NULL_SUBSCRIPTION = 1  # the one number that it knows

# A request is always written in five bytes, so that the generator can patch it in place.
_ANY_REQUEST = b"\xce\x00\x00\x00\x00"
_NO_REQUEST = b"\xc0"


class Refused(Exception):
    """The broker answered with an error, or not at all as the protocol wants it."""


def encode(*fields: object) -> bytes:
    """One frame: its length and a msgpack array."""
    body: bytes = msgpack.packb(fields)
    return struct.pack(">I", len(body)) + body


def publish(
    topic: str, payload_bytes: int, syntax: str, *, receipt: bool, headers: Mapping[str, object] | None = None
) -> tuple[bytes, bytes, int]:
    """A PUBLISH to repeat, with a payload of zeros: the frame, the topic in it, and where its payload begins.

    With a receipt the request is in the five-byte form, at offset 6.
    """
    # A sender may leave out trailing fields whose defaults it wants.
    last = [headers or None, SYNTAXES[syntax]] if syntax != "amqp" else [headers] if headers else []
    head = bytes([0x90 | 4 + len(last), PUBLISH]) + (_ANY_REQUEST if receipt else _NO_REQUEST) + msgpack.packb(topic)
    payload: bytes = msgpack.packb(bytes(payload_bytes))
    body = head + payload + b"".join(msgpack.packb(field) for field in last)
    frame = struct.pack(">I", len(body)) + body
    return frame, topic.encode(), 4 + len(head) + len(payload) - payload_bytes


def unpack(body: bytes) -> list[Any]:
    """The fields of a frame without its length. Raises Refused when it is no array."""
    try:
        fields = msgpack.unpackb(body)
    except ValueError as error:
        raise Refused(f"a frame that is not msgpack: {error}") from None
    if not isinstance(fields, list) or not fields:
        raise Refused("a frame that is not an array")
    return fields


def explain(fields: list[Any]) -> str:
    """A frame in words, for people."""
    names = {ERROR: "ERROR", GOODBYE: "GOODBYE"}
    return " ".join([names.get(fields[0], f"frame type {fields[0]}:"), *(str(field) for field in fields[1:])])


def answer(body: bytes) -> tuple[bytes, list[tuple[str, str]]]:
    """What the null broker says to a frame that is no PUBLISH, and (filter, syntax) of new subscriptions.

    Raises ValueError for a frame it does not know, and for a subscription that is not NULL_SUBSCRIPTION.
    """
    fields = unpack(body)
    if fields[0] == HELLO:
        return encode(WELCOME, VERSION, {"server": NULL_SERVER}), []
    if fields[0] == GOODBYE:
        return b"", []
    if fields[0] == SUBSCRIBE:
        _, request, subscription, pattern, options = fields
        if subscription != NULL_SUBSCRIPTION:
            raise ValueError(f"subscription {subscription}; the null broker knows {NULL_SUBSCRIPTION} only")
        syntax = "mqtt" if options["syntax"] == SYNTAXES["mqtt"] else "amqp"
        return encode(OK, request) if request is not None else b"", [(pattern, syntax)]
    raise ValueError(f"frame type {fields[0]}: the null broker is not a broker")
