"""Any two texts as filter and topic: the compiled matcher and its oracle agree, on errors too.

A text with two faults may be refused for either, so the positions are not compared, only that they are within it.
"""

from collections.abc import Callable
from typing import Any

import matchcore
from matchcore import reference

SYNTAXES = ("amqp", "mqtt")


def try_texts(filter: bytes, filter_syntax: str, topic: bytes, topic_syntax: str) -> None:
    """Raises AssertionError if the index and the oracle disagree."""
    index, oracle = matchcore.FilterIndex(), reference.ReferenceFilterIndex()
    refused = [
        _refusal(filter, lambda each=each: each.insert(filter, 7, syntax=filter_syntax))
        for each in (index, oracle)
    ]
    assert refused[0] == refused[1]
    refused = [
        _refusal(topic, lambda each=each: each.match(topic, syntax=topic_syntax)) for each in (index, oracle)
    ]
    assert refused[0] == refused[1]
    if refused[0] is None:
        expected = oracle.match(topic, syntax=topic_syntax)
        assert index.match(topic, syntax=topic_syntax) == expected
        assert index.match_any(topic, syntax=topic_syntax) is bool(expected)


def _refusal(text: bytes, attempt: Callable[[], Any]) -> type[Exception] | None:
    """The kind of error that `attempt` raises for `text`, if any."""
    refusal = None
    try:
        attempt()
    except matchcore.TopicError as error:
        refusal = error
    if refusal is None:
        return None
    assert refusal.text == text
    assert 0 <= refusal.position <= len(text)
    return type(refusal)
