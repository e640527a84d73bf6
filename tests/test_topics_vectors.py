"""The vectors of docs/topics.md, asked of the compiled index, of its oracle, and of the broker's respelling.

One file of vectors and three readers: if the page, the matcher and the broker ever disagree, it shows here.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import matchcore
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.errors import NotPermitted
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.subscription import Subscription, SubscriptionOptions
from fanlight_broker.core.topics import Unspellable, respell
from fanlight_broker.protocols.native.format import FORMAT
from matchcore import reference
from tests.broker.core.parts import at_once

DOCS = Path(__file__).resolve().parent.parent / "docs"
VECTORS: dict[str, Any] = json.loads((DOCS / "topics-vectors.json").read_text(encoding="utf-8"))


def octets(text: str | dict[str, str]) -> bytes:
    """A vector's text: a string, or {"hex": ...} where the bytes are not UTF-8."""
    return bytes.fromhex(text["hex"]) if isinstance(text, dict) else text.encode()


def rows(section: str) -> list[Any]:
    """The vectors of a section as parameters, each named by what it says."""
    vectors = VECTORS[section]
    width = len(VECTORS[f"{section}_columns"].split(", "))
    assert all(len(vector) == width for vector in vectors), f"a row of {section} has columns missing"
    return [pytest.param(*row, id=f"{number}: {row[-1]}") for number, row in enumerate(vectors)]


@pytest.mark.parametrize(
    ("filter", "filter_syntax", "topic", "topic_syntax", "matches", "why"), rows("match")
)
def test_a_filter_matches_a_topic_as_the_page_says(
    filter: Any, filter_syntax: str, topic: Any, topic_syntax: str, matches: bool, why: str
) -> None:
    assert reference.matches(octets(filter), filter_syntax, octets(topic), topic_syntax) is matches, why

    index = matchcore.FilterIndex()
    index.insert(octets(filter), 7, syntax=filter_syntax)
    assert index.match(octets(topic), syntax=topic_syntax) == ((7,) if matches else ()), why
    assert index.match_any(octets(topic), syntax=topic_syntax) is matches, why
    offsets, ids = index.match_many([octets(topic)], syntax=topic_syntax)
    assert (offsets.tolist(), ids.tolist()) == (([0, 1], [7]) if matches else ([0, 0], [])), why


def test_one_index_holds_the_filters_of_all_vectors_at_once() -> None:
    filters = sorted({(octets(row[0]), row[1]) for row in VECTORS["match"]})
    index = matchcore.FilterIndex()
    for number, (text, syntax) in enumerate(filters):
        assert index.insert(text, number, syntax=syntax)
    for row in VECTORS["match"]:
        topic, topic_syntax = octets(row[2]), row[3]
        expected = tuple(
            number
            for number, (text, syntax) in enumerate(filters)
            if reference.matches(text, syntax, topic, topic_syntax)
        )
        assert index.match(topic, syntax=topic_syntax) == expected, (topic, topic_syntax)


class Nobody:
    """The protocol side of a client to whom nothing is said."""

    def subscription_ended(self, subscription: Subscription, reason: str) -> None: ...
    def say_goodbye(self, reason: str, text: str) -> None: ...
    def cut_off(self, reason: str, text: str) -> None: ...
    def unblocked(self) -> None: ...


@pytest.mark.parametrize(
    ("filter", "filter_syntax", "topic", "topic_syntax", "reached", "why"), rows("reserved")
)
def test_in_the_broker_reserved_topics_reach_only_filters_that_spell_the_first_word(
    filter: Any, filter_syntax: str, topic: Any, topic_syntax: str, reached: bool, why: str
) -> None:
    broker = Broker(Limits(), schedule=lambda: None, next_turn=at_once)
    client = broker.clients.connect(
        broker.new_outbox(), Nobody(), 0.0, name=None, user="", agent="", address="", protocol="", format=FORMAT,
    )
    broker.subscribing.subscribe(client, 7, octets(filter), filter_syntax, SubscriptionOptions())
    found = broker.router.matching(octets(topic), topic_syntax)
    assert [subscription.number for subscription in found] == ([7] if reached else []), why
    assert len(broker.router.route(octets(topic), topic_syntax)) == reached, why


@pytest.mark.parametrize(("filter", "syntax", "why"), rows("private"))
def test_in_the_broker_an_inbox_is_open_to_its_own_client_alone(filter: Any, syntax: str, why: str) -> None:
    broker = Broker(Limits(), schedule=lambda: None, next_turn=at_once)
    client = broker.clients.connect(
        broker.new_outbox(), Nobody(), 0.0, name=None, user="", agent="", address="", protocol="", format=FORMAT,
    )
    with pytest.raises(NotPermitted):
        broker.subscribing.subscribe(client, 7, octets(filter), syntax, SubscriptionOptions())
    assert len(broker.router) == 0, why


@pytest.mark.parametrize(("filter", "syntax", "position", "why"), rows("invalid_filters"))
def test_an_invalid_filter_is_refused_with_the_filter_and_the_position(
    filter: Any, syntax: str, position: int, why: str
) -> None:
    with pytest.raises(matchcore.InvalidFilter) as compiled:
        matchcore.FilterIndex().insert(octets(filter), 1, syntax=syntax)
    assert (compiled.value.text, compiled.value.position) == (octets(filter), position), why
    with pytest.raises(matchcore.InvalidFilter) as plain:
        reference.ReferenceFilterIndex().insert(octets(filter), 1, syntax=syntax)
    assert (plain.value.text, plain.value.position) == (octets(filter), position), why
    assert f"byte {position} " in str(compiled.value)


@pytest.mark.parametrize(("topic", "syntax", "position", "why"), rows("invalid_topics"))
def test_an_invalid_topic_is_refused_with_the_topic_and_the_position(
    topic: Any, syntax: str, position: int, why: str
) -> None:
    with pytest.raises(matchcore.InvalidTopic) as compiled:
        matchcore.FilterIndex().match(octets(topic), syntax=syntax)
    assert (compiled.value.text, compiled.value.position) == (octets(topic), position), why
    with pytest.raises(matchcore.InvalidTopic) as plain:
        reference.ReferenceFilterIndex().match(octets(topic), syntax=syntax)
    assert (plain.value.text, plain.value.position) == (octets(topic), position), why


@pytest.mark.parametrize(("topic", "from_syntax", "to_syntax", "result", "why"), rows("respell"))
def test_a_message_is_respelled_word_by_word(
    topic: Any, from_syntax: str, to_syntax: str, result: str | None, why: str
) -> None:
    if result is None:
        with pytest.raises(Unspellable):
            respell(octets(topic), from_syntax, to_syntax)
        return
    spelled = respell(octets(topic), from_syntax, to_syntax)
    assert spelled == result.encode(), why
    if from_syntax != to_syntax:
        # What was spelled is a topic there, with as many words as before.
        words = reference.topic_words(spelled, to_syntax)
        assert len(words) == len(reference.topic_words(octets(topic), from_syntax))


def test_a_topic_that_grows_past_65_535_bytes_cannot_be_spelled() -> None:
    assert respell(b"/" * 21_845, "amqp", "mqtt") == b"%2F" * 21_845
    with pytest.raises(Unspellable):
        respell(b"/" * 21_846, "amqp", "mqtt")


def test_every_example_on_the_page_has_its_vector() -> None:
    """The tables of docs/topics.md and the vectors cannot drift apart."""
    page = (DOCS / "topics.md").read_text(encoding="utf-8")
    match_table = page.split("## Matching across spellings")[1].split("\n\n**")[0]
    matched = {tuple(row[:4]): row[4] for row in VECTORS["match"] if isinstance(row[0], str)}
    examples = re.findall(
        r"^\| `(.+?)` (amqp|mqtt) \| (?:`(.+?)`|the empty text,) (amqp|mqtt) \| (yes|no) ", match_table, re.M
    )
    assert len(examples) == match_table.count("\n|") - 2
    for filter, filter_syntax, topic, topic_syntax, answer in examples:
        assert matched.get((filter, filter_syntax, topic, topic_syntax)) is (answer == "yes"), (filter, topic)

    respelled = {row[0]: row[3] for row in VECTORS["respell"] if row[2] == "mqtt" and isinstance(row[0], str)}
    table = page.split("| published in AMQP spelling |")[1].split("\n\n")[0]
    examples = re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", table, re.M)
    # Two lines are none: the rule under the heading, and the row of the empty text.
    assert len(examples) == table.count("\n|") - 2
    for topic, spelled in examples:
        assert respelled.get(topic) == spelled, topic
