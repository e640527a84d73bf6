"""Subscriptions with a selector: in the index, and in the oracle."""

from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchcore import FilterIndex, InvalidFilter, InvalidSelector, InvalidTopic, explain, why_not
from matchcore.reference import ReferenceFilterIndex
from matchcore.selector import Attribute, Selector
from matchcore.where import parse_where
from tests.matchcore.selectors import FIELDS, SELECTORS

INDEXES = [FilterIndex, ReferenceFilterIndex]
Index = FilterIndex | ReferenceFilterIndex
INDEX = pytest.mark.parametrize("kind", INDEXES)


@INDEX
def test_a_message_is_matched_where_topic_and_selector_are(kind: type[Index]) -> None:
    index = kind()
    assert index.insert("orders.#", 7, where="price > 100 AND region IN ('eu','us')")
    assert index.insert("orders.*.new", 8, where={"price": [{"numeric": [">", 200]}]})
    assert index.insert("orders.#", 9)
    assert index.match("orders.eu.new", fields={"price": 120, "region": "eu"}) == (7, 9)
    assert index.match("orders.eu.new", fields={"price": 220, "region": "asia"}) == (8, 9)
    assert index.match("orders.eu.old", fields={"price": 220, "region": "us"}) == (7, 9)
    assert index.match("trades.eu", fields={"price": 220, "region": "us"}) == ()
    assert index.match("orders.eu.new") == (9,)
    assert index.match_any("orders.x.new", fields={"price": 220})
    assert index.remove("orders.#", 9)
    assert not index.match_any("orders.x.new", fields={"price": 20})
    assert not index.match_any("orders.x.new")
    assert len(index) == 2


@INDEX
def test_the_words_of_the_topic_are_attributes(kind: type[Index]) -> None:
    index = kind()
    index.insert("#", 1, where="$word[2] = 'eu'")
    index.insert("#", 2, where="$words > 2")
    index.insert("#", 3, where="$word[1] IS NULL")
    index.insert("#", 4, where="$word[1] IS NOT NULL AND price = 1")
    assert index.match("a.eu") == (1,)
    assert index.match("a/us/x", syntax="mqtt", fields={"$word[2]": "eu"}) == (2,)
    assert index.match("") == (3,)
    assert index.match(b"\xff.eu", fields={"price": 1}) == (1, 4)
    assert index.asked("a.eu") == ("price",)


@INDEX
def test_an_id_has_one_selector_under_a_filter_or_none(kind: type[Index]) -> None:
    index = kind()
    assert index.insert("a", 1, where="x = 1")
    assert not index.insert("a", 1, where="x=1")
    assert index.insert("a", 1, where="x = 2")
    assert len(index) == 1
    assert (index.match("a", fields={"x": 1}), index.match("a", fields={"x": 2})) == ((), (1,))
    assert index.insert("a", 1)
    assert not index.insert("a", 1)
    assert len(index) == 1
    assert index.match("a") == (1,)
    assert index.insert("a", 1, where="x = 3")
    assert index.match("a") == ()
    assert index.insert("a", 1, where="x = 4", syntax="mqtt")
    assert len(index) == 2
    assert index.remove("a", 1)
    assert not index.remove("a", 1)
    assert index.match("a", fields={"x": 4}) == (1,)
    assert index.remove("a", 1, syntax="mqtt")
    assert len(index) == 0


@INDEX
def test_what_is_asked_are_the_keys_of_fields(kind: type[Index]) -> None:
    index = kind()
    index.insert("a.#", 1, where='price > 1 OR "x-y" = 2')
    index.insert("a.b", 2, where="payload.order.urgent AND $qos = 1 AND price = 2")
    index.insert("c", 3, where="size = 1")
    index.insert("a.b", 4)
    assert index.asked("a.b") == ("$qos", "payload.order.urgent", "price", "x-y")
    assert index.asked("a.c") == ("price", "x-y")
    assert index.asked("d") == ()
    index.remove("a.#", 1)
    assert index.asked("a.c") == ()


@INDEX
def test_hits_are_the_criteria_that_are_true(kind: type[Index]) -> None:
    """iMatix, field matching: the hits of three messages."""
    index = kind()
    criteria = [
        "currency = 'USD' AND urgent IS NOT NULL", "currency = 'EUR'", "market = 'forex' AND currency = 'EUR'",
        "urgent IS NOT NULL",
    ]  # fmt: skip
    for id, where in enumerate(criteria):
        index.insert("#", id, where=where)
    assert index.hits({"currency": "JPY", "market": "forex", "slow": ""}) == {2: 1}
    assert index.hits({"currency": "JPY", "urgent": ""}) == {0: 1, 3: 1}
    assert index.hits({"currency": "EUR", "market": "forex"}) == {1: 1, 2: 2}
    index.insert("a", 3, where="AT LEAST 2 OF (urgent IS NOT NULL, currency = 'JPY', a = 1)")
    assert index.hits({"currency": "JPY", "urgent": ""}) == {0: 1, 3: 2}


@INDEX
@pytest.mark.parametrize(
    ("filter", "id", "where", "error"),
    [("a/#/b", 1, "x = 1", InvalidFilter), ("a", 1, "x =", InvalidSelector), ("a", -1, "x = 1", ValueError),
     ("a", 1, {"x": 5}, InvalidSelector), ("a", 1, 5, TypeError)],
)  # fmt: skip
def test_what_is_refused_changes_nothing(
    kind: type[Index], filter: str, id: int, where: Any, error: type[Exception]
) -> None:
    index = kind()
    with pytest.raises(error):
        index.insert(filter, id, where=where, syntax="mqtt")
    assert len(index) == 0
    assert index.match("a", syntax="mqtt", fields={"x": 1}) == ()
    assert index.insert("a", 1, where="x = 1", syntax="mqtt")
    with pytest.raises(error):
        index.insert(filter, id, where=where, syntax="mqtt")
    assert index.match("a", syntax="mqtt", fields={"x": 1}) == (1,)


def test_an_index_without_selectors_has_nothing_of_them() -> None:
    index = FilterIndex()
    index.insert("a.*", 1)
    size, version = index.nbytes, index.version
    index.insert("a.*", 2, where="x = 1")
    assert index.nbytes > size
    assert index.version > version
    assert index.selectors() == [("a.*", "amqp", 2, "x = 1")]
    assert index.remove("a.*", 2)
    assert index.nbytes == size
    assert index.selectors() == []
    assert index.asked("a.b") == ()
    assert index.hits({"x": 1}) == {}


def test_a_selector_that_is_refused_leaves_no_trace() -> None:
    index = FilterIndex()
    size = index.nbytes
    for _ in range(3):
        with pytest.raises(InvalidSelector):
            index.insert("a", 1, where="x = ")
    assert index.nbytes == size
    index.insert("a", 1, where="x = 1")
    size, version = index.nbytes, index.version
    with pytest.raises(InvalidSelector):
        index.insert("b", 1, where="x = ")
    assert (index.nbytes, index.version) == (size, version)


def test_filters_are_those_without_a_selector() -> None:
    index = FilterIndex()
    index.insert("a.*", 1, where="x = 1")
    index.insert("a.*", 2)
    assert list(index.filters()) == index.matching("a.b") == [("a.*", "amqp", 2)]
    with pytest.raises(InvalidTopic):
        index.match("", syntax="mqtt", fields={"x": 1})


def test_many_topics_with_columns() -> None:
    index = FilterIndex()
    index.insert("a.*", 1, where="price > 100")
    index.insert("a.b", 2, where="$word[2] = 'b' AND region = 'eu'")
    index.insert("#", 3)
    topics = ["a.b", "a.c", "d", "a.b"]
    columns: list[dict[str, Any]] = [
        {"price": [120, 80, 200, None], "region": ["us", None, "eu", "eu"], "unasked": [1]},
        {"price": numpy.array([120.0, 80.0, 200.0, numpy.nan]), "region": ["us", None, "eu", "eu"]},
    ]
    for fields in columns:
        offsets, ids = index.match_many(topics, fields=fields)
        assert (offsets.tolist(), ids.tolist()) == ([0, 2, 3, 4, 6], [1, 3, 3, 3, 2, 3])
        assert (offsets.dtype, ids.dtype) == (numpy.int64, numpy.uint32)
    offsets, ids = index.match_many(topics)
    assert (offsets.tolist(), ids.tolist()) == ([0, 1, 2, 3, 4], [3, 3, 3, 3])
    with pytest.raises(ValueError, match="'price' has 1 values, and there are 4 topics"):
        index.match_many(topics, fields={"price": [1]})
    index.remove("#", 3)
    offsets, ids = index.match_many(b"a.ba.c", offsets=[0, 3, 6], fields={"price": [1, 101]})
    assert (offsets.tolist(), ids.tolist()) == ([0, 0, 1], [1])


def test_many_topics_with_an_arrow_table() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    index = FilterIndex()
    index.insert("a.*", 1, where="price > 100")
    table = pyarrow.table({"price": [120, None, 80], "other": ["x", "y", "z"]})
    for fields in (table, table.to_batches()[0]):
        offsets, ids = index.match_many(["a.b", "a.b", "a.c"], fields=fields)
        assert (offsets.tolist(), ids.tolist()) == ([0, 1, 1, 1], [1])


def test_why_it_matches_and_why_it_does_not() -> None:
    index = FilterIndex()
    index.insert("a.*", 1, where="price > 100")
    index.insert("a.*", 2, where="price > 200")
    index.insert("a.*", 3)
    found = explain(index, "a.b", fields={"price": 120})
    assert [(one.id, one.reason) for one in found] == [
        (3, "pool: length 2, left 0 'a'"), (1, "pool: length 2, left 0 'a'; screen: list of 2; true: price > 100"),
    ]  # fmt: skip
    assert [one.id for one in explain(index, "a.b", fields={"price": 300}, ids={2})] == [2]
    reason = "price is 80; the selector wants > 100"
    assert why_not("a.*", "amqp", "a.b", "amqp", where="price > 100", fields={"price": 80}) == reason
    assert why_not("a.*", "amqp", "b", "amqp", where="price > 100", fields={"price": 180}) is not None
    assert why_not("a.*", "amqp", "a.b", "amqp", where="price > 100", fields={"price": 180}) is None
    assert why_not("a.*", "amqp", "a.b", "amqp", where="$word[2] = 'c'") == "$word[2] is 'b'; the selector wants = 'c'"


def test_numbers_of_filters_and_attributes_are_used_again() -> None:
    index = FilterIndex()
    for round in range(50):
        for id in range(4):
            index.insert(f"{id}.{round}", id, where=f"a{round} = {id}")
        assert index.match(f"2.{round}", fields={f"a{round}": 2}) == (2,)
        assert index.match(f"2.{round}", fields={f"a{round - 1}": 2}) == ()
        size = index.nbytes
        for id in range(4):
            assert index.remove(f"{id}.{round}", id)
    assert size < 60_000


class Growing(dict[str, object]):
    """Fields that change the index while they are read, so many times."""

    def __init__(self, index: FilterIndex, times: int) -> None:
        super().__init__(x=1)
        self.index, self.left = index, times

    def items(self) -> Any:
        if self.left:
            self.left -= 1
            self.index.remove("a", self.left)
            self.index.insert("a", 10 + self.left, where="x = 1")
        return super().items()


def test_an_index_that_changes_while_fields_are_read_answers_for_what_it_then_holds() -> None:
    index = FilterIndex()
    for id in range(3):
        index.insert("a", id, where="x = 1")
    assert index.match("a", fields=Growing(index, 3)) == (10, 11, 12)
    with pytest.raises(RuntimeError, match="again and again"):
        index.match("a", fields=Growing(index, 1_000))
    index.remove("a", 10)
    with pytest.raises(RuntimeError, match="while its matches were explained"):
        index.selected("a", fields=Growing(index, 1))
    assert 10 in index.match("a", fields={"x": 1})


FILTERS = st.sampled_from([("a", "amqp"), ("a.*", "amqp"), ("#", "amqp"), ("+/b", "mqtt"), ("a/b", "mqtt")])
TOPICS = st.sampled_from(["a", "a.b", "b", "$x.b", ""])
STEPS = st.one_of(
    st.tuples(st.just("insert"), FILTERS, st.integers(0, 3), st.none() | SELECTORS),
    st.tuples(st.just("remove"), FILTERS, st.integers(0, 3), st.none()),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(STEPS, max_size=14), st.lists(st.tuples(TOPICS, FIELDS), min_size=1, max_size=3))
def test_the_index_agrees_with_the_oracle(
    steps: list[tuple[str, tuple[str, str], int, Selector | None]], asked: list[tuple[str, dict[Attribute, object]]]
) -> None:
    index, oracle = FilterIndex(), ReferenceFilterIndex()
    for what, (filter, syntax), id, selector in steps:
        if what == "remove":
            assert index.remove(filter, id, syntax=syntax) is oracle.remove(filter, id, syntax=syntax)
        else:
            where = selector and parse_where(str(selector))
            changed = oracle.insert(filter, id, where=where, syntax=syntax)
            assert index.insert(filter, id, where=where, syntax=syntax) is changed
        assert len(index) == len(oracle)
    for topic, fields in asked:
        assert index.match(topic, fields=fields) == oracle.match(topic, fields=fields)
        assert index.match_any(topic, fields=fields) is oracle.match_any(topic, fields=fields)
        assert index.asked(topic) == oracle.asked(topic)
        assert index.hits(fields) == oracle.hits(fields)
