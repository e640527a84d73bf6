"""The functions of SQL on Arrow's arrays: what matchcore says of each row, with SQL's nulls."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchcore.grammar import parse_filter
from matchcore.kleene import Untyped, holds
from matchcore.reference import matches
from matchcore.selector import And, Attribute, Not, Source
from matchcore.where import parse_where
from tests.matchcore.selectors import SELECTORS

pa: Any = pytest.importorskip("pyarrow")

NAMES = ["price", "x-y", "a.b", "payload.a", "$qos", "other"]
TEXTS = st.sampled_from(["1", "a", "true", "0.5", "é", ""])
ROWS = st.lists(st.none() | st.dictionaries(st.sampled_from(NAMES), st.none() | TEXTS), min_size=1, max_size=6)
TYPES = {"price": "int64", "x-y": "string", "in": "float64", "payload.a": "bool_"}
VALUES: dict[str, list[object]] = {
    "price": [None, -3, 0, 1, 2], "x-y": [None, "a", "é", "%"], "in": [None, 0.5, 1.0, float("nan")],
    "payload.a": [None, True, False],
}  # fmt: skip
STRUCT = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in VALUES.items()})
STRUCTS = st.lists(st.none() | STRUCT, min_size=1, max_size=6)
ASKED = st.tuples(
    st.none() | st.sampled_from(["a.*", "#", "a.b", "*"]), st.none() | st.sampled_from(["a.b", "a", "", "b.c"])
)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.none() | SELECTORS, min_size=1, max_size=3), ROWS, st.sampled_from(["string", "binary"]))
def test_a_map_has_texts_without_types(selectors: list[Any], rows: list[Any], kind: str) -> None:
    from fanlight_spark.functions import selector_matches

    trees = [selector and parse_where(str(selector)) for selector in selectors]
    mine = [trees[n % len(trees)] for n in range(len(rows))]
    maps = pa.array([row if row is None else list(row.items()) for row in rows], pa.map_(pa.string(), pa.string()))
    if kind == "binary":
        maps = maps.cast(pa.map_(pa.string(), pa.binary()))
    found = selector_matches(pa.array([tree and str(tree) for tree in mine], pa.string()), maps)
    assert found.to_pylist() == [
        None if tree is None or row is None
        else holds(tree, {name: value if value is None else Untyped(value) for name, value in row.items()})
        for tree, row in zip(mine, rows, strict=True)
    ]  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(SELECTORS, STRUCTS)
def test_a_struct_has_fields_of_their_own_types(selector: Any, rows: list[Any]) -> None:
    from fanlight_spark.functions import selector_matches

    tree = parse_where(str(selector))
    structs = pa.array(rows, pa.struct([(name, getattr(pa, kind)()) for name, kind in TYPES.items()]))
    found = selector_matches(pa.array([str(tree)] * len(rows)), structs)
    assert found.to_pylist() == [row if row is None else holds(tree, row) for row in rows]


def test_a_selector_whose_opposite_is_too_long_is_asked_row_by_row() -> None:
    from fanlight_spark.functions import selector_matches

    tree: Any = And(tuple(parse_where(f"x{n:010} = '{'y' * 45}'") for n in range(60)))
    text = str(tree)
    text += f" AND z = '{'z' * (4_096 - len(text) - 12)}'"
    assert len(text) > 4_096 - 6  # "NOT ()"
    assert str(Not(parse_where(text))) == f"NOT ({text})"
    rows = pa.array([{"z": "a"}, {"z": None}], pa.struct([("z", pa.string())]))
    assert selector_matches(pa.array([text, text]), rows).to_pylist() == [False, None]


def test_the_words_of_a_topic_are_those_of_the_fields() -> None:
    from fanlight_spark.functions import selector_matches

    assert Attribute(Source.MESSAGE, ("words",)) == parse_where("$words = 2").attribute  # type: ignore[union-attr]
    maps = pa.array([[("$words", "2")], []], pa.map_(pa.string(), pa.string()))
    assert selector_matches(pa.array(["$words = 2"] * 2), maps).to_pylist() == [True, None]


@settings(deadline=None, max_examples=30)
@given(st.lists(ASKED, min_size=1, max_size=6))
def test_a_topic_is_matched_by_the_filter_beside_it(rows: list[Any]) -> None:
    from fanlight_spark.functions import topic_matches

    filters, topics = (pa.array(column, pa.string()) for column in zip(*rows, strict=True))
    expected = [
        None if filter is None or topic is None else matches(filter, "amqp", topic, "amqp") for filter, topic in rows
    ]
    assert topic_matches(filters, topics).to_pylist() == expected
    assert topic_matches(filters, topics, pa.array(["amqp"] * len(rows))).to_pylist() == expected
    assert topic_matches(filters, topics, pa.array([None] * len(rows), pa.string())).to_pylist() == [None] * len(rows)


@pytest.mark.parametrize(
    ("call", "reason"),
    [(("price = ", {"price": 1}), "'price = ', byte 8"), (("price = 1", 5), "a map or a struct, not int64"),
     (("price = 1", {"price": [1]}), "'price' has type list")],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused(call: tuple[str, Any], reason: str) -> None:
    from fanlight_spark.functions import selector_matches

    with pytest.raises((ValueError, TypeError), match=reason):
        selector_matches(pa.array([call[0]]), pa.array([call[1]]))


def test_a_filter_or_a_syntax_that_is_none_is_refused() -> None:
    from fanlight_spark.functions import topic_matches

    assert parse_filter("a/+", "mqtt").text == b"a/+"
    with pytest.raises(ValueError, match="'a/#/b', byte 2"):
        topic_matches(pa.array(["a/#/b"]), pa.array(["a"]), pa.array(["mqtt"]))
    with pytest.raises(ValueError, match="not 'kafka'"):
        topic_matches(pa.array(["a"]), pa.array(["a"]), pa.array(["kafka"]))


def test_a_word_of_a_topic_is_counted_from_either_end() -> None:
    from fanlight_spark.functions import topic_word

    topics = pa.array(["a.b.c", "a.b.c", "a/b", None, "a", "..", "a.b"])
    numbers = pa.array([1, -1, 1, 1, 2, 2, None], pa.int32())
    assert topic_word(topics, numbers).to_pylist() == ["a", "c", "a/b", None, None, "", None]
    mqtt = pa.array(["mqtt", "amqp", "mqtt", "mqtt", None, "mqtt", "mqtt"])
    assert topic_word(topics, numbers, mqtt).to_pylist() == ["a.b.c", "c", "a", None, None, None, None]
    with pytest.raises(ValueError, match="1 or more"):
        topic_word(topics, pa.array([0] * 7))


@pytest.mark.parametrize(("filter", "hits"), [("#", {"a.1.t", "b.1.t"}), ("a.*.t", {"a.1.t"}), ("$SYS.#", {"$SYS.x"})])
def test_a_column_of_topics_is_matched_the_same_whether_they_come_again_or_not(filter: str, hits: set[str]) -> None:
    from fanlight_spark.topics import index_of, match_rows, matched

    index = index_of([(filter, 0, "amqp")])
    few = ["a.1.t", "b.1.t", "$SYS.x", "a..t", ""] * 200
    assert set(pa.array(few).filter(matched(index, pa.array(few), pa.array(["amqp"] * 1_000))).to_pylist()) >= hits
    many = [f"a.{number}.t" for number in range(900)] + [f"$SYS.{number}" for number in range(100)]
    for topics in (few, many, [*few, None]):
        for first in ("amqp", "mqtt"):
            columns = pa.array(topics, pa.string()), pa.array([first] + ["amqp"] * (len(topics) - 1))
            for start in (0, 3):  # Arrow's arrays may begin inside their buffers
                part = [column.slice(start) for column in columns]
                ends, _ = match_rows(index, *part)
                assert matched(index, *part).to_pylist() == [a < b for a, b in pairwise(ends.tolist())]
