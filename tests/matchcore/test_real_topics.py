"""The topics of real data: every listed US security, a day of buses, and what Zigbee devices report."""

import random
from collections.abc import Iterator

import pytest

from matchcore import FilterIndex, NameIndex
from matchcore.reference import ReferenceFilterIndex, matches
from tests import realdata


def generalised(topic: str, syntax: str, dice: random.Random) -> str:
    """A filter that matches the topic, mostly: some words made wildcards, the end or the middle a `#`."""
    separator, one = (".", "*") if syntax == "amqp" else ("/", "+")
    words = [one if dice.random() < 0.3 else word for word in topic.split(separator)]
    if dice.random() < 0.3:
        words[dice.randrange(1, len(words) + 1) :] = ["#"]
    elif syntax == "amqp" and dice.random() < 0.4:
        start = dice.randrange(len(words))
        words[start : dice.randrange(start, len(words) + 1)] = ["#"]
    return separator.join(words)


def checked(topics: list[tuple[str, str]], filters: int, asked: int, seed: int) -> Iterator[tuple[int, ...]]:
    """The answers for some topics, with filters made from them, equal to the oracle's before and after churn."""
    dice = random.Random(seed)
    index, oracle = FilterIndex(), ReferenceFilterIndex()
    held = []
    for id in range(filters):
        topic, syntax = dice.choice(topics)
        text = generalised(topic, syntax, dice)
        assert index.insert(text, id, syntax=syntax) is oracle.insert(text, id, syntax=syntax)
        held.append((text, id, syntax))
    for part in range(2):
        for topic, syntax in dice.sample(topics, min(asked, len(topics))):
            answer = index.match(topic, syntax=syntax)
            assert answer == oracle.match(topic, syntax=syntax), topic
            yield answer
        if part == 0:
            for text, id, syntax in dice.sample(held, len(held) // 2):
                assert index.remove(text, id, syntax=syntax) is oracle.remove(text, id, syntax=syntax) is True
    assert set(index.filters()) == set(oracle.filters())


def test_filters_over_the_securities_in_both_spellings() -> None:
    topics = [(topic, "amqp") for topic in realdata.stock_topics(".")]
    topics += [(topic, "mqtt") for topic in realdata.stock_topics("/")]
    assert ("stock/nyse/BRK.B", "mqtt") in topics
    answers = list(checked(topics, filters=600, asked=40, seed=1))
    assert any(answers)


def test_filters_over_a_day_of_buses() -> None:
    topics = [(topic, "mqtt") for topic in realdata.transit_topics()]
    answers = list(checked(topics, filters=500, asked=40, seed=2))
    assert any(answers)


def test_filters_over_what_devices_report() -> None:
    """Model names with spaces, dots and non-ASCII letters; slashes only where AMQP spells them."""
    topics = []
    for words in realdata.device_topics():
        if not any("." in word for word in words):
            topics.append((".".join(words), "amqp"))
        topics.append(("/".join(word.replace("/", "%2F").replace("+", "%2B") for word in words), "mqtt"))
    answers = list(checked(topics, filters=500, asked=40, seed=3))
    assert any(answers)


def test_every_security_once_by_its_own_filter_and_by_its_exchange() -> None:
    listings = list(dict.fromkeys(realdata.listings()))
    index = FilterIndex()
    exchanges = sorted({exchange for _, exchange in listings})
    for number, exchange in enumerate(exchanges):
        index.insert(f"stock/{exchange}/+", number, syntax="mqtt")
    for number, (ticker, exchange) in enumerate(listings):
        index.insert(f"stock/{exchange}/{ticker}", 1000 + number, syntax="mqtt")
    topics = [f"stock/{exchange}/{ticker}" for ticker, exchange in listings]
    offsets, ids = index.match_many(topics, syntax="mqtt")
    assert len(offsets) == len(topics) + 1 > 13_000
    for number, (_, exchange) in enumerate(listings):
        row = ids[offsets[number] : offsets[number + 1]].tolist()
        assert row == [exchanges.index(exchange), 1000 + number]


def test_berkshire_hathaway_has_three_words_in_mqtt_spelling_and_four_in_amqp() -> None:
    index = FilterIndex()
    index.insert("stock.*.*", 3)
    index.insert("stock.*.*.*", 4)
    index.insert("stock/nyse/BRK.B", 5, syntax="mqtt")
    index.insert("stock.nyse.BRK.B", 6)
    assert index.match("stock/nyse/BRK.B", syntax="mqtt") == (3, 5)
    assert index.match("stock.nyse.BRK.B") == (4, 6)
    assert ("BRK.B", "nyse") in realdata.listings()


@pytest.mark.parametrize("filter", ["stock.nyse.*", "stock.*.A", "#.AAPL", "stock.#", "stock.nyse.BRK.B", "*.arca.#"])
def test_a_new_filter_finds_the_cached_topics_it_touches(filter: str) -> None:
    names = NameIndex()
    topics = realdata.stock_topics(".")
    for number, topic in enumerate(topics):
        names.insert(topic, number)
    expected = tuple(i for i, topic in enumerate(topics) if matches(filter, "amqp", topic, "amqp"))
    assert names.match(filter) == expected != ()
