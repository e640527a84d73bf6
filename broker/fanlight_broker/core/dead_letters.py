"""Dead letters: a message that a queue has discarded, as it is published to the queue's dead-letter topic.

The payload and all headers stay. What happened is in headers of these names, which survive a second death, except for
those that say what happened last:

    x-death-topic     where it was published                    x-death-queue       that discarded it last
    x-death-first     when it first died, seconds since 1970    x-death-reason      why
    x-death-count     how often it has died                     x-death-deliveries  how often it was delivered there
    x-death-syntax    "mqtt" if its topic has slashes           x-death-time        when

Publishers may write such headers, too. Where a message was published first is believed of what is on the dead-letter
topic of the queue that it names alone (`LettersOf`), so who may not publish there cannot say that it was elsewhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from fanlight_broker.core.content import Content, Header
from fanlight_broker.core.errors import Unsupported
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.named_queue import DISCARDS

LettersOf = Callable[[str], tuple[bytes, str] | None]
"""The dead-letter topic of a queue, and its syntax; None: it has none, or there is no such queue."""

DEATHS_MAX: Final = 16  # of one message: a dead-letter topic may lead back to the queue


def _is_letter(content: Content, found: Mapping[str, object], letters_of: LettersOf) -> bool:
    """Is it on the dead-letter topic of the queue that it names?"""
    queue = found.get("x-death-queue")
    return isinstance(queue, str) and letters_of(queue) == (content.topic, SYNTAXES[content.syntax])


def dead_letter(
    message: Message, topic: tuple[bytes, str], queue: str, why: int, deliveries: int, wall: float,
    letters_of: LettersOf,
) -> Message | None:
    """The message to publish to `topic`; None if it has died too often, or says too much to be changed."""
    content: Content | None = message.format.read(message)
    if content is None:
        return None
    found = dict(content.headers)
    count = found.get("x-death-count")
    deaths = int(count) + 1 if isinstance(count, int | str) and str(count).isdecimal() else 1
    if deaths > DEATHS_MAX:
        return None
    origin = found.get("x-death-topic") if _is_letter(content, found, letters_of) else None
    first = found.get("x-death-first")
    own = SYNTAXES[content.syntax] if content.syntax else None
    spelling = own if origin is None else found.get("x-death-syntax")
    said: dict[str, Header] = {} if spelling is None else {"x-death-syntax": ("x-death-syntax", spelling)}
    for name, value in (
        ("x-death-topic", origin if origin is not None else content.topic.decode("utf-8", "backslashreplace")),
        ("x-death-first", first if first is not None else wall),
        ("x-death-count", deaths),
        ("x-death-queue", queue),
        ("x-death-reason", DISCARDS[why]),
        ("x-death-deliveries", deliveries),
        ("x-death-time", wall),
    ):
        said[name] = (name, value)
    headers = (*(header for header in content.headers if header[0] not in said), *said.values())
    text, syntax = topic
    return message.format.write(replace(content, topic=text, syntax=SYNTAXES.index(syntax), headers=headers))


def revived(message: Message, letters_of: LettersOf) -> Message | None:
    """A dead letter as it is published again where it was published first; another message where it was published.

    Its headers stay, so one that dies again and again is dropped in the end. It is not retained, for it must not take
    the place of a newer one; and a client of QoS 1 gets it so, for a queue has promised as much. None if it says too
    much to be changed. Raises Unsupported for one that says where it was published, and is not to be believed.
    """
    content: Content | None = message.format.read(message)
    if content is None:
        return None
    found = dict(content.headers)
    topic, syntax = found.get("x-death-topic"), found.get("x-death-syntax")
    if isinstance(topic, str):
        number = SYNTAXES.index(syntax) if isinstance(syntax, str) and syntax in SYNTAXES else 0
        there = topic.encode(errors="surrogatepass"), number
        if there != (content.topic, content.syntax) and not _is_letter(content, found, letters_of):
            raise Unsupported(
                f"the oldest message says that it was published to {topic[:200]!r}, and is on no dead-letter topic of "
                "the queue that it names; move it to a queue by name", option="to",
            )
        content = replace(content, topic=there[0], syntax=number)
    letter = message.format.write(content)
    return None if letter is None else Message(
        letter.format, letter.topic, letter.syntax, letter.payload, fields=letter.fields, qos=max(1, message.qos),
        expires_at=message.expires_at, format_data=letter.format_data,
    )
