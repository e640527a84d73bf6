"""The three tiers together: where filters live, when they move, and that nobody notices."""

import random

import pytest

from matchcore import Deciding, FilterIndex, explain
from matchcore.reference import ReferenceFilterIndex


def device_filters(count: int, dice: random.Random) -> list[str]:
    """Distinct, most of them selective, some common, some that match nearly all."""
    shapes = ["site/S/+/+/dev/D/#", "site/S/floor/+/dev/D/M", "site/S/#", "+/S/+/F/#", "site/+/floor/F/dev/+/M", "#"]
    made: dict[str, None] = {}
    while len(made) < count:
        shape = dice.choices(shapes, weights=[60, 60, 5, 5, 5, 1])[0]
        values = {"S": dice.randrange(40), "D": dice.randrange(200), "F": dice.randrange(5)}
        values["M"] = dice.randrange(9)
        made["/".join(str(values.get(word, word)) for word in shape.split("/"))] = None
    return list(made)


def device_topics(count: int, dice: random.Random) -> list[str]:
    return [
        f"site/{dice.randrange(40)}/floor/{dice.randrange(5)}/dev/{dice.randrange(200)}/{dice.randrange(9)}"
        for _ in range(count)
    ]


def test_a_growing_set_moves_from_the_pool_to_the_buckets_and_answers_the_same() -> None:
    dice = random.Random(1)
    index, oracle = FilterIndex(), ReferenceFilterIndex()
    index._tune(small=300, pool_least=20)
    empty = index.nbytes
    filters = device_filters(1_200, dice)
    for id, text in enumerate(filters):
        assert index.insert(text, id, syntax="mqtt")
        oracle.insert(text, id, syntax="mqtt")
        if id == 290:
            assert index._tiers()["pool"] == 291
        if id in (290, 310, 599, 650, 1_199):
            for topic in device_topics(12, dice):
                assert index.match(topic, syntax="mqtt") == oracle.match(topic, syntax="mqtt")
    tiers = index._tiers()
    assert tiers["buckets"] > 1_000
    assert tiers["pool"] + tiers["buckets"] == 1_200
    assert 1 < tiers["classes"] <= 64
    for id, text in dice.sample(list(enumerate(filters)), 1_200):
        assert index.remove(text, id, syntax="mqtt")
        oracle.remove(text, id, syntax="mqtt")
        if len(index) in (900, 300, 30):
            for topic in device_topics(12, dice):
                assert index.match(topic, syntax="mqtt") == oracle.match(topic, syntax="mqtt")
    assert index.nbytes < empty + 4_000  # what a match keeps for the next one


def test_few_common_filters_do_not_keep_a_pool() -> None:
    index = FilterIndex()
    index._tune(small=100, pool_least=50)
    for id in range(900):  # weighed at 100, 200, 400, and at 800, when one in 800 is rare
        index.insert(f"a/{id}/+", id, syntax="mqtt")
    index.insert("#", 1, syntax="mqtt")
    assert index._tiers()["pool"] == 0
    assert index.match("a/7/x", syntax="mqtt") == (1, 7)


def test_many_common_filters_open_the_pool() -> None:
    index = FilterIndex()
    index._tune(small=10, pool_least=50)
    for id in range(40):
        index.insert(f"a.{id}.b.*", id)
    before = index._tiers()
    for id in range(200):
        index.insert("*." * (id % 20) + "#" + ".*.#" * (id // 20), 1_000 + id)
    after = index._tiers()
    assert before["pool"] == 0
    assert after["pool"] > 50
    assert index.match("a.7.b.c")[0] == 7


def test_a_bucket_that_cannot_be_split_overflows_into_the_pool() -> None:
    """More filters of one literal than a bucket holds: they differ in their wildcards only."""
    index = FilterIndex()
    index._tune(small=0, pool_least=1_000_000)
    for id in range(3_000):
        index.insert(f"word{id}.x.*", 10_000 + id)
    texts = ["rare" + ".*" * i + ".#" * j for i in range(12) for j in range(12)]
    for id, text in enumerate(texts):
        index.insert(text, id)
    assert index._tiers()["pool"] > 0
    expected = [id for id, text in enumerate(texts) if text.count("*") <= 2 and ("#" in text or text.count("*") == 2)]
    assert index.match("rare.a.b") == tuple(expected)
    for id, text in enumerate(texts):
        assert index.remove(text, id)
    assert index.match("rare.a.b") == ()


def test_filters_of_every_shape_make_no_more_classes_than_there_may_be() -> None:
    """Twelve words from two, any of them wildcards: 4,096 sets of places."""
    dice = random.Random(2)
    index, oracle = FilterIndex(), ReferenceFilterIndex()
    index._tune(small=0)
    for id in range(3_000):
        text = ".".join(dice.choice(["*", "a", "b"]) for _ in range(12))
        assert index.insert(text, id) is oracle.insert(text, id)
    assert index._tiers()["classes"] <= 512
    for _ in range(12):
        topic = ".".join(dice.choice("ab") for _ in range(12))
        assert index.match(topic) == oracle.match(topic)
        assert index.match_any(topic)


def test_rows_wider_than_a_word_when_rare_filters_need_many_classes() -> None:
    dice = random.Random(3)
    index, oracle = FilterIndex(), ReferenceFilterIndex()
    index._tune(small=0, split=1, pool_least=1_000_000)
    for id in range(3_000):
        text = ".".join("*" if dice.random() < 0.5 else f"w{dice.randrange(60)}" for _ in range(12))
        assert index.insert(text, id) is oracle.insert(text, id)
    assert index._tiers()["classes"] > 64
    for held, _, _ in dice.sample(list(oracle.filters()), 20):
        topic = str(held).replace("*", "w1")
        assert index.match(topic) == oracle.match(topic) != ()
    for text, _, id in list(oracle.filters()):
        assert index.remove(text, id)
    assert index._tiers()["classes"] == index._tiers()["words"] == 0


@pytest.mark.parametrize("word", ["a", "x" * 17])
def test_a_word_that_occurs_often_in_a_topic_is_probed_once(word: str) -> None:
    index = FilterIndex()
    index._tune(small=0, pool_least=1_000_000)
    index.insert(f"#.{word}.#.zz.#", 1)
    index.insert(f"#.{word}.#.{word}.#", 2)
    index.insert(f"#.zz.#.{word}.#", 3)
    assert index.match(f"{word}.{word}.zz.{word}") == (1, 2, 3)
    assert index.match(f"{word}.{word}") == (2,)


def test_match_any_learns_where_matches_are() -> None:
    """Which classes are asked first changes with what was found; the answer never does."""
    dice = random.Random(4)
    index = FilterIndex()
    index._tune(small=0, pool_least=1_000_000)
    oracle = ReferenceFilterIndex()
    for id, text in enumerate(device_filters(400, dice)):
        index.insert(text, id, syntax="mqtt")
        oracle.insert(text, id, syntax="mqtt")
    topics = [*device_topics(30, dice), "nobody/asks", "site/nobody/floor/1/dev/none/1"]
    expected = {topic: oracle.match_any(topic, syntax="mqtt") for topic in topics}
    for _ in range(120):
        for topic in topics:
            assert index.match_any(topic, syntax="mqtt") is expected[topic]


def test_an_explanation_names_the_key_that_found_the_filter() -> None:
    index = FilterIndex()
    index._tune(small=0, split=1, pool_least=1_000_000)
    index.insert("stock.*.AAPL.bid", 1)
    index.insert("stock.*.AAPL.ask", 2)
    index.insert("#.AAPL.#.bid.*", 3)
    told = {found.id: found for found in explain(index, "stock.nyse.AAPL.bid")}
    assert set(told) == {1}
    assert told[1].tier == "buckets"
    kinds = [row.kind for row in told[1].rows]
    assert kinds[0] == "key left"
    assert Deciding("length", 4) in told[1].rows
    assert {row.word for row in told[1].rows if row.word} == {b"stock", b"AAPL", b"bid"}
    middle = explain(index, "x.AAPL.bid.y")
    assert [found.id for found in middle] == [3]
    assert {row.kind.removeprefix("key ") for row in middle[0].rows} == {"any", "length", "right"}
