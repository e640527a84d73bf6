"""AMQP messages as the broker's Content, and the other way round: for subscribers and consumers of other protocols.

    headers                       headers, in order; an array is several of a name; tables and decimals are left out
    content-type, correlation-id  content type, correlation
    expiration                    lifetime
    the other properties          headers of their names, unless there is one of that name
    reply-to                      a header: the name of a queue is no topic

Towards AMQP a header with the name of a property becomes that property, and a reply topic reply-to.
"""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from fanlight_broker.core.content import HEADERS_MAX, Content, Header
from fanlight_broker.core.rules import HeaderValue
from fanlight_broker.protocols.amqp.data_types import SHORT_STRING_MAX
from fanlight_broker.protocols.amqp.field_table import INT64
from fanlight_broker.protocols.amqp.fields import (
    TOPIC_EXCHANGE,
    key_of_topic,
    pack_fields,
    unpack_fields,
)
from fanlight_broker.protocols.amqp.properties import EXPIRATION_MAX, BasicProperties, encode_properties
from fanlight_broker.wire.message import Format, Message

RECORDED: Final = "amqp-message"  # a header of what a stream keeps: exchange, routing key and properties, see fields.py
CONTENT_TYPE: Final = "content-type"
# Properties that are headers elsewhere: their name there, and the attribute.
AS_HEADERS: Final = {
    "content-encoding": "content_encoding", "reply-to": "reply_to", "message-id": "message_id", "type": "type",
    "app-id": "app_id", "user-id": "user_id", "timestamp": "timestamp", "priority": "priority",
}  # fmt: skip
TEXTS: Final = frozenset({"content-encoding", "reply-to", "message-id", "type", "app-id"})  # taken from headers


def read(message: Message) -> Content | None:
    """What a message says; None if it has too many headers."""
    properties = unpack_fields(message.fields).properties
    headers = list(headers_of(properties.headers or {}))
    names = {name for name, _ in headers}
    for name, attribute in AS_HEADERS.items():
        value = getattr(properties, attribute)
        if value is not None and name not in names:
            headers.append((name, value))
    if len(headers) > HEADERS_MAX:
        return None
    correlation = properties.correlation_id
    return Content(
        topic=message.topic,
        syntax=message.syntax,
        payload=message.payload,
        headers=tuple(headers),
        content_type=properties.content_type,
        correlation=None if correlation is None else correlation.encode(),
        lifetime=None if properties.expiration is None else int(properties.expiration),
    )


def record(message: Message) -> Content:
    """What the archive has of a message of a stream: what it says, and RECORDED, its fields as AMQP consumers get them.

    Of one that says too much for that, the latter alone.
    """
    content = read(message)
    fields: Header = (RECORDED, message.fields)
    if content is None:
        return Content(message.topic, message.syntax, b"", (fields,))
    return replace(content, headers=(*(each for each in content.headers if each[0] != RECORDED), fields))


def headers_of(table: Mapping[str, Any]) -> list[Header]:
    """The entries of a table that others can have, in order."""
    found: list[Header] = []
    for name, value in table.items():
        values = value if isinstance(value, list) else [value]
        found += [(name, each) for each in values if not isinstance(each, dict | list | Decimal)]
    return found


def write(format: Format, content: Content) -> Message | None:
    """A message that says `content`; None if its topic is too long for a routing key, or no UTF-8."""
    key = key_of_topic(content.topic, content.syntax)
    if key is None:
        return None
    own: dict[str, Any] = {"delivery_mode": 2, "content_type": short(content.content_type)}
    if content.correlation is not None:
        try:
            own["correlation_id"] = short(content.correlation.decode())
        except UnicodeDecodeError:
            own["correlation_id"] = short(content.correlation.hex())
    if content.lifetime is not None and content.lifetime <= EXPIRATION_MAX:
        own["expiration"] = str(content.lifetime)
    if content.reply:
        own["reply_to"] = key_of_topic(content.reply, content.syntax)
    priority = 0
    table: dict[str, Any] = {}
    for name, value in content.headers:
        if len(name.encode()) > SHORT_STRING_MAX or (isinstance(value, int) and value not in INT64):
            continue
        if name in TEXTS and own.get(AS_HEADERS[name]) is None and isinstance(value, str) and short(value) is not None:
            own[AS_HEADERS[name]] = value
        elif name == "priority" and is_priority(value):
            own["priority"] = priority = int(value or 0)
        else:
            add(table, name, value)
    if table:
        own["headers"] = table
    return Message(
        format, content.topic, content.syntax, content.payload, format_data=priority,
        fields=pack_fields(TOPIC_EXCHANGE, key, encode_properties(BasicProperties(**own))),
    )


def short(text: str | None) -> str | None:
    """A text that a short string can hold."""
    return text if text is not None and len(text.encode()) <= SHORT_STRING_MAX else None


def is_priority(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) == 1 and value in "0123456789"
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 255


def add(table: dict[str, Any], name: str, value: Any) -> None:
    """A name's second value makes an array of it."""
    if name not in table:
        table[name] = value
    elif isinstance(table[name], list):
        table[name].append(value)
    else:
        table[name] = [table[name], value]


def rewritten(message: Message, topic: bytes, headers: Mapping[str, HeaderValue]) -> Message | None:
    """The message on another topic, with these headers in place of its own of the same names; None if the topic is no
    routing key. The header `content-type` is the property.
    """
    key = key_of_topic(topic, message.syntax)
    if key is None:
        return None
    encoded = unpack_fields(message.fields).encoded
    if headers:
        before = unpack_fields(message.fields).properties
        table = {**(before.headers or {}), **{name: each for name, each in headers.items() if name != CONTENT_TYPE}}
        content_type = short(str(headers[CONTENT_TYPE])) if CONTENT_TYPE in headers else before.content_type
        encoded = encode_properties(replace(before, headers=table, content_type=content_type))
    return Message(
        message.format, topic, message.syntax, message.payload, fields=pack_fields(TOPIC_EXCHANGE, key, encoded),
        qos=message.qos, retain=message.retain, expires_at=message.expires_at, format_data=message.format_data,
    )
