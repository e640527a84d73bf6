"""How messages are shown: JSON with text where it is text, base64 where it is not."""

import base64
import math
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from fanlight_broker.admin.api.declared import FLAG, TEXT, WHOLE, Parameter, Schema, items, maybe, shape
from fanlight_broker.core.content import Content
from fanlight_broker.core.topics import SYNTAXES, masked
from fanlight_broker.wire.message import NEVER, Message

HEADERS_SHOWN: Final = 100
HEADER_SHOWN: Final = 1_000  # characters of its name, and of its value
PEEK: Final = (
    Parameter("limit", int, "messages", 10, least=1, most=200),
    Parameter("payload_bytes", int, "of each payload that are shown", 1_024, least=0, most=65_536),
)
ANSWER_BYTES: Final = 512 * 1024  # of messages in one answer, about
MESSAGE: Final[Schema] = shape(
    topic=TEXT, syntax=TEXT, size=WHOLE, cut=FLAG, qos=WHOLE, retain=FLAG, content_type=maybe(TEXT),
)
PEEKED: Final[Schema] = shape(items=items(MESSAGE), total=WHOLE)


def size_of(row: Mapping[str, Any]) -> int:
    """About how many bytes a row takes as JSON."""
    return sum(
        20 + (len(value) if isinstance(value, str) else size_of(value) if isinstance(value, dict) else 0)
        for value in row.values()
    )


def text_of(octets: bytes) -> str:
    """For display: invalid UTF-8 as backslash escapes."""
    return octets.decode("utf-8", "backslashreplace")


def href(*words: str | bytes, **query: str) -> str:
    """The address of something below /api/v1; a parameter that is "" is left out."""
    path = "/".join(quote(word, safe="") for word in words)
    more = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items() if value)
    return f"/api/v1/{path}{'?' if more else ''}{more}"


def message_view(message: Message, now: float, payload_bytes: int = 0) -> dict[str, Any]:
    """A message with the first bytes of its payload."""
    syntax = SYNTAXES[message.syntax]
    content: Content | None = message.format.read(message)
    view: dict[str, Any] = {
        "topic": text_of(masked(message.topic, syntax)), "syntax": syntax, "size": len(message.payload),
        "qos": message.qos, "retain": message.retain,
        "expires_seconds": None if message.expires_at == NEVER else max(0.0, round(message.expires_at - now, 3)),
        **payload_view(message.payload, payload_bytes),
        "content_type": content.content_type if content is not None else None,
        "headers": headers_view(content) if content is not None else {},
    }
    if content is not None and content.reply is not None:
        view["reply_to"] = text_of(masked(content.reply, SYNTAXES[content.syntax]))
    if content is not None and content.correlation is not None:
        view["correlation_base64"] = base64.b64encode(content.correlation[:1_024]).decode()
    return view


def payload_view(payload: bytes, most: int) -> dict[str, Any]:
    shown = payload[:most]
    cut = len(shown) < len(payload)
    try:
        # A cut may be in the middle of a character.
        return {"cut": cut, "payload": shown.decode("utf-8", "strict" if not cut else "ignore")}
    except UnicodeDecodeError:
        return {"cut": cut, "payload_base64": base64.b64encode(shown).decode()}


def headers_view(content: Content) -> dict[str, Any]:
    """The first of each name. A number that is not finite is text: nan, inf, -inf."""
    found: dict[str, Any] = {}
    for name, value in content.headers[:HEADERS_SHOWN]:
        text = text_of(value[:HEADER_SHOWN]) if isinstance(value, bytes) else value
        if isinstance(text, float) and not math.isfinite(text):  # JSON has no such numbers
            text = str(text)
        found.setdefault(name[:HEADER_SHOWN], text[:HEADER_SHOWN] if isinstance(text, str) else text)
    return found
