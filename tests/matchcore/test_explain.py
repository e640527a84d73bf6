"""Why a filter matches, by which rows, and why it does not."""

import pytest

import matchcore
from matchcore import Deciding, Explanation, FilterIndex, explain, why_not


def test_an_explanation_names_the_rows_that_decided() -> None:
    index = FilterIndex()
    index.insert("stock.*.AAPL", 1)
    index.insert("stock.nasdaq.AAPL", 2)
    index.insert("#.AAPL", 3)
    index.insert("stock/#", 4, syntax="mqtt")
    index.insert("#.nasdaq.#", 5)
    index.insert("forex.#", 6)
    told = {found.id: found for found in explain(index, "stock.nasdaq.AAPL")}
    length = Deciding("length", 3)
    assert told == {
        1: Explanation(
            "stock.*.AAPL", "amqp", 1, (length, Deciding("left", 0, b"stock"), Deciding("left", 2, b"AAPL"))
        ),
        2: Explanation("stock.nasdaq.AAPL", "amqp", 2, (Deciding("exact"),), "exact"),
        3: Explanation("#.AAPL", "amqp", 3, (length, Deciding("right", 0, b"AAPL"))),
        4: Explanation("stock/#", "mqtt", 4, (length, Deciding("left", 0, b"stock"))),
        5: Explanation("#.nasdaq.#", "amqp", 5, (length, Deciding("any", 1, b"nasdaq"))),
    }
    assert explain(FilterIndex(), "a") == []


def test_a_reason_names_the_tier_and_what_decided_there() -> None:
    index = FilterIndex()
    for id, text in enumerate(["stock.nasdaq.AAPL", "stock.#", "#.AAPL.#.bid.#"]):
        index.insert(text, id)
    (common,) = explain(index, "stock")
    assert common.reason == "pool: length 1, left 0 'stock'"
    for id in range(1000, 4000):
        index.insert(f"stock.*.T{id}", id)
    (exact,) = explain(index, "stock.nasdaq.AAPL", ids={0})
    assert exact.reason == "exact: the whole topic"
    (rare,) = explain(index, "stock.nasdaq.T2000", ids={2000})
    assert rare.reason == "buckets: class left 2, key 'T2000'; checked: length 3, left 0 'stock'"
    assert rare.key == (Deciding("key left", 2, b"T2000"),)
    (middle,) = explain(index, "x.AAPL.y.bid")
    assert middle.reason.startswith("buckets: class any, key ")
    assert {str(row) for row in middle.rows} >= {"length 4"}
    assert exact.key == common.key == ()


def test_a_filter_without_a_literal_has_no_key() -> None:
    index = FilterIndex()
    for id in range(3000):
        index.insert(f"stock.*.T{id}", id)
    index.insert("*.*.#", 5000)
    (told,) = explain(index, "a.b")
    assert (told.tier, told.reason) == ("buckets", "buckets: no key, for it has no literal; checked: length 2")


def test_only_those_asked_for_are_explained() -> None:
    index = FilterIndex()
    for id in range(50):
        index.insert("a.*", id)
    assert [told.id for told in explain(index, "a.b", ids={7, 8, 99})] == [7, 8]
    assert explain(index, "a.b", ids=()) == []


def test_every_id_of_a_filter_is_explained() -> None:
    index = FilterIndex()
    for id in (3, 1, 2):
        index.insert(b"a.*", id)
    assert [(found.filter, found.id) for found in explain(index, "a.b")] == [(b"a.*", 1), (b"a.*", 2), (b"a.*", 3)]


@pytest.mark.parametrize(
    ("filter", "syntax", "topic", "sentence"),
    [
        ("a.*", "amqp", "a", "exactly 2 words, and the topic has 1"),
        ("a", "amqp", "a.b", "exactly 1 word, and the topic has 2"),
        ("a.*.#", "amqp", "a", "at least 2 words, and the topic has 1"),
        ("a.b.c", "amqp", "a.x.y", "word 1 must be 'b', and the topic has 'x' there"),
        ("a.#.c", "amqp", "a.b", "word 0 from the end must be 'c', and the topic has 'b' there"),
        ("#.c.*", "amqp", "a.b.d", "word 1 from the end must be 'c', and the topic has 'b' there"),
        ("#.a.*.b.#", "amqp", "a.b.a", "needs 'a' any word 'b', which words 0 to 2 do not have in a row"),
        ("#", "mqtt", "$SYS.x", "does not match a first level that begins with '$'"),
        ("+/x", "mqtt", "$SYS.x", "does not match a first level that begins with '$'"),
    ],
)
def test_why_not_says_what_stands_in_the_way(filter: str, syntax: str, topic: str, sentence: str) -> None:
    told = why_not(filter, syntax, topic, "amqp")
    assert told is not None
    assert sentence in told


def test_why_not_has_nothing_to_say_about_a_match() -> None:
    assert why_not("a.*", "amqp", "a/b", "mqtt") is None


def test_an_index_with_wider_limits_explains_what_it_holds() -> None:
    index = FilterIndex(max_words=1024)
    topic = ".".join(["a"] * 1000)
    index.insert("#." + topic, 1)
    assert [found.id for found in explain(index, topic)] == [1]
    assert why_not("#.b", "amqp", topic, "amqp") is not None
    with pytest.raises(matchcore.InvalidTopic):
        why_not("#", "mqtt", "a+", "mqtt")


def test_one_explanation_for_each_of_some_filters() -> None:
    index = FilterIndex()
    for id in range(20):
        index.insert("a.*", id)
        index.insert(b"a/+", id, syntax="mqtt")
        index.insert("#", id)
    for filter in ("a.*", "#"):
        (found,) = explain(index, "a.b", filters={(filter, "amqp"), ("a/+", "amqp"), ("x", "amqp")})
        every = explain(index, "a.b")
        assert found in every
        assert (found.filter, found.syntax) == (filter, "amqp")
        assert len(every) == 60
    assert explain(index, "a.b", filters=()) == []
    assert {row[0] for row in index.located("a.b", one_each=True)} == {"a.*", b"a/+", "#"}
