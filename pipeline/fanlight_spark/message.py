"""A message to publish, and its headers as the protocol has them. It needs no Spark: the bridge to Kafka has none."""

from typing import Any, Final, NamedTuple

CONTENT_TYPE, CORRELATION = "content-type", "correlation-id"  # headers of the protocol (section 3.3)
SYNTAXES: Final = {"amqp": 0, "mqtt": 1}


class Outgoing(NamedTuple):
    """A message, as the SDK's encoder takes it."""

    topic: str
    payload: bytes
    headers: dict[str, Any] | None
    syntax: int
    reply: str | None


def headers_of(given: Any) -> dict[str, Any]:
    """A name's second value makes an array of it, as in the protocol. Maps come from Arrow as pairs."""
    collected: dict[str, Any] = {}
    for one in given or ():
        name, value = (one["key"], one["value"]) if isinstance(one, dict) else one
        value = as_text(value)
        if name not in collected:
            collected[name] = value
        elif isinstance(collected[name], list):
            collected[name].append(value)
        else:
            collected[name] = [collected[name], value]
    return collected


def as_text(value: str | bytes | None) -> str | bytes | None:
    """Octets as text where they are text: what was published as text, and archived as octets, is text again."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
