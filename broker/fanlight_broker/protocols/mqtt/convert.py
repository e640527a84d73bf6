"""MQTT messages as the broker's Content, and the other way round: for subscribers of other protocols.

    user properties          headers, in order; numbers and booleans as text, nil as an empty value
    content type             content type
    correlation data         correlation
    response topic           reply topic, respelled as docs/topics.md says
    payload format indicator is_text
    message expiry interval  lifetime, in seconds, rounded up

What MQTT has no way to say is left out and counted: a header that is neither text nor UTF-8 or has a U+0000, a reply
topic without a spelling. A topic without one makes the whole message unsayable.
"""

from collections.abc import Mapping
from dataclasses import replace

from fanlight_broker.core.content import Content, Header
from fanlight_broker.core.rules import HeaderValue
from fanlight_broker.core.topics import MQTT_TOPIC_BYTES_MAX, Unspellable, respell
from fanlight_broker.protocols.mqtt.data_types import TWO_BYTES_MAX, Reader, encode_variable
from fanlight_broker.protocols.mqtt.errors import Unencodable
from fanlight_broker.protocols.mqtt.fields import fields_of
from fanlight_broker.protocols.mqtt.properties import (
    NONE,
    Properties,
    PropertyPlace,
    decode_properties,
    encode_properties,
)
from fanlight_broker.wire.message import Format, Message

CONTENT_TYPE = "content-type"  # a header elsewhere
EXPIRY_BYTES, EXPIRY_MAX = 4, 2**32 - 1  # of a Message Expiry Interval, in seconds
SYNTAX = 1  # of topics on the wire, by its number in the core


def properties_of(message: Message) -> Properties:
    """Those of its fields, which have been found sound by the lane."""
    fields = message.fields
    if not fields:
        return NONE
    return decode_properties(Reader(encode_variable(len(fields)) + fields, "PUBLISH"), PropertyPlace.PUBLISH)


def read(message: Message) -> Content:
    """What a message says."""
    properties = properties_of(message)
    indicator = properties.payload_format_indicator
    reply, expiry = properties.response_topic, properties.message_expiry_interval
    return Content(
        topic=message.topic,
        syntax=message.syntax,
        payload=message.payload,
        headers=properties.user_properties,
        content_type=properties.content_type,
        correlation=properties.correlation_data,
        reply=None if reply is None else reply.encode(),
        is_text=None if indicator is None else indicator == 1,
        lifetime=None if expiry is None else expiry * 1_000,
    )


def rewritten(message: Message, topic: bytes, headers: Mapping[str, HeaderValue]) -> Message | None:
    """The message on another topic, with these headers in place of its own of the same names; None if its properties
    would be too long. The header `content-type` is the property.
    """
    fields, hole = message.fields, message.expiry_hole
    if headers:
        before = properties_of(message)
        pairs = [pair(header) for header in headers.items() if header[0] != CONTENT_TYPE]
        kept = [each for each in before.user_properties if each[0] not in headers]
        after = replace(
            before, user_properties=(*kept, *(each for each in pairs if each is not None)),
            content_type=str(headers.get(CONTENT_TYPE, before.content_type or "")) or None,
            message_expiry_interval=None,  # its four octets are put at the end, where they are found again
        )
        expiry = fields[hole - 1 : hole + EXPIRY_BYTES] if hole >= 0 else b""
        try:
            reader = Reader(encode_properties(after, PropertyPlace.PUBLISH), "PUBLISH")
        except Unencodable:
            return None
        reader.variable_byte_integer("Property Length")
        fields = reader.rest() + expiry
        hole = len(fields) - EXPIRY_BYTES if expiry else -1
    return Message(
        message.format, topic, message.syntax, message.payload, fields=fields, qos=message.qos, retain=message.retain,
        expires_at=message.expires_at, expiry_hole=hole, format_data=message.format_data,
    )


def write(format: Format, content: Content) -> tuple[Message | None, int]:
    """A message that says `content`, None if that cannot be said; and how many parts of it were left out."""
    topic = spelled(content.topic, content.syntax_name)
    if topic is None:
        return None, 0
    pairs = [pair(header) for header in content.headers]
    reply = spelled(content.reply, content.syntax_name) if content.reply else None
    content_type, correlation = content.content_type, content.correlation
    left_out = pairs.count(None) + (reply is None and bool(content.reply))
    if content_type is not None and not sayable(content_type):
        content_type = None
        left_out += 1
    if correlation is not None and len(correlation) > TWO_BYTES_MAX:
        correlation = None
        left_out += 1
    lifetime = content.lifetime
    properties = Properties(
        payload_format_indicator=None if content.is_text is None else int(content.is_text),
        message_expiry_interval=None if lifetime is None else min(-(-lifetime // 1_000), EXPIRY_MAX),
        content_type=content_type,
        response_topic=None if reply is None else reply.decode(),
        correlation_data=correlation,
        user_properties=tuple(one for one in pairs if one is not None),
    )
    try:
        fields, hole = fields_of(properties)
    except Unencodable:  # too many headers for their length to be encoded
        return None, 0
    return Message(format, topic, SYNTAX, content.payload, fields=fields, expiry_hole=hole), left_out


def spelled(topic: bytes, syntax: str) -> bytes | None:
    """A topic as a Topic Name, None if it has no spelling there (4.7.3, 1.5.4)."""
    try:
        name = respell(topic, syntax, "mqtt")
        text = name.decode()
    except (Unspellable, UnicodeDecodeError):
        return None
    if not 0 < len(name) <= MQTT_TOPIC_BYTES_MAX or any(one in text for one in "\0+#"):
        return None
    return name


def pair(header: Header) -> tuple[str, str] | None:
    """A header as a user property, None if it cannot be one."""
    name, value = header
    match value:
        case bytes():
            try:
                text = value.decode()
            except UnicodeDecodeError:
                return None
        case bool():
            text = "true" if value else "false"
        case None:
            text = ""
        case _:
            text = str(value)
    return (name, text) if sayable(name) and sayable(text) else None


def sayable(text: str) -> bool:
    """Is it a UTF-8 Encoded String (1.5.4)?"""
    return "\0" not in text and len(text.encode()) <= TWO_BYTES_MAX
