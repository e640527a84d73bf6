"""Topics as rules see them: sequences of words, in one of two syntaxes, with two reserved first words.

The grammar is matchcore's, and core/topics.py of the broker has what else a broker adds (docs/topics.md).
"""

from typing import Final

import matchcore

SYNTAXES: Final = ("amqp", "mqtt")  # by their number on the wire
WORDS_CEILING: Final = 1_024  # in a topic: matchcore's own bound
ANY_WORDS: Final = b"*+"  # that stand for any one word, in this order
SEPARATORS: Final = {"amqp": b".", "mqtt": b"/"}

BROKER_ROOT: Final = b"$SYS"  # topics that only the broker publishes
INBOX_ROOT: Final = b"$inbox"  # topics of replies


def first_word(text: bytes, syntax: str) -> bytes:
    return text.split(SEPARATORS[syntax], 1)[0]


def text_of(error: matchcore.TopicError) -> str:
    """The matcher's text, with its limits by the names of the broker's settings."""
    advice = error.advice.replace("max_words", "topic_words_max").replace("max_bytes", "topic_bytes_max")
    return str(error).removesuffix(error.advice) + advice
