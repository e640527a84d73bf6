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
    """The topic as it goes on the wire: `str` wherever its octets allow it. Raises InvalidTopic,
    TypeError."""
    if isinstance(topic, str):
        try:
            topic.encode()
        except UnicodeEncodeError as error:
            raise InvalidTopic(
                f"topic {topic!r} is not text: {error.reason}; give its octets as bytes",
                details={"position": error.start},
            ) from None
        return topic
    if isinstance(topic, bytes):
        try:
            return topic.decode()
        except UnicodeDecodeError:
            return topic
    raise TypeError(f"a topic or filter is str or bytes; got {type(topic).__name__}")


def words(topic: Topic, syntax: int) -> tuple[str, ...] | tuple[bytes, ...]:
    """The words of a topic: 0 for the empty AMQP topic, else one more than there are separators."""
    separator = _SEPARATORS[syntax]
    if isinstance(topic, bytes):
        return tuple(topic.split(separator.encode())) if topic or syntax == MQTT else ()
    return tuple(topic.split(separator)) if topic or syntax == MQTT else ()


def join(prefix: Topic, word: str, syntax: int) -> Topic:
    """`word` below a prefix that is spelled with dots, in the spelling `syntax`."""
    separator = _SEPARATORS[syntax]
    if isinstance(prefix, bytes):
        return separator.encode().join([*prefix.split(b"."), word.encode()])
    return separator.join([*prefix.split("."), word])
