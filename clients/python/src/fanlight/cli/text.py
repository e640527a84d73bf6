"""Payloads and topics as lines of text, and command line words as octets.

One message is one line: what would break it, or steer a terminal, is written as an escape. That is for
reading; what must be exact goes as JSON.
"""

import base64
import json
import math
import os
from typing import Any

from ..message import Message
from ..topics import Topic, checked
from ..topics import octets as octets_of

Scalar = str | int | float  # of a header on the command line; bool is an int
INTEGER_MIN, INTEGER_MAX = -(1 << 63), (1 << 64) - 1  # that msgpack can say

JSON_KEYS = """\
keys of --json:
  topic, payload, reply   text, always (reply: or null). Where the octets are not UTF-8, each faulty one is U+FFFD, and
                          topic_base64, payload_base64, reply_base64 have the octets; else there is no such key
  syntax                  amqp or mqtt: how the topic is spelled
  headers                 an object; a value of octets that are not UTF-8 is {"base64": ...}
  offset, timestamp       of a message from the archive (--since)
"""


def octets(word: str) -> bytes:
    """A word of the command line as the octets that were typed."""
    return os.fsencode(word)


def shown(value: str | bytes, *, spaces: bool = True) -> str:
    """On one line, without control characters; without spaces, too, where asked."""
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
    if text.isprintable() and (spaces or " " not in text):
        return text
    return "".join(
        each if (each == " " and spaces) or (each.isprintable() and each != " ") else _escape(each) for each in text
    )


def quoted(word: str) -> str:
    """A word of the command line as it may be shown in a message, in quotes."""
    return f"'{shown(octets(word))}'"


def _escape(character: str) -> str:
    named = {"\n": r"\n", "\r": r"\r", "\t": "\t"}.get(character)
    return named or "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))


def line(message: Message) -> str:
    """`topic payload`; the topic has no space in it, so that the first one parts the two."""
    return f"{shown(message.topic, spaces=False)} {shown(message.payload)}"


def payload(message: Message) -> str:
    return shown(message.payload)


def as_json(message: Message) -> str:
    """Everything, on one line. JSON_KEYS, which is in the help, says what the keys are."""
    document = {
        **_spelled("topic", message.topic_bytes),
        "syntax": message.syntax,
        **_spelled("payload", message.payload),
        "headers": plain(dict(message.headers)),
        **({"reply": None} if message.reply is None else _spelled("reply", octets_of(message.reply))),
    }
    if message.timestamp is not None:  # it was replayed
        document |= {"offset": message.offset, "timestamp": message.timestamp.isoformat()}
    return json.dumps(document, ensure_ascii=False)


def _spelled(key: str, value: bytes) -> dict[str, str]:
    try:
        return {key: value.decode()}
    except UnicodeDecodeError:
        return {key: value.decode(errors="replace"), f"{key}_base64": base64.b64encode(value).decode()}


def plain(value: Any) -> Any:
    """A header's value as JSON has it."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def topic(word: str) -> Topic:
    """A topic or filter from the command line."""
    return checked(octets(word))


def headers(pairs: list[str] | None) -> dict[str, Scalar] | None:
    """`key=text` and `key:=value` words, a value being a number, true, false or a text of JSON. Raises ValueError."""
    if not pairs:
        return None
    made: dict[str, Scalar] = {}
    for pair in pairs:
        key, mark, value = pair.partition("=")
        typed = key.endswith(":")
        key = key.removesuffix(":")
        if not mark or not key:
            raise ValueError(f"a header is written KEY=TEXT or KEY:=NUMBER; got {pair!r}")
        made[key] = _typed(pair, value) if typed else value
    return made


def _typed(pair: str, word: str) -> Scalar:
    try:
        value = json.loads(word)
    except (ValueError, RecursionError):
        value = None
    if (isinstance(value, float) and not math.isfinite(value)) or not isinstance(value, str | int | float):
        raise ValueError(f"{pair!r}: behind := a header is a number, true, false or a text in double quotation marks")
    if isinstance(value, int) and not INTEGER_MIN <= value <= INTEGER_MAX:
        raise ValueError(f"{pair!r}: an integer of a header has 64 bits")
    return value
