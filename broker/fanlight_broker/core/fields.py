"""The fields of a message that selectors ask for (docs/selectors.md).

    headers     as the message's format reads them: `Format.described`
    payload     of a body that is a map, by its content type; at most 64 KiB
    the rest    what the broker knows of the message: its topic's words, its size, quality and publisher
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

import msgpack  # type: ignore[import-untyped]

from fanlight_broker.core.condition import Condition
from fanlight_broker.core.topics import SEPARATORS, SYNTAXES
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.outbox import Owner
from matchcore.selector import Attribute, Source

BODY_BYTES_MAX: Final = 64 * 1024  # a larger body has no fields: it would be read in one piece
JSON: Final = re.compile(r"application/(.+\+)?json")  # RFC 6839, section 3.1
MSGPACK: Final = re.compile(r"application/(x-|vnd\.)?msgpack")

Fields = dict[Attribute, Any]
Known = Callable[[str], object]  # what is known of a message, by the name behind `$`


class MalformedBody(ValueError):
    """A body that is not what its content type says."""


class MessageParts(NamedTuple):
    """Where the fields of a message are found, whatever it was read from."""

    topic: bytes
    syntax: int
    payload: bytes
    headers: Mapping[str, Any]  # the first of each name
    content_type: str | None
    known: Known  # of what is not here: qos, retain, client, user; None for what is not known


def fields_of(message: Message, owner: Owner | None, asked: Collection[Attribute]) -> tuple[Fields, bool]:
    """The values of those attributes that a message has; and whether its body could not be read.

    owner  of its publisher's outbox, or None
    """
    headers, content_type = message.format.described(message)

    def known(name: str) -> object:
        if name == "qos":
            return message.qos
        if name == "retain":
            return message.retain
        if name not in ("client", "user"):
            return None
        publisher = getattr(owner, "subscriber", None)  # a Subscriber, or `due.Absent`, which has no user
        return getattr(publisher, "name" if name == "client" else "user", None) or None

    parts = MessageParts(message.topic, message.syntax, message.payload, headers, content_type, known)
    return fields_in(parts, asked)


def fields_in(parts: MessageParts, asked: Collection[Attribute]) -> tuple[Fields, bool]:
    """`fields_of`, of the parts of a message."""
    malformed = False
    body: object = None
    if any(attribute.source is Source.PAYLOAD for attribute in asked):
        try:
            body = body_of(parts.payload, parts.content_type)
        except MalformedBody:
            malformed = True
    found = {}
    for attribute in asked:
        match attribute.source:
            case Source.HEADER:
                value = parts.headers.get(attribute.path[0])
            case Source.PAYLOAD:
                value = below(body, attribute.path)
            case Source.MESSAGE:
                value = of_message(parts, attribute.path)
        if value is not None:
            found[attribute] = value
    return found, malformed


def body_of(payload: bytes, content_type: str | None) -> object:
    """A body in a format that has fields; None: it has none. Raises MalformedBody."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    if len(payload) > BODY_BYTES_MAX:
        return None
    try:
        if JSON.fullmatch(kind):
            return json.loads(payload)
        if MSGPACK.fullmatch(kind):
            return msgpack.unpackb(payload, strict_map_key=False)
    except (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException) as error:
        raise MalformedBody(str(error)) from error
    return None


def below(body: object, path: tuple[str, ...]) -> object:
    """What is at the end of a path of names, through maps only."""
    for name in path:
        if not isinstance(body, dict):
            return None
        body = body.get(name)
    return body


def of_message(parts: MessageParts, path: tuple[str, ...]) -> object:
    """What is known of a message, by the name behind `$`."""
    separator = SEPARATORS[SYNTAXES[parts.syntax]]
    match path[0]:
        case "word":
            words = parts.topic.split(separator) if parts.topic else []
            at = int(path[1]) - 1
            return words[at].decode("utf-8", "surrogateescape") if at < len(words) else None
        case "words":
            return parts.topic.count(separator) + 1 if parts.topic else 0
        case "bytes":
            return len(parts.payload)
        case "content_type":
            return parts.content_type
        case name:
            return parts.known(name)


def is_wanted(condition: Condition, message: Message) -> bool:
    """Is a condition true of a message whose publisher is not known any more, such as a retained one?"""
    fields, _ = fields_of(message, None, condition.attributes)
    return condition.is_true_of(fields)
