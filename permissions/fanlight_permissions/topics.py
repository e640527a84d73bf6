"""Topics as rules see them: sequences of words, in one of two syntaxes, with four reserved first words.

The grammar is matchcore's, and core/topics.py of the broker has what else a broker adds (docs/topics.md).
"""

from typing import Final

import matchcore

SYNTAXES: Final = ("amqp", "mqtt")  # by their number on the wire
WORDS_CEILING: Final = 1_024  # in a topic: matchcore's own bound
ANY_WORDS: Final = b"*+"  # that stand for any one word, in this order
SEPARATORS: Final = {"amqp": b".", "mqtt": b"/"}

BROKER_ROOT: Final = b"$SYS"  # topics that only the broker publishes
AUDIT_ROOT: Final = b"$audit"  # the same, with what everybody does: beside $SYS, so that it takes a rule of its own
INBOX_ROOT: Final = b"$inbox"  # topics of replies
NAMESPACE_ROOT: Final = b"$namespace"  # topics of other namespaces in the archive, which nobody publishes
STREAM_ROOT: Final = b"$stream"  # topics of AMQP's streams in the archive, which nobody publishes either
OWN_ROOTS: Final = (BROKER_ROOT, AUDIT_ROOT, NAMESPACE_ROOT, STREAM_ROOT)  # first words of what no client publishes
RESERVED: Final = (BROKER_ROOT, AUDIT_ROOT, INBOX_ROOT, STREAM_ROOT)  # first words that no wildcard stands for


def first_word(text: bytes, syntax: str) -> bytes:
    return text.split(SEPARATORS[syntax], 1)[0]


def namespace_prefix(name: str, syntax: str) -> bytes:
    """What stands before a topic of a namespace in the archive."""
    separator = SEPARATORS[syntax]
    return NAMESPACE_ROOT + separator + name.encode() + separator


def without_namespace(topic: bytes, syntax: str) -> tuple[str, bytes]:
    """The namespace of an archived topic, "" of the root's, and the topic as its clients spell it."""
    root, _, rest = topic.partition(SEPARATORS[syntax])
    if root != NAMESPACE_ROOT:
        return "", topic
    name, _, own = rest.partition(SEPARATORS[syntax])
    return name.decode(errors="replace"), own


def text_of(error: matchcore.TopicError) -> str:
    """The matcher's text, with its limits by the names of the broker's settings."""
    advice = error.advice.replace("max_words", "topic_words_max").replace("max_bytes", "topic_bytes_max")
    return str(error).removesuffix(error.advice) + advice
