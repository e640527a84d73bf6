"""RuleIndex.first_many of columns: as `first` of each row, without the GIL, beside threads that change the rules."""

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchcore import InvalidTopic, RuleIndex
from matchcore.rules import Rule
from tests.matchcore.switching import gives_the_gil_away, side_by_side

SELECTORS = (
    None, "price > 100", "price <= 100 OR region = 'eu'", "region IS NULL", "NOT (region = 'us')", "region LIKE 'e%'",
    "urgent", "AT LEAST 2 OF (price = 5, region = 'eu', urgent)", "price BETWEEN 5 AND 120",
)  # fmt: skip
TOPICS = ("a", "a.b", "b.c", "")
Columns = Mapping[str, list[Any]]
ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 5, 100, 101, 250]), st.sampled_from([None, "eu", "us", "é"]),
        st.sampled_from([None, True, False]), st.sampled_from(TOPICS),
    ), max_size=12,
)  # fmt: skip


def as_arrow(columns: Columns) -> list[Any]:
    table = pa.table({
        "price": pa.array(columns["price"], pa.int64()),
        "region": pa.array(columns["region"], pa.string()).dictionary_encode(),
        "urgent": pa.array(columns["urgent"], pa.bool_()),
    })
    half = len(table) // 2
    return [table, pa.concat_tables([table[:half], table[half:]]), *table.combine_chunks().to_batches()[:1]]


@settings(max_examples=100, deadline=None)
@given(
    rules=st.lists(st.tuples(st.sampled_from(SELECTORS), st.integers(0, 3), st.sampled_from([None, "a.#", "*.b"])),
                   max_size=30),
    rows=ROWS, with_topics=st.booleans(),
)  # fmt: skip
def test_columns_are_answered_as_each_row_is(
    rules: list[tuple[str | None, int, str | None]], rows: list[tuple[Any, ...]], with_topics: bool
) -> None:
    index = RuleIndex()
    for number, (where, salience, topic) in enumerate(rules):
        index.insert(where, number, salience=salience, topic=topic)
    columns = {name: [row[at] for row in rows] for at, name in enumerate(("price", "region", "urgent"))}
    topics = [row[3] for row in rows]
    facts = [
        {name: column[at] for name, column in columns.items() if column[at] is not None} for at in range(len(rows))
    ]
    expected = [
        index.first(fact, topic=topic) if with_topics else index.first(fact)
        for fact, topic in zip(facts, topics, strict=True)
    ]
    for given_columns in (columns, {name: tuple(column) for name, column in columns.items()}, *as_arrow(columns)):
        found = index.first_many(given_columns, topics=iter(topics) if with_topics else None)
        assert found == expected
        assert [rule and rule.result for rule in found] == [rule and rule.result for rule in expected]


def test_a_rule_that_wins_several_times_is_one_object() -> None:
    index = RuleIndex()
    index.insert("x < 10", "small")
    first, second, third = index.first_many({"x": np.array([1, 20, 3])})
    assert first is third
    assert (first and first.result, second) == ("small", None)


def test_columns_of_numpy_are_read_where_they_are() -> None:
    index = RuleIndex()
    index.insert("x > 1.5", "large")
    index.insert("x", "true")
    for column, results in (
        (np.array([1, 2], np.uint8), [None, "large"]), (np.array([1.0, 2.5], np.float32), [None, "large"]),
        (np.array([True, False]), ["true", None]),
    ):  # fmt: skip
        assert [rule and rule.result for rule in index.first_many({"x": column})] == results


def test_rules_that_ask_for_words_of_the_topic_have_them() -> None:
    index = RuleIndex()
    index.insert("$word[2] = 'eu' AND price > 100", "eu")
    index.insert("$words = 1", "short")
    columns = pa.table({"price": [120, 120, 5]})
    found = index.first_many(columns, topics=iter(["orders.eu", "orders.us", "orders"]))
    assert [rule and rule.result for rule in found] == ["eu", None, "short"]


def test_what_is_wrong_with_columns_and_topics_is_said() -> None:
    index = RuleIndex()
    index.insert("x = 1", topic="a.#")
    table = pa.table({"x": [1, 2]})
    with pytest.raises(ValueError, match="2 facts and 1 topics"):
        index.first_many(table, topics=["a"])
    with pytest.raises(ValueError, match="different lengths: 1, 2"):
        index.first_many({"x": [1], "y": [1, 2]})
    with pytest.raises(InvalidTopic):
        index.first_many(table, topics=["a", "b" * 100_000])
    with pytest.raises(TypeError, match="no selector compares"):
        index.first_many(pa.table({"x": pa.array([[1], [2]])}))
    assert len(index.first_many(pa.table({"x": [1], "y": pa.array([[1]])}), topics=["a"])) == 1  # y: nobody asks


def test_what_makes_the_columns_may_change_the_rules() -> None:
    index = RuleIndex()
    gone = index.insert("x = 1", "gone", salience=-1)
    index.insert("x = 1", "stays")

    class Changing(list[int]):
        def __iter__(self) -> Iterator[int]:
            index.remove(gone)
            return super().__iter__()

    assert [rule and rule.result for rule in index.first_many({"x": Changing([1, 2])})] == ["stays", None]


def test_rows_are_searched_without_the_gil() -> None:
    """Another thread runs between the beginning and the end of a search, which gives the GIL away nowhere else."""
    index = RuleIndex()
    for number in range(200):
        index.insert(f"x LIKE '%{number}%b%'", number)
    columns = pa.table({"x": ["abc" * 50] * 20_000})
    assert gives_the_gil_away(lambda: index.first_many(columns))
    assert not gives_the_gil_away(lambda: index.first({"x": "abc" * 50}))


def test_changes_wait_and_each_answer_is_of_one_moment() -> None:
    """Two rules change places all the time: one of them is always there, and each row is met by it."""
    index = RuleIndex()
    index.insert("x = 1", 0, topic="a.#")
    for number in range(20):
        index.insert(f"x = 2 AND y{number} > 3", -1)
    columns, topics = {"x": np.array([1, 2, 1] * 40)}, ["a.b", "a", "b"] * 40
    problems: list[object] = []
    done = threading.Event()

    def write() -> None:
        try:
            held = index.first({"x": 1}, topic="a")
            for number in range(1, 300):
                new = index.insert("x = 1", number, topic="a.#", salience=-number)
                assert held is not None
                index.remove(held)
                held = new
        finally:
            done.set()

    def read() -> None:
        last = 0
        while not done.is_set():
            found: list[Rule | None] = index.first_many(columns, topics=topics)
            results = {rule.result for rule in found[::3] if rule is not None}
            if None in found[::3] or len(results) != 1 or any(found[1::3]) or any(found[2::3]):
                problems.append(found)
            elif min(results) < last:
                problems.append((results, last))
            else:
                last = min(results)

    side_by_side(write, read, read, problems=problems)
    assert problems == []
    assert len(index) == 21
