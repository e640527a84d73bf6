"""Delayed messages that wait at the broker: look at them, and cancel one (docs/delayed.md).

    receipt = await client.publish("orders.7.expire", delay=900, receipt=True)
    await client.cancel(receipt)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import topics
from .errors import ProtocolError, Unsupported
from .frames import Headers
from .link import Link
from .marks import Routed
from .topics import SyntaxName

FEATURE = "cancel"
LISTED = 100  # messages that are listed
PAYLOAD_BYTES = 128  # of each
U64_MAX = 2**64 - 1


@dataclass(frozen=True, kw_only=True)
class DelayedMessage:
    """A message that waits for its time."""

    id: int
    """For `cancel`."""
    seconds: float
    """Until it is due."""
    client: str
    """Who published it."""
    topic: str
    topic_bytes: bytes
    syntax: SyntaxName
    payload: bytes
    """Its beginning."""
    headers: Headers
    reply: str | None
    size: int
    """Bytes of the whole payload."""
    cut: bool
    """Payload, headers or reply are not complete."""


@dataclass(frozen=True, kw_only=True)
class DelayedMessages:
    """Those of this client's user; all, for a client that may subscribe to everything."""

    count: int
    next_seconds: float | None
    """Until the next is due; None: there is none."""
    messages: tuple[DelayedMessage, ...]
    """The first of them, in the order of their times."""


def id_of(message: Routed | int) -> int:
    """The id of a delayed message. Raises ValueError, Unsupported."""
    id = message.id if isinstance(message, Routed) else message
    if id is None:
        raise Unsupported("the receipt has no id: the message is not delayed, or the broker cancels none",
                          code="unsupported")  # fmt: skip
    if not 1 <= id <= U64_MAX:
        raise ValueError(f"{id} is no id of a delayed message")
    return id


async def cancel_delayed(link: Link, message: Routed | int, timeout: float | None) -> bool:
    result = await _ask(link, timeout, "cancel", {"id": id_of(message)})
    return bool(result.get("cancelled"))


async def list_delayed(link: Link, count: int, payload_bytes: int, timeout: float | None) -> DelayedMessages:
    said = await _ask(link, timeout, "delayed", {"limit": count, "payload_bytes": payload_bytes})
    messages = said.get("messages")
    if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
        raise ProtocolError("the broker's answer has no messages")
    following = said.get("next_seconds")
    return DelayedMessages(
        count=_number(said, "count"), next_seconds=None if following is None else float(following),
        messages=tuple(_message(each) for each in messages),
    )


async def _ask(link: Link, timeout: float | None, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
    def frame(request: int) -> bytes:
        if link.welcome is None or FEATURE not in (link.welcome.info.get("features") or ()):
            raise Unsupported("this broker does not list or cancel delayed messages", code="unsupported")
        return link.encoder.queue(request, verb, arguments)

    result = await link.answer(frame, timeout)
    return result if isinstance(result, dict) else {}


def _number(said: Mapping[str, Any], key: str) -> int:
    value = said.get(key)
    if not isinstance(value, int):
        raise ProtocolError(f"the broker's answer has no number of {key}")
    return value


def _message(said: Mapping[str, Any]) -> DelayedMessage:
    topic, reply = said.get("topic", ""), said.get("reply")
    return DelayedMessage(
        id=_number(said, "id"), seconds=float(said.get("seconds") or 0.0), client=str(said.get("client") or ""),
        topic=topics.text(topic), topic_bytes=topics.octets(topic), syntax=topics.NAMES[said.get("syntax") or 0],
        payload=bytes(said.get("payload") or b""), headers=said.get("headers") or {},
        reply=None if reply is None else topics.text(reply), size=_number(said, "size"), cut=bool(said.get("cut")),
    )
