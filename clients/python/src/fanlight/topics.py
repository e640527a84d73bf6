"""How topics are spelled: which character parts the words, and what the wire calls the spelling.

The broker matches; here a topic is only taken apart for `message.words` and the inbox put into either
spelling.
"""

from typing import Literal

from .errors import InvalidTopic

Topic = str | bytes
"""A topic: `str`, or `bytes` where its octets are not valid UTF-8."""

SyntaxName = Literal["amqp", "mqtt"]
"""As messages carry it."""

Syntax = Literal["amqp", "mqtt", "native"]
"""As calls accept it; `native` is another name for `amqp`."""

AMQP = 0
MQTT = 1

NAMES: tuple[SyntaxName, SyntaxName] = ("amqp", "mqtt")
_NUMBERS: dict[str, int] = {"amqp": AMQP, "native": AMQP, "mqtt": MQTT}
_SEPARATORS = (".", "/")


def number(syntax: str) -> int:
    """The wire's number of a spelling. Raises ValueError."""
    try:
        return _NUMBERS[syntax]
    except KeyError:
        raise ValueError(f"syntax must be 'amqp' (alias 'native') or 'mqtt'; got {syntax!r}") from None


def checked(topic: Topic) -> Topic:
    """The topic as it goes on the wire: `str` wherever its octets allow it. Raises InvalidTopic, TypeError.

    A `str` that `text` made of octets that are not UTF-8 becomes these octets again.
    """
    if isinstance(topic, str):
        try:
            topic.encode()
            return topic
        except UnicodeEncodeError:
            topic = octets(topic)
    if isinstance(topic, bytes):
        try:
            return topic.decode()
        except UnicodeDecodeError:
            return topic
    raise TypeError(f"a topic or filter is str or bytes; got {type(topic).__name__}")


def text(topic: Topic) -> str:
    """The topic as `str`: an octet that is not UTF-8 becomes a lone surrogate (the error handler surrogateescape)."""
    return topic if isinstance(topic, str) else topic.decode("utf-8", "surrogateescape")


def octets(topic: Topic) -> bytes:
    """The topic's octets: the inverse of `text`. Raises InvalidTopic for a `str` that has none."""
    if isinstance(topic, bytes):
        return topic
    try:
        return topic.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidTopic(
            f"topic {topic!r} is not text: {error.reason}; give its octets as bytes",
            details={"position": error.start},
        ) from None


def words(topic: Topic, syntax: int) -> tuple[str, ...]:
    """The words of a topic, as `text` writes them: 0 for the empty AMQP topic, else one more than separators."""
    return tuple(text(topic).split(_SEPARATORS[syntax])) if topic or syntax == MQTT else ()


def join(prefix: Topic, word: str, syntax: int) -> Topic:
    """`word` below a prefix that is spelled with dots, in the spelling `syntax`."""
    separator = _SEPARATORS[syntax]
    if isinstance(prefix, bytes):
        return separator.encode().join([*prefix.split(b"."), word.encode()])
    return separator.join([*prefix.split("."), word])
