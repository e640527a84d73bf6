"""Native messages as the broker's Content, and the other way round: for subscribers of other protocols.

    headers         content-type, correlation-id -> fields of their own; others in order, an array as several of a name
                    (a header that takes the name of a field which is set already is written with x- before it)
    syntax, reply   as they are: a format of another syntax converts both
"""

from collections.abc import Mapping
from typing import Any, Final

import msgpack  # type: ignore[import-untyped]

from fanlight_broker.core.content import HEADERS_MAX, Content, Header
from fanlight_broker.wire.message import Format, Message

CONTENT_TYPE: Final = "content-type"
CORRELATION: Final = "correlation-id"
HEADERS_AT: Final = 2  # among the values of a message
HEADER_KEY_BYTES_MAX: Final = 255  # section 3.3


def values_of(message: Message) -> list[Any] | None:
    """Topic, payload, headers, syntax and reply, as many as it has; None if it has too many headers.

    Its fields have been found sound by the lane.
    """
    unpacker = msgpack.Unpacker(
        None, raw=False, strict_map_key=True, object_pairs_hook=first_of_each, max_buffer_size=0,
        max_map_len=HEADERS_MAX, max_array_len=HEADERS_MAX,
    )
    unpacker.feed(message.fields)
    try:
        return list(unpacker)
    except ValueError:  # a map or an array of more
        return None


def first_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A map in which a name may come several times: its first value that is not nil counts, as for selectors."""
    found = dict(pairs)
    if len(found) < len(pairs):
        found = {}
        for name, value in pairs:
            if found.get(name) is None:
                found[name] = value
    return found


def read(message: Message) -> Content | None:
    """What a native message says, None if it has too many headers."""
    values = values_of(message)
    if values is None:
        return None
    headers: Mapping[str, Any] = (values[2] if len(values) > 2 else None) or {}
    reply = values[4] if len(values) > 4 else None
    content_type, correlation = headers.get(CONTENT_TYPE), headers.get(CORRELATION)
    if sum(len(value) if isinstance(value, list) else 1 for value in headers.values()) > HEADERS_MAX:
        return None
    kept: list[Header] = []
    for name, value in headers.items():
        if name == CONTENT_TYPE and isinstance(content_type, str):
            continue
        if name == CORRELATION and isinstance(correlation, str | bytes):
            continue
        kept.extend((name, one) for one in (value if isinstance(value, list) else [value]))
    return Content(
        topic=message.topic,
        syntax=message.syntax,
        payload=message.payload,
        headers=tuple(kept),
        content_type=content_type if isinstance(content_type, str) else None,
        correlation=octets(correlation),
        reply=octets(reply),
    )


def rewritten(message: Message, topic: bytes, headers: Mapping[str, Any]) -> Message | None:
    """The message on another topic, with these headers in place of its own of the same names; None if it has too many
    headers.
    """
    values = values_of(message)
    if values is None:
        return None
    values[0] = text_or_octets(topic)
    if headers:
        values += [None] * (HEADERS_AT + 1 - len(values))
        values[HEADERS_AT] = {**(values[HEADERS_AT] or {}), **headers}
    fields = b"".join(msgpack.packb(value, use_bin_type=True) for value in values)
    return Message(
        message.format, topic, message.syntax, message.payload, fields=fields, qos=message.qos, retain=message.retain,
        expires_at=message.expires_at, format_data=1 + 1 + len(values),
    )


def octets(value: Any) -> bytes | None:
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, bytes) else None


def write(format: Format, content: Content) -> Message | None:
    """A native message that says `content`. There is nothing that it could not say."""
    headers = headers_of(content)
    values: list[Any] = [text_or_octets(content.topic), content.payload]
    reply = text_or_octets(content.reply) if content.reply else None
    optional: list[Any] = [headers or None, content.syntax or None, reply]
    while optional and optional[-1] is None:
        optional.pop()
    values += optional
    fields = b"".join(msgpack.packb(value, use_bin_type=True) for value in values)
    count = 1 + 1 + len(values)
    return Message(format, content.topic, content.syntax, content.payload, fields=fields, format_data=count)


def headers_of(content: Content) -> dict[str, Any]:
    """The headers of a native message that says `content`."""
    headers: dict[str, Any] = {}
    if content.content_type is not None:
        headers[CONTENT_TYPE] = content.content_type
    if content.correlation is not None:
        headers[CORRELATION] = text_or_octets(content.correlation)
    fields_set = frozenset(headers)  # an array of the name is several headers of it, and none of them a field
    for name, value in content.headers:
        if name in fields_set:
            name = f"x-{name}"
        if not name.startswith("$") and len(name.encode()) <= HEADER_KEY_BYTES_MAX:
            add(headers, name, value)
    return headers


def add(headers: dict[str, Any], name: str, value: Any) -> None:
    """A name's second value makes an array of it."""
    if name not in headers:
        headers[name] = value
    elif isinstance(headers[name], list):
        headers[name].append(value)
    else:
        headers[name] = [headers[name], value]


def text_or_octets(value: bytes) -> str | bytes:
    """msgpack str, or bin for what is not UTF-8 (section 2)."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
